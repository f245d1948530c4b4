package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/tools"
)

// begins opens the session of a call of a composition that comes along, and makes it the office's session.
func (o *office) begins(t *testing.T, document, input string) {
	t.Helper()
	o.session = jig.NewSessionID()
	_, err := o.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: o.ref(), Document: document, DocumentName: "test.yaml", Input: json.RawMessage(input), Principal: jig.Principal{ID: "ana"},
	})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: o.firstPass(), Limit: 100})
	require.NoError(t, err)
}

// composes takes the composition as far as it goes, as its workflow does: the calls that may run do, one after another. Waits are
// over at once. It returns where the composition is when it is over, or when nothing is left but what waits for a person.
func (o *office) composes(t *testing.T) activities.Composed {
	t.Helper()
	in := activities.ComposeInput{SessionRef: o.ref(), Call: "1.1", Now: o.now()}
	for {
		out, err := o.Compose(t.Context(), in)
		require.NoError(t, err)
		if out.Done {
			return out
		}
		ran := false
		for _, ref := range out.Calls {
			if ref.State == jig.CallReserved || ref.State == jig.CallExecuting {
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

func TestConfirm_AStepWithoutItsFlagFailsAndNothingGoesOn(t *testing.T) {
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
	require.Equal(t, jig.CallWaiting, o.call(t, "1.1/close").Status, "policy asks about it as about any write")
	o.hear(t, "approve", jig.Decision{Call: "1.1/close", By: "fay"})
	require.Equal(t, jig.CallSucceeded, o.composes(t).Ran.State)
	require.Equal(t, []string{"1.1/close a true", "1.1/after a 1"}, o.ran)
}

func TestConfirm_ACallByItselfWithoutItsFlagFails(t *testing.T) {
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

// charges adds a tool that writes and names its undo, and that undo.
func charges(o *office) {
	run := func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
		o.did(in.Order, inv)
		return in, nil
	}
	o.extra = append(o.extra,
		tools.New(jig.Tool{Name: "shop.charge", Description: "Charges an order.", Permission: jig.PermissionDraft, Undo: "shop.uncharge"}, run),
		tools.New(jig.Tool{Name: "shop.uncharge", Description: "Takes a charge back.", Permission: jig.PermissionDraft}, run))
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
	none := o.call(t, "1.1/none.undo").Result.Error
	require.Equal(t, jig.CodeToolNotFound, none.Code)
	require.Contains(t, none.Message, "shop.orders names no tool that undoes it")
	events, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 100)
	require.NoError(t, err)
	for _, e := range events {
		if e.Type == jig.EventToolUndone {
			require.Equal(t, []string{"1.1/named", "shop.uncharge"}, []string{e.CallID, e.Tool})
		}
	}
}
