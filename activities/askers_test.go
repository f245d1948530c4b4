package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// What one person did alone: they asked for a call with a message, a standing approval or a change of the input, and approved it.
func TestAskers_NobodyBothAsksAndApproves(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
	require.NoError(t, err)
	require.NoError(t, o.db.Said(t.Context(), o.tenant, o.session, jig.Asker{Principal: "fay", By: jig.AskedMessage}))
	c := o.asks(t, 2, refundTool, small)
	require.Equal(t, []jig.Asker{
		{Principal: "ana", Claimed: true, By: jig.AskedStarted}, {Principal: "fay", By: jig.AskedMessage},
	}, o.pending(t, c.ID).Askers)
	for _, who := range []string{"ana", "fay"} {
		for _, d := range []jig.Decision{
			{Call: c.ID, By: who}, {Call: c.ID, By: who, Grant: &jig.GrantRequest{}}, {Call: c.ID, By: "flo", Answer: jig.AnswerDelegate, To: who},
		} {
			got := o.hear(t, "decide", d)
			require.Equal(t, jig.DecisionRefused, got.Outcome, "%v", got)
			require.Contains(t, got.Reason, who+" asked for this call")
		}
		signal := o.sent(t, "approve", "signal:"+jig.NewSessionID(), jig.Decision{Call: c.ID, By: who})
		require.Equal(t, jig.DecisionRefused, signal.Outcome)
		batch := o.hear(t, "decide", protocol.Decisions{Decisions: []jig.Decision{{Call: c.ID, By: who}}})
		require.Equal(t, jig.DecisionRefused, batch.Outcome)
	}
	require.NoError(t, o.db.Said(t.Context(), o.tenant, o.session, jig.Asker{Principal: "flo", By: jig.AskedMessage}))
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", jig.Decision{Call: c.ID, By: "flo"}).Status, "a later message adds nobody")
}

// Whoever sends an event that a composition uses has asked for the calls that follow.
func TestAskers_SendersOfEventsAskForWhatFollows(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]protocol.Event{"claimed": {Name: "paid", By: "fay"}, "nobody": {Name: "paid"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.begins(t, "kind: composition\nname: t.refundPaid\nsteps:\n  - {id: paid, wait_for: {event: paid, timeout: 8s}}\n"+
				"  - {id: refund, tool: shop.refund, input: "+small+"}\n", `{}`)
			require.Empty(t, o.arrives(t, e))
			o.composes(t)
			want := []jig.Asker{{Principal: "ana", Claimed: true, By: jig.AskedStarted}}
			if e.By != "" {
				want = append(want, jig.Asker{Principal: "fay", Claimed: true, By: jig.AskedEvent})
			}
			require.ElementsMatch(t, want, o.pending(t, "1.1/refund").Askers)
		})
	}
}
