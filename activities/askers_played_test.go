package activities_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

var playedCases = flag.Int("askers", 20, "how many seeded cases of people who ask and decide are played against the store")

// played is a random case: people put words into sessions by every door, decide about the calls, make keys for each other, come and go. It keeps
// its own books of who said and approved what, with whose credential.
type played struct {
	*front
	random *rand.Rand
	quorum int
	maker  map[string]string            // who made the credential that a person uses now
	words  map[string][]jig.Asker       // by session
	review map[string][]jig.Asker       // by session: who changed or denied calls, which the model reads
	given  map[string]map[string]string // by grant: its givers, with the makers of their credentials
	grants []string                     // those of given, in order
	passes map[string]int               // by session: how many have begun
	asked  map[string]string            // by session: its open question
	calls  []*playedCall
	orders int
	log    []string
}

type playedCall struct {
	session, id, tool string
	askers, reviewers []jig.Asker
	editor            string
	makers            map[string]string // of the credentials with which people approved or changed it
}

func newPlayed(t *testing.T, seed uint64) *played {
	t.Helper()
	p := &played{
		random: rand.New(rand.NewPCG(seed, 27)), maker: map[string]string{}, words: map[string][]jig.Asker{}, review: map[string][]jig.Asker{}, given: map[string]map[string]string{},
		passes: map[string]int{}, asked: map[string]string{},
	}
	p.front = newFront(t, func(o *office) {
		o.temporal, o.extra = &settlements{}, o.grantTools()
		o.settings.Proof, o.settings.Keys, o.settings.People = jig.ProofVouched, nil, nil
		o.settings.Owners = &tenancy.Owners{Approvers: jig.Approvers{Groups: []string{"owners"}}}
		for i := range 4 + p.random.IntN(4) {
			o.settings.People = append(o.settings.People, p.joins(jig.Principal{ID: fmt.Sprintf("p%d", i)}))
		}
	})
	p.quorum = 1 + p.random.IntN(2)
	p.govern(t, fmt.Sprintf("  - {name: guard, when: \"tool.name != 'person.ask'\", verdict: ask, approvers: {groups: [finance]}, quorum: %d,"+
		" not_requester: true, escalate: [{after: 30m, approvers: {permission: lead}}]}\n", p.quorum))
	p.words[p.session] = []jig.Asker{{Principal: "ana", By: jig.AskedStarted}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d\n%s\npeople %+v, disabled %v", seed, strings.Join(p.log, "\n"), p.settings.People, p.settings.Disabled)
		}
	})
	return p
}

// joins gives somebody a place, who comes or moves.
func (p *played) joins(who jig.Principal) jig.Principal {
	who.Groups, who.Permissions = nil, nil
	switch p.random.IntN(6) {
	case 0:
		who.Groups = []string{"owners"}
	case 1:
		who.Permissions = []string{"lead"}
	default:
		who.Groups = []string{"finance"}
	}
	return who
}

// somebody returns a random person, with the maker of their credential.
func (p *played) somebody() jig.Principal {
	id := p.settings.People[p.random.IntN(len(p.settings.People))].ID
	return jig.Principal{ID: id, Maker: p.maker[id]}
}

// says lets somebody put words into the session by message, event or answer.
func (p *played) says(t *testing.T) string {
	t.Helper()
	who, id := p.somebody(), jig.NewSessionID()
	in := activities.Signal{SessionRef: p.ref(), Key: "update:" + id, Pass: p.passes[p.session], Composing: true}
	word := protocol.Statement{Session: p.session, ID: id, Principal: who}
	asker := jig.Asker{Principal: who.ID, Maker: who.Maker}
	var payload any
	switch kind := p.random.IntN(3); {
	case kind == 0 && p.asked[p.session] != "":
		in.Name, asker.By, word.Kind, word.ID = "answer", jig.AskedAnswer, protocol.StateDecide, ""
		m := protocol.Answered{Reply: jig.Reply{Call: p.asked[p.session], Value: json.RawMessage(`"eu"`)}}
		word.Content = m.Content()
		m.Proof = p.state(t, word, p.now())
		payload = m
	case kind == 1:
		in.Name, asker.By, word.Kind = "event", jig.AskedEvent, protocol.StateEvent
		m := protocol.Event{Name: "paid", ID: id}
		word.Content = m.Content()
		m.Proof = p.state(t, word, p.now())
		payload = m
	default:
		in.Name, asker.By, word.Kind = "message", jig.AskedMessage, protocol.StateMessage
		m := protocol.Message{ID: id, Text: "refund it"}
		word.Content = m.Content()
		m.Proof = p.state(t, word, p.now())
		payload = m
	}
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	in.Payload = raw
	heard, err := p.Hear(t.Context(), in)
	require.NoError(t, err)
	if len(heard.Decisions) > 0 && heard.Decisions[0].Outcome == jig.DecisionRefused {
		return "" // for example because they have been disabled
	}
	if in.Name == "answer" {
		delete(p.asked, p.session)
	}
	p.words[p.session] = append(p.words[p.session], asker)
	return in.Name
}

// triggers opens a session of a schedule that somebody triggers, and goes on with it.
func (p *played) triggers(t *testing.T) {
	t.Helper()
	owner, who := p.somebody(), p.somebody()
	s, err := p.db.Session(t.Context(), p.tenant, p.session)
	require.NoError(t, err)
	s, err = p.db.CreateSession(t.Context(), jig.Session{
		Tenant: p.tenant, ID: jig.NewSessionID(), Task: "pay", Catalog: p.pinned(), Principal: owner, Agent: s.Agent, Source: jig.SourceSchedule,
		TriggeredBy: &jig.Asker{Principal: who.ID, Maker: who.Maker, By: jig.AskedTriggered},
	})
	require.NoError(t, err)
	p.session = s.ID
	p.words[s.ID] = []jig.Asker{{Principal: owner.ID, Maker: owner.Maker}, {Principal: who.ID, Maker: who.Maker}}
}

// requests makes the session ask for a call, or ask a question.
func (p *played) requests(t *testing.T) string {
	t.Helper()
	p.passes[p.session]++
	p.orders++
	tool, input := refundTool, fmt.Sprintf(`{"order":"o%d","amount":1}`, p.orders)
	switch p.random.IntN(6) {
	case 0:
		tool, input = grants.CreateTool, fmt.Sprintf(`{"tool":%q,"note":"n%d"}`, refundTool, p.orders)
	case 1:
		c := p.asks(t, p.passes[p.session], "person.ask", fmt.Sprintf(`{"question":"Which region for %d?"}`, p.orders))
		require.Equal(t, jig.CallWaiting, c.Status)
		p.asked[p.session] = c.ID
		return "question"
	}
	c := p.asks(t, p.passes[p.session], tool, input)
	p.calls = append(p.calls, &playedCall{
		session: p.session, id: c.ID, tool: tool, makers: map[string]string{},
		askers: slices.Clone(p.words[p.session]), reviewers: slices.Clone(p.review[p.session]),
	})
	p.settle(t, p.calls[len(p.calls)-1], tool == grants.CreateTool)
	return "call"
}

// rules lets somebody decide about a call.
func (p *played) rules(t *testing.T, c *playedCall) string {
	t.Helper()
	p.session = c.session
	who, d, what := p.somebody(), jig.Decision{Call: c.id}, "approve"
	switch p.random.IntN(12) {
	case 0:
		what, d.Answer, d.To = "delegate", jig.AnswerDelegate, p.somebody().ID
	case 1:
		what, d.Answer, d.Undo = "undo", jig.AnswerDelegate, true
	case 2:
		p.orders++
		what, d.Input = "edit", json.RawMessage(fmt.Sprintf(`{"order":"o%d","amount":2}`, p.orders))
	case 3:
		what, d.Grant = "grant", &jig.GrantRequest{MaxUses: 3}
	case 4, 5:
		if len(p.grants) > 0 {
			what, d.GrantID = "release", p.grants[p.random.IntN(len(p.grants))]
		}
	case 6:
		what, d.Answer, d.Reason = "deny", jig.AnswerDeny, "ask for less"
	}
	ruled := p.decides(t, who, d)
	if ruled.Outcome == jig.DecisionRefused {
		return ""
	}
	switch what {
	case "edit":
		c.editor, c.makers = who.ID, map[string]string{who.ID: who.Maker}
	case "approve", "grant":
		c.makers[who.ID] = who.Maker
	}
	if what == "edit" || what == "deny" {
		p.review[c.session] = append(p.review[c.session], jig.Asker{Principal: who.ID, Maker: who.Maker})
	}
	if what == "grant" {
		p.gives(ruled.Grant, map[string]string{who.ID: who.Maker})
	}
	return what
}

// gives notes who gave a grant, with the makers of their credentials.
func (p *played) gives(grant string, by map[string]string) {
	p.grants, p.given[grant] = append(p.grants, grant), by
}

// changes lets people come, go and move, keys be made, and time pass, and does what the engine does then.
func (p *played) changes(t *testing.T) string {
	t.Helper()
	i := p.random.IntN(len(p.settings.People))
	id := p.settings.People[i].ID
	what := []string{"key", "key", "leave", "disable", "join", "time"}[p.random.IntN(6)]
	switch what {
	case "key":
		p.maker[id] = []string{"", p.somebody().ID, jig.MakerOperator}[p.random.IntN(3)]
		return what
	case "leave":
		p.settings.People[i].Groups, p.settings.People[i].Permissions = nil, nil
	case "disable":
		p.settings.Disabled = append(p.settings.Disabled, id)
	case "join":
		p.settings.People[i] = p.joins(p.settings.People[i])
		p.settings.Disabled = slices.DeleteFunc(p.settings.Disabled, func(one string) bool { return one == id })
	case "time":
		p.clock = min(p.clock+20*time.Minute, 80*time.Minute)
		for _, c := range p.calls {
			p.session = c.session
			_, err := p.Expire(t.Context(), activities.ExpireInput{SessionRef: p.ref(), Calls: []string{c.id}, Now: p.now()})
			require.NoError(t, err)
		}
		return what
	}
	require.NoError(t, activities.RecheckTenant(p.Activities, t.Context(), p.tenant))
	return what
}

// settle runs a call that may run, if it is to run now, and forgets one that has ended.
func (p *played) settle(t *testing.T, c *playedCall, now bool) (over jig.CallStatus) {
	t.Helper()
	p.session = c.session
	status := p.call(t, c.id).Status
	if status == jig.CallReserved && now {
		if status = p.runs(t, c.id); status == jig.CallSucceeded {
			p.requireIndependent(t, c)
		}
	}
	if !status.Final() {
		return ""
	}
	p.calls = slices.DeleteFunc(p.calls, func(one *playedCall) bool { return one == c })
	return status
}

// samePerson returns everybody who is one person with somebody, by the makers of credentials.
func samePerson(id string, credentials [][2]string) map[string]bool {
	same := map[string]bool{id: true}
	for grown := true; grown; {
		grown = false
		for _, c := range credentials {
			if c[1] != "" && c[1] != jig.MakerOperator && same[c[0]] != same[c[1]] {
				same[c[0]], same[c[1]], grown = true, true, true
			}
		}
	}
	return same
}

// requireIndependent checks the approvals with which a call ran, by the books of the case.
func (p *played) requireIndependent(t *testing.T, c *playedCall) {
	t.Helper()
	record, _, err := p.db.Signed(t.Context(), p.tenant, c.session, c.id)
	require.NoError(t, err)
	var credentials [][2]string
	for _, a := range slices.Concat(c.askers, c.reviewers) {
		credentials = append(credentials, [2]string{a.Principal, a.Maker})
	}
	credentials = append(credentials, [2]string{c.editor, c.makers[c.editor]})
	makers := map[string]string{}
	for _, v := range record.Votes {
		from := c.makers
		if strings.HasPrefix(v.Note, "grant ") {
			from = p.given[record.Grant]
		}
		require.Contains(t, from, v.By, "who approved it? %+v", record.Votes)
		makers[v.By] = from[v.By]
		credentials = append(credentials, [2]string{v.By, from[v.By]})
	}
	if c.tool == grants.CreateTool {
		p.gives(activities.GrantID(c.session, c.id), makers)
	}
	people, alone := map[string]bool{}, ""
	for who := range makers {
		same, least := samePerson(who, credentials), who
		said := func(a jig.Asker) bool { return same[a.Principal] }
		if slices.Contains(p.settings.Disabled, who) || slices.ContainsFunc(c.askers, said) {
			continue
		}
		for id := range same {
			least = min(least, id)
		}
		people[least] = true
		if same[c.editor] || slices.ContainsFunc(c.reviewers, said) {
			alone = who
		}
	}
	require.GreaterOrEqual(t, len(people), p.quorum, "%+v asked: %+v", c, record.Votes)
	require.True(t, len(people) > 1 || alone == "", "%s alone approved what they wrote: %+v", alone, record.Votes)
}

// finishes lets everybody approve a call who may, with a credential of their own: it must end.
func (p *played) finishes(t *testing.T, c *playedCall) jig.CallStatus {
	t.Helper()
	for range 3 { // it may ask again if people have left since they approved it
		if status := p.settle(t, c, true); status != "" {
			return status
		}
		for _, who := range p.settings.People {
			if !slices.Contains(p.settings.Disabled, who.ID) && p.decides(t, jig.Principal{ID: who.ID}, jig.Decision{Call: c.id}).Outcome == jig.DecisionAccepted {
				c.makers[who.ID] = ""
			}
		}
	}
	require.Fail(t, "nobody can decide the call", "%+v", p.pending(t, c.id))
	return ""
}

// step lets one thing happen and returns what it was; empty if it was refused.
func (p *played) step(t *testing.T) (did string, over jig.CallStatus) {
	t.Helper()
	switch at := p.random.IntN(24); {
	case at == 0:
		p.triggers(t)
		return "trigger", ""
	case at < 5:
		return p.says(t), ""
	case at < 8:
		return p.changes(t), ""
	case at < 12 && len(p.calls) < 4 || len(p.calls) == 0:
		return p.requests(t), ""
	}
	c := p.calls[p.random.IntN(len(p.calls))]
	did = p.rules(t, c)
	return did, p.settle(t, c, p.random.IntN(3) > 0)
}

// Whatever people do, in whatever order, through the engine and the database: no one person's word both asks for a call that runs and approves it,
// nobody approves alone what they wrote, and every call that waits can be decided by those who are left.
func TestAskers_PlayedCases(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	t.Run("cases", func(t *testing.T) {
		for seed := range *playedCases {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				p := newPlayed(t, uint64(seed))
				count := map[string]int{}
				for range 10 + p.random.IntN(30) {
					did, over := p.step(t)
					p.log = append(p.log, fmt.Sprintf("%s %s: %s %s", p.session, p.clock, did, over))
					count[cmp.Or(did, "refused")]++
					if over != "" {
						count[string(over)]++
					}
				}
				for len(p.calls) > 0 {
					count["finished "+string(p.finishes(t, p.calls[0]))]++
				}
				mu.Lock()
				defer mu.Unlock()
				for what, n := range count {
					seen[what] += n
				}
			})
		}
	})
	t.Logf("%d cases: %v", *playedCases, seen)
	for _, what := range []string{
		"message", "event", "answer", "trigger", "question", "call", "approve", "delegate", "edit", "deny", "grant", "key", "leave", "disable", "join", "time", "succeeded",
	} {
		require.NotZero(t, seen[what], "the cases cover everything: %v", seen)
	}
}
