package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// newLedgerReceiver returns a receiver that supports idempotency keys: it answers the first request of a key, which has the effect, with
// 201 and the others with 200. It counts requests by name.
func newLedgerReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{names: map[string]int{}, keys: map[string]map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // a killed worker's incomplete request does not count
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		name, key := string(body), request.Header.Get("Idempotency-Key")
		r.names[name]++
		if r.keys[name] == nil {
			r.keys[name] = map[string]int{}
		}
		r.keys[name][key]++
		status := http.StatusOK
		if r.keys[name][key] == 1 {
			status = http.StatusCreated
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// supervise keeps some workers of an environment running and restarts each one when it is killed. It counts these deaths.
func (d *testEnv) supervise(ctx context.Context, workers int, deaths *atomic.Int64) (stop func()) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				worker := exec.CommandContext(ctx, shared.worker)
				worker.Env, worker.Dir = d.env, d.dir
				worker.Stdout, worker.Stderr = d.log, d.log
				worker.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				err := worker.Run()
				if ctx.Err() != nil {
					return
				}
				status, ok := worker.ProcessState.Sys().(syscall.WaitStatus)
				if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
					d.t.Errorf("a worker ended by itself: %v", err)
					return
				}
				deaths.Add(1)
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// doubt is how long an unknown outcome waits before it is reconciled. On an overloaded machine, a worker that Temporal considers dead may
// still be about to cause the effect.
const doubt = 20 * time.Second

// cutCall is a call whose worker is killed after its first effect, before it, or not at all.
type cutCall struct {
	session, name string
	keyed         bool
	cut           string
}

// cut makes the call and waits for its result.
func (o tenantEnv) cut(r *receiver, c cutCall, before int) protocol.CallResult {
	tool := "test.cut_once"
	if c.keyed {
		tool = "test.cut"
	}
	input := map[string]any{"url": r.URL, "name": c.name, "before": before}
	if c.cut != "" {
		input["cut"] = c.cut
	}
	in := callInput(tool, input)
	in.Tenant = o.tenant
	var result protocol.CallResult
	var err error
	if _, err = o.StartCall(o.t.Context(), in, c.session); err == nil {
		result, err = o.WaitCall(o.t.Context(), o.tenant, c.session)
	}
	if err != nil {
		o.t.Errorf("%s %+v: %v", c.session, c, err)
	}
	return result
}

// reconcile reconciles the tenant's unknown outcomes truthfully until it is stopped. It waits before it checks an effect. A real person must
// wait too, because a call asks as soon as its worker sends no more heartbeats, and that worker may still be running.
func (o tenantEnv) reconcile(r *receiver, stop <-chan struct{}) {
	for {
		waiting, err := o.Approvals(o.t.Context(), o.tenant, "")
		if err != nil {
			waiting = nil // no worker is alive at the moment
		}
		for _, p := range waiting {
			if p.Kind != jig.PendingReconcile {
				o.t.Errorf("%s waits for a person: %+v", p.SessionID, p)
				continue
			}
			// A worker that no longer sends heartbeats may be slow instead of dead, and about to cause the effect, so wait before answering.
			if time.Since(p.RequestedAt) > doubt {
				o.answerOne(r, p.SessionID, p)
			}
		}
		select {
		case <-stop:
			return
		case <-o.t.Context().Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// TestChaos_Effects kills workers between an effect and its report. A keyed effect must happen once, and its call must succeed without a
// person. An unkeyed effect must happen at most once, and a person must be asked what happened.
func TestChaos_Effects(t *testing.T) {
	t.Parallel()
	kills, seed := chaos(t, 1000, 150, 20)
	random := rand.New(rand.NewPCG(uint64(seed), 4))
	o, r := tenantEnv{testEnv: newTestEnv(t)}, newLedgerReceiver(t)
	o.tenant = "cut-" + o.name[:8]
	var deaths atomic.Int64
	workers, inFlight := 4, 40
	if kills > 100 {
		workers, inFlight = 6, 100
	}
	t.Cleanup(o.supervise(t.Context(), workers, &deaths))
	stop := make(chan struct{})
	var answering, calling sync.WaitGroup
	answering.Go(func() { o.reconcile(r, stop) })

	var all []cutCall
	over, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // ends a test that hangs
	defer cancel()
	for slots := make(chan struct{}, inFlight); deaths.Load() < int64(kills); {
		require.NoError(t, over.Err(), "only %d of %d kills", deaths.Load(), kills)
		c := cutCall{
			session: newID(o.tenant), name: fmt.Sprintf("c%d", len(all)), keyed: random.IntN(3) > 0,
			cut: []string{"after", "after", "after", "before", ""}[random.IntN(5)],
		}
		before := random.IntN(40)
		eventually(t.Context(), time.Duration(random.IntN(150))*time.Millisecond, func() bool { return false }) // spread the calls over several restarts of the workers
		slots <- struct{}{}
		all = append(all, c)
		calling.Go(func() {
			defer func() { <-slots }()
			if result := o.cut(r, c, before); result.Status != jig.CallSucceeded {
				t.Errorf("%s %+v: %+v", c.session, c, result)
			}
		})
	}
	calling.Wait()
	close(stop)
	answering.Wait()
	t.Logf("%d kills of workers, %d calls", deaths.Load(), len(all))
	o.requireEffects(r, all)
}

// requireEffects compares the effects that reached the receiver with the log.
func (o tenantEnv) requireEffects(r *receiver, all []cutCall) {
	o.t.Helper()
	again, asked := 0, 0
	for _, c := range all {
		requests, keys := r.count(c.name)
		require.Equal(o.t, 1, keys, "%+v: all attempts must have the same key, and so one effect", c)
		told, err := o.Events(o.t.Context(), o.tenant, c.session, 0)
		require.NoError(o.t, err)
		unknown, reconciled := 0, 0
		for _, e := range told {
			switch e.Type { //nolint:exhaustive // only these events are about the outcome
			case jig.EventToolOutcomeUnknown:
				unknown++
			case jig.EventToolReconciled:
				reconciled++
			}
		}
		if c.keyed {
			require.Zero(o.t, unknown, "%+v: nobody must be asked about a keyed effect", c)
			if c.cut == "after" {
				require.Greater(o.t, requests, 1, "%+v: another attempt must follow the interrupted one", c)
				again++
			}
			continue
		}
		require.Equal(o.t, 1, requests, "%+v: an unkeyed effect must happen once; its events: %+v", c, told)
		if c.cut != "" {
			require.Positive(o.t, unknown, "%+v: a person must be asked", c)
			require.Equal(o.t, unknown, reconciled, "%+v: every question must be answered", c)
			asked++
		}
	}
	require.Positive(o.t, again, "no keyed call was interrupted")
	require.Positive(o.t, asked, "no unkeyed call was interrupted")
}
