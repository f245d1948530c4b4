package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
)

// chaosRules cover everything that a kill may interrupt: quick and slow tools, keyed and unkeyed effects, an approval, and several passes.
const chaosRules = `    - when: pass == 1
      calls:
        - {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-k1", before: 20, after: 20}}
        - {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-k2", after: 100}}
        - {tool: test.effect, input: {url: "${input.url}", name: "${input.name}-e1", before: 30, after: 60}}
        - {tool: test.quick, input: {value: a}}
        - {tool: test.echo, input: {value: b}}
    - when: pass == 2
      calls:
        - {tool: test.once, input: {url: "${input.url}", name: "${input.name}-e2", before: 10, after: 50}}
        - {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-k3", before: 100}}
    - when: pass == 3
      calls:
        - {tool: test.effect, input: {url: "${input.url}", name: "${input.name}-e3", after: 30}}
        - {tool: test.write, input: {url: "${input.url}", name: "${input.name}-k4"}}
    - answer: "${calls.filter(c, c.success).size()} of ${calls.size()}"
`

// TestChaos_KillWorker kills the worker at random moments while sessions run, wait and change passes. It checks that every session completes,
// that each unkeyed effect happened at most once, and that each keyed effect used only one key.
func TestChaos_KillWorker(t *testing.T) { //nolint:paralleltest // it kills the worker of all its sessions
	kills, seed := chaos(t, 200, 60, 8)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	d, r := startEnv(t), newReceiver(t)

	flock := &sessionSet{}
	begin := func() {
		flock.add(d.run(agent(`["*"]`, chaosRules), map[string]any{"url": r.URL, "name": fmt.Sprintf("s%d", len(flock.list()))}))
	}
	for range 4 {
		begin()
	}
	stop := make(chan struct{})
	var answering sync.WaitGroup
	answering.Go(func() { d.answer(r, flock, stop) })
	for kill := range kills {
		if kill%3 == 0 { // add a session, so that a kill always has something to interrupt
			begin()
		}
		pause := time.Duration(random.IntN(2000)) * time.Millisecond
		eventually(t.Context(), pause, func() bool { return false })
		d.kill()
		d.start()
	}
	for i, id := range flock.list() {
		view := d.until(id, func(v jig.SessionView) bool { return v.Status.Final() })
		require.Equal(t, jig.StatusCompleted, view.Status, "%s: %+v", id, view.Error)
		require.Equal(t, "9 of 9", view.Answer, id)
		for _, effect := range []string{"e1", "e2", "e3"} {
			requests, _ := r.count(fmt.Sprintf("s%d-%s", i, effect))
			require.Equal(t, 1, requests, "%s %s: an unkeyed effect must happen once", id, effect)
		}
		for _, keyed := range []string{"k1", "k2", "k3", "k4"} {
			requests, keys := r.count(fmt.Sprintf("s%d-%s", i, keyed))
			require.Equal(t, 1, keys, "%s %s: all attempts must have the same key", id, keyed)
			require.GreaterOrEqual(t, requests, 1)
		}
		d.requireWhole(id)
	}
	close(stop)
	answering.Wait()
}

// sessionSet is a growing set of sessions.
type sessionSet struct {
	mu  sync.Mutex
	ids []string
}

func (f *sessionSet) add(ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, ids...)
}

func (f *sessionSet) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

// answer approves waiting calls and reconciles unknown outcomes truthfully, until it is stopped.
func (d *testEnv) answer(r *receiver, f *sessionSet, stop <-chan struct{}) {
	for {
		for _, id := range f.list() {
			view, err := d.query(id)
			if err != nil {
				continue
			}
			for _, p := range view.Pending {
				d.answerOne(r, id, p)
			}
		}
		select {
		case <-stop:
			return
		case <-d.t.Context().Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (d *testEnv) answerOne(r *receiver, id string, p jig.Pending) {
	name := protocol.SignalApprove
	payload := map[string]any{"call": p.Call, "by": "chaos"}
	if p.Kind == jig.PendingReconcile {
		name = protocol.SignalReconcile
		payload["outcome"], payload["attempt"] = jig.OutcomeNotHappened, p.Attempt
		if requests, _ := r.count(nameOf(p)); requests > 0 {
			payload["outcome"] = jig.OutcomeHappened
			payload["result"] = map[string]any{"status": 204}
		}
	}
	// A second answer about the same attempt is refused, as it should be.
	_ = shared.temporal.SignalWorkflow(d.t.Context(), id, "", name, payload) //nolint:errcheck // see above
}

// requireWhole checks that a session's log is consistent: no gaps, and one end for each call.
func (d *testEnv) requireWhole(id string) {
	d.t.Helper()
	ends := map[string]int{}
	for _, e := range d.events(id, jig.EventToolCompleted, jig.EventToolFailed) {
		ends[e.CallID]++
	}
	for call, n := range ends {
		require.Equal(d.t, 1, n, "call %s has ended %d times", call, n)
	}
	require.Len(d.t, d.events(id, jig.EventSessionCompleted), 1)
	require.Len(d.t, d.events(id, jig.EventPassCompleted), len(d.events(id, jig.EventPassStarted)))
}

// TestChaos_DatabaseOutage stops PostgreSQL for five seconds, for the worker and for Temporal itself.
func TestChaos_DatabaseOutage(t *testing.T) { //nolint:paralleltest // it stops the database that all tests use
	d, r := startEnv(t), newReceiver(t)
	id := d.run(agent(`["*"]`, chaosRules), map[string]any{"url": r.URL, "name": "pg"})
	stop := make(chan struct{})
	var answering sync.WaitGroup
	answering.Go(func() { d.answer(r, &sessionSet{ids: []string{id}}, stop) })
	require.True(t, eventually(t.Context(), patience, func() bool { _, keys := r.count("pg-k1"); return keys == 1 }))
	require.NoError(t, shared.stack.PG().Stop(t.Context()))
	eventually(t.Context(), 5*time.Second, func() bool { return false }) // the duration of the outage
	require.NoError(t, shared.stack.PG().Start(t.Context()))
	view := d.until(id, func(v jig.SessionView) bool { return v.Status.Final() })
	close(stop)
	answering.Wait()
	require.Equal(t, "9 of 9", view.Answer)
	d.requireWhole(id)
	for _, effect := range []string{"e1", "e2", "e3"} {
		requests, _ := r.count("pg-" + effect)
		require.Equal(t, 1, requests, effect)
	}
}

// TestChaos_MessagesAndDecisions sends signals and updates at random moments to sessions that change passes. Each must take effect exactly
// once.
func TestChaos_MessagesAndDecisions(t *testing.T) { //nolint:paralleltest // it has the machine to itself
	sends, seed := chaos(t, 1000, 200, 200)
	random := rand.New(rand.NewPCG(uint64(seed), 2))
	d := startEnv(t)
	sessions := max(5, sends/store.MaxRefusedSignals) // a session records no more refusals one by one
	document := agent(`["*"]`, `    - when: messages.exists(m, m.text == 'stop')
      answer: stopped
    - calls: [{tool: test.quick, input: {value: "v${pass}"}}, {tool: test.echo, input: {value: "w${pass}"}}]
`, "max_passes: 5000")
	var ids []string
	for range sessions {
		ids = append(ids, d.run(document, nil))
	}
	var sending sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i := range sends {
		id := ids[i%sessions]
		eventually(t.Context(), time.Duration(random.IntN(40))*time.Millisecond, func() bool { return false })
		update := random.IntN(2) == 0
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			if update {
				ruled, err := d.Decide(t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "999.1", By: fmt.Sprintf("u%d", i)}})
				if err == nil && ruled.Decisions[0].Outcome != jig.DecisionRefused {
					t.Errorf("update %d: %+v", i, ruled)
				} else if err != nil {
					t.Errorf("update %d: %v", i, err)
				}
				return
			}
			err := shared.temporal.SignalWorkflow(t.Context(), id, "", protocol.SignalMessage, map[string]string{"text": fmt.Sprintf("m%d", i), "by": "chaos"})
			if err != nil {
				t.Errorf("signal %d: %v", i, err)
			}
		})
	}
	sending.Wait()
	for _, id := range ids {
		require.NoError(t, d.Message(t.Context(), jig.DefaultTenant, id, "stop", "chaos"))
	}
	seen := map[string]int{}
	for _, id := range ids {
		require.Equal(t, "stopped", d.finish(id).Answer)
		for _, e := range d.events(id, jig.EventMessageAdded, jig.EventDecisionRefused) {
			seen[mark(t, e)]++
		}
	}
	delete(seen, "stop")
	require.Len(t, seen, sends, "some signals or updates were lost")
	for what, n := range seen {
		require.Equal(t, 1, n, "%s took effect %d times", what, n)
	}
}
