package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools"
)

// lose makes one of the office's policies unreadable for its worker, as if a newer worker had registered it.
func (o *office) lose() {
	o.unreadable = []jig.PolicyState{policy.Unreadable("odd", "v2", errors.New("unknown key: novelty"))}
}

const whyHeld = "policy odd (version v2) cannot be read: unknown key: novelty"

// held checks that an attempt at a call runs nothing and is retried later, with the reason in its error.
func (o *office) held(t *testing.T, id string) {
	t.Helper()
	_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: id})
	var failed *temporal.ApplicationError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "PAUSED", failed.Type())
	require.False(t, failed.NonRetryable())
	require.Positive(t, failed.NextRetryDelay(), "it is retried, but not at once")
	require.Equal(t, "call "+id+" is held back: "+whyHeld, failed.Message())
}

// While a policy cannot be read, a call neither runs nor asks anybody. Once it can be read, the call is admitted normally.
func TestUnreadablePolicy_HoldsCallsBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.lose()
	read, write := o.asks(t, 1, ordersTool, small), o.asks(t, 2, refundTool, small)
	for _, c := range []jig.Call{read, write} {
		require.Equal(t, jig.CallReserved, c.Status)
		require.Equal(t, []string{whyHeld}, c.Reasons)
		require.Equal(t, ledger.VersionUnreadable, c.PolicyVersion)
		require.NotEqual(t, jig.VerdictRun, c.Verdict)
		_, err := o.db.Pending(t.Context(), o.tenant, o.session, c.ID)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "nobody is asked on weaker terms")
		got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"})
		require.Equal(t, jig.DecisionRefused, got.Outcome)
		o.held(t, c.ID)
		o.held(t, c.ID)
	}
	list, err := o.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: o.ref(), Calls: []string{read.ID}})
	require.NoError(t, err)
	require.Equal(t, []activities.Ran{{State: jig.CallReserved, Paused: true, Held: whyHeld}}, list)
	view, err := o.Status(t.Context(), protocol.StatusRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	require.Equal(t, []string{whyHeld}, view.Held)
	require.Equal(t, whyHeld, view.Calls[0].Summary)
	require.Empty(t, o.ran)

	o.unreadable = nil
	o.govern(t, "  - {name: refunds, when: 'tool.name == \"shop.refund\"', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	require.Equal(t, jig.CallSucceeded, o.runs(t, read.ID))
	require.Equal(t, jig.CallWaiting, o.runs(t, write.ID))
	require.Equal(t, 2, o.pending(t, write.ID).Terms.Requirements[0].Quorum)
	require.Equal(t, []string{"1.1 a 10"}, o.ran)
	view, err = o.Status(t.Context(), protocol.StatusRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	require.Empty(t, view.Held)
	require.NotEqual(t, whyHeld, view.Calls[0].Summary)
}

// An attempt returns when a pause begins to hold its call back, and when it does no more. Between the two, Temporal retries it.
func TestPausedCall_TellsItsWorkflow(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, ordersTool, small)
	pause := jig.Pause{Scope: jig.PauseTool, Target: ordersTool, By: "zoe", At: time.Now().UTC()}
	_, err := o.db.Pause(t.Context(), o.tenant, pause, nil)
	require.NoError(t, err)
	run := func(stuck bool) (activities.Ran, error) {
		return o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: c.ID, Stuck: stuck})
	}
	ran, err := run(false)
	require.NoError(t, err)
	require.Equal(t, activities.Ran{State: jig.CallReserved, Paused: true, Stuck: true}, ran)
	_, err = run(true)
	require.Equal(t, jig.Code("PAUSED"), failed(t, err))
	_, err = o.db.Resume(t.Context(), o.tenant, pause, nil)
	require.NoError(t, err)
	ran, err = run(true)
	require.NoError(t, err)
	require.Equal(t, activities.Ran{State: jig.CallReserved, Paused: true}, ran)
	require.Empty(t, o.ran, "the workflow shows first that the session works again")
	ran, err = run(false)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, ran.State)
}

// A call that was admitted or approved earlier does not run either, because the policy may deny it by now.
func TestUnreadablePolicy_HoldsAdmittedCallsBack(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	runs, approved, waits := o.asks(t, 1, ordersTool, small), o.asks(t, 2, refundTool, small), o.asks(t, 3, refundTool, `{"order":"b","amount":20}`)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: approved.ID, By: "fay"}).Status)
	o.lose()
	o.held(t, runs.ID)
	o.held(t, approved.ID)
	list, err := o.RunLocal(t.Context(), activities.RunLocalInput{SessionRef: o.ref(), Calls: []string{runs.ID}})
	require.NoError(t, err)
	require.True(t, list[0].Paused)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: waits.ID, By: "fay"}).Status, "an approval keeps its terms")
	o.held(t, waits.ID)
	require.Empty(t, o.ran)

	o.unreadable = nil
	o.govern(t, "  - {name: twenty, when: 'input.amount == 20', verdict: deny}\n")
	require.Equal(t, jig.CallSucceeded, o.runs(t, runs.ID))
	require.Equal(t, jig.CallSucceeded, o.runs(t, approved.ID))
	require.Equal(t, jig.CallDenied, o.runs(t, waits.ID))
}

// The input of a call cannot be changed while nobody knows what policy says about the change.
func TestUnreadablePolicy_PreventsEdits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	o.lose()
	got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"order":"a","amount":7}`)})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, whyHeld)
	require.Equal(t, c.Digest, o.call(t, c.ID).Digest)
}

// A call whose tool changed is not admitted again while a policy cannot be read. It stays as it is.
func TestUnreadablePolicy_PreventsReadmission(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	o.lose()
	changed, err := tools.NewRegistry(tools.New(jig.Tool{Name: refundTool, Description: "Refunds an order, now.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}},
		func(context.Context, jig.Invocation, refund) (refund, error) { return refund{}, nil }))
	require.NoError(t, err)
	o.equip(t, changed)
	o.held(t, c.ID)
	require.Equal(t, c.Version, o.call(t, c.ID).Version)
	require.Equal(t, c.Digest, o.pending(t, c.ID).Digest)
}

// heldComposition is a store with one composition that an unreadable policy holds back.
type heldComposition struct {
	activities.Store
	activities.Catalog
	activities.Policy
	call jig.Call
}

func (h heldComposition) Tool(string) (jig.Tool, bool) {
	return jig.Tool{Name: h.call.Tool, Implementation: activities.ChildExtraction}.WithDefaults(), true
}

func (h heldComposition) CallsOf(context.Context, string, string, []string) (jig.Session, []jig.Call, error) {
	return jig.Session{Tenant: "t", ID: "ses_1", Agent: jig.Agent{Tools: []string{"*"}}}, []jig.Call{h.call}, nil
}

func (h heldComposition) Installation() string { return "" }

func (h heldComposition) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{}, nil
}

func (h heldComposition) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return h.Settings(ctx, tenant)
}

func (h heldComposition) Rule(context.Context, jig.Tool, jig.Call, jig.Session, time.Time) (policy.Ruling, error) {
	return policy.Ruling{Held: whyHeld}, nil
}

// A composition that is held back waits. If it is canceled in the meantime it ends, so that its session can end.
func TestHeldComposition_CanBeCanceled(t *testing.T) {
	t.Parallel()
	h := heldComposition{call: jig.Call{Tenant: "t", SessionID: "ses_1", ID: "1.1", Tool: "entities.extract", Status: jig.CallReserved, Input: []byte(`{}`)}}
	a := activities.New(activities.Deps{Store: h, Catalog: h, Policy: h, Tenants: h})
	in := activities.ComposeInput{SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Call: "1.1", Now: time.Unix(1000, 0)}
	waits, err := a.Compose(t.Context(), in)
	require.NoError(t, err)
	require.False(t, waits.Done)
	require.True(t, waits.Wake.After(in.Now))
	in.Cancel = true
	ends, err := a.Compose(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, activities.Composed{Done: true, Ran: activities.Ran{State: jig.CallCanceled}}, ends)
}

func TestListPolicies_ReturnsPages(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: refunds, when: 'true', verdict: ask}\n")
	o.lose()
	page, err := o.ListPolicies(t.Context(), protocol.PoliciesRequest{Tenant: o.tenant})
	require.NoError(t, err)
	require.False(t, page.More)
	require.Equal(t, []string{"odd", "p"}, []string{page.Policies[0].Name, page.Policies[1].Name})
	page, err = o.ListPolicies(t.Context(), protocol.PoliciesRequest{Tenant: o.tenant, After: "odd"})
	require.NoError(t, err)
	require.Len(t, page.Policies, 1)
	long := make([]byte, 600)
	for i := range long {
		long[i] = 'x'
	}
	o.unreadable = nil
	for i := range 500 {
		o.unreadable = append(o.unreadable, jig.PolicyState{Name: jig.CallID(i+1000, 1), Error: string(long)})
	}
	seen, after := 0, ""
	for more := true; more; {
		page, err = o.ListPolicies(t.Context(), protocol.PoliciesRequest{Tenant: o.tenant, After: after})
		require.NoError(t, err)
		seen, more, after = seen+len(page.Policies), page.More, page.Policies[len(page.Policies)-1].Name
	}
	require.Equal(t, 501, seen)
}
