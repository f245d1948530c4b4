package activities_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
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

// guard is a rule by which finance decides without those who asked.
const guard = "  - {name: guard, when: 'true', verdict: ask, approvers: {groups: [finance]}, not_requester: true}\n"

// A standing approval that somebody gave before they put words into a session counts no longer for the calls that rest on these words.
func TestAskers_AnEarlierGrantDoesNotDecide(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, guard)
	byFay := o.gathers(t, "fay", jig.GrantRequest{MaxUses: 9})
	require.Equal(t, []string{"2.1", "3.1"}, o.fits(t, byFay, "flo"))
	require.NoError(t, o.db.Said(t.Context(), o.tenant, o.session, jig.Asker{Principal: "fay", By: jig.AskedMessage}))
	c := o.asks(t, 4, refundTool, `{"order":"d","amount":1}`)
	require.Equal(t, jig.CallWaiting, c.Status)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Equal(t, []string{"2.1", "3.1"}, o.fits(t, byFay, "flo"), "not the call that rests on fay's words")
	refused := o.hear(t, "decide", jig.Decision{Call: c.ID, By: "flo", GrantID: byFay})
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "does not suffice")
	byFlo := o.hear(t, "decide", jig.Decision{Call: c.ID, By: "flo", Grant: &jig.GrantRequest{MaxUses: 9}})
	require.NotEmpty(t, byFlo.Grant, "%+v", byFlo)
	c = o.asks(t, 5, refundTool, `{"order":"e","amount":1}`)
	require.Equal(t, jig.CallReserved, c.Status)
	approved, _, err := o.db.Signed(t.Context(), o.tenant, o.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, byFlo.Grant, approved.Grant)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// grantTools returns the tool grants.create, as a worker has it.
func (o *office) grantTools() []tools.Tool {
	return grants.Tools(grants.Options{
		New: func(_ context.Context, tenant string, request jig.GrantRequest, now time.Time) (jig.Grant, error) {
			return policy.GrantFor(tenant, o.Tools(), request, o.settings.Grants, now)
		},
		Approved: o.db.Approved, Put: o.db.PutGrant, ID: activities.GrantID,
	})
}

// decides sends a decision through the server, by somebody who acts with a credential that their Maker made.
func (f *front) decides(t *testing.T, who jig.Principal, d jig.Decision) jig.Ruled {
	t.Helper()
	payload := protocol.Decisions{Decisions: []jig.Decision{d}}
	payload.Proof = f.state(t, protocol.Statement{Kind: protocol.StateDecide, Session: f.session, Content: payload.Content(), Principal: who}, f.now())
	return f.hear(t, "decide", payload)
}

// If somebody gives a standing approval with a credential that another person made, it counts as that person's, too.
func TestAskers_GrantsAreTheirMakersToo(t *testing.T) {
	t.Parallel()
	for maker, want := range map[string]jig.CallStatus{"": jig.CallReserved, jig.MakerOperator: jig.CallReserved, "fay": jig.CallWaiting} {
		for _, created := range []bool{false, true} {
			t.Run(fmt.Sprintf("made by %q, created %v", maker, created), func(t *testing.T) {
				t.Parallel()
				f := newFront(t, func(o *office) { o.settings.Proof, o.extra = jig.ProofVouched, o.grantTools() })
				f.govern(t, guard)
				flo := jig.Principal{ID: "flo", Maker: maker}
				if created {
					c := f.asks(t, 1, grants.CreateTool, `{"tool":"`+refundTool+`"}`)
					require.Equal(t, jig.CallWaiting, f.runs(t, c.ID))
					require.Equal(t, jig.CallReserved, f.decides(t, flo, jig.Decision{Call: c.ID}).Status)
					require.Equal(t, jig.CallSucceeded, f.runs(t, c.ID))
				} else {
					c := f.asks(t, 1, refundTool, third)
					require.NotEmpty(t, f.decides(t, flo, jig.Decision{Call: c.ID, Grant: &jig.GrantRequest{}}).Grant)
				}
				require.Equal(t, jig.CallReserved, f.asks(t, 2, refundTool, small).Status, "the grant covers it")
				require.NoError(t, f.db.Said(t.Context(), f.tenant, f.session, jig.Asker{Principal: "fay", By: jig.AskedMessage}))
				c := f.asks(t, 3, refundTool, second)
				require.Equal(t, want, c.Status)
				if want == jig.CallWaiting {
					require.Equal(t, jig.CallReserved, f.decides(t, jig.Principal{ID: "flo"}, jig.Decision{Call: c.ID}).Status, "with a credential of flo's own")
				}
			})
		}
	}
}
