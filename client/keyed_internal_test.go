package client

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestChosen_ByKey(t *testing.T) {
	t.Parallel()
	_, first, err := chosen("acme", "", "k1", "pay")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(first, jig.SessionPrefix))
	_, again, err := chosen("acme", "", "k1", "pay")
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, other, err := chosen("acme", "", "k2", "pay")
	require.NoError(t, err)
	_, foreign, err := chosen("zoo", "", "k1", "pay")
	require.NoError(t, err)
	require.NotContains(t, []string{other, foreign}, first)
	_, _, err = chosen("acme", "one", "k1", "pay")
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

// reader answers the request for a status.
type reader struct{ err error }

func (r reader) Read(_ context.Context, name string, _, answer any) (bool, error) {
	if view, ok := answer.(*jig.SessionView); ok && name == string(protocol.ReadStatus) {
		view.Status = jig.StatusCompleted
		return true, r.err
	}
	return false, nil
}

// A reader answers what it can, and workers the rest.
func TestReader_AnswersWithoutAWorker(t *testing.T) {
	t.Parallel()
	c := newClient(nil, nil, Options{Reader: reader{}})
	view, err := c.Status(t.Context(), "acme", "one")
	require.NoError(t, err)
	require.Equal(t, jig.StatusCompleted, view.Status)
	require.Panics(t, func() { _, _ = c.Record(t.Context(), "acme", "one", "1.1") }, "there is no Temporal to ask") //nolint:errcheck // it panics
	c = newClient(nil, nil, Options{Reader: reader{jig.Errorf(jig.CodeNotFound, "there is none").WithField("session_id")}})
	_, err = c.Status(t.Context(), "acme", "one")
	require.NotEmpty(t, jig.AsError(err).Hint)
}
