package store

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// A cursor continues only the list that it came from, in every process with the same secret.
func TestCursor_ContinuesOnlyItsList(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{7}, 32)
	one, err := newCursors(secret)
	require.NoError(t, err)
	two, err := newCursors(secret)
	require.NoError(t, err)
	of := pageOf{"acme", "approvals", []string{"ana"}}
	text, err := one.seal(of, cursor{ID: 4711})
	require.NoError(t, err)
	var from cursor
	require.NoError(t, two.open(of, text, &from))
	require.EqualValues(t, 4711, from.ID)
	require.NoError(t, two.open(of, "", &from))
	require.EqualValues(t, 4711, from.ID, "without a cursor, nothing changes")

	changed := []byte(text)
	changed[len(changed)/2] ^= 1
	stranger, err := newCursors(bytes.Repeat([]byte{8}, 32))
	require.NoError(t, err)
	require.Error(t, stranger.open(of, text, &from))
	for name, c := range map[string]struct {
		of   pageOf
		text string
	}{
		"another tenant": {pageOf{"globex", of.List, of.Filter}, text},
		"another list":   {pageOf{of.Tenant, "sessions", of.Filter}, text},
		"another filter": {pageOf{of.Tenant, of.List, []string{"ben"}}, text},
		"no filter":      {pageOf{of.Tenant, of.List, nil}, text},
		"a changed one":  {of, string(changed)},
		"one of clients": {of, base64.RawURLEncoding.EncodeToString([]byte(`{"at":"2026-11-27T10:00:00Z","id":1}`))},
		"nonsense":       {of, "!"},
	} {
		err := two.open(c.of, c.text, &from)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), name)
		require.Equal(t, "cursor", jig.AsError(err).Field, name)
	}
}

// Neither the text nor the length of a cursor tells how large a counter is, nor whether it moved.
func TestCursor_TellsNothing(t *testing.T) {
	t.Parallel()
	c, err := newCursors(bytes.Repeat([]byte{7}, 32))
	require.NoError(t, err)
	of := pageOf{Tenant: "acme", List: "events"}
	texts := map[string]bool{}
	for _, written := range []int64{1, 1, 1_000_000_000_000} {
		text, err := c.seal(of, place{Written: written})
		require.NoError(t, err)
		texts[text] = true
		require.Len(t, text, 123)
		sealed, err := base64.RawURLEncoding.DecodeString(text)
		require.NoError(t, err)
		require.NotContains(t, string(sealed), `"w"`)
	}
	require.Len(t, texts, 3)
}
