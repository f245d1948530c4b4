package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

// begins opens a session for a call of the given composition, and makes it the office's session.
func (o *office) begins(t *testing.T, document, input string) {
	t.Helper()
	o.session = jig.NewSessionID()
	_, err := o.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: o.ref(),
		Call:       protocol.CallInput{Document: document, DocumentName: "test.yaml", Input: json.RawMessage(input), Principal: jig.Principal{ID: "ana"}},
	})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: o.firstPass(), Limit: 100})
	require.NoError(t, err)
}

// composes advances the composition as far as possible, like its workflow: calls that may run are run one after another, and waits
// end at once. It returns the last state when the composition has ended, or when everything left waits for a person.
func (o *office) composes(t *testing.T) activities.Composed {
	t.Helper()
	return o.composesCall(t, "1.1")
}

func (o *office) composesCall(t *testing.T, id string) activities.Composed {
	t.Helper()
	in := activities.ComposeInput{SessionRef: o.ref(), Call: id, Now: o.now()}
	for {
		out, err := o.Compose(t.Context(), in)
		require.NoError(t, err)
		if out.Done {
			return out
		}
		ran := false
		for _, ref := range out.Calls {
			switch {
			case ref.Child == activities.ChildComposition:
				ran = o.composesCall(t, ref.ID).Done || ran
			case ref.State == jig.CallReserved || ref.State == jig.CallExecuting:
				_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: ref.ID})
				ran = ran || err == nil
			}
		}
		switch {
		case ran:
		case !out.Wake.IsZero():
			in.Now = out.Wake
		default:
			return out
		}
	}
}

const closing = `kind: composition
name: shop.finish
steps:
  - {id: close, tool: shop.close, input: {order: a, confirmed: "${input.confirmed}"}}
  - {id: after, tool: shop.orders, input: {order: a, amount: 1}}
`

func TestConfirm_StepWithoutItsFlagFailsTheComposition(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.begins(t, closing, `{"confirmed":false}`)
	out := o.composes(t)
	require.Equal(t, jig.CallFailed, out.Ran.State)
	failed := o.call(t, "1.1/close").Result.Error
	require.Equal(t, jig.CodeInvalidInput, failed.Code)
	require.Equal(t, activities.ReasonRequiresConfirmation, failed.Reason)
	require.Contains(t, failed.Hint, "confirmed: true")
	require.Empty(t, o.ran, "neither the tool nor the step after it ran")

	o.begins(t, closing, `{"confirmed":true}`)
	o.composes(t)
	require.Equal(t, jig.CallWaiting, o.call(t, "1.1/close").Status, "policy requires approval, as for any write")
	o.hear(t, "approve", jig.Decision{Call: "1.1/close", By: "fay"})
	require.Equal(t, jig.CallSucceeded, o.composes(t).Ran.State)
	require.Equal(t, []string{"1.1/close a true", "1.1/after a 1"}, o.ran)
}

func TestConfirm_SingleCallWithoutItsFlagFails(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.calls(t, closeTool, unconfirmed)
	require.Equal(t, jig.CallFailed, c.Status)
	require.Equal(t, activities.ReasonRequiresConfirmation, c.Result.Error.Reason)
	require.True(t, strings.HasPrefix(c.Result.Error.Message, "nothing was done"), c.Result.Error.Message)
	settled, err := o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, settled.Status)
	require.Empty(t, o.ran)
	require.Equal(t, jig.CallWaiting, o.calls(t, closeTool, confirmed).Status)
}

// movedFrames stores a move of another worker before the first list of open calls.
type movedFrames struct {
	activities.Store
	moved bool
}

func (m *movedFrames) FrameWindow(ctx context.Context, tenant, id, call string) (ledger.Window, error) {
	if !m.moved {
		m.moved = true
		f, err := m.Frame(ctx, tenant, id, call)
		if err == nil {
			err = m.MoveFrame(ctx, plan.FrameMove{Tenant: tenant, SessionID: id, CallID: call, Revision: f.Revision, State: f.State})
		}
		if err != nil {
			return ledger.Window{}, err
		}
	}
	return m.Store.FrameWindow(ctx, tenant, id, call)
}

// A worker may still be working on a composition whose workflow was terminated. Then the composition is abandoned a moment later, instead of
// failing its session.
func TestAbandonedComposition_WaitsForItsLastMove(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) { o.store = &movedFrames{Store: o.store} })
	o.begins(t, "kind: composition\nname: shop.pay\nsteps:\n  - {id: pay, tool: shop.refund, input: {order: a, amount: 1}}\n", `{}`)
	in := activities.ComposeInput{SessionRef: o.ref(), Call: "1.1", Now: o.now()}
	_, err := o.Compose(t.Context(), in)
	require.NoError(t, err)
	_, err = o.AbandonFrame(t.Context(), in)
	var later *temporal.ApplicationError
	require.ErrorAs(t, err, &later)
	require.False(t, later.NonRetryable())
	ran, err := o.AbandonFrame(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, jig.CallCanceled, ran.State)
	require.Equal(t, jig.CallCanceled, o.call(t, "1.1/pay").Status)
}

// charges adds a tool that names its undo, and the tool that undoes it.
func charges(o *office) {
	run := func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
		o.did(in.Order, inv)
		return in, nil
	}
	o.extra = append(o.extra,
		tools.New(jig.Tool{Name: "shop.charge", Description: "Charges an order.", Permission: jig.PermissionDraft, Undo: "shop.uncharge", Labels: &jig.Labels{}}, run),
		tools.New(jig.Tool{Name: "shop.uncharge", Description: "Takes a charge back.", Permission: jig.PermissionDraft, Labels: &jig.Labels{}}, run))
}

func TestUndo_IsTheToolThatTheContractNames(t *testing.T) {
	t.Parallel()
	o := newOffice(t, charges)
	o.begins(t, `kind: composition
name: shop.charges
steps:
  - {id: named, tool: shop.charge, input: {order: a, amount: 1}, undo: {input: {order: "undo ${steps.named.data.order}", amount: 1}}}
  - {id: none, tool: shop.orders, input: {order: b, amount: 1}, undo: {input: {order: c, amount: 1}}}
  - fail: {message: "no"}
`, `{}`)
	out := o.composes(t)
	require.Equal(t, jig.CallFailed, out.Ran.State)
	require.Equal(t, []string{"1.1/named a", "1.1/none b 1", "1.1/named.undo undo a"}, o.ran)
	undo := o.call(t, "1.1/named.undo")
	require.Equal(t, "shop.uncharge", undo.Tool)
	require.Equal(t, "undoes 1.1/named, because: no", undo.Reasons[0])
	none := o.call(t, "1.1/none.undo").Result.Error
	require.Equal(t, jig.CodeToolNotFound, none.Code)
	require.Contains(t, none.Message, "shop.orders has no undo tool")
	events, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 100)
	require.NoError(t, err)
	for _, e := range events {
		if e.Type == jig.EventToolUndone {
			require.Equal(t, []string{"1.1/named", "shop.uncharge"}, []string{e.CallID, e.Tool})
		}
	}
}

// flaky adds a write that fails on its first two calls. It records the keys and inputs that it is called with.
func flaky(idempotent bool, problem jig.Error) func(*office) {
	return func(o *office) {
		calls := 0
		o.extra = append(o.extra, tools.New(
			jig.Tool{Name: "shop.flaky", Description: "Pays an order, or not.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}, Idempotent: idempotent, MaxAttempts: 1},
			func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
				o.did(in.Order+" "+inv.IdempotencyKey, inv)
				if calls++; calls <= 2 {
					return in, &problem
				}
				return in, nil
			}))
	}
}

const insisting = `kind: composition
name: shop.insists
steps:
  - id: pay
    tool: shop.flaky
    input: {order: "${string(now)}", amount: 1}
    retry: {max_attempts: 3, backoff: 10s, when: "true"}
`

const runsAll = "  - {name: all, when: 'true', verdict: run}\n"

func TestRetry_HasTheKeyAndTheInputOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	o := newOffice(t, flaky(true, jig.Error{Code: jig.CodeRateLimited, Message: "slow down", NotExecuted: true}))
	o.govern(t, runsAll)
	o.begins(t, insisting, `{}`)
	out := o.composes(t)
	require.Equal(t, jig.CallSucceeded, out.Ran.State)
	first := o.call(t, "1.1/pay")
	require.True(t, strings.HasSuffix(first.IdempotencyKey, o.session+"/1.1/pay"), first.IdempotencyKey)
	for i, id := range []string{"1.1/pay", "1.1/pay~2", "1.1/pay~3"} {
		require.Equal(t, string(first.Input), string(o.call(t, id).Input))
		_, effect, _ := strings.Cut(o.ran[i], " ")
		_, key, _ := strings.Cut(effect, " ")
		require.Equal(t, first.IdempotencyKey, key, "%s: %s", id, o.ran[i])
	}
}

func TestRetry_OfAWriteThatMayHaveHappenedAsksAPerson(t *testing.T) {
	t.Parallel()
	for _, code := range []jig.Code{jig.CodeUnavailable, jig.CodeInternal, jig.CodeTimeout} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, flaky(false, jig.Error{Code: code, Message: "connection reset"}))
			o.govern(t, runsAll)
			o.begins(t, insisting, `{}`)
			for want := 1; want <= 2; want++ {
				o.composes(t)
				require.Equal(t, jig.CallUnknown, o.call(t, "1.1/pay").Status)
				require.Len(t, o.ran, want, "nothing runs again by itself")
				o.hear(t, "reconcile", jig.Reconciliation{Call: "1.1/pay", Outcome: jig.OutcomeNotHappened, Attempt: want, By: "fay"})
			}
			require.Equal(t, jig.CallSucceeded, o.composes(t).Ran.State)
			require.Len(t, o.ran, 3)
		})
	}
}

// A composition that fails after one of its steps wrote is not retried, because it would write a second time.
func TestRetry_CompositionThatWroteIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first string
		tries int
	}{
		"wrote":        {"shop.refund", 1},
		"only drafted": {"shop.charge", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, charges)
			o.govern(t, runsAll)
			body := "kind: composition\nname: shop.inner\nsteps:\n  - {id: a, tool: " + row.first +
				", input: {order: a, amount: 1}}\n  - {fail: {message: \"no\"}}\n"
			inner, err := composition.NewEngine().Load("inner.yaml", []byte(body))
			require.NoError(t, err)
			require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, activities.DocumentSpec, inner.Contract.Name, inner.Contract.Version, []byte(body)))
			o.begins(t, `kind: composition
name: shop.outer
steps:
  - {id: inner, composition: shop.inner, retry: {max_attempts: 2, backoff: 1s, when: "true"}}
`, `{}`)
			o.composes(t)
			require.Len(t, o.ran, row.tries)
		})
	}
}

// The result of a step that reports late is as readable as any other.
func TestStep_ThatReportsLateHasItsResult(t *testing.T) {
	t.Parallel()
	o := newOffice(t, flaky(false, jig.Error{Code: jig.CodeTimeout, Message: "too slow"}))
	o.govern(t, runsAll)
	o.begins(t, "kind: composition\nname: shop.reports\nsteps:\n"+
		"  - {id: pay, tool: shop.flaky, input: {order: late, amount: 1}}\noutput: \"${steps.pay.data.order}\"\n", `{}`)
	o.composes(t)
	require.Equal(t, jig.CallUnknown, o.call(t, "1.1/pay").Status)
	_, err := o.db.Complete(t.Context(), ledger.Completion{
		Tenant: o.tenant, SessionID: o.session, CallID: "1.1/pay", Fence: 1, Status: jig.CallSucceeded,
		Result: jig.ToolResult{Success: true, Data: json.RawMessage(`{"order":"late"}`)},
	})
	require.NoError(t, err)
	out := o.composes(t)
	require.Equal(t, jig.CallSucceeded, out.Ran.State)
	require.JSONEq(t, `"late"`, string(o.call(t, "1.1").Result.Data))
}
