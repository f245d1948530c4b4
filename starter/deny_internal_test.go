package starter

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestDeny_WithoutAReasonSaysSo(t *testing.T) {
	t.Parallel()
	view := jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{waitingCall()}}
	got := jigCLI(t, &fake{view: view}, nil, "deny", "ses_1", "3.1")
	require.Contains(t, got.stderr, "no reason was given")
	got = jigCLI(t, &fake{view: view}, nil, "deny", "ses_1", "3.1", "--reason", "not before the release")
	require.NotContains(t, got.stderr, "no reason")
}

func TestDeny_AsksForTheReasonOnATerminal(t *testing.T) {
	t.Parallel()
	view := jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{waitingCall()}}
	for _, c := range []struct {
		args  []string
		typed string
		asks  bool
		sent  string
	}{
		{typed: " not before the release \n", asks: true, sent: "not before the release"},
		{typed: "\n", asks: true},
		{args: []string{"--reason", "no"}, typed: "unread\n", sent: "no"},
		{args: []string{"--output", "json"}, typed: "unread\n"},
	} {
		e := &fake{view: view}
		person := func(a *app) { a.interactive, a.stdin = true, strings.NewReader(c.typed) }
		got := jigCLI(t, e, person, append([]string{"deny", "ses_1", "3.1"}, c.args...)...)
		require.Equal(t, c.asks, strings.Contains(got.stderr, "why not?"), got.stderr)
		require.NotContains(t, got.stderr, "no reason was given")
		require.Len(t, e.decided, 1)
		require.Equal(t, c.sent, e.decided[0].Reason)
	}
}

func TestDeny_AsksForTheReasonAfterTheConfirmation(t *testing.T) {
	t.Parallel()
	e := waitingIn("ses_1 1.1")
	deny := func(typed string, args ...string) outcome {
		e.sent = nil
		return jigCLI(t, e, func(a *app) {
			a.interactive, a.env["TERM"] = true, "dumb"
			a.stdin = io.MultiReader(strings.NewReader(typed), strings.NewReader("too late\n"))
		}, append([]string{"deny", "--all", "--tool", "*"}, args...)...)
	}
	require.Contains(t, deny("y\n").stderr, "why not?")
	require.Len(t, e.sent, 1)
	require.Equal(t, "too late", e.sent[0].Reason)
	require.NotContains(t, deny("n\n").stderr, "why not?")
	require.Empty(t, e.sent)
	require.NotContains(t, deny("", "--yes").stderr, "why not?")
	require.Len(t, e.sent, 1)
}
