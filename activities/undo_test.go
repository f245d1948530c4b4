package activities_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/plan/undoing"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

type undoInput struct {
	SessionID string   `json:"session_id"`
	Calls     []string `json:"calls,omitempty"`
}

// undoes adds the tool that undoes sessions, a write that declares its undo with an input, and one that declares none.
func undoes(o *office) {
	run := func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
		o.did(in.Order, inv)
		return in, nil
	}
	o.extra = append(o.extra,
		tools.New(jig.Tool{
			Name: toolname.SessionsUndo, Description: "Undoes.", Permission: jig.PermissionDraft, Implementation: "undo", Labels: &jig.Labels{},
		}, func(context.Context, jig.Invocation, undoInput) (undoing.Report, error) { return undoing.Report{}, nil }),
		tools.New(jig.Tool{
			Name: "shop.ship", Description: "Ships.", Permission: jig.PermissionDraft, Undo: "shop.uncharge", Labels: &jig.Labels{},
			UndoInput: "{'order': 'back ' + result.order, 'amount': input.amount}",
		}, run),
		tools.New(jig.Tool{Name: "shop.charge", Description: "Charges an order.", Permission: jig.PermissionDraft, Undo: "shop.uncharge", Labels: &jig.Labels{}}, run),
		tools.New(jig.Tool{Name: "shop.uncharge", Description: "Takes a charge back.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}}, run),
		tools.New(jig.Tool{Name: "shop.mail", Description: "Mails.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}}, run))
}

// worked is a session whose composition has made a call of each kind.
func worked(t *testing.T, o *office) string {
	t.Helper()
	o.govern(t, "  - {name: all, when: 'true', verdict: run, untraced: true}\n")
	o.begins(t, `kind: composition
name: shop.works
steps:
  - {id: named, tool: shop.charge, input: {order: a, amount: 1}, undo: {input: {order: "undo ${steps.named.data.order}", amount: 1}}}
  - {id: read, tool: shop.orders, input: {order: b, amount: 1}}
  - {id: plain, tool: shop.charge, input: {order: c, amount: 2}}
  - {id: ship, tool: shop.ship, input: {order: d, amount: 3}}
  - {id: mail, tool: shop.mail, input: {order: e, amount: 1}}
`, `{}`)
	require.Equal(t, jig.CallSucceeded, o.composes(t).Ran.State)
	_, err := o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	return o.session
}

// undo undoes a session in a new one, and returns the result.
func (o *office) undo(t *testing.T, session string, calls ...string) (jig.ToolResult, undoing.Report) {
	t.Helper()
	o.session, o.ran = jig.NewSessionID(), nil
	input, err := json.Marshal(undoInput{session, calls})
	require.NoError(t, err)
	_, err = o.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: o.ref(), Call: protocol.CallInput{Tool: toolname.SessionsUndo, Input: input, Principal: jig.Principal{ID: "fay"}},
	})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: o.firstPass(), Limit: 100})
	require.NoError(t, err)
	if !o.composes(t).Done {
		return jig.ToolResult{}, undoing.Report{} // it waits for a person
	}
	_, err = o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	result := o.call(t, "1.1").Result
	require.NotNil(t, result)
	var report undoing.Report
	if len(result.Data) > 0 {
		require.NoError(t, json.Unmarshal(result.Data, &report))
	}
	return *result, report
}

func TestSessionsUndo_CallsEachDeclaredUndoOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, undoes)
	session := worked(t, o)
	result, report := o.undo(t, session)
	require.False(t, result.Success)
	require.Equal(t, []string{"1.1/1.1_ship.undo back d", "1.1/1.1_plain.undo c", "1.1/1.1_named.undo undo a"}, o.ran, "the newest first")
	require.Len(t, report.Undone, 3)
	require.Len(t, report.NotUndone, 1, "what only reads is no matter")
	require.Equal(t, "1.1/mail", report.NotUndone[0].Call)
	require.Contains(t, report.NotUndone[0].Error.Message, "shop.mail declares no undo")
	require.Contains(t, result.Error.Message, "3 of 4 calls undone")
	first := o.session
	require.Equal(t, "undoes "+session+"/1.1/ship", o.call(t, "1.1/1.1_ship.undo").Reasons[0])

	_, report = o.undo(t, session)
	require.Empty(t, o.ran, "nothing is undone twice")
	require.Len(t, report.Before, 3)
	require.Equal(t, first+"/1.1/1.1_ship.undo", report.Before[0].By)
	result, _ = o.undo(t, first)
	require.Empty(t, o.ran)
	require.Contains(t, result.Error.Message, "it undoes another call")
}

func TestSessionsUndo_OfSomeCalls(t *testing.T) {
	t.Parallel()
	o := newOffice(t, undoes)
	session := worked(t, o)
	result, _ := o.undo(t, session, "1.1/plain")
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, []string{"1.1/1.1_plain.undo c"}, o.ran)
	result, _ = o.undo(t, session, "1.1/ship", "1.1/read")
	require.Equal(t, jig.CodeNotFound, result.Error.Code)
	require.Contains(t, result.Error.Message, "call 1.1/read")
	require.Empty(t, o.ran)
	_, report := o.undo(t, session, "1.1")
	require.Equal(t, []string{"1.1/1.1_ship.undo back d", "1.1/1.1_named.undo undo a"}, o.ran)
	require.Len(t, report.Before, 1)
}

func TestSessionsUndo_LeavesWhatACompositionHasUndone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, undoes)
	o.govern(t, "  - {name: all, when: 'true', verdict: run, untraced: true}\n")
	o.begins(t, `kind: composition
name: shop.fails
steps:
  - {id: named, tool: shop.charge, input: {order: a, amount: 1}, undo: {input: {order: x, amount: 1}}}
  - {id: plain, tool: shop.charge, input: {order: c, amount: 2}}
  - fail: {message: "no"}
`, `{}`)
	require.Equal(t, jig.CallFailed, o.composes(t).Ran.State)
	_, err := o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	result, report := o.undo(t, o.session)
	require.Equal(t, []string{"1.1/1.1_plain.undo c"}, o.ran, "%+v", result)
	require.Empty(t, report.NotUndone)
}

func TestSessionsUndo_NeedsASessionThatHasEnded(t *testing.T) {
	t.Parallel()
	o := newOffice(t, undoes)
	o.begins(t, "kind: composition\nname: shop.waits\nsteps: [{wait: 1h}]\n", `{}`)
	running := o.session
	for session, want := range map[string]jig.Code{running: jig.CodeConflict, "nobody": jig.CodeNotFound} {
		result, _ := o.undo(t, session)
		require.Equal(t, want, result.Error.Code)
		require.Equal(t, "/session_id", result.Error.Field)
	}
}

// The arguments come from the session that is undone: they are as little trusted as there, and those who asked for its calls ask for these.
func TestSessionsUndo_InheritsWhatTheSessionHasRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, undoes)
	session := worked(t, o)
	require.NoError(t, o.db.MarkUntrusted(t.Context(), o.tenant, session, "1.1"))
	require.NoError(t, o.db.Said(t.Context(), o.tenant, session, jig.Asker{Principal: "gil", By: jig.AskedMessage}))
	o.govern(t, "  - {name: all, when: 'true', verdict: run}\n")
	o.undo(t, session, "1.1/plain")
	undone := o.stored(t, o.session)
	require.True(t, undone.ReadUntrusted)
	call := o.call(t, "1.1/1.1_plain.undo")
	require.Equal(t, jig.CallWaiting, call.Status, "although the policy lets it run")
	require.NotEmpty(t, call.Flow.UntrustedArguments)
	asks, err := o.db.Pending(t.Context(), o.tenant, o.session, call.ID)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(asks.Askers, func(a jig.Asker) bool { return a.Principal == "gil" }), "%+v", asks.Askers)

	waiting := o.session
	result, report := o.undo(t, session, "1.1/plain")
	require.False(t, result.Success, "the first one may still undo it")
	require.Equal(t, jig.CodeConflict, report.NotUndone[0].Error.Code)
	require.Contains(t, report.NotUndone[0].Error.Message, waiting+"/1.1/1.1_plain.undo has undone it already, or will")
}
