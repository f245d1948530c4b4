package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

func TestCheckDecision_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	input, grant := json.RawMessage(`{}`), &jig.GrantRequest{}
	for _, row := range []struct {
		d   jig.Decision
		why string
	}{
		{jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, Input: input, Grant: grant}, ""},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, Reason: "no"}, ""},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDelegate, To: "eve"}, ""},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDelegate, Undo: true}, ""},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDelegate, Undo: true, To: "eve"}, "`undo` takes a delegation back: leave out `to`"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, Undo: true}, "`undo` is allowed only with delegate"},
		{jig.Decision{Answer: jig.AnswerApprove}, "`call` is missing: name the call to decide, e.g. 3.2"},
		{jig.Decision{Call: "1.1"}, `"" is not an answer; use approve, deny or delegate`},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerExpire}, `"expire" is not an answer; use approve, deny or delegate`},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, Input: input}, "`input` is allowed only with approve"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDelegate, To: "eve", Input: input}, "`input` is allowed only with approve"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, Grant: grant}, "`grant` is allowed only with approve"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, GrantID: "grt_1"}, ""},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, GrantID: "grt_1"}, "`grant_id` is allowed only with approve"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, GrantID: "grt_1", Grant: grant}, "`grant_id` approves the call as it is: leave out `grant` and `input`"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, GrantID: "grt_1", Input: input}, "`grant_id` approves the call as it is: leave out `grant` and `input`"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerApprove, To: "eve"}, "`to` is allowed only with delegate"},
		{jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, To: "eve"}, "`to` is allowed only with delegate"},
	} {
		require.Equal(t, row.why, approval.CheckDecision(row.d))
	}
}

func TestCheckReply_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	long := json.RawMessage(strings.Repeat("1", jig.InlineBytes+1))
	for _, row := range []struct {
		r   jig.Reply
		why string
	}{
		{jig.Reply{Call: "1.1", Value: long[1:]}, ""},
		{jig.Reply{Value: long[1:]}, "`call` is missing: name the call of the question, e.g. 3.2"},
		{jig.Reply{Call: "1.1"}, "`value` is missing: give the answer"},
		{jig.Reply{Call: "1.1", Value: long}, "`value` has 32769 bytes; at most 32768 are allowed"},
	} {
		require.Equal(t, row.why, approval.CheckReply(row.r))
	}
}

func TestCheckReconciliation_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, outcome := range []jig.ReconcileOutcome{jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp} {
		require.Empty(t, approval.CheckReconciliation(jig.Reconciliation{Call: "1.1", Outcome: outcome}))
	}
	require.Equal(t, "`call` is missing: name the call, e.g. 3.2", approval.CheckReconciliation(jig.Reconciliation{Outcome: jig.OutcomeGiveUp}))
	require.Contains(t, approval.CheckReconciliation(jig.Reconciliation{Call: "1.1", Outcome: jig.OutcomeHappened, Attempt: -1}), "`attempt` is -1")
	require.Equal(t, `"maybe" is not an outcome; use happened, not_happened or give_up`,
		approval.CheckReconciliation(jig.Reconciliation{Call: "1.1", Outcome: "maybe"}))
}

func TestDemands_Refuse(t *testing.T) {
	t.Parallel()
	trusted, signed, off := approval.Demands{}, approval.Demands{Proof: jig.ProofKey}, approval.Demands{Proof: jig.ProofKey, NoSignals: true}
	served := approval.Demands{Proof: jig.ProofVouched}
	token := approval.Sender{Call: "1.1", Token: "t"}
	raw := token
	raw.Signal = true
	for name, row := range map[string]struct {
		demands approval.Demands
		sender  approval.Sender
		waits   bool
		why     string
	}{
		"a claim":                               {trusted, approval.Sender{Call: "1.1", By: "ana"}, true, ""},
		"a claim for a call that does not wait": {trusted, approval.Sender{Call: "1.1", By: "ana"}, false, ""},
		"nobody":                                {trusted, approval.Sender{Call: "1.1"}, true, "`by` is missing: give the principal who decides"},
		"a claim where proof is needed":         {signed, approval.Sender{Call: "1.1", By: "ana"}, true, "this tenant accepts only signed decisions"},
		"a claim where a server must vouch":     {served, approval.Sender{Call: "1.1", By: "ana"}, true, "this tenant accepts only decisions that come through its server or are signed"},
		"a server's word":                       {served, approval.Sender{Call: "1.1", Vouched: true}, true, ""},
		"a server's word where a key is needed": {signed, approval.Sender{Call: "1.1", Vouched: true}, true, "this tenant accepts only signed decisions"},
		"a token where a server must vouch":     {served, token, true, ""},
		"a token":                               {signed, token, true, ""},
		"a token in a signal":                   {signed, raw, true, ""},
		"a signal where signals are off":        {off, raw, true, "this tenant accepts no decisions by signal"},
		"an update where signals are off":       {off, token, true, ""},
		"a token for a call that does not wait": {trusted, token, false, "call 1.1 is not waiting, so the token proves nothing"},
		"a token, and no call is named":         {trusted, approval.Sender{Token: "t"}, false, ""},
	} {
		why := row.demands.Refuse(row.sender, row.waits)
		require.Equal(t, row.why == "", why == "", name)
		require.Contains(t, why, row.why, name)
	}
}

func TestSender_RefuseProved(t *testing.T) {
	t.Parallel()
	require.Empty(t, approval.Sender{}.RefuseProved("ana"))
	require.Empty(t, approval.Sender{By: "ana"}.RefuseProved("ana"))
	require.Equal(t, "`by` is ben, but the token belongs to ana: leave out `by`", approval.Sender{By: "ben"}.RefuseProved("ana"))
}

func TestMayDecide_OncePerPerson(t *testing.T) {
	t.Parallel()
	eves := &jig.Approvers{People: []string{"eve"}}
	for name, row := range map[string]struct {
		who         jig.Principal
		reconcilers *jig.Approvers
		change      func(*jig.Pending)
		want        bool
	}{
		"an approver":                     {fay(), nil, func(*jig.Pending) {}, true},
		"not an approver":                 {eve(), nil, func(*jig.Pending) {}, false},
		"a voter":                         {fay(), nil, func(p *jig.Pending) { p.Votes = []jig.Vote{{By: "fay"}} }, false},
		"a reconciler of an approval":     {eve(), eves, func(*jig.Pending) {}, false},
		"a reconciler":                    {eve(), eves, func(p *jig.Pending) { p.Kind = jig.PendingReconcile }, true},
		"an approver, but no reconciler":  {fay(), eves, func(p *jig.Pending) { p.Kind = jig.PendingReconcile }, false},
		"an approver, and no reconcilers": {fay(), nil, func(p *jig.Pending) { p.Kind = jig.PendingReconcile }, true},
	} {
		p := asked(byFinance(2)).Pending
		row.change(&p)
		require.Equal(t, row.want, approval.MayDecide(p, row.who, row.reconcilers, noonOf()), name)
	}
}

func TestTakesGrant_NotForDestructiveTools(t *testing.T) {
	t.Parallel()
	plain := jig.Tool{Permission: jig.PermissionWrite}
	p := asked(nil).Pending
	require.True(t, approval.TakesGrant(plain, p))
	require.False(t, approval.TakesGrant(jig.Tool{Permission: jig.PermissionDestructive}, p))
	require.False(t, approval.TakesGrant(jig.Tool{Permission: jig.PermissionWrite, Approval: jig.ApprovalAlwaysAsk}, p))
	p.Kind = jig.PendingQuestion
	require.False(t, approval.TakesGrant(plain, p))
}

func TestVotesOf_OnlyThoseWhoMayDecide(t *testing.T) {
	t.Parallel()
	g := jig.Grant{ID: "grt_1", CreatedAt: noonOf()}
	claimed := g
	claimed.Claimed = true
	vouched := g
	vouched.Proof = jig.ProofVouched
	for name, row := range map[string]struct {
		grant  jig.Grant
		people []jig.Principal
		terms  *jig.Terms
		proof  jig.Proof
		want   []string
	}{
		"one of one":                   {g, []jig.Principal{fay()}, byFinance(1), "", []string{"fay"}},
		"two of two":                   {g, []jig.Principal{fay(), flo()}, byFinance(2), "", []string{"fay", "flo"}},
		"one of two":                   {g, []jig.Principal{fay()}, byFinance(2), "", nil},
		"the same person twice":        {g, []jig.Principal{fay(), fay()}, byFinance(2), "", nil},
		"may no longer decide":         {g, []jig.Principal{{ID: "fay"}}, byFinance(1), "", nil},
		"the requester":                {g, []jig.Principal{{ID: "ana"}}, &jig.Terms{NotRequester: true}, "", nil},
		"claimed":                      {claimed, []jig.Principal{fay()}, byFinance(1), "", []string{"fay"}},
		"claimed, and proof is wanted": {claimed, []jig.Principal{fay()}, byFinance(1), jig.ProofKey, nil},
		"proved where proof is wanted": {g, []jig.Principal{fay()}, byFinance(1), jig.ProofKey, []string{"fay"}},
		"vouched, and a key is wanted": {vouched, []jig.Principal{fay()}, byFinance(1), jig.ProofKey, nil},
		"the terms demand a passkey":   {g, []jig.Principal{fay()}, &jig.Terms{Proof: jig.ProofPasskey}, "", nil},
		"only approvers are counted":   {g, []jig.Principal{eve(), fay()}, byFinance(1), "", []string{"fay"}},
	} {
		var got []string
		for _, v := range approval.VotesOf(row.grant, row.people, asked(row.terms).Pending, row.proof, noonOf().Add(time.Minute)) {
			got = append(got, v.By)
			require.Equal(t, "grant grt_1", v.Note)
			require.Equal(t, row.grant.Claimed, v.Claimed)
		}
		require.Equal(t, row.want, got, name)
	}
}

func TestGrantCeiling_Defaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, approval.GrantCeiling{MaxUses: 1000, MaxAge: 30 * 24 * time.Hour}, approval.GrantCeiling{}.WithDefaults())
	own := approval.GrantCeiling{MaxUses: 1, MaxAge: time.Hour, Off: true}
	require.Equal(t, own, own.WithDefaults())
}

func TestWeak_SaysWhatProofIsNeeded(t *testing.T) {
	t.Parallel()
	require.Empty(t, approval.Weak(jig.ProofClaimed, ""))
	require.Empty(t, approval.Weak(jig.ProofPasskey, jig.ProofKey))
	require.Contains(t, approval.Weak(jig.ProofKey, jig.ProofPasskey), "needs a passkey")
	require.Contains(t, approval.Weak(jig.ProofVouched, jig.ProofKey), "a key that belongs to one person")
	require.Contains(t, approval.Weak(jig.ProofClaimed, jig.ProofKey), "only signed decisions")
}
