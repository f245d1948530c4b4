package approval_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// handed returns a delegation of the first requirement.
func handed(from, to string) jig.Delegation {
	return jig.Delegation{From: from, To: to, Proof: jig.ProofVouched, Counts: []int{0}}
}

func delegates(who jig.Principal, to string) approval.DecisionRequest {
	return decides(who, jig.Decision{Answer: jig.AnswerDelegate, To: to})
}

func takesBack(who jig.Principal) approval.DecisionRequest {
	return decides(who, jig.Decision{Answer: jig.AnswerDelegate, Undo: true, Note: "back again"})
}

func TestDecide_DelegationLeavesEnoughPeople(t *testing.T) {
	t.Parallel()
	escalated := byFinance(2)
	escalated.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(30 * time.Minute), Approvers: lead()}}
	late := byFinance(2)
	late.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(2 * time.Hour), Approvers: lead()}}
	both := byFinance(1)
	both.Requirements = append(both.Requirements, jig.Requirement{Approvers: lead(), Quorum: 1})
	named := &jig.Terms{Requirements: []jig.Requirement{{Approvers: jig.Approvers{People: []string{"fay", "zoe"}}, Quorum: 2}}}
	anybody := &jig.Terms{Requirements: []jig.Requirement{{Quorum: 2}}}
	boss := jig.Principal{ID: "boss", Permissions: []string{"lead"}}
	for name, row := range map[string]struct {
		terms  *jig.Terms
		to     string
		people []jig.Principal
		change func(*approval.State, *approval.DecisionRequest)
		why    string
	}{
		"to the only other one": {terms: byFinance(2), to: "flo", why: "then only 1 of the 2 people who must approve could still decide (group finance)"},
		"one is enough":         {terms: byFinance(1), to: "flo"},
		"to somebody new":       {terms: byFinance(2), to: "eve"},
		"there is a third":      {terms: byFinance(2), to: "flo", people: []jig.Principal{fay(), flo(), leo()}},
		"the third is disabled": {
			terms: byFinance(2), to: "flo", people: []jig.Principal{fay(), flo(), leo()}, why: "then only 1 of the 2",
			change: func(_ *approval.State, r *approval.DecisionRequest) { r.Disabled = []string{"leo"} },
		},
		"the third delegated": {
			terms: byFinance(2), to: "flo", people: []jig.Principal{fay(), flo(), leo()}, why: "then only 1 of the 2",
			change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.Delegations = []jig.Delegation{handed("leo", "flo")}
			},
		},
		"the third asked for it": {
			terms: byFinance(2), to: "flo", people: []jig.Principal{fay(), flo(), leo()}, why: "then only 1 of the 2",
			change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.RequestedBy, s.Open.Terms.NotRequester = "leo", true
			},
		},
		"the third has approved": {
			terms: byFinance(2), to: "flo", people: []jig.Principal{fay(), flo(), leo()},
			change: func(s *approval.State, _ *approval.DecisionRequest) {
				s.Open.Votes = []jig.Vote{{By: "leo", Counts: []int{0}}}
			},
		},
		"others come with an escalation":     {terms: escalated, to: "flo", people: []jig.Principal{fay(), flo(), boss}},
		"the escalation is after the expiry": {terms: late, to: "flo", people: []jig.Principal{fay(), flo(), boss}, why: "then only 1 of the 2"},
		"anybody may decide":                 {terms: anybody, to: "flo"},
		"people who are named":               {terms: named, to: "zoe", why: "then only 1 of the 2"},
		"there were too few before":          {terms: byFinance(3), to: "eve"},
		"one vote for several requirements":  {terms: both, to: "leo", people: []jig.Principal{fay(), leo()}},
		"to somebody who is disabled":        {terms: byFinance(1), to: "eve", why: "eve is disabled", change: func(_ *approval.State, r *approval.DecisionRequest) { r.Disabled = []string{"eve"} }},
		"to somebody who delegated to others": {terms: byFinance(1), to: "flo", why: "flo delegated this approval to eve", change: func(s *approval.State, _ *approval.DecisionRequest) {
			s.Open.Delegations = []jig.Delegation{handed("flo", "eve")}
		}},
	} {
		s, r := waiting(row.terms), delegates(fay(), row.to)
		r.People = row.people
		if row.people == nil {
			r.People = []jig.Principal{fay(), flo()}
		}
		if row.change != nil {
			row.change(&s, &r)
		}
		got := decide(t, s, r)
		require.Equal(t, row.why != "", got.Refused(), "%s: %s", name, got.Ruled.Reason)
		require.Contains(t, got.Ruled.Reason, row.why, name)
	}
}

func TestDecide_DelegationCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s := waiting(byFinance(2))
	s.Open.Delegations = []jig.Delegation{handed("leo", "zoe"), handed("fay", "eve")}
	got := decide(t, s, takesBack(fay()))
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "taken back from eve"}, got.Ruled)
	require.Equal(t, []jig.Delegation{handed("leo", "zoe")}, got.Delegations)
	require.Equal(t, []string{"event approval.delegated", "audit delegated fay"}, told(got))
	require.Equal(t, approval.Details{"by": "fay", "claimed": false, "key": "k1", "note": "back again", "from": "eve"}, got.Events[0].Data)
	require.Equal(t, []string{"fay", "taken back from eve", "back again"}, []string{got.Audit[0].Subject, got.Audit[0].Reason, got.Audit[0].Note})

	s.Open.Delegations = got.Delegations
	require.True(t, decide(t, s, decides(eve(), jig.Decision{})).Refused())
	require.False(t, decide(t, s, decides(fay(), jig.Decision{})).Refused())
	require.NotNil(t, decide(t, s, takesBack(leo())).Delegations, "an empty list replaces the stored one")
}

func TestDecide_DelegationCanBeTakenBackUntilTheDelegateVotes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		given []jig.Delegation
		votes []jig.Vote
		who   jig.Principal
		why   string
	}{
		"nobody has voted":               {[]jig.Delegation{handed("fay", "eve")}, nil, fay(), ""},
		"somebody else has voted":        {[]jig.Delegation{handed("fay", "eve")}, []jig.Vote{{By: "flo", Counts: []int{0}}}, fay(), ""},
		"the delegate has voted":         {[]jig.Delegation{handed("fay", "eve")}, []jig.Vote{{By: "eve", Counts: []int{0}}}, fay(), "eve approved this call already"},
		"the delegate's right was own":   {[]jig.Delegation{handed("fay", "flo")}, []jig.Vote{{By: "flo", Counts: []int{0}}}, fay(), ""},
		"two delegated to the same":      {[]jig.Delegation{handed("fay", "eve"), handed("flo", "eve")}, []jig.Vote{{By: "eve", Counts: []int{0}}}, fay(), ""},
		"the end of a chain has voted":   {[]jig.Delegation{handed("fay", "eve"), handed("eve", "zoe")}, []jig.Vote{{By: "zoe", Counts: []int{0}}}, fay(), "zoe approved this call already"},
		"nothing was delegated":          {nil, nil, fay(), "fay has not delegated this approval"},
		"somebody else's":                {[]jig.Delegation{handed("fay", "eve")}, nil, flo(), "flo has not delegated this approval"},
		"the delegator left the group":   {[]jig.Delegation{handed("gus", "eve")}, nil, jig.Principal{ID: "gus"}, "gus has not delegated this approval, or the delegation no longer counts"},
		"the middle of a chain":          {[]jig.Delegation{handed("fay", "eve"), handed("eve", "zoe")}, nil, eve(), ""},
		"the beginning of a chain":       {[]jig.Delegation{handed("fay", "eve"), handed("eve", "zoe")}, nil, fay(), ""},
		"the delegate has no such right": {[]jig.Delegation{handed("fay", "eve")}, nil, eve(), "eve has not delegated this approval"},
	} {
		s := waiting(byFinance(2))
		s.Open.Delegations, s.Open.Votes = row.given, row.votes
		got := decide(t, s, takesBack(row.who))
		require.Equal(t, row.why != "", got.Refused(), "%s: %s", name, got.Ruled.Reason)
		require.Contains(t, got.Ruled.Reason, row.why, name)
	}
}

// A vote that counts through a delegation ends with the delegation, for whatever reason that ends.
func TestDecide_VoteEndsWithItsDelegation(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*approval.State, *approval.DecisionRequest)
		runs   bool
	}{
		"the delegation counts":      {func(*approval.State, *approval.DecisionRequest) {}, true},
		"the delegator was disabled": {func(_ *approval.State, r *approval.DecisionRequest) { r.Disabled = []string{"fay"} }, false},
		"the delegator left":         {func(_ *approval.State, r *approval.DecisionRequest) { r.People = []jig.Principal{flo(), leo()} }, false},
		"the delegation was claimed": {func(s *approval.State, r *approval.DecisionRequest) {
			s.Open.Delegations[0].Proof, r.Proof = jig.ProofClaimed, jig.ProofVouched
		}, false},
		"claims are enough":           {func(s *approval.State, _ *approval.DecisionRequest) { s.Open.Delegations[0].Proof = jig.ProofClaimed }, true},
		"the terms demand more proof": {func(s *approval.State, _ *approval.DecisionRequest) { s.Open.Terms.Proof = jig.ProofKey }, false},
		"it is gone":                  {func(s *approval.State, _ *approval.DecisionRequest) { s.Open.Delegations = nil }, false},
		"the delegate is an approver": {func(s *approval.State, r *approval.DecisionRequest) {
			s.Open.Delegations = nil
			r.People = append(r.People, jig.Principal{ID: "eve", Groups: []string{"finance"}})
		}, true},
		"the voter left":        {func(s *approval.State, _ *approval.DecisionRequest) { s.Open.Votes[0].By = "gus" }, false},
		"a chain that is cut":   {func(s *approval.State, r *approval.DecisionRequest) { chain(s); r.Disabled = []string{"fay"} }, false},
		"a chain that is whole": {func(s *approval.State, _ *approval.DecisionRequest) { chain(s) }, true},
	} {
		s := waiting(byFinance(2))
		s.Open.Delegations = []jig.Delegation{handed("fay", "eve")}
		s.Open.Votes = []jig.Vote{{By: "eve", Proof: jig.ProofKey, Counts: []int{0}}}
		who := flo()
		who.Proof = jig.ProofKey
		r := decides(who, jig.Decision{})
		row.change(&s, &r)
		got := decide(t, s, r)
		require.False(t, got.Refused(), "%s: %s", name, got.Ruled.Reason)
		require.Equal(t, row.runs, got.Ruled.Status == jig.CallReserved, "%s: %s", name, got.Ruled.Reason)
	}
}

// chain lets the delegation go on from eve to zoe, who approved.
func chain(s *approval.State) {
	s.Open.Delegations = append(s.Open.Delegations, handed("eve", "zoe"))
	s.Open.Votes[0].By = "zoe"
}

func TestRecount_DelegationThatWasTakenBackDoesNotCount(t *testing.T) {
	t.Parallel()
	p := asked(byFinance(1)).Pending
	p.Delegations = []jig.Delegation{handed("fay", "eve")} // as a forged row would have it
	decisions := []approval.Proven{
		{Principal: fay(), Answer: jig.AnswerDelegate, To: "eve", At: noonOf()},
		{Principal: fay(), Answer: jig.AnswerDelegate, Undo: true, At: noonOf()},
	}
	require.NotEmpty(t, approval.Recount(p, append(decisions, approval.Proven{Principal: eve(), Answer: jig.AnswerApprove, At: noonOf()})))
	require.Empty(t, approval.Recount(p, append(decisions, approval.Proven{Principal: fay(), Answer: jig.AnswerApprove, At: noonOf()})))
}

// Whatever people delegate and take back: if everybody who may still decide approves, the call runs.
func TestDecide_DelegationsNeverStrandACall(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 7))
	delegated, refused, undone := 0, 0, 0
	for range 500 {
		var people []jig.Principal
		for i := range 3 + random.IntN(3) {
			people = append(people, jig.Principal{ID: fmt.Sprintf("p%d", i), Groups: []string{"finance"}})
		}
		s := waiting(byFinance(1 + random.IntN(len(people))))
		ids := slices.Concat(people, []jig.Principal{eve(), {ID: "zoe"}})
		apply := func(r approval.DecisionRequest) approval.Transition {
			r.People = people
			got := decide(t, s, r)
			if got.Delegations != nil {
				s.Open.Delegations = got.Delegations
			}
			if got.Votes != nil {
				s.Open.Votes = got.Votes
			}
			return got
		}
		ran := false
		for range 8 {
			who := ids[random.IntN(len(ids))]
			switch random.IntN(5) {
			case 0:
				ran = ran || apply(decides(who, jig.Decision{})).Ruled.Status == jig.CallReserved
			case 1:
				if !apply(takesBack(who)).Refused() {
					undone++
				}
			default:
				if apply(delegates(who, ids[random.IntN(len(ids))].ID)).Refused() {
					refused++
				} else {
					delegated++
				}
			}
		}
		for _, who := range ids {
			ran = ran || apply(decides(who, jig.Decision{})).Ruled.Status == jig.CallReserved
		}
		require.True(t, ran, "%+v", s.Open.Pending)
	}
	require.Greater(t, min(delegated, refused, undone), 50, "the test covers all outcomes")
}

// What is stored with a vote limits it: somebody who became an approver since counts only for what they were asked.
func TestCounted_StoredRequirementsAreALimit(t *testing.T) {
	t.Parallel()
	p := asked(&jig.Terms{Requirements: []jig.Requirement{{Approvers: finance()}, {Approvers: lead()}}}).Pending
	p.Votes = []jig.Vote{{By: "leo", Counts: []int{1}}}
	require.Equal(t, p.Votes, office().Counted(p, noonOf()).Votes)
	p.Votes[0].Counts = []int{2}
	require.Empty(t, office().Counted(p, noonOf()).Votes)
}
