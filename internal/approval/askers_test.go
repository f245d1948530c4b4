package approval_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// independent is an approval that finance decides without those who asked.
func independent(quorum int, askers ...jig.Asker) jig.Pending {
	p := asked(byFinance(quorum)).Pending
	p.Terms.NotRequester = true
	p.RequestedBy, p.Askers = "ci", askers
	return p
}

func wrote(who string) jig.Asker { return jig.Asker{Principal: who, By: jig.AskedMessage} }

func TestEntitled_NobodyWhoseWordTheCallRestsOn(t *testing.T) {
	t.Parallel()
	claimed, made := wrote("fay"), wrote("bot")
	reviewed := jig.Asker{Principal: "fay", By: jig.AskedReview}
	unproved := reviewed
	unproved.Claimed = true
	claimed.Claimed, made.Maker = true, "fay"
	operator := wrote("bot")
	operator.Maker = jig.MakerOperator
	throughFay := flo()
	throughFay.Maker = "fay"
	for name, row := range map[string]struct {
		asker jig.Asker
		who   jig.Principal
		may   bool
		alone bool
	}{
		"the author of a message":             {wrote("fay"), fay(), false, false},
		"of an answer":                        {jig.Asker{Principal: "fay", By: jig.AskedAnswer}, fay(), false, false},
		"somebody else":                       {wrote("fay"), flo(), true, true},
		"only claimed to be the author":       {claimed, fay(), true, true},
		"the maker of the author's key":       {made, fay(), false, false},
		"the operator made the author's key":  {operator, fay(), true, true},
		"through a key that the author made":  {wrote("fay"), throughFay, false, false},
		"whoever changed the input":           {jig.Asker{Principal: "fay", By: jig.AskedEdited}, fay(), true, false},
		"the principal, though only claimed":  {jig.Asker{Principal: "fay", Claimed: true, By: jig.AskedStarted}, fay(), false, false},
		"whoever triggered the schedule":      {jig.Asker{Principal: "fay", By: jig.AskedTriggered}, fay(), false, false},
		"the sender of an event that it used": {jig.Asker{Principal: "fay", By: jig.AskedEvent}, fay(), false, false},
		"whoever reviewed an earlier call":    {reviewed, fay(), true, false},
		"only claimed to have reviewed it":    {unproved, fay(), true, true},
		"another reviewer":                    {reviewed, flo(), true, true},
	} {
		p := independent(1, row.asker)
		_, why := approval.ConsentOf(p).Entitled(row.who, noonOf())
		require.Equal(t, row.may, why == "", "%s: %s", name, why)
		s := waiting(p.Terms)
		s.Open.Pending = p
		for answer, d := range map[string]jig.Decision{"approve": {}, "deny": {Answer: jig.AnswerDeny}, "delegate": {Answer: jig.AnswerDelegate, To: "eve"}} {
			r := decides(row.who, d)
			r.People = []jig.Principal{fay(), flo(), leo()}
			require.Equal(t, row.may, !decide(t, s, r).Refused(), "%s: %s", name, answer)
		}
		votes := approval.VotesOf(jig.Grant{By: []string{row.who.ID}, Proof: jig.ProofKey}, []jig.Principal{row.who}, p, jig.ProofVouched, noonOf())
		require.Equal(t, row.alone, votes != nil, "%s: a standing approval", name)
		missing := approval.Recount(p, []approval.Proven{{Principal: row.who, Answer: jig.AnswerApprove, At: noonOf()}})
		require.Equal(t, row.alone, missing == "", "%s: signatures", name)
	}
	p := independent(1, wrote("eve"))
	s := waiting(p.Terms)
	s.Open.Pending = p
	requireRefused(t, decide(t, s, decides(fay(), jig.Decision{Answer: jig.AnswerDelegate, To: "eve"})), s, "eve asked for this call and may not decide it")
}

func TestMissing_CountsAPersonAndTheirMakerOnce(t *testing.T) {
	t.Parallel()
	p := independent(2)
	p.Votes = []jig.Vote{{By: "fay", Counts: []int{0}}, {By: "flo", Maker: "fay", Counts: []int{0}}}
	require.Equal(t, "1 of 2 approvals by group finance, 1 missing", approval.ConsentOf(p).Missing())
	p.Votes[1].Maker = jig.MakerOperator
	require.Empty(t, approval.ConsentOf(p).Missing())
}

func TestIndependent_FindsOthersOrEndsTheCall(t *testing.T) {
	t.Parallel()
	lea, owner := jig.Principal{ID: "lea", Permissions: []string{"lead"}}, jig.Principal{ID: "oda", Groups: []string{"owners"}}
	people := []jig.Principal{fay(), flo(), lea, owner}
	owners := &jig.Approvers{Groups: []string{"owners"}}
	both := []jig.Asker{wrote("fay"), wrote("flo")}
	for name, row := range map[string]struct {
		quorum   int
		askers   []jig.Asker
		escalate bool
		e        approval.Voters
		who      jig.Principal
		denied   bool
		changed  bool
	}{
		"somebody is left":           {1, both[:1], false, approval.Voters{People: people}, flo(), false, false},
		"too few for the quorum":     {2, both[:1], false, approval.Voters{People: people}, flo(), true, false},
		"the escalation, at once":    {1, both, true, approval.Voters{People: people, Owners: owners}, lea, false, true},
		"else the owners":            {1, both, false, approval.Voters{People: people, Owners: owners}, owner, false, true},
		"owners who asked, too":      {1, append(both, wrote("oda")), false, approval.Voters{People: people, Owners: owners}, owner, true, false},
		"nobody":                     {1, both, false, approval.Voters{People: people}, fay(), true, false},
		"an open group":              {1, both, false, approval.Voters{People: people, Open: func(jig.Approvers) bool { return true }}, fay(), false, false},
		"the other one is disabled":  {1, both[:1], false, approval.Voters{People: []jig.Principal{fay()}, Disabled: []string{"flo"}}, fay(), true, false},
		"nobody of the group anyway": {1, []jig.Asker{wrote("eve")}, false, approval.Voters{People: []jig.Principal{lea}}, lea, true, false},
		"whoever edits is not enough": {
			1, []jig.Asker{wrote("flo"), {Principal: "fay", By: jig.AskedEdited}}, false, approval.Voters{People: people}, fay(), true, false,
		},
		"nor is whoever reviews": {
			1, []jig.Asker{wrote("flo"), {Principal: "fay", By: jig.AskedReview}}, false, approval.Voters{People: people}, fay(), true, false,
		},
		"a reviewer with others": {2, []jig.Asker{{Principal: "fay", By: jig.AskedReview}}, false, approval.Voters{People: people}, fay(), false, false},
	} {
		p := independent(row.quorum, row.askers...)
		if row.escalate {
			p.Terms.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(time.Hour), Approvers: lead()}}
		}
		got, denied := row.e.Independent(p, noonOf())
		require.Equal(t, row.denied, denied != nil, name)
		if denied != nil {
			require.Equal(t, []any{jig.CodeDenied, approval.ReasonNoIndependentApprover}, []any{denied.Code, denied.Reason})
			continue
		}
		require.Equal(t, row.changed, len(got.Reasons) > len(p.Reasons), name)
		if row.changed {
			_, why := approval.ConsentOf(got).Entitled(row.who, got.RequestedAt)
			require.Empty(t, why, name)
		}
	}
}

func TestRequesters_SaysOnWhoseWordACallRests(t *testing.T) {
	t.Parallel()
	p := independent(1, wrote("ana"), jig.Asker{Principal: "ben", Claimed: true, By: jig.AskedEvent}, jig.Asker{Principal: "fay", By: jig.AskedEdited})
	require.Equal(t, "requested by ci; words by ana (message), ben (event, claimed); changed by fay", approval.Requesters(p))
	require.Equal(t, "ci or ana", approval.Excluded(p))
	require.Empty(t, approval.Requesters(jig.Pending{}))
}

// world is a random call with the people around it. maker says who made the credential that a person uses now; the test itself computes from what was
// used who is one person with whom.
type world struct {
	state    approval.State
	people   []jig.Principal
	disabled []string
	maker    map[string]string
	asked    map[string]bool
	reviewer string
	editor   string
	now      time.Time
	ended    jig.CallStatus
}

func (w *world) as(i int) jig.Principal {
	p := w.people[i]
	p.Maker, p.Proof = w.maker[p.ID], jig.ProofVouched
	return p
}

func (w *world) anybody(random *rand.Rand) int { return random.IntN(len(w.people)) }

func (w *world) voters() approval.Voters {
	return approval.Voters{Proof: jig.ProofVouched, People: w.people, Disabled: w.disabled, Owners: &jig.Approvers{Groups: []string{"owners"}}}
}

// person returns everybody who is one person with somebody, by all credentials of the world.
func (w *world) person(id string) map[string]bool {
	same := map[string]bool{id: true}
	for grown := true; grown; {
		grown = false
		for made, maker := range w.maker {
			if maker != jig.MakerOperator && same[made] != same[maker] {
				same[made], same[maker], grown = true, true, true
			}
		}
	}
	return same
}

// makes gives somebody a credential that is their own, or that somebody else or the operator made.
func (w *world) makes(random *rand.Rand) {
	who := w.people[w.anybody(random)].ID
	w.maker[who] = []string{"", w.people[w.anybody(random)].ID, jig.MakerOperator}[random.IntN(3)]
}

// joins returns the groups and permissions of somebody who joins or changes their place.
func joins(p jig.Principal, random *rand.Rand) jig.Principal {
	p.Groups, p.Permissions = nil, nil
	switch random.IntN(6) {
	case 0:
		p.Groups = []string{"owners"}
	case 1:
		p.Permissions = []string{"lead"}
	default:
		p.Groups = []string{"finance"}
	}
	return p
}

// randomWorld returns a call for which people have asked by message, trigger, event or answer, with credentials that change meanwhile.
func randomWorld(random *rand.Rand) *world {
	w := &world{maker: map[string]string{}, asked: map[string]bool{}, now: noonOf()}
	for i := range 3 + random.IntN(4) {
		w.people = append(w.people, joins(jig.Principal{ID: fmt.Sprintf("p%d", i)}, random))
	}
	hows := []string{jig.AskedStarted, jig.AskedTriggered, jig.AskedMessage, jig.AskedEvent, jig.AskedAnswer}
	var askers []jig.Asker
	for range 1 + random.IntN(3) {
		if random.IntN(2) == 0 {
			w.makes(random)
		}
		who := w.as(w.anybody(random))
		askers = append(askers, jig.Asker{Principal: who.ID, Maker: who.Maker, By: hows[random.IntN(len(hows))]})
		w.asked[who.ID] = true
	}
	if random.IntN(3) == 0 {
		who := w.as(w.anybody(random))
		askers, w.reviewer = append(askers, jig.Asker{Principal: who.ID, Maker: who.Maker, By: jig.AskedReview}), who.ID
	}
	p := independent(1+random.IntN(2), askers...)
	p.RequestedBy, p.ExpiresAt = "", time.Time{}
	if random.IntN(2) == 0 {
		p.Terms.Requirements[0].Escalate = []jig.Escalation{{After: jig.Duration(30 * time.Minute), Approvers: lead()}}
	}
	w.state = waiting(p.Terms)
	w.state.Open.Pending = p
	return w
}

// act lets somebody do something about the call, or lets the people or the time change, and applies what follows. It returns what happened.
func (w *world) act(t *testing.T, random *rand.Rand) (what string) {
	t.Helper()
	who, other := w.as(w.anybody(random)), w.people[w.anybody(random)].ID
	r := decides(who, jig.Decision{})
	switch random.IntN(12) {
	case 0:
		r.Decision.Answer, r.Decision.To = jig.AnswerDelegate, other
	case 1:
		r.Decision.Answer, r.Decision.Undo = jig.AnswerDelegate, true
	case 2:
		r = edits(who, nil)
		r.EditedFrom, r.Fresh.Askers, r.Fresh.Terms = w.state.Call.Digest, w.state.Open.Askers, new(approval.Ruled(*w.state.Open.Terms))
		r.Edited.Digest = w.state.Call.Digest + "+"
		r.Fresh.Digest, r.Fresh.RequestedAt = r.Edited.Digest, w.now
		r.Edited.Input = json.RawMessage(fmt.Sprintf(`{"amount":%d}`, random.IntN(1000)))
	case 3:
		r.Decision.GrantID = "grt_1"
		r.Standing = &approval.Standing{Grant: jig.Grant{ID: "grt_1", Proof: jig.ProofVouched}, People: []jig.Principal{who}}
	case 4: // somebody leaves; their word stays
		i := w.anybody(random)
		w.people[i].Groups, w.people[i].Permissions = nil, nil
		return w.elapses("leave")
	case 5:
		w.disabled = append(w.disabled, other)
		return w.elapses("disable")
	case 6:
		i := w.anybody(random)
		w.people[i] = joins(w.people[i], random)
		w.disabled = slices.DeleteFunc(w.disabled, func(id string) bool { return id == w.people[i].ID })
		return w.elapses("document")
	case 7:
		w.now = w.now.Add(20 * time.Minute)
		return w.elapses("time")
	case 8:
		w.makes(random)
		return "key"
	}
	if slices.Contains(w.disabled, who.ID) {
		return "" // nobody takes their word
	}
	r.Voters, r.Now = w.voters(), w.now
	got := decide(t, w.state, r)
	if got.Refused() {
		return ""
	}
	if r.Edited != nil {
		w.editor = who.ID
		w.state.Call.Input, w.state.Call.Digest = r.Edited.Input, r.Edited.Digest
	}
	w.apply(got, got.Ruled.Status)
	return string(r.Decision.Answer)
}

// elapses checks the call as a timer does, and as a worker does after the people have changed.
func (w *world) elapses(what string) string {
	voters := w.voters()
	got, lapse := approval.Elapse(w.state, &voters, w.now)
	w.apply(got, lapse.Status)
	if got.Wider != nil {
		return what + " escalates"
	}
	return what
}

// apply changes the call as the store does.
func (w *world) apply(got approval.Transition, status jig.CallStatus) {
	open := w.state.Open
	if got.Votes != nil {
		open.Votes = got.Votes
	}
	if got.Delegations != nil {
		open.Delegations = got.Delegations
	}
	if got.Wider != nil {
		open.Terms, open.Reasons = got.Wider.Terms, got.Wider.Reasons
	}
	if got.Opens != nil {
		open.Pending = *got.Opens
	}
	if !got.NoticedAt.IsZero() {
		open.NoticedAt = got.NoticedAt
	}
	if got.Outcome != nil && got.Outcome.Votes != nil {
		open.Votes = got.Outcome.Votes
	}
	if status != jig.CallWaiting {
		w.ended = status
	}
}

// requireDecidable checks that the call runs if everybody approves it who still may, with credentials of their own.
func (w *world) requireDecidable(t *testing.T, after string) {
	t.Helper()
	record := *w.state.Open
	call := *w.state.Call
	trial := world{state: w.state, people: w.people, disabled: w.disabled}
	trial.state.Open, trial.state.Call = &record, &call
	for _, who := range w.people {
		if slices.Contains(w.disabled, who.ID) {
			continue
		}
		who.Proof = jig.ProofVouched
		r := decides(who, jig.Decision{})
		r.Voters, r.Now = w.voters(), w.now
		if got := decide(t, trial.state, r); !got.Refused() {
			if trial.apply(got, got.Ruled.Status); trial.ended != "" {
				return
			}
		}
	}
	require.Fail(t, "nobody can decide the call", "after %s: %+v\npeople %+v, disabled %v", after, w.state.Open.Pending, w.people, w.disabled)
}

// Whatever people do, in whatever order: no one person's word both asks for a call and approves it, nobody approves alone what they wrote, and after
// each step a call that waits can be approved by those who are left.
func TestDecide_NobodyBothAsksAndApproves(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(27, 1))
	seen := map[string]int{}
	for range 5000 {
		w := randomWorld(random)
		fresh, none := w.voters().Independent(w.state.Open.Pending, w.now)
		if none != nil {
			seen["denied at once"]++
			continue
		}
		w.state.Open.Pending = fresh
		w.requireDecidable(t, "asking")
		for range 14 {
			did := w.act(t, random)
			seen[did]++
			if w.ended != "" {
				break
			}
			w.requireDecidable(t, did)
		}
		if seen[string(w.ended)]++; w.ended == jig.CallReserved {
			requireIndependent(t, w)
		}
	}
	for _, what := range []string{
		"denied at once", "denied", "reserved", "approve", "delegate", "leave", "disable", "document", "time", "key", "leave escalates", "disable escalates", "document escalates",
	} {
		require.Greater(t, seen[what], 20, "the test covers all outcomes: %v", seen)
	}
}

// requireIndependent checks the votes with which a call runs, by the credentials that were used.
func requireIndependent(t *testing.T, w *world) {
	t.Helper()
	used := world{maker: map[string]string{}}
	for _, a := range w.state.Open.Askers {
		used.maker[a.Principal] = a.Maker
	}
	for _, v := range w.state.Open.Votes {
		used.maker[v.By] = v.Maker
	}
	for made, maker := range used.maker {
		if maker == "" {
			delete(used.maker, made)
		}
	}
	var counted []string
	for _, v := range w.state.Open.Votes {
		own := true
		for id := range w.asked {
			own = own && !used.person(id)[v.By]
		}
		if own {
			counted = append(counted, v.By)
		}
	}
	distinct := map[string]bool{}
	for _, id := range counted {
		same := used.person(id)
		if !slices.ContainsFunc(counted, func(other string) bool { return other < id && same[other] }) {
			distinct[id] = true
		}
	}
	require.GreaterOrEqual(t, len(distinct), w.state.Open.Terms.Requirements[0].Quorum, "%+v", w.state.Open.Pending)
	for _, who := range []string{w.editor, w.reviewer} {
		other := func(id string) bool { return !used.person(who)[id] }
		require.True(t, who == "" || slices.ContainsFunc(counted, other), "%s wrote it: %+v", who, w.state.Open.Pending)
	}
}

// Whoever asked for a call may say what happened to it, unless a rule keeps them from deciding.
func TestReconcile_AskersMayUnlessARuleForbidsIt(t *testing.T) {
	t.Parallel()
	for byDefault, refused := range map[bool]bool{true: false, false: true} {
		s := doubtful()
		s.Latest = asked(&jig.Terms{NotRequester: true, ByDefault: byDefault})
		got, err := approval.Reconcile(s, reconciles(jig.Principal{ID: s.Latest.RequestedBy}, jig.OutcomeHappened, ""))
		require.NoError(t, err)
		require.Equal(t, refused, got.Refused(), got.Ruled.Reason)
	}
}
