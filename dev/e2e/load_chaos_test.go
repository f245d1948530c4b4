package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Agents of the load test: one works at once, the other asks a person first. No call may have its effect twice.
const (
	loadWorks = `    - when: pass == 1
      calls:
        - {tool: test.effect, input: {url: "${input.url}", name: "${input.name}-e", after: 20}}
        - {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-k"}}
    - answer: "${calls.filter(c, c.success).size()} of ${calls.size()}"
`
	loadAsks = `    - when: pass == 1
      calls:
        - {tool: test.once, input: {url: "${input.url}", name: "${input.name}-e"}}
    - answer: "${calls.filter(c, c.success).size()} of ${calls.size()}"
`
)

// loadTest is a load test: clients that start sessions, decide and follow them while servers and the database come and go.
type loadTest struct {
	*testEnv
	*retryingClients
	tenant   string
	receiver *receiver
	ctx      context.Context //nolint:containedctx // it ends all clients of one test
	// accepted and decided count what the servers have accepted.
	accepted, decided atomic.Int64
}

// loadSession is a session of a load test.
type loadSession struct {
	n          int
	name       string
	asks, deny bool
	// session is the id, once ready is closed.
	session string
	ready   chan struct{}
}

func (r *loadTest) sessions(prefix string, n int, asks bool) []*loadSession {
	var list []*loadSession
	for i := range n {
		list = append(list, &loadSession{n: i, name: fmt.Sprintf("%s-%d", prefix, i), asks: asks, deny: asks && i%5 == 0, ready: make(chan struct{})})
	}
	return list
}

// start starts a session, and once more: the second request must find the first one's session. Half of the clients choose an id, the others send
// a key.
func (r *loadTest) start(s *loadSession) error {
	rules := loadWorks
	if s.asks {
		rules = loadAsks
	}
	body := map[string]any{"document": agent(`["test.*"]`, rules), "input": map[string]any{"url": r.receiver.URL, "name": s.name}}
	var headers []string
	if s.n%2 == 0 {
		body["id"] = s.name
	} else {
		headers = []string{"Idempotency-Key", s.name}
	}
	for again := range 2 {
		said, err := r.do(r.ctx, s.n+again, http.MethodPost, "/v1/sessions", body, headers...)
		if err != nil {
			return fmt.Errorf("starting %s: %w", s.name, err)
		}
		var started struct {
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal(said.body, &started); err != nil || said.status/100 != 2 || started.SessionID == "" {
			return fmt.Errorf("starting %s: status %d: %s", s.name, said.status, said.body)
		}
		switch {
		case again == 0:
			s.session = started.SessionID
			close(s.ready)
			r.accepted.Add(1)
		case said.status != http.StatusOK || started.SessionID != s.session || said.header.Get("Idempotent-Replayed") != "true":
			return fmt.Errorf("%s: the session %s was started again: status %d: %s", s.name, s.session, said.status, said.body)
		}
	}
	return nil
}

// pending returns what waits for a person in a session.
func (r *loadTest) pending(client int, query string) ([]jig.Pending, error) {
	said, err := r.do(r.ctx, client, http.MethodGet, "/v1/approvals?"+query, nil)
	if err != nil {
		return nil, err
	}
	var list approvalList
	if err := json.Unmarshal(said.body, &list); err != nil || said.status != http.StatusOK {
		return nil, fmt.Errorf("listing %s: status %d: %s", query, said.status, said.body)
	}
	return list.Approvals, nil
}

// waits waits until a session asks for an approval, and returns the call.
func (r *loadTest) waits(s *loadSession) (jig.Pending, error) {
	for {
		list, err := r.pending(s.n, "kind=approval&session="+url.QueryEscape(s.session))
		if err != nil || len(list) > 0 {
			return first(list), err
		}
		if !paused(r.ctx, crowdPause) {
			return jig.Pending{}, fmt.Errorf("%s does not ask: %w", s.name, context.Cause(r.ctx))
		}
	}
}

func first(list []jig.Pending) jig.Pending {
	if len(list) == 0 {
		return jig.Pending{}
	}
	return list[0]
}

// decide decides a call that waits. If the answer to the decision got lost, the next one may be refused.
func (r *loadTest) decide(s *loadSession, asked jig.Pending) error {
	answer := jig.AnswerApprove
	if s.deny {
		answer = jig.AnswerDeny
	}
	said, err := r.do(r.ctx, s.n, http.MethodPost, "/v1/approvals/"+s.session+"/decision",
		map[string]any{"call": asked.Call, "answer": answer, "digest": asked.Digest, "note": s.name})
	if err != nil {
		return fmt.Errorf("deciding %s: %w", s.name, err)
	}
	if said.repeated && said.status == http.StatusConflict { // the session has ended meanwhile
		r.decided.Add(1)
		return nil
	}
	var ruled jig.Ruled
	if err := json.Unmarshal(said.body, &ruled); err != nil {
		return fmt.Errorf("deciding %s: status %d: %s", s.name, said.status, said.body)
	}
	if ruled.Outcome != jig.DecisionAccepted && !said.repeated {
		return fmt.Errorf("deciding %s: status %d: %s", s.name, said.status, said.body)
	}
	r.decided.Add(1)
	return nil
}

// reconcile tells the truth about calls whose outcome got lost, until it is stopped.
func (r *loadTest) reconcile(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(crowdPause):
		}
		list, err := r.pending(0, "kind=reconcile")
		if err != nil {
			return err
		}
		for _, p := range list {
			word := map[string]any{"call": p.Call, "attempt": p.Attempt, "outcome": jig.OutcomeNotHappened}
			if requests, _ := r.receiver.count(nameOf(p)); requests > 0 {
				word["outcome"], word["result"] = jig.OutcomeHappened, map[string]any{"status": http.StatusNoContent}
			}
			if _, err := r.do(r.ctx, 0, http.MethodPost, "/v1/approvals/"+p.SessionID+"/reconcile", word); err != nil {
				return err
			}
		}
	}
}

// ends waits for the end of a session.
func (r *loadTest) ends(s *loadSession) (result protocol.SessionResult, err error) {
	for {
		said, err := r.do(r.ctx, s.n, http.MethodGet, "/v1/sessions/"+s.session+"/result?wait=30", nil)
		if err != nil || said.status/100 != 2 {
			return result, fmt.Errorf("the end of %s: status %d: %s, %w", s.name, said.status, said.body, err)
		}
		if said.status == http.StatusOK {
			return result, json.Unmarshal(said.body, &result)
		}
	}
}

// receivedEvents holds the events that one subscriber has received.
type receivedEvents struct {
	// of is the session.
	of *loadSession
	// seqs are the sequence numbers of the events, in the order in which they arrived.
	seqs []int64
	// connects counts how often the subscriber connected.
	connects int
}

// TestChaos_ServersUnderLoad starts and decides hundreds of sessions over HTTP and follows each of them, while the database stops for five seconds
// and one of two servers is killed. Nothing may get lost and nothing may happen twice.
func TestChaos_ServersUnderLoad(t *testing.T) { //nolint:paralleltest // it stops the database that all tests use
	starts, seed := chaos(t, 500, 60, 20)
	random := rand.New(rand.NewPCG(uint64(seed), 4))
	decisions, subscribers := 2*starts/5, 2*starts
	d := startEnv(t)
	// All clients share an address, so only the limits of credentials apply.
	settings := []string{"JIG_HTTP_RATE_ADDRESS=0", "JIG_HTTP_RATE_KEY=" + fmt.Sprint(max(20, starts/5))}
	one, two := d.serve(settings...), d.serve(settings...)
	tenant := d.name + "-load"
	var keys []string
	for range 4 {
		keys = append(keys, d.apiKey(tenant, everything()...))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := &loadTest{testEnv: d, retryingClients: newRetryingClients(keys, one, two), tenant: tenant, receiver: newReceiver(t), ctx: ctx}

	// Sessions that wait for a decision when everything begins.
	asking := r.sessions("asks", decisions, true)
	waiting := make([]jig.Pending, len(asking))
	r.together(len(asking), func(i int) error {
		err := r.start(asking[i])
		if err == nil {
			waiting[i], err = r.waits(asking[i])
		}
		return err
	})
	require.False(t, t.Failed())
	r.accepted.Store(0)

	working := r.sessions("works", starts, false)
	all := append(append([]*loadSession{}, asking...), working...)
	heard := make([]receivedEvents, subscribers)
	stop, done := make(chan struct{}), make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { r.say(r.reconcile(stop)) })
	beside.Go(func() {
		r.together(subscribers, func(i int) error {
			h := &heard[i]
			h.of = all[i%len(all)]
			select {
			case <-h.of.ready:
			case <-r.ctx.Done():
				return fmt.Errorf("%s was not started", h.of.name)
			}
			var err error
			if h.seqs, h.connects, err = r.follow(r.ctx, i, h.of.session); err != nil {
				return fmt.Errorf("following %s: %w", h.of.name, err)
			}
			return nil
		})
		close(done)
	})
	var rushing sync.WaitGroup
	rushing.Go(func() { r.together(len(working), func(i int) error { return r.start(working[i]) }) })
	rushing.Go(func() { r.together(len(asking), func(i int) error { return r.decide(asking[i], waiting[i]) }) })
	require.True(t, eventually(t.Context(), patience, func() bool { return int(r.accepted.Load()+r.decided.Load()) >= (starts+decisions)/4 }))
	t.Logf("the database stops after %d starts and %d decisions", r.accepted.Load(), r.decided.Load())
	require.NoError(t, shared.stack.PG().Stop(t.Context()))
	const outage = 5 * time.Second
	killed := time.Duration(random.Int64N(int64(outage)))
	paused(t.Context(), killed)
	two.kill()
	paused(t.Context(), outage-killed)
	require.NoError(t, shared.stack.PG().Start(t.Context()))
	d.serveAt(two.url[len("http://"):], settings...)
	rushing.Wait()
	require.False(t, t.Failed(), "see above")

	r.together(len(all), func(i int) error { return r.requireEnded(all[i]) })
	<-done
	close(stop)
	beside.Wait()
	t.Logf("requests made again: %d limited, %d refused, %d without an answer", r.limited.Load(), r.refused.Load(), r.broken.Load())
	require.False(t, t.Failed(), "see above")
	r.requireSessions(len(all))
	r.requireHeard(heard)
}

// say reports an error.
func (r *loadTest) say(err error) {
	if err != nil {
		r.t.Errorf("%v", err)
	}
}

// together calls do for 0 to n-1 at the same time.
func (r *loadTest) together(n int, do func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { r.say(do(i)) })
	}
	all.Wait()
}

// requireEnded checks that a session has ended as it must, and that each of its effects happened once.
func (r *loadTest) requireEnded(s *loadSession) error {
	result, err := r.ends(s)
	if err != nil {
		return err
	}
	answer, effects := "2 of 2", 1
	switch {
	case s.deny:
		answer, effects = "0 of 1", 0
	case s.asks:
		answer = "1 of 1"
	}
	if result.Status != jig.StatusCompleted || result.Answer != answer {
		return fmt.Errorf("%s must answer %q: %+v", s.name, answer, result)
	}
	if requests, _ := r.receiver.count(s.name + "-e"); requests != effects {
		return fmt.Errorf("%s: %s had its effect %d times, not %d", s.name, s.session, requests, effects)
	}
	if _, keys := r.receiver.count(s.name + "-k"); !s.asks && keys != 1 {
		return fmt.Errorf("%s: %s used %d keys for one call", s.name, s.session, keys)
	}
	return nil
}

// requireSessions checks that the tenant has exactly the sessions that were started.
func (r *loadTest) requireSessions(want int) {
	r.t.Helper()
	found, cursor := map[string]bool{}, ""
	for {
		said, err := r.do(r.ctx, 0, http.MethodGet, "/v1/sessions?limit=100&children=true&cursor="+url.QueryEscape(cursor), nil)
		require.NoError(r.t, err)
		require.Equal(r.t, http.StatusOK, said.status, string(said.body))
		var page struct {
			Sessions []protocol.SessionItem `json:"sessions"`
			Next     string                 `json:"next_cursor"`
		}
		require.NoError(r.t, json.Unmarshal(said.body, &page))
		for _, s := range page.Sessions {
			found[s.SessionID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.Len(r.t, found, want, "one session for each start")
}

// requireHeard checks the log of each session, and that each subscriber received every event of its session once and in order.
func (r *loadTest) requireHeard(heard []receivedEvents) {
	r.t.Helper()
	lengths := map[string]int{}
	connects := 0
	for i, h := range heard {
		if _, known := lengths[h.of.session]; !known {
			lengths[h.of.session] = r.requireLog(h.of)
		}
		require.GreaterOrEqual(r.t, len(h.seqs), lengths[h.of.session], "subscriber %d of %s", i, h.of.session)
		for n, seq := range h.seqs {
			require.EqualValues(r.t, n+1, seq, "subscriber %d of %s", i, h.of.session)
		}
		connects += h.connects
	}
	r.t.Logf("%d subscribers connected %d times", len(heard), connects)
}

// requireLog checks that a session's log has no gaps, that each call ended once and that each decision took effect once. It returns the number
// of events up to the session's end. Only the refusal of a decision that was sent twice may follow, and subscribers may have gone by then.
func (r *loadTest) requireLog(s *loadSession) int {
	t := r.t
	t.Helper()
	list, err := r.Events(t.Context(), r.tenant, s.session, 0)
	require.NoError(t, err)
	ends, ruled, last := map[string]int{}, map[jig.EventType]int{}, 0
	for i, e := range list {
		require.EqualValues(t, i+1, e.Seq, "the log of %s has a gap", s.session)
		if e.Type == jig.EventSessionCompleted {
			last = i + 1
		}
		require.True(t, last == 0 || i+1 == last || e.Type == jig.EventDecisionRefused, "%s follows the end of %s", e.Type, s.session)
		switch e.Type { //nolint:exhaustive // the others do not matter here
		case jig.EventToolCompleted, jig.EventToolFailed:
			ends[e.CallID]++
		case jig.EventToolApproved, jig.EventToolDenied, jig.EventSessionCompleted:
			ruled[e.Type]++
		}
	}
	for call, n := range ends {
		require.Equal(t, 1, n, "call %s of %s has ended %d times", call, s.session, n)
	}
	want := map[jig.EventType]int{jig.EventSessionCompleted: 1}
	switch {
	case s.deny:
		want[jig.EventToolDenied] = 1
	case s.asks:
		want[jig.EventToolApproved] = 1
	}
	require.Equal(t, want, ruled, s.session)
	return last
}
