package spec_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

const payAll = "kind: composition\nname: billing.payAll\ndescription: Pays all bills.\nicon: coin\npermission: write\nsteps:\n  - {id: pay, tool: billing.pay}\n"

// Versions can be computed without jig; this test does it by hand.
func TestVersion_CanBeComputedByOtherPrograms(t *testing.T) {
	t.Parallel()
	doc, problems := spec.Load("pay.yaml", []byte(payAll))
	require.Empty(t, problems.Errors())
	want := sha(`{"body":"` + strings.ReplaceAll(payAll, "\n", `\n`) + `","kind":"composition"}`)
	require.Equal(t, want, doc.Version)
	require.Equal(t, want, doc.Execution().Version)
	require.Equal(t, want, doc.Execution().Tool.Version)
	require.Equal(t, sha(`{"kind":"composition","name":"billing.payAll","permission":"write","steps":[{"id":"pay","tool":"billing.pay"}]}`), doc.Execution().Tool.Meaning)

	const agent = "---\nname: tidy\nmodel: anthropic/x\n---\nTidy <up> & \"rest\".\n"
	doc, problems = spec.Load("tidy.md", []byte(agent))
	require.Empty(t, problems.Errors())
	want = sha(`{"body":"---\nname: tidy\nmodel: anthropic/x\n---\nTidy <up> & \"rest\".\n","kind":"agent"}`)
	require.Equal(t, want, doc.Version)
	require.Equal(t, want, doc.Agent().Version)

	skill := fstest.MapFS{
		"notes/SKILL.md": {Data: []byte("---\nname: notes\ndescription: Says how notes are written.\n---\nBe short.\n")},
		"notes/style.md": {Data: []byte("Short.")},
	}
	docs, problems := spec.LoadFS(skill, ".")
	require.Empty(t, problems.Errors())
	body := `{"description":"Says how notes are written.","files":{"style.md":"Short."},"instructions":"Be short.","kind":"skill","name":"notes"}`
	require.Equal(t, body, string(docs[0].Body))
	require.Equal(t, sha(`{"body":"`+strings.ReplaceAll(body, `"`, `\"`)+`","kind":"skill"}`), docs[0].Version)

	manifest, problems := spec.Load("bundle.yaml", []byte("kind: bundle\nname: billing\nversion: 1.0.0\n"))
	require.Empty(t, problems.Errors())
	pay, problems := spec.Load("pay.yaml", []byte(payAll))
	require.Empty(t, problems.Errors())
	bundle, problems := spec.BundleOf([]spec.Document{pay, manifest, docs[0]})
	require.Empty(t, problems.Errors())
	require.Equal(t, sha(`{"documents":[{"kind":"composition","name":"billing.payAll","version":"`+pay.Version+
		`"},{"kind":"skill","name":"notes","version":"`+docs[0].Version+`"}],"manifest":"`+manifest.Version+`"}`), bundle.Hash)
}

func TestDescriptions_ChangeTheVersionButNotTheMeaning(t *testing.T) {
	t.Parallel()
	load := func(body string) *spec.Execution {
		doc, problems := spec.Load("pay.yaml", []byte(body))
		require.Empty(t, problems.Errors())
		return doc.Execution()
	}
	first := load(payAll)
	for _, same := range []string{
		strings.Replace(payAll, "Pays all bills.", "Pays all bills, in full.", 1),
		strings.Replace(payAll, "icon: coin\n", "", 1),
		payAll + "# a comment\n",
	} {
		require.NotEqual(t, first.Tool.Version, load(same).Tool.Version, same)
		require.Equal(t, first.Tool.Meaning, load(same).Tool.Meaning, same)
	}
	for _, other := range []string{
		strings.Replace(payAll, "tool: billing.pay", "tool: billing.payTwice", 1),
		strings.Replace(payAll, "permission: write", "permission: draft", 1),
		payAll + "tags: [money]\n",
	} {
		require.NotEqual(t, first.Tool.Version, load(other).Tool.Version, other)
		require.NotEqual(t, first.Tool.Meaning, load(other).Tool.Meaning, other)
	}
}

// Two texts that are not UTF-8 could have the same version, so such texts are not documents.
func TestDocument_MustBeUTF8(t *testing.T) {
	t.Parallel()
	for file, body := range map[string]string{
		"tidy.md":  "---\nname: tidy\nmodel: anthropic/x\n---\nTidy \xff up.\n",
		"pay.yaml": strings.Replace(payAll, "Pays", "P\xffays", 1),
		"SKILL.md": "---\nname: notes\ndescription: Says how notes are written.\n---\nBe \xff short.\n",
	} {
		_, problems := spec.Load(file, []byte(body))
		require.ErrorContains(t, problems.OrNil(), "not UTF-8", file)
	}
}
