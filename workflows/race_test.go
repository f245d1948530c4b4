package workflows_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

var (
	raceSeed  = flag.Uint64("race.seed", 0, "the seed of the first schedule of the race suite")
	raceCount = flag.Int("race.count", 300, "how many schedules of the race suite are played")
)

// arenas is how many schedules are played at the same time.
const arenas = 4

// Whatever people do at the same time, each call has one end and one decision, runs at most once and only as it was approved, and
// the event log, the audit and the ledger agree. To play a schedule again, run
// `go test ./workflows -run Races -race.seed N -race.count 1`.
func TestRaces_KeepTheRules(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var all [arenas]*arena
	t.Cleanup(func() {
		if *raceCount >= 300 && !t.Failed() {
			requireAll(t, all[:])
		}
	})
	for n := range arenas {
		t.Run(fmt.Sprintf("arena=%d", n), func(t *testing.T) {
			t.Parallel()
			a := newArena(t, db)
			all[n] = a
			for i := n; i < *raceCount; i += arenas {
				seed := *raceSeed + uint64(i)
				if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { a.race(t, seed) }) {
					return // what a failed schedule left behind would affect the next one
				}
			}
		})
	}
}

// requireAll checks that the schedules together have covered every kind of event that they are meant to produce.
func requireAll(t *testing.T, all []*arena) {
	t.Helper()
	tally := map[jig.EventType]int{}
	for _, a := range all {
		for kind, n := range a.tally {
			tally[kind] += n
		}
	}
	t.Log(tally)
	for _, kind := range []jig.EventType{
		jig.EventToolApproved, jig.EventApprovalVoted, jig.EventToolDenied, jig.EventToolEdited, jig.EventApprovalDelegated, jig.EventDecisionRefused,
		jig.EventToolExpired, jig.EventToolOutcomeUnknown, jig.EventToolReconciled, jig.EventGrantCreated, jig.EventGrantUsed, jig.EventApprovalReminded,
		jig.EventApprovalEscalated, jig.EventSessionPaused, jig.EventSessionCanceled, jig.EventSessionFailed, jig.EventSessionCompleted, jig.EventToolSkipped,
		continued,
	} {
		require.NotZero(t, tally[kind], "%s never happened: %v", kind, tally)
	}
}

// continued counts runs that continued as new within a pass or a call.
const continued jig.EventType = "continued"

// race plays one schedule and checks the outcome.
func (a *arena) race(t *testing.T, seed uint64) {
	t.Helper()
	s := newSchedule(t, a, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.plays, s.id)
	})
	s.run(s.workflow, s.input)
	s.check()
	s.checkGrants()
	s.checkEnd()
	s.tidy()
	if s.history == 0 && s.estimated && s.runs > len(s.turns)+1 {
		a.tally[continued]++
	}
}

// tidy removes grants and pauses that would affect the next schedule.
func (s *schedule) tidy() {
	list, _, err := s.db.Grants(s.t.Context(), s.tenant, "", 100, false, s.now())
	require.NoError(s.t, err)
	for _, g := range list {
		_, err := s.db.RevokeGrant(s.t.Context(), s.tenant, g.ID, jig.Principal{ID: "max"}, nil, s.now())
		require.NoError(s.t, err)
	}
	pauses, err := s.db.Pauses(s.t.Context(), s.tenant)
	require.NoError(s.t, err)
	for _, held := range pauses {
		_, err := s.db.Resume(s.t.Context(), s.tenant, held, nil)
		require.NoError(s.t, err)
	}
}

// schedule is a session, and what people do to it, generated from a seed.
type schedule struct {
	*play
	r        *rand.Rand
	workflow string
	input    any
	rule     string
	// targets are the calls that people act on. Likely ones are in the list several times.
	targets []string
	clock   time.Duration
	// shown are the digests that people saw, by call.
	shown map[string][]string
}

// raceRules are the policies of schedules, and what they require. %s is the outcome of an expiry.
var raceRules = map[string]struct {
	rules string
	needs func(paying) []need
}{
	"anybody": {
		"  - {name: plain, when: tool.name == 'race.write', verdict: ask, expires: 1h, on_expiry: %s}\n",
		func(paying) []need { return []need{{quorum: 1}} },
	},
	"finance": {
		"  - {name: two, when: tool.name == 'race.write', verdict: ask, approvers: {groups: [finance]}, quorum: 2, not_requester: true, " +
			"expires: 1h, on_expiry: %s, remind: 10m, escalate: [{after: 30m, approvers: {groups: [leads]}}]}\n",
		func(paying) []need {
			return []need{{group: "finance", quorum: 2, notRequester: true, after: 30 * time.Minute, later: "leads"}}
		},
	},
	"legal": {
		"  - {name: plain, when: tool.name == 'race.write', verdict: ask, expires: 1h, on_expiry: %s, remind: 10m}\n" +
			"  - {name: large, when: tool.name == 'race.write' && input.amount > 100, verdict: ask, approvers: {groups: [legal]}}\n",
		largeIsLegal,
	},
	"both": {
		"  - {name: own, when: tool.name == 'race.write', verdict: ask, approvers: {groups: [finance]}, not_requester: true, expires: 1h, on_expiry: %s}\n" +
			"  - {name: large, when: tool.name == 'race.write' && input.amount > 100, verdict: ask, approvers: {groups: [legal]}}\n",
		func(in paying) []need {
			return append([]need{{group: "finance", quorum: 1, notRequester: true}}, largeIsLegal(in)...)
		},
	},
}

func largeIsLegal(in paying) []need {
	if in.Amount > 100 {
		return []need{{group: "legal", quorum: 1}}
	}
	return []need{{quorum: 1}}
}

func raceDocument(rules string) string {
	return "kind: policy\nname: race\ndescription: The rules of a schedule.\nrules:\n" +
		"  - {name: flows, when: tool.name == 'race.flow', verdict: run}\n" + rules
}

func newSchedule(t *testing.T, a *arena, seed uint64) *schedule {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 4))
	name := oneOf(r, "anybody", "finance", "finance", "legal", "legal", "both")
	onExpiry := oneOf(r, "deny", "deny", "cancel", "fail")
	rules := fmt.Sprintf(raceRules[name].rules, onExpiry)
	s := &schedule{play: a.play(t, ruled(t, raceDocument(rules))), r: r, rule: name + ", on expiry " + onExpiry, shown: map[string][]string{}}
	s.needs, s.seed = raceRules[name].needs, seed
	if r.IntN(3) == 0 {
		s.cuts = 50
	}
	if r.IntN(6) == 0 {
		s.history, s.estimated = 560+r.IntN(40), true // the run is nearly full
	}
	s.begin()
	denying := ruled(t, raceDocument(rules+"  - {name: stop, when: tool.name == 'race.write', verdict: deny}\n"))
	for range 3 + r.IntN(10) {
		s.act(denying)
	}
	s.closing()
	return s
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// begin chooses the workflow: an agent session of one or two passes with calls, a single call, or a composition.
func (s *schedule) begin() {
	pay := func() paying { return paying{Item: oneOf(s.r, "a", "b", "c", "d"), Amount: oneOf(s.r, 50, 60, 150)} }
	s.workflow = protocol.CallWorkflow
	switch s.r.IntN(10) {
	case 0, 1:
		s.input, s.targets = s.callInput(raceWrite, pay()), []string{"1.1"}
		return
	case 2:
		s.input, s.targets = s.callInput(raceFlow, pay()), []string{"1.1/pay", "1.1/pay", "1.1/pay", "1.1"}
		return
	}
	s.limits.MaxParallelCalls = s.r.IntN(4) // 0 means the default
	s.workflow, s.input = protocol.PassWorkflow, s.passInput()
	for pass := 1; pass <= 1+s.r.IntN(2); pass++ {
		var calls []jig.ToolCall
		for ordinal := 1; ordinal <= 1+s.r.IntN(4); ordinal++ {
			tool, input, target := raceWrite, any(pay()), jig.CallID(pass, ordinal)
			switch s.r.IntN(8) {
			case 0:
				tool, input = raceRead, piece{"a"}
			case 1:
				tool, target = raceFlow, target+"/pay"
			}
			raw, err := json.Marshal(input)
			require.NoError(s.t, err)
			calls = append(calls, jig.ToolCall{Name: tool, Input: raw})
			s.targets = append(s.targets, target)
			if pass == 1 { // the second pass begins only after the first
				s.targets = append(s.targets, target, target)
			}
		}
		s.turns = append(s.turns, calls)
	}
}

// act adds one action of somebody, at the same time as the previous one or some time later.
func (s *schedule) act(denying policy.Set) {
	s.clock += oneOf(s.r, 0, 0, 0, 0, 0, time.Second, time.Second, time.Second, 10*time.Second, 10*time.Second, time.Minute, time.Minute,
		11*time.Minute, 11*time.Minute, 31*time.Minute, 61*time.Minute)
	target := oneOf(s.r, s.targets...)
	switch n := s.r.IntN(100); {
	case n < 30:
		s.decide(jig.Decision{Call: target, By: s.somebody(), Answer: jig.AnswerApprove}, "")
	case n < 36:
		s.decide(jig.Decision{Call: target, By: s.somebody(), Answer: jig.AnswerDeny, Reason: "no"}, "")
	case n < 46:
		changed := oneOf(s.r, `{"item":"e","amount":60}`, `{"item":"e","amount":200}`, `{"item":"f","amount":150}`, `{"item":"e","amount":"much"}`, `[1]`)
		s.decide(jig.Decision{Call: target, By: s.somebody(), Answer: jig.AnswerApprove, Input: json.RawMessage(changed)}, "")
	case n < 54:
		s.decide(jig.Decision{Call: target, By: s.somebody(), Answer: jig.AnswerDelegate, To: oneOf(s.r, "nobody", "fay", "max", raceRequester)}, "")
	case n < 60:
		s.decide(jig.Decision{
			Call: target, By: s.somebody(), Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{When: oneOf(s.r, "", "input.amount < 100"), MaxUses: 1 + s.r.IntN(2)},
		}, "")
	case n < 64:
		s.at(s.clock, s.revoke)
	case n < 71 && len(s.letters) > 0:
		s.repeat()
	case n < 77:
		s.decide(jig.Decision{Call: target, By: s.somebody(), Answer: oneOf(s.r, jig.AnswerApprove, jig.AnswerDeny)}, oneOf(s.r, "now", "before", "never"))
	case n < 79:
		s.decide(jig.Decision{Call: oneOf(s.r, "9.9", "", "1.1/none"), By: "fay", Answer: jig.AnswerApprove}, "")
	case n < 81:
		s.at(s.clock, func() { s.foreign(target) })
	case n < 83:
		s.at(s.clock, func() { s.env.Load().CancelWorkflow() })
	case n < 91:
		outcome := oneOf(s.r, jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp)
		word := jig.Reconciliation{Call: target, Outcome: outcome, Attempt: oneOf(s.r, 0, 0, 1, 2, 3), By: s.somebody()}
		s.send(oneOf(s.r, "", s.updateID()), protocol.SignalReconcile, func() any { return word }, fmt.Sprintf("%s says of %s, attempt %d: %s", word.By, target, word.Attempt, outcome))
	case n < 94:
		text := fmt.Sprintf("message %d", len(s.letters))
		s.send("", protocol.SignalMessage, func() any { return protocol.Message{Text: text, By: raceRequester} }, text)
	case n < 97:
		s.pause()
	case n < 98:
		s.send("", protocol.SignalApprove, func() any { return "not a decision" }, "an unreadable payload")
	default:
		s.at(s.clock, func() { s.policies.Store(&denying) })
		s.letters[len(s.letters)-1].says = "policy starts to deny"
	}
}

// somebody returns a name, most often of a person who may decide something.
func (s *schedule) somebody() string {
	return oneOf(s.r, "fay", "fay", "fin", "fin", "fred", "fred", "lea", "lea", "lou", raceRequester, "nobody", "")
}

func (s *schedule) updateID() string { return fmt.Sprintf("update-%d", len(s.letters)) }

func (s *schedule) send(update, name string, payload func() any, says string) {
	s.letters = append(s.letters, &letter{at: s.clock, name: name, update: update, payload: payload, says: says})
}

// decide sends a decision, as a signal or an update. digest chooses the digest that comes with it: the latest one (now), the first
// one that was shown (before), or one that never existed (never).
func (s *schedule) decide(d jig.Decision, digest string) {
	name, update := string(d.Answer), ""
	if s.r.IntN(2) == 0 {
		name, update = protocol.UpdateDecide, s.updateID()
	}
	says := fmt.Sprintf("%q: %s %s %s%s, digest %q", d.By, d.Answer, d.Call, d.To, d.Input, digest)
	if d.Grant != nil {
		says += fmt.Sprintf(", grant for %d when %q", d.Grant.MaxUses, d.Grant.When)
	}
	s.send(update, name, func() any {
		if pending, err := s.db.Pending(s.t.Context(), s.tenant, s.id, d.Call); err == nil {
			s.shown[d.Call] = append(s.shown[d.Call], pending.Digest)
		}
		switch seen := s.shown[d.Call]; {
		case digest == "now" && len(seen) > 0:
			d.Digest = seen[len(seen)-1]
		case digest == "before" && len(seen) > 0:
			d.Digest = seen[0]
		case digest == "never":
			d.Digest = strings.Repeat("0", 64)
		}
		return protocol.Decisions{Decision: d}
	}, says)
}

// repeat sends an earlier signal or update again, byte for byte. An update keeps its id.
func (s *schedule) repeat() {
	first := oneOf(s.r, s.letters...)
	if first.do != nil || first.name == protocol.SignalMessage {
		return
	}
	s.send(first.update, first.name, func() any {
		if first.made == nil {
			first.made = first.payload()
		}
		return first.made
	}, "once more: "+first.says)
}

func (s *schedule) revoke() {
	list, _, err := s.db.Grants(s.t.Context(), s.tenant, "", 100, false, s.now())
	require.NoError(s.t, err)
	for _, g := range list {
		if g.SessionID == s.id {
			_, err := s.acts.ListGrants(s.t.Context(), protocol.GrantsRequest{Tenant: s.tenant, Revoke: g.ID, By: "max"})
			require.NoError(s.t, err)
		}
	}
}

// foreign sends a decision in the name of another tenant.
func (s *schedule) foreign(call string) {
	payload, err := json.Marshal(protocol.Decisions{Decision: jig.Decision{Call: call, By: "fay"}})
	require.NoError(s.t, err)
	_, err = s.acts.Hear(s.t.Context(), activities.Signal{
		SessionRef: protocol.SessionRef{Tenant: s.tenant + "x", SessionID: s.id}, Name: protocol.SignalApprove, Key: "signal:foreign", Payload: payload,
	})
	require.Equal(s.t, jig.CodeNotFound, activities.ErrorFrom(err).Code)
}

// pause holds back the tool or the session for a while.
func (s *schedule) pause() {
	request := protocol.PauseRequest{Tenant: s.tenant, Scope: jig.PauseTool, Target: raceWrite, By: "max"}
	if s.r.IntN(2) == 0 {
		request.Scope, request.Target = jig.PauseSession, s.id
	}
	s.at(s.clock, func() {
		if _, err := s.acts.Pause(s.t.Context(), request); request.Scope == jig.PauseTool {
			require.NoError(s.t, err)
		} // the session may not exist yet
	})
	s.letters[len(s.letters)-1].says = "pause of the " + string(request.Scope)
	resume := s.clock + oneOf(s.r, 0, 10*time.Second, 40*time.Second)
	s.at(resume, func() { s.resume(request) })
	s.letters[len(s.letters)-1].says = "resume"
}

func (s *schedule) resume(request protocol.PauseRequest) {
	_, err := s.acts.Resume(s.t.Context(), request)
	require.True(s.t, err == nil || activities.ErrorFrom(err).Code == jig.CodeNotFound, "%v", err)
}

// closing ends what is still open long after the last action: it gives up the unknown outcomes and then cancels the session.
func (s *schedule) closing() {
	last := s.clock
	for _, l := range s.letters {
		last = max(last, l.at)
	}
	s.at(last+2*time.Hour, func() {
		var idle []string
		err := s.conn.QueryRow(s.t.Context(), `select coalesce(array_agg(c.call_id), '{}') from calls c where c.session_id = $1 and c.status = 'reserved'
			and not exists (select from pauses p where p.scope = 'session' and p.target = $1 and p.lifted_at is null)`, s.id).Scan(&idle)
		require.NoError(s.t, err)
		// A run that has grown starts no more calls, and continues as new once no composition is running.
		require.True(s.t, len(idle) == 0 || s.estimated && s.composing(), "calls may run, but nothing runs them: %v", idle)
		list, err := s.db.SessionView(s.t.Context(), s.tenant, s.id)
		require.NoError(s.t, err)
		for _, pending := range list.Pending {
			if pending.Kind == jig.PendingReconcile {
				l := &letter{name: protocol.SignalReconcile, made: jig.Reconciliation{Call: pending.Call, Outcome: jig.OutcomeGiveUp, Attempt: pending.Attempt, By: "fred"}}
				s.letters = append(s.letters, l)
				s.post(s.env.Load(), l)
			}
		}
	})
	for hour := range 5 {
		s.at(last+time.Duration(3+hour)*time.Hour, func() { s.env.Load().CancelWorkflow() })
	}
}

// composing reports whether a composition is running.
func (s *schedule) composing() bool {
	var n int
	err := s.conn.QueryRow(s.t.Context(), "select count(*) from calls where session_id = $1 and tool = $2 and status = 'executing'", s.id, raceFlow).Scan(&n)
	require.NoError(s.t, err)
	return n > 0
}

// checkGrants checks that no grant was used after it was revoked, or more often than it allows.
func (s *schedule) checkGrants() {
	rows, _, err := s.db.FindAudit(s.t.Context(), s.tenant, protocol.AuditFilter{}, max(0, s.audited-500), 1000)
	require.NoError(s.t, err)
	revoked, used := map[string]bool{}, map[string]int{}
	for _, row := range rows {
		var e audit.Entry
		require.NoError(s.t, json.Unmarshal([]byte(row.Entry), &e))
		switch {
		case e.Kind == audit.AuditRevoked:
			revoked[e.Subject] = true
		case e.Kind == audit.AuditGrantUsed && e.SessionID == s.id:
			require.False(s.t, revoked[e.Subject], "the grant %s was used after it had been revoked", e.Subject)
			used[e.Subject]++
		}
	}
	list, _, err := s.db.Grants(s.t.Context(), s.tenant, "", 100, true, s.now())
	require.NoError(s.t, err)
	for id, n := range used {
		i := slices.IndexFunc(list, func(g jig.Grant) bool { return g.ID == id })
		require.GreaterOrEqual(s.t, i, 0, id)
		require.LessOrEqual(s.t, n, list[i].MaxUses, "uses of %s", id)
		require.Equal(s.t, n, list[i].Used)
	}
}

// checkEnd checks that the workflow and the store agree about the end.
func (s *schedule) checkEnd() {
	session, err := s.db.Session(s.t.Context(), s.tenant, s.id)
	if jig.CodeOf(err) == jig.CodeNotFound { // it was canceled before it began, and nobody can reach it
		require.Error(s.t, s.ended)
		return
	}
	require.NoError(s.t, err)
	want := jig.StatusCompleted
	switch {
	case temporal.IsCanceledError(s.ended):
		want = jig.StatusCanceled
	case s.ended != nil:
		want = jig.StatusFailed
	}
	if want == jig.StatusCanceled && s.resumed && session.Status.Final() {
		return // it had ended, and the run that would have continued it was canceled before it began
	}
	if s.workflow == protocol.CallWorkflow && s.ended == nil && session.Status == jig.StatusFailed {
		return // the workflow of a call returns its result, whatever that is
	}
	require.Equal(s.t, want, session.Status, "the workflow ended with %v", s.ended)
}

// String describes the schedule, for failures.
func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule %d: %s, rules %s, %d%% cut off, session %s\n", s.seed, s.workflow, s.rule, s.cuts, s.id)
	for i, turn := range s.turns {
		for j, call := range turn {
			fmt.Fprintf(&b, "  call %d.%d %s %s\n", i+1, j+1, call.Name, call.Input)
		}
	}
	for _, l := range s.letters {
		kind := "signal"
		switch {
		case l.do != nil:
			kind = "deed"
		case l.update != "":
			kind = "update " + l.update
		}
		fmt.Fprintf(&b, "  %-10s %-10s %s %s (heard: %v)\n", l.at, l.name, kind, l.says, l.heard)
	}
	if events, err := s.db.Events(context.WithoutCancel(s.t.Context()), s.tenant, s.id, 0, 0); err == nil {
		for _, e := range events {
			fmt.Fprintf(&b, "  %3d %s %s %.300s\n", e.Seq, e.Type, e.CallID, e.Data)
		}
	}
	return b.String()
}
