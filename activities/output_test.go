package activities_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// calls opens the session of a single call, admits the call, and makes the session the office's session.
func (o *office) calls(t *testing.T, tool, input string) jig.Call {
	t.Helper()
	o.session = jig.NewSessionID()
	_, err := o.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: o.ref(),
		Call:       protocol.CallInput{Tool: tool, Input: json.RawMessage(input), Principal: jig.Principal{ID: "ana"}},
	})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: o.firstPass(), Limit: 100})
	require.NoError(t, err)
	return o.call(t, "1.1")
}

func (o *office) firstPass() activities.PassRef {
	return activities.PassRef{SessionRef: o.ref(), Pass: 1}
}

func (o *office) status(t *testing.T) jig.SessionView {
	t.Helper()
	view, err := o.Status(t.Context(), protocol.StatusRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	return view
}

func TestStatus_HasTheOutputOfACallThatWaited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.calls(t, refundTool, small)
	require.Equal(t, jig.CallWaiting, c.Status)
	require.Empty(t, o.status(t).Output)
	o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Empty(t, o.status(t).Output, "the session has not ended")
	_, err := o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	require.JSONEq(t, small, string(o.status(t).Output))
}

func TestStatus_OfAnAgentHasNoOutput(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, ordersTool, small)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	_, err := o.db.EndPass(t.Context(), ledger.End{Tenant: o.tenant, SessionID: o.session, Pass: 1, Status: jig.StatusCompleted, Answer: "done"})
	require.NoError(t, err)
	require.Empty(t, o.status(t).Output)
}
