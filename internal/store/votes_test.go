package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
)

// finance returns terms that need n people of the group finance.
func finance(n int) jig.Terms {
	return jig.Terms{Requirements: []jig.Requirement{{Rule: "p/two", Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: n}}}
}

// member returns a principal in the group finance.
func member(id string) jig.Principal { return jig.Principal{ID: id, Groups: []string{"finance"}} }

// staff returns the people that the tenant of these tests knows: fay, flo and f0 to f11 of finance, and leo.
func staff() []jig.Principal {
	people := []jig.Principal{member("fay"), member("flo"), {ID: "leo", Permissions: []string{"lead"}}}
	for i := range 12 {
		people = append(people, member(fmt.Sprintf("f%d", i)))
	}
	return people
}

// under admits one call whose approval has the given terms; ana requests it.
func (w world) under(t *testing.T, terms jig.Terms, change func(*jig.Pending)) jig.Call {
	t.Helper()
	c := w.call(1)
	c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting
	p := pendingOf(c)
	p.Terms = &terms
	if change != nil {
		change(&p)
	}
	require.NoError(t, w.Admit(t.Context(), ledger.Admission{Tenant: w.tenant, SessionID: w.session, Pass: 1, Calls: []jig.Call{c}, Approvals: []jig.Pending{p}}))
	return c
}

// says applies a principal's decision.
func (w world) says(t *testing.T, who jig.Principal, d jig.Decision) jig.Ruled {
	t.Helper()
	got, err := w.Decide(t.Context(), w.decision(who, d))
	require.NoError(t, err)
	w.isCurrent(t, got)
	return got.Ruled
}

func (w world) decision(who jig.Principal, d jig.Decision) approval.DecisionRequest {
	if d.Call == "" {
		d.Call = "1.1"
	}
	if d.Answer == "" {
		d.Answer = jig.AnswerApprove
	}
	return approval.DecisionRequest{
		Tenant: w.tenant, SessionID: w.session, Key: jig.NewSessionID(), Principal: who, Decision: d, Now: time.Now(),
		Voters:   approval.Voters{People: staff()},
		Evidence: &identity.Evidence{Key: "k-" + who.ID, Token: jig.NewSessionID(), Until: time.Now()},
	}
}

// audit lists the tenant's audit rows in order as "kind by", and checks the chain.
func (w world) audit(t *testing.T) []string {
	t.Helper()
	list := []string{}
	for _, e := range w.entries(t) {
		list = append(list, strings.TrimSpace(string(e.Kind)+" "+e.By))
	}
	return list
}

func (w world) entries(t *testing.T) []audit.Entry {
	t.Helper()
	var list []audit.Entry
	for _, row := range chainOf(t, w.DB, w.tenant) {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		list = append(list, e)
	}
	return list
}

func TestVotes_ReachAQuorumInAnyOrder(t *testing.T) {
	t.Parallel()
	terms := finance(2)
	terms.Requirements = append(terms.Requirements, jig.Requirement{Rule: "p/lead", Approvers: jig.Approvers{Permission: "lead"}, Quorum: 1})
	people := map[string]jig.Principal{"fay": member("fay"), "flo": member("flo"), "leo": {ID: "leo", Permissions: []string{"lead"}}}
	for _, order := range [][]string{{"fay", "flo", "leo"}, {"leo", "flo", "fay"}, {"flo", "leo", "fay"}, {"fay", "leo", "flo"}} {
		w := newWorld(t)
		c := w.under(t, terms, nil)
		for i, who := range order {
			require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome)
			got := w.says(t, people[who], jig.Decision{})
			require.Equal(t, jig.DecisionAccepted, got.Outcome)
			require.Equal(t, i < 2, got.Status == jig.CallWaiting && strings.HasSuffix(got.Reason, " missing"), "%v", got)
		}
		require.Equal(t, []string{"tool.needs_approval", "approval.voted", "approval.voted", "tool.approved"}, w.types(t))
		require.Len(t, w.last(t, jig.EventToolApproved)["votes"], 3)
		require.Equal(t, []string{"voted " + order[0], "voted " + order[1], "approved " + order[2]}, w.audit(t))
		require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
		by, proof, err := w.Approved(t.Context(), w.tenant, w.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, order, by)
		require.Equal(t, jig.ProofKey, proof)
	}
}

func TestVotes_CountOncePerPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.under(t, finance(2), nil)
	w.says(t, member("fay"), jig.Decision{})
	got := w.says(t, member("fay"), jig.Decision{})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "fay approved this call already: another person is needed (1 of 2 approvals by group finance, 1 missing)")
	for _, who := range []jig.Principal{{ID: "eve"}, {ID: "fay "}, {}} {
		require.Equal(t, jig.DecisionRefused, w.says(t, who, jig.Decision{}).Outcome)
	}
	require.Equal(t, jig.CallWaiting, w.row(t, c).Status)
	require.Equal(t, []string{"voted fay", "refused fay", "refused eve", "refused fay", "refused"}, w.audit(t))
	require.Equal(t, jig.CallDenied, w.says(t, member("fay"), jig.Decision{Answer: jig.AnswerDeny}).Status, "a person who approved may still deny")
}

// Of twelve concurrent approvals where two are needed, two count, the call is approved once, and the others are told why they do not count.
func TestVotes_ConcurrentApprovalsDecideOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.under(t, finance(2), nil)
	got, errs := make([]approval.Applied, 12), make([]error, 12)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			got[i], errs[i] = w.Decide(t.Context(), w.decision(member(fmt.Sprintf("f%d", i)), jig.Decision{}))
		})
	}
	all.Wait()
	tally := map[string]int{}
	for i := range got {
		require.NoError(t, errs[i])
		tally[got[i].Outcome+" "+string(got[i].Status)]++
	}
	require.Equal(t, map[string]int{"accepted waiting": 1, "accepted reserved": 1, "refused reserved": 10}, tally)
	events := map[string]int{}
	for _, kind := range w.types(t) {
		events[kind]++
	}
	require.Equal(t, map[string]int{"tool.needs_approval": 1, "approval.voted": 1, "tool.approved": 1, "decision.refused": 10}, events)
	kinds := map[audit.Kind]int{}
	for _, e := range w.entries(t) {
		kinds[e.Kind]++
	}
	require.Equal(t, map[audit.Kind]int{audit.AuditVoted: 1, audit.AuditApproved: 1, audit.AuditRefused: 10}, kinds)
	require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
}

func TestDelegate_LetsAnotherPersonDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	terms := finance(1)
	terms.NotRequester = true
	c := w.under(t, terms, nil)
	to := func(who jig.Principal, to string) jig.Ruled {
		return w.says(t, who, jig.Decision{Answer: jig.AnswerDelegate, To: to})
	}
	refusals := map[string]jig.Ruled{
		"`to` is missing":                     to(member("fay"), ""),
		"nobody delegates to themselves":      to(member("fay"), "fay"),
		"ana asked for this call and may not": to(member("fay"), "ana"),
		"eve may not decide this call":        to(jig.Principal{ID: "eve"}, "fay"),
	}
	for why, got := range refusals {
		require.Equal(t, jig.DecisionRefused, got.Outcome)
		require.Contains(t, got.Reason, why)
	}
	got := to(member("fay"), "eve")
	require.Equal(t, jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "delegated to eve"}, got)
	require.Contains(t, w.says(t, member("fay"), jig.Decision{}).Reason, "fay delegated this approval to eve")
	require.Equal(t, jig.DecisionAccepted, to(jig.Principal{ID: "eve"}, "zoe").Outcome, "a chain")
	require.Contains(t, to(jig.Principal{ID: "zoe"}, "fay").Reason, "fay delegated this approval to eve", "a circle")
	require.Contains(t, to(jig.Principal{ID: "zoe"}, "eve").Reason, "eve delegated this approval to zoe")
	require.Equal(t, jig.DecisionRefused, w.says(t, jig.Principal{ID: "eve"}, jig.Decision{}).Outcome)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Len(t, p.Delegations, 2)
	require.Equal(t, jig.CallReserved, w.says(t, jig.Principal{ID: "zoe"}, jig.Decision{}).Status)
	require.Equal(t, map[string]any{"by": "eve", "to": "zoe", "key": "k-eve"}, w.last(t, jig.EventApprovalDelegated))
	require.Equal(t, []string{"delegated fay", "delegated eve", "approved zoe"}, without(w.audit(t), "refused"))
}

// without returns the rows that do not start with a word.
func without(rows []string, word string) []string {
	var list []string
	for _, row := range rows {
		if !strings.HasPrefix(row, word) {
			list = append(list, row)
		}
	}
	return list
}

func TestDelegate_AfterVoting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.under(t, finance(2), nil)
	w.says(t, member("fay"), jig.Decision{})
	got := w.says(t, member("fay"), jig.Decision{Answer: jig.AnswerDelegate, To: "eve"})
	require.Contains(t, got.Reason, "fay approved this call already", "one person counts once")
	got = w.says(t, member("flo"), jig.Decision{Answer: jig.AnswerDelegate, To: "fay"})
	require.Contains(t, got.Reason, "fay approved this call already")
	require.Equal(t, []string{"approval.voted", "decision.refused", "decision.refused"}, w.types(t)[1:])
}

// edit decides with changed input, which has another digest and the given terms.
func (w world) edit(t *testing.T, who jig.Principal, c jig.Call, digest string, terms *jig.Terms) jig.Ruled {
	t.Helper()
	edited := c
	edited.Input, edited.Digest, edited.EditedBy, edited.Patch = []byte(`{"path":"`+digest+`"}`), digest, who.ID, []byte(`[{"op":"replace","path":"/path","value":"x"}]`)
	fresh := pendingOf(edited)
	fresh.Terms = terms
	r := w.decision(who, jig.Decision{Input: edited.Input})
	r.Edited, r.Fresh, r.Patch, r.EditedFrom = &edited, &fresh, edited.Patch, w.row(t, c).Digest
	got, err := w.Decide(t.Context(), r)
	require.NoError(t, err)
	w.isCurrent(t, got)
	return got.Ruled
}

func TestEdit_DiscardsEarlierVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	terms := finance(2)
	c := w.under(t, terms, nil)
	before, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	w.says(t, member("fay"), jig.Decision{})
	got := w.edit(t, member("flo"), c, "d2", &terms)
	require.Equal(t, jig.DecisionAccepted, got.Outcome)
	require.Equal(t, jig.CallWaiting, got.Status)
	require.Contains(t, got.Reason, "1 of 2 approvals by group finance, 1 missing")
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, "d2", p.Digest)
	require.Equal(t, "ana", p.RequestedBy)
	require.Len(t, p.Votes, 1)
	require.Equal(t, "flo", p.Votes[0].By)
	require.Equal(t, before.ExpiresAt, p.ExpiresAt, "the edit does not extend the expiry")
	require.Contains(t, w.says(t, member("fay"), jig.Decision{Digest: "d1"}).Reason, "digest does not match", "fay saw something else")
	require.Equal(t, jig.CallReserved, w.says(t, member("fay"), jig.Decision{Digest: "d2"}).Status)
	require.Equal(t, []string{"canceled", "approved"}, w.approvals(t, c))
	c.Digest = "d2"
	require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
	row := w.row(t, c)
	require.Equal(t, "flo", row.EditedBy)
	require.JSONEq(t, `[{"op":"replace","path":"/path","value":"x"}]`, string(row.Patch))
	require.Equal(t, []string{
		"tool.needs_approval", "approval.voted", "tool.edited", "tool.needs_approval", "decision.refused", "tool.approved", "tool.started",
	}, w.types(t))
	require.Equal(t, []string{"voted fay", "edited flo", "refused fay", "approved fay"}, w.audit(t))
}

func TestEdit_ThatKeepsTheTermsIsApprovedAtOnce(t *testing.T) {
	t.Parallel()
	for name, terms := range map[string]*jig.Terms{"plain": nil, "one of finance": new(finance(1))} {
		w := newWorld(t)
		var c jig.Call
		if terms == nil {
			c = w.asking(t)
		} else {
			c = w.under(t, *terms, nil)
		}
		got := w.edit(t, member("fay"), c, "d2", terms)
		require.Equal(t, jig.CallReserved, got.Status, name)
		require.Equal(t, []string{"approved"}, w.approvals(t, c))
		require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome, "the input that was shown before does not run")
		c.Digest = "d2"
		require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome)
	}
}

// If the changed input needs fewer approvals, the editor's approval alone can be enough.
func TestEdit_ThatLowersTheTerms(t *testing.T) {
	t.Parallel()
	for name, lower := range map[string]*jig.Terms{"to anybody": nil, "to one": new(finance(1))} {
		w := newWorld(t)
		c := w.under(t, finance(2), nil)
		require.Equal(t, jig.CallReserved, w.edit(t, member("fay"), c, "d2", lower).Status, name)
		require.Equal(t, []string{"approved"}, w.approvals(t, c))
		c.Digest = "d2"
		require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome, name)
	}
}

func TestEdit_ThatRaisesTheTerms(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		terms jig.Terms
		votes int
	}{
		"the editor is among them": {finance(2), 1},
		"the editor is not":        {jig.Terms{Requirements: []jig.Requirement{{Approvers: jig.Approvers{Permission: "lead"}, Quorum: 1}}}, 0},
		"the editor asked for it":  {jig.Terms{NotRequester: true}, 0},
	} {
		w := newWorld(t)
		c := w.asking(t)
		editor := member("fay")
		if name == "the editor asked for it" {
			editor = jig.Principal{ID: "ana"}
		}
		got := w.edit(t, editor, c, "d2", &row.terms)
		require.Equal(t, jig.CallWaiting, got.Status, name)
		p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, &row.terms, p.Terms)
		require.Len(t, p.Votes, row.votes, name)
		require.Equal(t, []string{"canceled", "open"}, w.approvals(t, c))
		require.Equal(t, []string{"tool.needs_approval", "tool.edited", "tool.needs_approval"}, w.types(t))
		c.Digest = "d2"
		require.Equal(t, ledger.ReserveWaiting, w.reserve(t, c).Outcome)
	}
}

// A decision is stored completely or not at all. If its audit row cannot be written there is no event, no notice and no stored
// answer, and the call keeps waiting.
func TestDecide_IsAtomic(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]jig.Decision{
		"approve": {}, "deny": {Answer: jig.AnswerDeny}, "delegate": {Answer: jig.AnswerDelegate, To: "eve"}, "refused": {Digest: "stale"},
		"with a grant": {Grant: &jig.GrantRequest{}},
	} {
		w := newWorld(t)
		c := w.under(t, finance(1), nil)
		require.NoError(t, w.Audit(t.Context(), w.tenant, entry(1)))
		events := w.types(t)
		r := w.decision(member("fay"), d)
		if d.Grant != nil {
			r.Grant = new(w.grant("grt_1", 3))
		}
		tamper(t, w.tenant, "update audit_heads set n = 0") // the next row gets a number that is taken
		_, err := w.Decide(t.Context(), r)
		require.Error(t, err, name)
		require.Equal(t, events, w.types(t), name)
		require.Equal(t, jig.CallWaiting, w.row(t, c).Status)
		require.Equal(t, []string{"open"}, w.approvals(t, c))
		count := "select (select count(*) from decisions where session_id = $1) || ' ' || (select count(*) from notices where session_id = $1) || ' ' || (select count(*) from grants)"
		require.Equal(t, []string{"0 1 0"}, w.column(t, count, w.session), name)

		tamper(t, w.tenant, "update audit_heads set n = 1")
		got, err := w.Decide(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, name == "refused", got.Outcome == jig.DecisionRefused)
		rows, more := 2, 1
		if d.Grant != nil {
			rows, more = 3, 2
		}
		require.Len(t, w.audit(t), rows, name)
		require.Len(t, w.types(t), len(events)+more, name)
	}
}
