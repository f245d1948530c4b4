package approval_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// decides returns a decision on call 1.1, ten minutes after it was asked for.
func decides(who jig.Principal, d jig.Decision) approval.DecisionRequest {
	d.Call, d.By = "1.1", who.ID
	if d.Answer == "" {
		d.Answer = jig.AnswerApprove
	}
	return approval.DecisionRequest{
		Tenant: "acme", SessionID: "ses_1", Key: "k1", Principal: who, Evidence: proof(), Decision: d, Now: noonOf().Add(10 * time.Minute),
		Voters: office(),
	}
}

// decide applies a decision and fails the test on an error.
func decide(t *testing.T, s approval.State, r approval.DecisionRequest) approval.Transition {
	t.Helper()
	got, err := approval.Decide(s, r)
	require.NoError(t, err)
	return got
}

func TestDecide_Refuses(t *testing.T) {
	t.Parallel()
	excluded := byFinance(1)
	excluded.NotRequester = true
	denied := jig.Call{Verdict: jig.VerdictDeny}
	for why, row := range map[string]struct {
		terms  *jig.Terms
		who    jig.Principal
		d      jig.Decision
		change func(*approval.State, *approval.DecisionRequest)
	}{
		"the payload is broken": {change: func(_ *approval.State, r *approval.DecisionRequest) { r.Refusal = "the payload is broken" }},
		`there is no call "1.1" in this session`: {change: func(s *approval.State, _ *approval.DecisionRequest) {
			s.Call, s.Open = nil, nil
		}},
		`"perhaps" is not an answer: approve, deny or delegate`: {d: jig.Decision{Answer: "perhaps"}},
		`"expire" is not an answer: approve, deny or delegate`:  {d: jig.Decision{Answer: jig.AnswerExpire}},
		"the outcome of the call is unknown, so it waits for reconcile, not for an approval": {
			change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call.Status = jig.CallUnknown },
		},
		"already decided: it is running": {
			change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call.Status = jig.CallExecuting },
		},
		"nobody is asked about the call: its status is waiting": {change: func(s *approval.State, _ *approval.DecisionRequest) { s.Open = nil }},
		"the call is a question: reply with answer, or deny it": {
			change: func(s *approval.State, _ *approval.DecisionRequest) { s.Open.Kind = jig.PendingQuestion },
		},
		"the approval expired at 2026-03-02T13:00:00Z": {change: func(_ *approval.State, r *approval.DecisionRequest) {
			r.Now = noonOf().Add(time.Hour) // the moment itself is too late
		}},
		"the digest does not match what is waiting: look at the call again": {d: jig.Decision{Digest: "d0"}},
		"the call changed since it was shown":                               {change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call.Digest = "d2" }},
		"the changed input was not checked":                                 {d: jig.Decision{Input: []byte(`{}`)}},
		"the changed input is not allowed": {change: func(_ *approval.State, r *approval.DecisionRequest) {
			r.Edited, r.Fresh = &denied, &jig.Pending{}
		}},
		"an earlier attempt may have taken effect: the input cannot be changed any more": {
			change: func(s *approval.State, r *approval.DecisionRequest) {
				s.Call.InDoubt, r.Edited, r.Fresh = true, &jig.Call{}, &jig.Pending{}
			},
		},
		"the token was used already: a token is valid only once, so sign again": {
			change: func(s *approval.State, _ *approval.DecisionRequest) { s.TokenUsed = true },
		},
		"the call retries an earlier one with the same idempotency key": {change: func(s *approval.State, r *approval.DecisionRequest) {
			s.SharesKey, r.Edited, r.Fresh = true, &jig.Call{}, &jig.Pending{}
		}},
		"the request does not say who decides":                  {change: func(_ *approval.State, r *approval.DecisionRequest) { r.Principal = jig.Principal{} }},
		"eve may not decide this call: it is for group finance": {terms: byFinance(1), who: eve()},
		"ana asked for this call and may not decide it":         {terms: excluded, who: jig.Principal{ID: "ana", Groups: []string{"finance"}}},
		"fay delegated this approval to eve": {change: func(s *approval.State, _ *approval.DecisionRequest) {
			s.Open.Delegations = []jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}}
		}},
		"fay approved this call already: another person is needed (1 of 2 approvals by group finance, 1 missing)": {
			terms: byFinance(2), change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.Votes = []jig.Vote{{By: "fay", Counts: []int{0}}}
			},
		},
		"a grant can come only with the last approval that the call needs: so far 1 of 2 approvals by group finance, 1 missing": {
			terms: byFinance(2), change: func(_ *approval.State, r *approval.DecisionRequest) { r.Grant = &jig.Grant{ID: "grt_1"} },
		},
		"the standing approval was not checked": {d: jig.Decision{GrantID: "grt_1"}},
		"the standing approval was not": {
			d: jig.Decision{GrantID: "grt_1"}, change: func(_ *approval.State, r *approval.DecisionRequest) { r.Standing = standing("grt_2", fay()) },
		},
		"the standing approval grt_1 does not suffice for this call: so far 0 of 2 approvals by group finance, 2 missing": {
			terms: byFinance(2), d: jig.Decision{GrantID: "grt_1"},
			change: func(_ *approval.State, r *approval.DecisionRequest) { r.Standing = standing("grt_1", fay()) },
		},
		"eve may not decide this call": {
			terms: byFinance(1), who: eve(), d: jig.Decision{GrantID: "grt_1"},
			change: func(_ *approval.State, r *approval.DecisionRequest) { r.Standing = standing("grt_1", fay()) },
		},
		"`to` is missing: say to whom it is delegated": {d: jig.Decision{Answer: jig.AnswerDelegate}},
		"nobody delegates to themselves":               {d: jig.Decision{Answer: jig.AnswerDelegate, To: "fay"}},
		"ana asked for this call and may not decide":   {terms: excluded, d: jig.Decision{Answer: jig.AnswerDelegate, To: "ana"}},
		"flo approved this call already": {
			terms: byFinance(2), d: jig.Decision{Answer: jig.AnswerDelegate, To: "flo"},
			change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.Votes = []jig.Vote{{By: "flo", Counts: []int{0}}}
			},
		},
		"zoe delegated this approval to eve": {
			d: jig.Decision{Answer: jig.AnswerDelegate, To: "zoe"},
			change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.Delegations = []jig.Delegation{{From: "zoe", To: "eve", Counts: []int{0}}}
			},
		},
	} {
		if row.who.ID == "" {
			row.who = fay()
		}
		s, r := waiting(row.terms), decides(row.who, row.d)
		if row.change != nil {
			row.change(&s, &r)
		}
		requireRefused(t, decide(t, s, r), s, why)
	}
}

// A refusal says which kind of error it is, and keeps apart what the request said.
func TestDecide_RefusalHasACode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		code   jig.Code
		who    jig.Principal
		d      jig.Decision
		change func(*approval.State, *approval.DecisionRequest)
	}{
		"another digest":  {code: jig.CodeConflict, d: jig.Decision{Digest: "d0"}},
		"a stranger":      {code: jig.CodeNotPermitted, who: eve()},
		"a wrong token":   {code: jig.CodeNotPermitted, change: func(_ *approval.State, r *approval.DecisionRequest) { r.Refusal, r.Unentitled = "who?", true }},
		"a bad payload":   {code: jig.CodeConflict, change: func(_ *approval.State, r *approval.DecisionRequest) { r.Refusal = "what?" }},
		"an unknown call": {code: jig.CodeNotFound, change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call, s.Open = nil, nil }},
		"too late":        {code: jig.CodeExpired, change: func(_ *approval.State, r *approval.DecisionRequest) { r.Now = noonOf().Add(time.Hour) }},
		"long after":      {code: jig.CodeExpired, change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call.Status, s.Open = jig.CallExpired, nil }},
		"twice":           {code: jig.CodeConflict, change: func(s *approval.State, _ *approval.DecisionRequest) { s.Call.Status, s.Open = jig.CallSucceeded, nil }},
		"to a stranger":   {code: jig.CodeConflict, d: jig.Decision{Answer: jig.AnswerDelegate, To: "fay"}},
	} {
		if row.who.ID == "" {
			row.who = fay()
		}
		s, r := waiting(byFinance(1)), decides(row.who, row.d)
		if row.change != nil {
			row.change(&s, &r)
		}
		require.Equal(t, row.code, decide(t, s, r).Ruled.Code, name)
	}
	s := waiting(nil)
	s.Open.Delegations = []jig.Delegation{{From: "zoe", To: "eve", Counts: []int{0}}}
	ruled := decide(t, s, decides(fay(), jig.Decision{Answer: jig.AnswerDelegate, To: "zoe"})).Ruled
	hidden := jig.Fill(ruled.Template, func(string, bool) string { return "…" })
	require.Equal(t, strings.ReplaceAll(ruled.Reason, "zoe", "…"), hidden)
	require.NotContains(t, hidden, "zoe")
}

// The event and the audit row of a refusal say who tried what.
func TestDecide_RefusalNamesWhoTriedAndWhat(t *testing.T) {
	t.Parallel()
	s, r := waiting(byFinance(1)), decides(jig.Principal{ID: "eve", Claimed: true}, jig.Decision{Note: "let me", Answer: jig.AnswerDeny})
	got := decide(t, s, r)
	require.Equal(t, approval.Details{
		"by": "eve", "claimed": true, "key": "k1", "answer": "deny", "call": "1.1", "reason": "eve may not decide this call: it is for group finance",
	}, got.Events[0].Data)
	require.Equal(t, audit.Entry{
		Kind: audit.AuditRefused, By: "eve", Claimed: true, Evidence: proof(), SessionID: "ses_1", Call: "1.1", Tool: "file.write", Digest: "d1",
		Note: "let me", Status: jig.CallWaiting, Reason: "eve may not decide this call: it is for group finance",
	}, got.Audit[0])
}

func TestDecide_LastVoteLetsTheCallRun(t *testing.T) {
	t.Parallel()
	s, r := waiting(nil), decides(jig.Principal{ID: "ben", Claimed: true}, jig.Decision{Digest: "d1", Note: "fi\x00ne"})
	got := decide(t, s, r)
	vote := jig.Vote{By: "ben", Claimed: true, Key: "k1", Counts: []int{0}, At: r.Now, Note: "fi\uFFFDne"}
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved}, got.Ruled)
	require.Equal(t, &approval.CallChange{Status: jig.CallReserved}, got.Call)
	require.Equal(t, &approval.Outcome{
		Status: approval.Approved, Answer: "approve", By: "ben", Claimed: true, Note: "fi\x00ne", Key: "k1", Digest: "d1", Votes: []jig.Vote{vote},
	}, got.Outcome)
	require.Equal(t, []string{"event tool.approved", "notice approval.decided", "audit approved ben"}, told(got))
	require.Equal(t, approval.Event{
		Type: jig.EventToolApproved, Pass: 1, CallID: "1.1", Tool: "file.write",
		Data: approval.Details{"by": "ben", "claimed": true, "key": "k1", "note": "fi\x00ne", "digest": "d1"},
	}, got.Events[0])
	require.Equal(t, audit.Entry{
		Kind: audit.AuditApproved, By: "ben", Claimed: true, Evidence: proof(), SessionID: "ses_1", Call: "1.1", Tool: "file.write",
		PolicyVersion: "p1", Digest: "d1", ApprovedDigest: "d1", Note: "fi\x00ne", Status: jig.CallReserved,
		Shown: audit.ShownOf(s.Open.Pending),
	}, got.Audit[0])
	require.Equal(t, jig.CallReserved, got.Notices[0].Status)
	require.Equal(t, "ben", got.Notices[0].By)
	require.Nil(t, got.Votes, "the votes are saved with the outcome")
}

func TestDecide_CountsVotesUntilTheQuorum(t *testing.T) {
	t.Parallel()
	s := waiting(byFinance(2))
	got := decide(t, s, decides(fay(), jig.Decision{}))
	require.Equal(t, jig.Ruled{
		Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "1 of 2 approvals by group finance, 1 missing",
	}, got.Ruled)
	require.Len(t, got.Votes, 1)
	require.Nil(t, got.Outcome)
	require.Nil(t, got.Call)
	require.Equal(t, []string{"event approval.voted", "audit voted fay"}, told(got))
	require.Equal(t, got.Ruled.Reason, got.Events[0].Data["missing"])

	s.Open.Votes = got.Votes
	got = decide(t, s, decides(flo(), jig.Decision{}))
	require.Equal(t, jig.CallReserved, got.Ruled.Status)
	require.Len(t, got.Outcome.Votes, 2)
	require.Equal(t, got.Outcome.Votes, got.Events[0].Data["votes"])
}

// A rule can demand more proof than the tenant: weaker decisions are refused, and weaker votes do not count.
func TestDecide_NeedsTheProofOfTheTerms(t *testing.T) {
	t.Parallel()
	terms := byFinance(2)
	terms.Proof = jig.ProofPasskey
	s := waiting(terms)
	s.Open.Votes = []jig.Vote{{By: "flo", Proof: jig.ProofKey, Counts: []int{0}}, {By: "leo", Proof: jig.ProofPasskey, Counts: []int{0}}}
	who := fay()
	who.Proof = jig.ProofKey
	refused := decide(t, s, decides(who, jig.Decision{}))
	require.True(t, refused.Refused())
	require.Contains(t, refused.Ruled.Reason, "needs a passkey")
	who.Proof = jig.ProofPasskey
	got := decide(t, s, decides(who, jig.Decision{}))
	require.Equal(t, jig.CallReserved, got.Ruled.Status)
	require.Equal(t, []string{"leo", "fay"}, []string{got.Outcome.Votes[0].By, got.Outcome.Votes[1].By})
	require.Equal(t, jig.ProofPasskey, got.Outcome.Votes[1].Proof)
}

// Votes and delegations that were merely claimed do not count in a tenant that demands proof, and are dropped with the next vote.
func TestDecide_IgnoresClaimsWhereProofIsDemanded(t *testing.T) {
	t.Parallel()
	s := waiting(byFinance(2))
	s.Open.Votes = []jig.Vote{{By: "flo", Claimed: true, Counts: []int{0}}, {By: "leo", Counts: []int{0}}}
	s.Open.Delegations = []jig.Delegation{{From: "fay", To: "eve", Claimed: true, Counts: []int{0}}}
	r := decides(fay(), jig.Decision{})
	require.True(t, decide(t, s, r).Refused())
	r.Proof = jig.ProofKey
	got := decide(t, s, r)
	require.Equal(t, jig.CallReserved, got.Ruled.Status)
	require.Len(t, got.Outcome.Votes, 2)
	require.Equal(t, "leo", got.Outcome.Votes[0].By)
	require.Len(t, s.Open.Votes, 2, "the state is not changed")
}

func TestDecide_GrantComesWithTheLastVote(t *testing.T) {
	t.Parallel()
	s, r := waiting(byFinance(2)), decides(fay(), jig.Decision{})
	s.Open.Votes = []jig.Vote{{By: "flo", Counts: []int{0}}}
	r.Grant = &jig.Grant{ID: "grt_1", Tool: "file.write", When: "true", MaxUses: 3, ExpiresAt: noonOf().Add(24 * time.Hour), Note: "routine"}
	got := decide(t, s, r)
	require.Equal(t, "grt_1", got.Ruled.Grant)
	require.Equal(t, []string{"fay"}, got.Grant.By, "flo approved only this call")
	require.Equal(t, []string{"ses_1", "1.1"}, []string{got.Grant.SessionID, got.Grant.Call})
	require.Empty(t, r.Grant.By, "the request is not changed")
	require.Equal(t, []string{
		"event tool.approved", "event grant.created", "notice approval.decided", "audit approved fay", "audit granted fay",
	}, told(got))
	require.Equal(t, approval.Details{
		"grant": "grt_1", "by": []string{"fay"}, "agent": "", "when": "true", "max_uses": 3, "expires_at": "2026-03-03T12:00:00Z",
	}, got.Events[1].Data)
	require.Equal(t, "routine", got.Audit[1].Note)
	require.JSONEq(t, `{"agent":"","by":["fay"],"expires_at":"2026-03-03T12:00:00Z","max_uses":3,"meaning":"","when":"true"}`, string(got.Audit[1].Shown.Input))
}

// standing returns a standing approval that people gave.
func standing(id string, people ...jig.Principal) *approval.Standing {
	s := &approval.Standing{Grant: jig.Grant{ID: id}, People: people}
	for _, p := range people {
		s.Grant.By = append(s.Grant.By, p.ID)
	}
	return s
}

// A standing approval approves a call that waits with the votes of the people who gave it, whoever applies it.
func TestDecide_AppliesAStandingApproval(t *testing.T) {
	t.Parallel()
	s, r := waiting(byFinance(2)), decides(leo(), jig.Decision{GrantID: "grt_1"})
	r.Standing = standing("grt_1", fay(), flo())
	got := decide(t, s, r)
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallReserved, Grant: "grt_1"}, got.Ruled)
	require.Equal(t, []string{"grt_1", "leo"}, []string{got.Outcome.Grant, got.Outcome.By})
	require.Equal(t, []string{"fay", "flo"}, []string{got.Outcome.Votes[0].By, got.Outcome.Votes[1].By})
	require.Equal(t, "grt_1", got.Events[0].Data["grant"])
	require.Equal(t, "grt_1", got.Audit[0].Subject)
	require.Nil(t, got.Grant, "no new standing approval")

	r.Standing.Grant.Claimed, r.Proof = true, jig.ProofKey
	require.True(t, decide(t, s, r).Refused(), "it was merely claimed")
}

func TestDecide_DenyEndsTheCall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, message string
	}{
		"with a reason":    {"too much", "too much"},
		"without a reason": {"", "a person denied the call"},
	} {
		s := waiting(byFinance(2))
		s.Open.Votes = []jig.Vote{{By: "fay", Counts: []int{0}}}
		got := decide(t, s, decides(fay(), jig.Decision{Answer: jig.AnswerDeny, Reason: row.reason}))
		require.Equal(t, jig.CallDenied, got.Ruled.Status, "%s: an approver may change their mind", name)
		require.Equal(t, jig.CallDenied, got.Call.Status)
		require.Equal(t, jig.CodeDenied, got.Call.Result.Error.Code)
		require.Equal(t, row.message, got.Call.Result.Error.Message)
		require.Equal(t, &approval.Outcome{Status: approval.Denied, Answer: "deny", By: "fay", Reason: row.reason, Key: "k1"}, got.Outcome)
		require.Equal(t, []string{"event tool.denied", "notice approval.decided", "audit denied fay"}, told(got))
		require.Equal(t, row.reason, got.Audit[0].Reason)
		require.Equal(t, row.reason, got.Notices[0].Reason)
		require.Nil(t, got.Opens)
	}
}

// Denying another attempt does not settle whether the first one took effect.
func TestDecide_DenyOfADoubtfulCallAsksWhatHappened(t *testing.T) {
	t.Parallel()
	s, r := waiting(nil), decides(fay(), jig.Decision{Answer: jig.AnswerDeny})
	s.Call.InDoubt, s.Call.Fence = true, 2
	got := decide(t, s, r)
	require.Equal(t, jig.CallUnknown, got.Ruled.Status)
	require.Equal(t, &approval.CallChange{Status: jig.CallUnknown}, got.Call)
	require.Equal(t, approval.Denied, got.Outcome.Status)
	require.Equal(t, []string{
		"event tool.denied", "event tool.outcome_unknown", "notice approval.decided", "notice approval.requested", "audit denied fay",
	}, told(got))
	require.Equal(t, jig.PendingReconcile, got.Opens.Kind)
	require.Equal(t, r.Now, got.Opens.RequestedAt)
	require.Zero(t, got.Opens.ExpiresAt)
	require.Equal(t, "file.write may have run and it is not known whether it took effect", got.Opens.Summary)
	require.Equal(t, []string{"another attempt was denied, and an earlier one may have taken effect"}, got.Opens.Reasons)
	require.Equal(t, 2, got.Events[1].Data["attempt"])
}

func TestDecide_DelegateHandsTheDecisionOn(t *testing.T) {
	t.Parallel()
	s, r := waiting(byFinance(1)), decides(fay(), jig.Decision{Answer: jig.AnswerDelegate, To: "eve", Note: "on holiday"})
	got := decide(t, s, r)
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "delegated to eve"}, got.Ruled)
	require.Equal(t, []jig.Delegation{{From: "fay", To: "eve", At: r.Now, Key: "k1", Counts: []int{0}}}, got.Delegations)
	require.Nil(t, got.Outcome)
	require.Nil(t, got.Call)
	require.Equal(t, []string{"event approval.delegated", "notice approval.delegated", "audit delegated fay"}, told(got))
	require.Equal(t, approval.Details{"by": "fay", "claimed": false, "key": "k1", "note": "on holiday", "to": "eve"}, got.Events[0].Data)
	require.Equal(t, &jig.Approvers{People: []string{"eve"}}, got.Notices[0].Approvers)
	require.Equal(t, "eve", got.Audit[0].Subject)

	s.Open.Delegations = got.Delegations
	require.True(t, decide(t, s, r).Refused(), "fay may no longer decide")
	require.Equal(t, jig.CallReserved, decide(t, s, decides(eve(), jig.Decision{})).Ruled.Status)
}

func TestRefuse_RecordsASignalThatNamesNoCall(t *testing.T) {
	t.Parallel()
	s := approval.State{Tenant: "acme", SessionID: "ses_1"}
	requireRefused(t, approval.Refuse(s, "it is empty", approval.Details{}), s, "it is empty")
}

// Events, notices and audit rows say with what proof somebody decided.
func TestDecide_SaysWithWhatProof(t *testing.T) {
	t.Parallel()
	who := fay()
	who.Proof = jig.ProofVouched
	got := decide(t, waiting(nil), decides(who, jig.Decision{}))
	require.Equal(t, jig.ProofVouched, got.Events[0].Data["proof"])
	require.Equal(t, jig.ProofVouched, got.Notices[0].Proof)
	require.Equal(t, jig.ProofVouched, got.Audit[0].Proof)
}

// Whoever changes a call, says why they deny it, answers a question or gives the result of a call puts words into the session.
func TestTransition_WhoeverReviewsSaysSomething(t *testing.T) {
	t.Parallel()
	said := func(by string) *jig.Asker { return &jig.Asker{Principal: "fay", By: by} }
	for name, row := range map[string]struct {
		r    approval.DecisionRequest
		want *jig.Asker
	}{
		"an approval":             {decides(fay(), jig.Decision{Note: "yes"}), nil},
		"a denial":                {decides(fay(), jig.Decision{Answer: jig.AnswerDeny}), nil},
		"a denial with a reason":  {decides(fay(), jig.Decision{Answer: jig.AnswerDeny, Reason: "write b"}), said(jig.AskedReview)},
		"a change":                {edits(fay(), nil), said(jig.AskedReview)},
		"a change that waits":     {edits(fay(), byFinance(2)), said(jig.AskedReview)},
		"somebody who may not":    {decides(eve(), jig.Decision{Answer: jig.AnswerDeny, Reason: "write b"}), nil},
		"a delegation, with note": {decides(fay(), jig.Decision{Answer: jig.AnswerDelegate, To: "eve", Note: "write b"}), nil},
	} {
		require.Equal(t, row.want, decide(t, waiting(byFinance(1)), row.r).Said, name)
	}
	answered, err := approval.Reply(asking(), replies(fay(), `"monday"`))
	require.NoError(t, err)
	require.Equal(t, said(jig.AskedAnswer), answered.Said)
	require.Equal(t, said(jig.AskedAnswer), reconcile(t, doubtful(), reconciles(fay(), jig.OutcomeHappened, `{"id":7}`)).Said)
	require.Nil(t, reconcile(t, doubtful(), reconciles(fay(), jig.OutcomeHappened, "")).Said)
}
