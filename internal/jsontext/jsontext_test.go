package jsontext_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/jsontext"
)

func TestEncode_DoesNotEscapeHTML(t *testing.T) {
	t.Parallel()
	raw, err := jsontext.Encode(map[string]any{"when": "a < b && c > d", "list": []int{1, 2}})
	require.NoError(t, err)
	require.Equal(t, `{"list":[1,2],"when":"a < b && c > d"}`, string(raw)) //nolint:testifylint // the bytes matter, not only the value
	_, err = jsontext.Encode(func() {})
	require.ErrorContains(t, err, "write as JSON")
}

func TestWrite_AppendsNothingIfItFails(t *testing.T) {
	t.Parallel()
	b := bytes.NewBufferString("[")
	require.NoError(t, jsontext.Write(b, "<a>\n"))
	require.Error(t, jsontext.Write(b, make(chan int)))
	require.Equal(t, `["<a>\n"`, b.String())
}

func TestInWords_ShowsAnInputOnOneLine(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"order": "7", "items": ["a", 2], "note": "two\nlines", "fail": false, "to": {"name": "ana"}}`: `fail=false, items=["a",2], note=two lines, order=7, to={"name":"ana"}`,
		"{}": "", "null": "", "": "", "[1]": "[1]", "no JSON": "no JSON",
	} {
		require.Equal(t, want, jsontext.InWords([]byte(input)), input)
	}
}
