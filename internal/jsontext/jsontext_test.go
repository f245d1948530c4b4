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
