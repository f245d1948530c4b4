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

// noonOf returns the time at which the approvals of these tests are requested.
func noonOf() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// finance and lead are approvers; fay belongs to finance only, and leo to both.
func finance() jig.Approvers { return jig.Approvers{Groups: []string{"finance"}} }
func lead() jig.Approvers    { return jig.Approvers{Permission: "lead"} }
func fay() jig.Principal     { return jig.Principal{ID: "fay", Groups: []string{"finance"}} }
func leo() jig.Principal {
	return jig.Principal{ID: "leo", Permissions: []string{"lead"}, Groups: []string{"finance"}}
}

func TestEntitled_ByApproversEscalationsAndDelegations(t *testing.T) {
	t.Parallel()
	two := []jig.Requirement{
		{Rule: "p/a", Approvers: finance(), Quorum: 2, Escalate: []jig.Escalation{{After: jig.Duration(time.Hour), Approvers: jig.Approvers{People: []string{"eve"}}}}},
		{Rule: "p/b", Approvers: lead(), Quorum: 1},
	}
	ana, eve := jig.Principal{ID: "ana"}, jig.Principal{ID: "eve"}
	for name, row := range map[string]struct {
		terms  jig.Terms
		who    jig.Principal
		waited time.Duration
		given  []jig.Delegation
		counts []int
		why    string
	}{
		"anybody":                  {jig.Terms{}, jig.Principal{ID: "zoe"}, 0, nil, []int{0}, ""},
		"nobody":                   {jig.Terms{}, jig.Principal{}, 0, nil, nil, "the request does not say who decides"},
		"the requester":            {jig.Terms{}, ana, 0, nil, []int{0}, ""},
		"the requester, excluded":  {jig.Terms{NotRequester: true}, ana, 0, nil, nil, "ana asked for this call and may not decide it"},
		"somebody else":            {jig.Terms{NotRequester: true}, eve, 0, nil, []int{0}, ""},
		"approver for one":         {jig.Terms{Requirements: two}, fay(), 0, nil, []int{0}, ""},
		"approver for both":        {jig.Terms{Requirements: two}, leo(), 0, nil, []int{0, 1}, ""},
		"approver for neither":     {jig.Terms{Requirements: two}, eve, 0, nil, nil, "eve may not decide this call: it is for group finance, and permission lead"},
		"before the escalation":    {jig.Terms{Requirements: two}, eve, time.Hour - 1, nil, nil, "eve may not decide this call"},
		"at the escalation":        {jig.Terms{Requirements: two}, eve, time.Hour, nil, []int{0}, ""},
		"long after it":            {jig.Terms{Requirements: two}, eve, 1000 * time.Hour, nil, []int{0}, ""},
		"a wildcard permission":    {jig.Terms{Requirements: two}, jig.Principal{ID: "root", Permissions: []string{"*"}}, 0, nil, []int{1}, ""},
		"the delegator":            {jig.Terms{Requirements: two}, fay(), 0, []jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}}, nil, "fay delegated this approval to eve"},
		"the delegate":             {jig.Terms{Requirements: two}, eve, 0, []jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}}, []int{0}, ""},
		"the delegate, for a part": {jig.Terms{Requirements: two}, eve, 0, []jig.Delegation{{From: "leo", To: "eve", Counts: []int{1}}}, []int{1}, ""},
		"own and delegated rights": {jig.Terms{Requirements: two}, fay(), 0, []jig.Delegation{{From: "leo", To: "fay", Counts: []int{0, 1}}}, []int{0, 1}, ""},
		"delegated to the requester": {
			jig.Terms{Requirements: two, NotRequester: true}, ana, 0, []jig.Delegation{{From: "fay", To: "ana", Counts: []int{0}}}, nil, "ana asked for this call",
		},
		"in a chain, the middle": {
			jig.Terms{Requirements: two},
			eve, 0,
			[]jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}, {From: "eve", To: "zoe", Counts: []int{0}}},
			nil, "eve delegated this approval to zoe",
		},
		"in a chain, the end": {
			jig.Terms{Requirements: two},
			jig.Principal{ID: "zoe"},
			0,
			[]jig.Delegation{{From: "fay", To: "eve", Counts: []int{0}}, {From: "eve", To: "zoe", Counts: []int{0}}},
			[]int{0},
			"",
		},
	} {
		c := approval.Consent{Terms: row.terms, Askers: []jig.Asker{{Principal: "ana", By: jig.AskedStarted}}, RequestedAt: noonOf(), Delegations: row.given}
		counts, why := c.Entitled(row.who, noonOf().Add(row.waited))
		require.Equal(t, row.counts, counts, name)
		require.Contains(t, why, row.why, name)
		require.Equal(t, counts == nil, why != "", name)
	}
}

func TestMissing_DescribesTheQuorum(t *testing.T) {
	t.Parallel()
	terms := jig.Terms{Requirements: []jig.Requirement{{Approvers: finance(), Quorum: 2}, {Approvers: lead()}}}
	vote := func(by string, counts ...int) jig.Vote { return jig.Vote{By: by, Counts: counts} }
	for _, row := range []struct {
		votes []jig.Vote
		want  string
	}{
		{nil, "0 of 2 approvals by group finance, 2 missing; 0 of 1 approvals by permission lead, 1 missing"},
		{[]jig.Vote{vote("fay", 0)}, "1 of 2 approvals by group finance, 1 missing; 0 of 1 approvals by permission lead, 1 missing"},
		{[]jig.Vote{vote("fay", 0), vote("fay", 0)}, "1 of 2 approvals by group finance, 1 missing; 0 of 1 approvals by permission lead, 1 missing"},
		{[]jig.Vote{vote("fay", 0), vote("leo", 0, 1)}, ""},
		{[]jig.Vote{vote("leo", 0, 1)}, "1 of 2 approvals by group finance, 1 missing"},
		{[]jig.Vote{vote("fay", 0), vote("flo", 0)}, "0 of 1 approvals by permission lead, 1 missing"},
		{[]jig.Vote{vote("fay", 5), vote("flo")}, "0 of 2 approvals by group finance, 2 missing; 0 of 1 approvals by permission lead, 1 missing"},
	} {
		c := approval.Consent{Terms: terms, Votes: row.votes}
		require.Equal(t, row.want, c.Missing())
		require.Equal(t, row.want == "", c.Granted())
	}
	require.Equal(t, "0 of 1 approvals by anybody, 1 missing", approval.Consent{}.Missing())
	require.True(t, approval.Consent{Votes: []jig.Vote{vote("ana", 0)}}.Granted())
	require.True(t, approval.Consent{Votes: []jig.Vote{vote("ana", 0)}}.Voted(jig.Principal{ID: "ana"}))
	require.False(t, approval.Consent{Votes: []jig.Vote{vote("ana", 0)}}.Voted(jig.Principal{ID: "ann"}))
}

func TestMoments_RemindersAndEscalations(t *testing.T) {
	t.Parallel()
	eve := jig.Approvers{People: []string{"eve"}}
	c := approval.Consent{RequestedAt: noonOf(), Terms: jig.Terms{
		Remind:       jig.Duration(4 * time.Hour),
		Requirements: []jig.Requirement{{Escalate: []jig.Escalation{{After: jig.Duration(4 * time.Hour), Approvers: eve}, {After: jig.Duration(9 * time.Hour), Approvers: lead()}}}},
	}}
	moments := func(after, until time.Duration) []string {
		list := []string{}
		for _, m := range c.Moments(noonOf().Add(after), noonOf().Add(until)) {
			text := "remind " + m.At.Sub(noonOf()).String()
			if m.Escalation != nil {
				text = "escalate " + m.At.Sub(noonOf()).String() + " " + m.Escalation.String()
			}
			list = append(list, text)
		}
		return list
	}
	require.Empty(t, moments(0, 4*time.Hour-1))
	require.Equal(t, []string{"escalate 4h0m0s eve", "remind 4h0m0s"}, moments(0, 4*time.Hour))
	require.Empty(t, moments(4*time.Hour, 8*time.Hour-1), "handled moments are not returned again")
	require.Equal(t, []string{"remind 8h0m0s"}, moments(4*time.Hour, 8*time.Hour))
	require.Equal(t, []string{"escalate 9h0m0s permission lead"}, moments(8*time.Hour, 9*time.Hour))
	require.Equal(t, []string{"escalate 4h0m0s eve", "escalate 9h0m0s permission lead", "remind 100h0m0s"}, moments(0, 101*time.Hour), "several missed reminders become one")
	require.Empty(t, moments(-100*time.Hour, 0), "nothing is due before the request")
	for after, next := range map[time.Duration]time.Duration{
		-time.Hour: 4 * time.Hour, 0: 4 * time.Hour, 4*time.Hour - 1: 4 * time.Hour, 4 * time.Hour: 8 * time.Hour, 8 * time.Hour: 9 * time.Hour, 9 * time.Hour: 12 * time.Hour,
	} {
		require.Equal(t, noonOf().Add(next), c.Next(noonOf().Add(after)), "%s", after)
	}
	c.Terms.Remind = 0
	require.Equal(t, noonOf().Add(9*time.Hour), c.Next(noonOf().Add(8*time.Hour)))
	require.Zero(t, c.Next(noonOf().Add(9*time.Hour)))
	require.Zero(t, approval.Consent{RequestedAt: noonOf()}.Next(noonOf()))
}

// Moments is called at random times. It returns each escalation once and no reminder early or twice, and Next returns the time of the next
// reminder or escalation.
func TestMoments_AreReturnedOnce(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 7))
	for range 2000 {
		c := approval.Consent{RequestedAt: noonOf(), Terms: jig.Terms{Remind: jig.Duration(random.IntN(3)) * jig.Duration(1+random.IntN(90)) * jig.Duration(time.Minute)}}
		escalations := 0
		for range random.IntN(3) {
			r := jig.Requirement{}
			for range random.IntN(3) {
				r.Escalate = append(r.Escalate, jig.Escalation{After: jig.Duration(1+random.IntN(600)) * jig.Duration(time.Minute), Approvers: lead()})
				escalations++
			}
			c.Terms.Requirements = append(c.Terms.Requirements, r)
		}
		last, seen, escalated := noonOf(), noonOf(), 0
		for seen.Before(noonOf().Add(20 * time.Hour)) {
			now, next := seen.Add(time.Duration(1+random.IntN(200))*time.Minute), c.Next(seen)
			list := c.Moments(seen, now)
			require.Equal(t, !next.IsZero() && !next.After(now), len(list) > 0, "Next agrees with Moments")
			reminders := 0
			for _, m := range list {
				require.True(t, m.At.After(seen) && !m.At.After(now))
				if m.Escalation != nil {
					escalated++
					continue
				}
				reminders++
				require.True(t, m.At.After(last), "twice")
				require.Zero(t, m.At.Sub(noonOf())%time.Duration(c.Terms.Remind))
				last = m.At
			}
			require.LessOrEqual(t, reminders, 1)
			seen = now
		}
		require.Equal(t, escalations, escalated)
	}
}

// granting is a random approval. spoke records, by person, the requirements for which that person voted; the test computes the expected
// result from it, independently of the code under test.
type granting struct {
	consent approval.Consent
	people  []jig.Principal
	spoke   map[string][]int
}

func randomGranting(random *rand.Rand) granting {
	g := granting{spoke: map[string][]int{}, consent: approval.Consent{Askers: []jig.Asker{{Principal: "p0", By: jig.AskedStarted}}, RequestedAt: noonOf()}}
	g.consent.Terms.NotRequester = random.IntN(2) == 0
	for i := range 6 {
		p := jig.Principal{ID: fmt.Sprintf("p%d", i)}
		for _, group := range []string{"a", "b", "c"} {
			if random.IntN(2) == 0 {
				p.Groups = append(p.Groups, group)
			}
		}
		g.people = append(g.people, p)
	}
	for range random.IntN(4) {
		r := jig.Requirement{Quorum: random.IntN(4), Approvers: jig.Approvers{Groups: []string{[]string{"a", "b", "c"}[random.IntN(3)]}}}
		if random.IntN(3) == 0 {
			r.Escalate = []jig.Escalation{{After: jig.Duration(random.IntN(30)) * jig.Duration(time.Minute), Approvers: jig.Approvers{People: []string{"p5"}}}}
		}
		g.consent.Terms.Requirements = append(g.consent.Terms.Requirements, r)
	}
	return g
}

func TestGranted_NeedsTheQuorum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 8))
	granted, delegated, refused := 0, 0, 0
	for range 5000 {
		g := randomGranting(random)
		for step := range 12 {
			who, now := g.people[random.IntN(len(g.people))], noonOf().Add(time.Duration(step*5)*time.Minute)
			counts, why := g.consent.Entitled(who, now)
			if why != "" {
				require.Nil(t, counts)
				refused++
				continue
			}
			requireNotOut(t, g.consent, who)
			if to := g.people[random.IntN(len(g.people))]; random.IntN(4) == 0 && to.ID != who.ID && !g.consent.Voted(who) {
				g.consent.Delegations = append(g.consent.Delegations, jig.Delegation{From: who.ID, To: to.ID, At: now, Counts: counts})
				_, why := g.consent.Entitled(who, now.Add(time.Hour))
				require.Contains(t, why, "delegated", "the delegator's own right is gone")
				delegated++
				continue
			}
			g.consent.Votes = append(g.consent.Votes, jig.Vote{By: who.ID, Counts: counts, At: now})
			g.spoke[who.ID] = append(g.spoke[who.ID], counts...)
		}
		want := true
		for i, r := range g.consent.Terms.Requirements {
			distinct := 0
			for _, counts := range g.spoke {
				if slices.Contains(counts, i) {
					distinct++
				}
			}
			want = want && distinct >= max(1, r.Quorum)
		}
		if len(g.consent.Terms.Requirements) == 0 {
			want = len(g.spoke) > 0
		}
		require.Equal(t, want, g.consent.Granted(), "%+v", g.consent)
		if want {
			granted++
		}
	}
	require.Greater(t, min(granted, delegated, refused), 500, "the test covers all outcomes")
}

// requireNotOut checks that a person who was allowed to decide did not request the call (if that matters) and has not delegated the
// decision.
func requireNotOut(t *testing.T, c approval.Consent, who jig.Principal) {
	t.Helper()
	require.False(t, c.Terms.NotRequester && who.ID == c.Askers[0].Principal)
	require.False(t, slices.ContainsFunc(c.Delegations, func(d jig.Delegation) bool { return d.From == who.ID }))
}
