package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/tools"
)

const payTool = "shop.pay"

// payment returns a tool that pays. Its contract and its result come from the test.
func (o *office) payment(contract jig.Tool, end tools.Handler) tools.Tool {
	const object = `{"type":"object","additionalProperties":false,"properties":{"order":{"type":"string"},"confirmed":{"type":"boolean"}}}`
	contract.Name, contract.InputSchema, contract.OutputSchema = payTool, json.RawMessage(object), json.RawMessage(object)
	if contract.Labels == nil {
		contract.Labels = &jig.Labels{}
	}
	if contract.Description == "" {
		contract.Description = "Pays an order."
	}
	return tools.Raw(contract, func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		o.did("paid", inv)
		return end(ctx, inv, input)
	})
}

// paid is a handler that succeeds.
func paid(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
	return jig.ToolResult{Success: true, Data: json.RawMessage(`{"order":"a"}`), Summary: "paid"}
}

// approved asks for a payment and approves it.
func (o *office) approved(t *testing.T) jig.Call {
	t.Helper()
	c := o.asks(t, 1, payTool, `{"order":"a"}`)
	require.Equal(t, jig.CallWaiting, c.Status)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Outcome)
	return o.call(t, c.ID)
}

// abandoned begins an attempt that never ends, as if its worker had died.
func (o *office) abandoned(t *testing.T, c jig.Call) {
	t.Helper()
	r, err := o.db.Reserve(t.Context(), ledger.ReserveRequest{
		Tenant: o.tenant, SessionID: o.session, CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input, MaxAttempts: 3, Attempt: "att_dead",
	})
	require.NoError(t, err)
	require.Equal(t, ledger.ReserveRun, r.Outcome)
}

func TestWrite_FailureAfterTheEffectIsUnknown(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  tools.Handler
		want jig.CallStatus
	}{
		"plain error": {func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return jig.Failure(errors.New("read tcp: connection reset by peer"))
		}, jig.CallUnknown},
		"panic": {func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { panic("no") }, jig.CallUnknown},
		"bad output": {func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return jig.ToolResult{Success: true, Data: json.RawMessage(`{"id":7}`)}
		}, jig.CallSucceeded},
		"promise": {func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return jig.Failure(jig.Errorf(jig.CodeConflict, "taken"))
		}, jig.CallFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(jig.Tool{}, row.end)} })
			c := o.approved(t)
			require.Equal(t, row.want, o.runs(t, c.ID))
			require.Equal(t, row.want, o.runs(t, c.ID), "another attempt of the activity")
			require.Equal(t, []string{"1.1 paid"}, o.ran, "one effect")
			stored := o.call(t, c.ID)
			require.Equal(t, row.want, stored.Status)
			if row.want == jig.CallUnknown {
				require.Equal(t, jig.PendingReconcile, o.pending(t, c.ID).Kind)
			}
			if row.want == jig.CallSucceeded {
				require.Contains(t, stored.Result.Warnings[0], "output schema")
				require.Contains(t, string(o.event(t, jig.EventToolCompleted)), "output schema", "people see it")
			}
		})
	}
}

// event returns the data of the latest event of a type.
func (o *office) event(t *testing.T, kind jig.EventType) json.RawMessage {
	t.Helper()
	list, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 0)
	require.NoError(t, err)
	for i := range list {
		if e := list[len(list)-1-i]; e.Type == kind {
			return e.Data
		}
	}
	require.Fail(t, "there is no event", kind)
	return nil
}

func TestWrite_PromiseAfterAnUncertainAttemptIsUnknown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) {
		o.extra = []tools.Tool{o.payment(jig.Tool{Idempotent: true}, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return jig.Failure(jig.Errorf(jig.CodeConflict, "there is such a payment"))
		})}
	})
	c := o.approved(t)
	o.abandoned(t, c)
	require.Equal(t, jig.CallUnknown, o.runs(t, c.ID), "it may be the payment of the first attempt")
}

// settlements records the signals that tell workflows of settled calls.
type settlements struct {
	activities.Runs
	mu   sync.Mutex
	list []string
	// down is how many of the next signals fail.
	down int
}

// Settled implements activities.Runs.
func (b *settlements) Settled(_ context.Context, workflowID string, call protocol.Settlement) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down > 0 {
		b.down--
		return jig.Errorf(jig.CodeInternal, "the worker died")
	}
	b.list = append(b.list, workflowID+" "+call.Call)
	return nil
}

// Open implements activities.Runs. All workflows are running.
func (b *settlements) Open(context.Context, string, string) (bool, error) { return true, nil }

// signalsTo returns the signals to a session.
func (b *settlements) signalsTo(session string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.list {
		if strings.HasPrefix(one, session) {
			list = append(list, one)
		}
	}
	return list
}

// settlesLate runs a call whose first attempt succeeds after a second one has found its outcome unknown.
func settlesLate(t *testing.T, heard *settlements) (*office, jig.Call) {
	t.Helper()
	began, finish := make(chan struct{}), make(chan struct{})
	o := newOffice(t, func(o *office) {
		o.temporal = heard
		o.extra = []tools.Tool{o.payment(jig.Tool{}, func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
			close(began)
			<-finish
			return paid(ctx, inv, input)
		})}
	})
	c := o.approved(t)
	first := make(chan jig.CallStatus)
	go func() {
		ran, err := o.RunTool(context.WithoutCancel(t.Context()), activities.RunInput{SessionRef: o.ref(), Call: c.ID})
		if err != nil {
			ran.State = ""
		}
		first <- ran.State
	}()
	<-began
	require.Equal(t, jig.CallUnknown, o.runs(t, c.ID), "the second attempt finds that the first has not reported")
	require.Empty(t, heard.list)
	close(finish)
	require.Equal(t, jig.CallSucceeded, <-first)
	return o, c
}

func TestLateSuccess_SettlesTheCallAndNotifiesItsWorkflow(t *testing.T) {
	t.Parallel()
	heard := &settlements{}
	o, c := settlesLate(t, heard)
	require.Equal(t, jig.CallSucceeded, o.call(t, c.ID).Status)
	require.Equal(t, []string{o.session + " " + c.ID}, heard.list)
	standing, err := o.Standing(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: c.ID})
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, standing.State)
	require.Equal(t, []string{"1.1 paid"}, o.ran)
	require.Zero(t, o.aged(t), "the workflow knows: nobody tells it again")
}

// aged moves the time at which workflows were last told of the session's settled calls back by two minutes, and returns the number
// of these calls.
func (o *office) aged(t *testing.T) int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", o.tenant)
	require.NoError(t, err)
	done, err := conn.Exec(t.Context(), "update settled_calls set told_at = told_at - interval '2 minutes' where session_id = $1", o.session)
	require.NoError(t, err)
	return done.RowsAffected()
}

func TestLateSuccess_SweeperNotifiesWorkflowOfDeadWorker(t *testing.T) {
	t.Parallel()
	heard := &settlements{down: 1}
	o, c := settlesLate(t, heard)
	sweep := func() {
		_, err := o.Sweep(t.Context())
		require.NoError(t, err)
	}
	sweep()
	require.Empty(t, heard.signalsTo(o.session), "its own worker may be about to tell the workflow")
	require.EqualValues(t, 1, o.aged(t))
	sweep()
	require.Equal(t, []string{o.session + " " + c.ID}, heard.signalsTo(o.session))
	require.Zero(t, o.aged(t))
}

// If a new version of a tool asks for confirmation, an approval of the earlier version does not let the call run.
func TestApproval_DoesNotCoverALaterVersionWithConfirmation(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]string{
		"policy asks":            "",
		"policy lets it run":     "  - {name: pay, when: tool.name == 'shop.pay', verdict: run}\n",
		"policy has come to":     "later",
		"policy runs, then asks": "sooner",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(jig.Tool{}, paid)} })
			const run = "  - {name: pay, when: tool.name == 'shop.pay', verdict: run}\n"
			if rules == run || rules == "sooner" {
				o.govern(t, run)
			}
			c := o.asks(t, 1, payTool, `{"order":"a"}`)
			if c.Status == jig.CallWaiting {
				o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
			}
			require.Equal(t, jig.CallReserved, o.call(t, c.ID).Status)
			if rules == "later" {
				o.govern(t, run)
			}
			if rules == "sooner" {
				o.govern(t, "  - {name: pay, when: tool.name == 'shop.pay', verdict: ask}\n")
			}
			o.extra = []tools.Tool{o.payment(jig.Tool{Confirm: true, Description: "Pays an order, and all orders of its customer."}, paid)}
			o.deploy(t)
			require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "a person is asked about what would run now")
			require.Empty(t, o.ran)
			require.Equal(t, jig.PendingApproval, o.pending(t, c.ID).Kind)
			o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID), "somebody approved this version")
			require.Equal(t, []string{"1.1 paid"}, o.ran)
		})
	}
}

func TestOrphanedCall_OfAChangedToolEnds(t *testing.T) {
	t.Parallel()
	for name, permission := range map[string]jig.Permission{"draft": jig.PermissionDraft, "write": jig.PermissionWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract := jig.Tool{Permission: permission, Idempotent: true}
			o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(contract, paid)} })
			c := o.asks(t, 1, payTool, `{"order":"a"}`)
			if c.Status == jig.CallWaiting {
				o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
			}
			o.abandoned(t, c)
			contract.Description = "Pays an order at once."
			o.extra = []tools.Tool{o.payment(contract, paid)}
			o.deploy(t)
			if permission == jig.PermissionWrite {
				require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "an approval is of one contract")
				require.Contains(t, o.pending(t, c.ID).Reasons[len(o.pending(t, c.ID).Reasons)-1], "an earlier attempt began")
				o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
			}
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
			require.Equal(t, []string{"1.1 paid"}, o.ran)
		})
	}
}

func TestOrphanedCall_DeniedAsksForTheOutcome(t *testing.T) {
	t.Parallel()
	contract := jig.Tool{Idempotent: true}
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(contract, paid)} })
	c := o.approved(t)
	o.abandoned(t, c)
	contract.Description = "Pays an order at once."
	o.extra = []tools.Tool{o.payment(contract, paid)}
	o.deploy(t)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	raw, err := json.Marshal(jig.Decision{Call: c.ID, By: "fay"})
	require.NoError(t, err)
	heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "deny", Key: "update:1", Payload: raw, Pass: 1})
	require.NoError(t, err)
	require.Len(t, heard.Calls, 1, "the workflow learns what waits now")
	require.Equal(t, jig.CallUnknown, heard.Calls[0].State)
	require.Equal(t, jig.PendingReconcile, heard.Calls[0].Ask.Kind)
}

// stops makes the model ask for calls in an answer with the given stop reason, and admits them.
func (o *office) stops(t *testing.T, stop chat.StopReason, asked ...jig.ToolCall) {
	t.Helper()
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
	require.NoError(t, err)
	_, err = o.db.SaveTurn(t.Context(), o.tenant, o.session, 1, chat.Turn{Stop: stop, Calls: asked})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 1}, Limit: 100})
	require.NoError(t, err)
}

func TestCutOffAnswer_DoesNotRunItsLastCall(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{"nothing was written": `{}`, "it happens to be complete": `{"order":"b"}`} {
		for stop, want := range map[chat.StopReason]jig.CallStatus{chat.StopLength: jig.CallFailed, chat.StopCalls: jig.CallReserved} {
			t.Run(name+", "+string(stop), func(t *testing.T) {
				t.Parallel()
				draft := jig.Tool{Permission: jig.PermissionDraft} // it runs without asking, and no input is required
				o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(draft, paid)} })
				whole := jig.ToolCall{ProviderID: "a", Name: payTool, Input: json.RawMessage(`{"order":"a"}`)}
				o.stops(t, stop, whole, jig.ToolCall{ProviderID: "b", Name: payTool, Input: json.RawMessage(input)})
				require.Equal(t, jig.CallReserved, o.call(t, "1.1").Status, "the calls before it are complete")
				cut := o.call(t, "1.2")
				require.Equal(t, want, cut.Status)
				if want == jig.CallReserved {
					return
				}
				require.Equal(t, jig.CodeInvalidInput, cut.Result.Error.Code)
				require.Equal(t, jig.ReasonCutOff, cut.Result.Error.Reason, "the model is told")
				require.True(t, cut.Result.Error.NotExecuted)
				require.Equal(t, jig.CallFailed, o.runs(t, "1.2"))
				require.Empty(t, o.ran)
			})
		}
	}
}

const unfitting = `kind: composition
name: shop.report
description: Reports.
permission: PERMISSION
output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
steps:
  - id: one
    set: {a: 1}
output: {n: "none"}
`

func TestCompositionOutput_MismatchFailsOnlyReads(t *testing.T) {
	t.Parallel()
	for permission, succeeds := range map[string]bool{"read": false, "draft": true} {
		o := newOffice(t)
		o.begins(t, strings.Replace(unfitting, "PERMISSION", permission, 1), `{}`)
		o.composes(t)
		c := o.call(t, "1.1")
		require.Equal(t, succeeds, c.Result.Success, "%s: %+v", permission, c.Result)
		if succeeds {
			require.Contains(t, c.Result.Warnings[0], "does not fit the output schema")
		} else {
			require.Equal(t, jig.CodeInvalidOutput, c.Result.Error.Code)
		}
	}
}

func TestOrphanedCall_DeniedByPolicyAsksForTheOutcome(t *testing.T) {
	t.Parallel()
	contract := jig.Tool{Idempotent: true}
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(contract, paid)} })
	c := o.approved(t)
	o.abandoned(t, c)
	contract.Description = "Pays an order at once."
	o.extra = []tools.Tool{o.payment(contract, paid)}
	o.deploy(t)
	o.govern(t, "  - {name: pay, when: tool.name == 'shop.pay', verdict: deny}\n")
	ran, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: c.ID})
	require.NoError(t, err)
	require.Equal(t, jig.CallUnknown, ran.State)
	require.Equal(t, jig.PendingReconcile, ran.Ask.Kind, "the workflow shows what it waits for")
	require.Empty(t, o.ran)
}
