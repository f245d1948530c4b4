package spec_test

import (
	"encoding/binary"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

// encoded returns a text in UTF-16 or UTF-32, in both byte orders, with and without a byte order mark.
func encoded(text string) map[string][][]byte {
	all := map[string][][]byte{}
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []string{"\ufeff", ""} {
			var wide, wider []byte
			for _, unit := range utf16.Encode([]rune(mark + text)) {
				wide = order.AppendUint16(wide, unit)
			}
			for _, r := range mark + text {
				wider = order.AppendUint32(wider, uint32(r))
			}
			all["UTF-16"], all["UTF-32"] = append(all["UTF-16"], wide), append(all["UTF-32"], wider)
		}
	}
	return all
}

// A document in another encoding is refused, and the problem names the encoding, whichever way the document is read.
func TestLoad_NamesTheEncoding(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{
		"a.yaml":     "kind: composition\nname: a.b\ndescription: Überall.\nsteps: [{set: {a: 1}}]\n",
		"a.json":     `{"kind": "policy", "name": "a", "rules": []}`,
		"a.md":       "---\nname: a\nmodel: openai/x\n---\nDo it.\n",
		"s/SKILL.md": "---\nname: a\ndescription: Do it.\n---\nDo it.\n",
	} {
		for encoding, bodies := range encoded(text) {
			for _, body := range bodies {
				_, problems := spec.Load(file, body)
				require.Len(t, problems, 1, "%s %s", file, encoding)
				require.Equal(t, spec.ProblemSyntax, problems[0].Code)
				require.Equal(t, "the document is "+encoding+" text, not UTF-8", problems[0].Message)
				require.Equal(t, "save it as UTF-8", problems[0].Hint)

				_, problems = spec.LoadFS(fstest.MapFS{file: {Data: body}}, ".")
				require.Len(t, problems.Errors(), 1, "%s %s", file, encoding)
				require.Contains(t, problems.Error(), encoding, file)
			}
		}
	}
	readme := encoded("# Read me\n\nkind: of\n")["UTF-16"]
	docs, problems := spec.LoadFS(fstest.MapFS{"README.md": {Data: readme[0]}}, ".")
	require.Empty(t, docs, "it is not a document")
	require.Empty(t, problems)
	_, err := spec.ParseAgent("a.md", encoded("---\nname: a\n---\nDo it.")["UTF-16"][2])
	require.ErrorContains(t, err, "UTF-16")
}

func TestLoad_PointsAtTheFirstByteThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	_, problems := spec.Load("a.yaml", []byte("kind: composition\nname: caf\xe9.open\nsteps: []\n"))
	require.Len(t, problems, 1)
	require.Equal(t, []any{spec.ProblemSyntax, 2, 10, "save it as UTF-8"}, []any{problems[0].Code, problems[0].Line, problems[0].Column, problems[0].Hint})
}
