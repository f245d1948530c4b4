package credential_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/identity/credential"
)

func TestForm_ParsesWhatItMakes(t *testing.T) {
	t.Parallel()
	for _, p := range []credential.Form{credential.LoginForm, credential.KeyForm, credential.EmbedForm} {
		text, id, hash := p.New()
		gotID, gotHash, ok := p.Parse(text)
		require.True(t, ok, text)
		require.Equal(t, id, gotID)
		require.Equal(t, hash, gotHash)
		require.Len(t, hash, 32)
		require.True(t, strings.HasPrefix(text, string(p)+id+"_"))
		require.NotContains(t, text, string(hash))
		other, otherID, otherHash := p.New()
		require.NotEqual(t, text, other)
		require.NotEqual(t, id, otherID)
		require.NotEqual(t, hash, otherHash)
		for _, wrong := range []string{
			"", string(p), string(p) + id, string(p) + id + "_", text + "a", text[:len(text)-1], text[:len(text)-1] + "1", text[1:], strings.ToUpper(text), " " + text, text + "\n",
			"x_" + text,
		} {
			_, _, ok := p.Parse(wrong)
			require.False(t, ok, "%q", wrong)
		}
	}
}

// No text is two kinds of credential.
func TestForm_KindsAreDistinct(t *testing.T) {
	t.Parallel()
	kinds := []credential.Form{credential.LoginForm, credential.KeyForm, credential.EmbedForm}
	for _, made := range kinds {
		text, _, _ := made.New()
		for _, read := range kinds {
			_, _, ok := read.Parse(text)
			require.Equal(t, made == read, ok, "%s as %q", text, read)
		}
	}
}
