package starter

import (
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
