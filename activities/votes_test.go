package activities_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/tools"
)

// bank is a service that a tool pays with. down is the error of every request; nil if the service is up.
type bank struct {
	mu      sync.Mutex
	balance int
	down    error
	// broken is the error of payments alone.
	broken   error
	payments []string
}

func (b *bank) fails(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = err
}

func (b *bank) breaks(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
}

func (b *bank) deposit(amount int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance += amount
}

const ledgerTool = "ledger.pay"

type payment struct {
	Cents int `json:"cents"`
}

// paying returns the tool, which is idempotent and has previews. change changes its contract.
func (b *bank) paying(change func(*jig.Tool)) tools.Tool {
	contract := jig.Tool{Name: ledgerTool, Description: "Pays.", Permission: jig.PermissionWrite, Idempotent: true, Labels: &jig.Labels{}}
	if change != nil {
		change(&contract)
	}
	return tools.New(contract, func(_ context.Context, inv jig.Invocation, in payment) (payment, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if failure := cmp.Or(b.down, b.broken); failure != nil {
			return in, failure
		}
		b.balance -= in.Cents
		b.payments = append(b.payments, fmt.Sprintf("%d under %q", in.Cents, inv.Precondition))
		return in, nil
	}, tools.WithPreview(func(ctx context.Context, _ jig.Invocation, in payment) (jig.Preview, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if errors.Is(b.down, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		return jig.Preview{Title: "Pays", Changes: []string{fmt.Sprintf("%d - %d", b.balance, in.Cents)}, Precondition: fmt.Sprint(b.balance)}, b.down
	}))
}

// refused is what a client gets while a service is not running.
func refused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// treasury is an office in which two people of finance approve each payment.
func treasury(t *testing.T) (*office, *bank) {
	t.Helper()
	b := &bank{balance: 1000}
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{b.paying(nil)} })
	o.govern(t, "  - {name: four-eyes, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	return o, b
}

func (o *office) pays(t *testing.T, cents int) jig.Call {
	t.Helper()
	c := o.asks(t, 1, ledgerTool, fmt.Sprintf(`{"cents":%d}`, cents))
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	return o.call(t, c.ID)
}

// votes approves a call as it is shown now.
func (o *office) votes(t *testing.T, id string, people ...string) (last jig.Ruled) {
	t.Helper()
	for _, by := range people {
		last = o.hear(t, "approve", jig.Decision{Call: id, By: by, Digest: o.pending(t, id).Digest})
		require.Equal(t, jig.DecisionAccepted, last.Outcome, "%s: %s", by, last.Reason)
	}
	return last
}

// holds tries to run a call that is held back, and returns why.
func (o *office) holds(t *testing.T, id string) string {
	t.Helper()
	_, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: id})
	require.ErrorContains(t, err, "held back")
	require.Equal(t, jig.CallReserved, o.call(t, id).Status)
	return err.Error()
}

func TestVotes_OfAnEdit(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	ruled := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"cents":100}`)})
	require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	require.Equal(t, []string{"1000 - 100"}, o.pending(t, c.ID).Preview.Changes, "the second person sees what the edit would change")
	require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "flo").Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`100 under "1000"`}, b.payments)
}

func TestVotes_OfAnEditOfAnEdit(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	first := jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"cents":100}`), Note: "the invoice says 100"}
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", first).Outcome)
	ruled := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo", Input: json.RawMessage(`{"cents":90}`)})
	require.Equal(t, jig.CallWaiting, ruled.Status, "fay has not approved 90")
	require.Equal(t, []string{"1000 - 90"}, o.pending(t, c.ID).Preview.Changes)
	shown := []string{`changed by fay (claimed): cents: 120 → 100 ("the invoice says 100")`, "changed by flo (claimed): cents: 100 → 90"}
	require.Equal(t, shown, jig.Changes(o.pending(t, c.ID).Reasons), "the next person sees who changed what")
	require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "fay").Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`90 under "1000"`}, b.payments)
}

// An approval says what people changed as data, too, and keeps that when the call is admitted again.
func TestVotes_EditsAreData(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	require.Empty(t, o.pending(t, c.ID).Edits)
	for _, edit := range []jig.Decision{
		{Call: c.ID, By: "fay", Input: json.RawMessage(`{"cents":100}`), Note: "the invoice says 100"},
		{Call: c.ID, By: "flo", Input: json.RawMessage(`{"cents":90}`)},
	} {
		require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", edit).Outcome)
	}
	check := func(edits []jig.Edit) {
		t.Helper()
		require.Len(t, edits, 2)
		require.Equal(t, []string{"fay", "the invoice says 100", "flo", ""}, []string{edits[0].By, edits[0].Note, edits[1].By, edits[1].Note})
		require.JSONEq(t, `[{"op":"replace","path":"/cents","value":100}]`, string(edits[0].Patch))
		require.JSONEq(t, `[{"op":"replace","path":"/cents","value":90}]`, string(edits[1].Patch))
		require.False(t, edits[0].At.IsZero() || edits[1].At.Before(edits[0].At) || edits[0].Truncated)
		require.True(t, edits[0].Claimed)
	}
	check(o.pending(t, c.ID).Edits)
	page, err := o.ListPending(t.Context(), protocol.PendingRequest{Tenant: o.tenant, Limit: 10})
	require.NoError(t, err)
	check(page.Approvals[0].Edits)
	page, err = o.ListApprovals(t.Context(), protocol.ApprovalsRequest{Tenant: o.tenant, SessionID: o.session})
	require.NoError(t, err)
	check(page.Approvals[0].Edits)

	require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "fay").Status)
	b.deposit(500)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	check(o.pending(t, c.ID).Edits)
	var told jig.Pending
	require.NoError(t, json.Unmarshal(o.event(t, jig.EventToolNeedsApproval), &told))
	check(told.Edits)
}

// What the first person would approve is compared with what is shown. Their vote is not taken, and two votes about the call as it is now suffice.
func TestVotes_TheFirstIsNotTakenIfSomethingChanged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(t *testing.T, o *office, b *bank)
		why    string
		paid   string
	}{
		"the contract": {func(t *testing.T, o *office, b *bank) {
			t.Helper()
			o.extra = []tools.Tool{b.paying(func(c *jig.Tool) { c.Revision++ })}
			o.deploy(t)
		}, "the contract of ledger.pay has changed", `120 under "1000"`},
		"the preview": {func(_ *testing.T, _ *office, b *bank) { b.deposit(500) }, "\n-1000 - 120\n", `120 under "1500"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, b := treasury(t)
			c := o.pays(t, 120)
			row.change(t, o, b)
			first := jig.Decision{Call: c.ID, By: "fay"}
			ruled := o.sent(t, "approve", "update:first", first)
			require.Equal(t, jig.DecisionRefused, ruled.Outcome)
			require.Contains(t, ruled.Reason, row.why)
			require.Equal(t, jig.CallWaiting, ruled.Status)
			shown := o.pending(t, c.ID)
			require.NotEqual(t, c.Digest, shown.Digest, "the card shows the call as it is now")
			require.Empty(t, shown.Votes)
			require.Equal(t, ruled.Reason, o.sent(t, "approve", "update:first", first).Reason, "the same message is no vote on the new card")
			require.Empty(t, o.pending(t, c.ID).Votes)
			require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "fay", "flo").Status)
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
			require.Equal(t, []string{row.paid}, b.payments)
			require.Zero(t, o.call(t, c.ID).Previews, "only changes after a vote that was taken count")
		})
	}
}

func TestVotes_RenewedCallReachesItsWorkflow(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	b.deposit(1)
	heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "approve", Key: "update:x", Payload: encoded(t, jig.Decision{Call: c.ID, By: "fay"})})
	require.NoError(t, err)
	require.Len(t, heard.Calls, 1)
	require.Equal(t, o.pending(t, c.ID).Digest, heard.Calls[0].Ask.Digest)
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// A change between two votes is found before the call runs. Until then nobody can change its input, because it was shown with another contract.
func TestVotes_ContractChangesBetween(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	o.votes(t, c.ID, "fay")
	o.extra = []tools.Tool{b.paying(func(c *jig.Tool) { c.Revision++ })}
	o.deploy(t)
	edit := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo", Input: json.RawMessage(`{"cents":1}`)})
	require.Contains(t, edit.Reason, "no change and no grant can come with this approval")
	o.votes(t, c.ID, "flo")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Contains(t, string(o.event(t, jig.EventApprovalWithdrawn)), "ledger.pay changed since the call was admitted")
	o.votes(t, c.ID, "fay", "flo")
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// Somebody who may not approve the call, or who answers otherwise, renews nothing.
func TestVotes_OnlyAnApprovalCompares(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	b.deposit(1)
	require.Contains(t, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "ana"}).Reason, "may not decide")
	require.Equal(t, c.Digest, o.pending(t, c.ID).Digest)
	require.Equal(t, jig.CallDenied, o.hear(t, "deny", jig.Decision{Call: c.ID, By: "fay"}).Status)
}

// While the service behind a preview is down, nothing is known to have changed: votes are taken and kept, and the call waits.
func TestVotes_SurviveAnOutage(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]error{
		"refused": refused(), "503": jig.Errorf(jig.CodeUnavailable, "503 Service Unavailable"),
		"reset":        &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET},
		"rate limited": jig.Errorf(jig.CodeRateLimited, "429 Too Many Requests"), "takes too long": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, b := treasury(t)
			c := o.pays(t, 120)
			b.fails(down)
			require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "fay", "flo").Status)
			require.Contains(t, o.holds(t, c.ID), "cannot be compared with what was shown")
			b.fails(nil)
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
			require.Equal(t, []string{`120 under "1000"`}, b.payments)
		})
	}
}

func TestVotes_OnACardWithoutPreview(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	b.fails(refused())
	c := o.pays(t, 120)
	require.Contains(t, o.pending(t, c.ID).Preview.Missing, "refused")
	o.votes(t, c.ID, "fay")
	b.fails(nil)
	require.Equal(t, jig.CallReserved, o.votes(t, c.ID, "flo").Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`120 under ""`}, b.payments)
}

func TestVotes_ARealDifferenceWithdrawsThem(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	o.votes(t, c.ID, "fay", "flo")
	b.deposit(500)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	require.Equal(t, []string{"1500 - 120"}, o.pending(t, c.ID).Preview.Changes)
	require.Contains(t, string(o.event(t, jig.EventApprovalWithdrawn)), "what ledger.pay would change is not what was shown any more")
	require.Equal(t, 1, o.call(t, c.ID).Previews)
	require.Empty(t, b.payments)
	o.votes(t, c.ID, "fay", "flo")
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

// A worker that is killed between the vote and the attempt, or in the attempt, costs no vote.
func TestVotes_SurviveTheirWorker(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	c := o.pays(t, 120)
	o.votes(t, c.ID, "fay", "flo")
	o.abandoned(t, o.call(t, c.ID))
	b.deposit(500)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`120 under "1000"`}, b.payments, "the attempt may have changed the balance itself")
}

// Where keys are demanded, somebody must have signed what the changed call would change.
func TestVotes_SignedOfAnEdit(t *testing.T) {
	t.Parallel()
	o, b := treasury(t)
	keyed(o)
	c := o.pays(t, 120)
	edit := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"cents":100}`)})
	require.Equal(t, jig.CallWaiting, o.hear(t, "decide", edit).Status)
	second := o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", second).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{`100 under "1000"`}, b.payments)
}
