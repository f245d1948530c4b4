package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// grants approves call 1.1 together with a grant for further calls.
func (o *office) grants(t *testing.T, by string, g jig.GrantRequest) {
	t.Helper()
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: by, Grant: &g})
	require.Equal(t, jig.CallReserved, got.Status, "%v", got)
	require.NotEmpty(t, got.Grant)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
}

func TestGrant_LetsCoveredCallsRun(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grants(t, "fay", jig.GrantRequest{When: "input.amount < 100", MaxUses: 2})
	for pass, row := range []struct {
		tool, input string
		want        jig.CallStatus
	}{
		{refundTool, `{"order":"b","amount":99}`, jig.CallReserved},
		{refundTool, `{"order":"c","amount":100}`, jig.CallWaiting},
		{refundTool, `{"order":"d","amount":1}`, jig.CallReserved},
		{refundTool, `{"order":"e","amount":1}`, jig.CallWaiting},
		{purgeTool, `{"order":"f","amount":1}`, jig.CallWaiting},
	} {
		c := o.asks(t, pass+2, row.tool, row.input)
		require.Equal(t, row.want, c.Status, row.input)
		if row.want == jig.CallReserved {
			require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
		} else {
			require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
		}
	}
	require.Equal(t, []string{"1.1 a 10", "2.1 b 99", "4.1 d 1"}, o.ran)
	by, proof, err := o.db.Approved(t.Context(), o.tenant, o.session, "2.1")
	require.NoError(t, err)
	require.Equal(t, []string{"fay"}, by)
	require.Equal(t, jig.ProofClaimed, proof)
}

// A grant covers no more calls than it has uses, even if they are admitted together.
func TestGrant_CoversLaterCallsOfThePass(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grants(t, "fay", jig.GrantRequest{MaxUses: 2})
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 2)
	require.NoError(t, err)
	turn := chat.Turn{Stop: chat.StopCalls}
	for _, input := range []string{`{"order":"b","amount":1}`, `{"order":"c","amount":1}`, `{"order":"d","amount":1}`} {
		turn.Calls = append(turn.Calls, jig.ToolCall{ProviderID: input, Name: refundTool, Input: json.RawMessage(input)})
	}
	_, err = o.db.SaveTurn(t.Context(), o.tenant, o.session, 2, turn)
	require.NoError(t, err)
	admitted, err := o.Admit(t.Context(), activities.AdmitInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: 2}, Limit: 10})
	require.NoError(t, err)
	var states []jig.CallStatus
	for _, c := range admitted.Calls {
		states = append(states, c.State)
		require.Equal(t, c.State == jig.CallWaiting, c.Ask != nil)
	}
	require.Equal(t, []jig.CallStatus{jig.CallReserved, jig.CallReserved, jig.CallWaiting}, states)
}

// A grant counts as the approval of the people who gave it, where and as long as their own approval would count.
func TestGrant_CountsAsVoteOfItsGivers(t *testing.T) {
	t.Parallel()
	const next = `{"order":"b","amount":1}`
	for name, row := range map[string]struct {
		by     string
		change func(t *testing.T, o *office)
		want   jig.CallStatus
	}{
		"as it was given":    {"fay", func(*testing.T, *office) {}, jig.CallReserved},
		"two are needed now": {"fay", rule("approvers: {groups: [finance]}, quorum: 2"), jig.CallWaiting},
		"one of them is":     {"fay", rule("approvers: {groups: [finance]}"), jig.CallReserved},
		"others are": {"fay", func(t *testing.T, o *office) {
			t.Helper()
			rule("approvers: {groups: [legal]}")(t, o)
			o.settings.People = append(o.settings.People, jig.Principal{ID: "lea", Groups: []string{"legal"}})
		}, jig.CallWaiting},
		"has left the group": {"fay", func(t *testing.T, o *office) {
			t.Helper()
			rule("approvers: {groups: [finance]}")(t, o)
			o.settings.People = nil
		}, jig.CallWaiting},
		"given on a claim":    {"fay", func(_ *testing.T, o *office) { o.settings.SetSignals(tenancy.SignalsSigned) }, jig.CallWaiting},
		"and signals are off": {"fay", func(_ *testing.T, o *office) { o.settings.SetSignals(tenancy.SignalsOff) }, jig.CallWaiting},
		"it has expired":      {"fay", func(_ *testing.T, o *office) { o.clock = 25 * time.Hour }, jig.CallWaiting},
		"the policy denies it": {"fay", func(t *testing.T, o *office) {
			t.Helper()
			o.govern(t, "  - {name: no, when: 'true', verdict: deny}\n")
		}, jig.CallDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.grants(t, row.by, jig.GrantRequest{})
			row.change(t, o)
			require.Equal(t, row.want, o.asks(t, 2, refundTool, next).Status)
		})
	}
}

// rule sets a rule that asks on the given terms.
func rule(terms string) func(*testing.T, *office) {
	return func(t *testing.T, o *office) {
		t.Helper()
		o.govern(t, "  - {name: ask, when: 'true', verdict: ask, "+terms+"}\n")
	}
}

func TestGrants_Refused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tool   string
		g      jig.GrantRequest
		change func(*office)
		why    string
	}{
		"destructive":      {purgeTool, jig.GrantRequest{}, nil, "the grant cannot be given"},
		"another tool":     {refundTool, jig.GrantRequest{Tool: purgeTool}, nil, "`grant.tool` is shop.purge, but the call is for shop.refund"},
		"too many":         {refundTool, jig.GrantRequest{MaxUses: 1001}, nil, "the grant cannot be given"},
		"too long":         {refundTool, jig.GrantRequest{Expires: "31d"}, nil, "the grant cannot be given"},
		"no condition":     {refundTool, jig.GrantRequest{When: "input.amoun <"}, nil, "the grant cannot be given"},
		"none are allowed": {refundTool, jig.GrantRequest{}, func(o *office) { o.settings.Grants.Off = true }, "the grant cannot be given"},
	} {
		o := newOffice(t)
		if row.change != nil {
			row.change(o)
		}
		c := o.asks(t, 1, row.tool, small)
		got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Grant: &row.g})
		require.Equal(t, jig.DecisionRefused, got.Outcome, name)
		require.Contains(t, got.Reason, row.why, name)
		require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status)
	}
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "deny", jig.Decision{Call: c.ID, By: "fay", Grant: &jig.GrantRequest{}})
	require.Contains(t, got.Reason, "`grant` is allowed only with approve")
}

func TestListGrants_RevokesAGrant(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.grants(t, "fay", jig.GrantRequest{})
	c := o.asks(t, 2, refundTool, `{"order":"b","amount":1}`)
	require.Equal(t, jig.CallReserved, c.Status)
	page, err := o.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: o.tenant})
	require.NoError(t, err)
	require.Len(t, page.Grants, 1)
	id := page.Grants[0].ID
	_, err = o.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: o.tenant, Revoke: id})
	require.ErrorContains(t, err, "the requester is missing")
	page, err = o.ListGrants(t.Context(), protocol.GrantsRequest{Tenant: o.tenant, Revoke: id, By: "zoe"})
	require.NoError(t, err)
	require.Equal(t, "zoe", page.Grants[0].RevokedBy)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "it holds at once, also for what was let through and has not begun")
	require.Equal(t, []string{"1.1 a 10"}, o.ran)
}

// A grant that comes with the second of two approvals does not count as the first person's approval. Later calls need two approvals again.
func TestGrant_IsNotAVoteOfEarlierApprovers(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallWaiting, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
	last := o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 100}})
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", last).Status)
	require.Equal(t, jig.CallWaiting, o.asks(t, 2, refundTool, `{"order":"b","amount":10000}`).Status)
}
