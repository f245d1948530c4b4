package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/dev/internal/probe"
	"github.com/jig-run/jig/internal/entity"
)

const doubtPolicy = `kind: policy
name: doubt
rules:
  - {name: run, when: "tool.name == 'test.doubt'", verdict: run}
`

// doubtSpec retries after any failure, in a branch, in a loop, and under a time limit.
const doubtSpec = `kind: composition
name: probe.doubt
description: Writes three times, whatever happens.
input_schema: {type: object}
steps:
  - parallel:
      - id: a
        tool: test.doubt
        input: {url: "${input.url}", name: "${input.name}-a", ways: "${input.a}"}
        retry: {max_attempts: 3, backoff: 1s, when: "true"}
        on_error: continue
      - id: b
        for_each: "['b']"
        tool: test.doubt
        input: {url: "${input.url}", name: "${input.name}-${item}", ways: "${input.b}"}
        retry: {max_attempts: 3, backoff: 1s, when: "true"}
        on_error: continue
      - id: c
        timeout: 2s
        tool: test.doubt
        input: {url: "${input.url}", name: "${input.name}-c", ways: "${input.c}"}
        retry: {max_attempts: 3, backoff: 1s, when: "true"}
        on_error: continue
`

// doubtType retries its tasks after any failure.
const doubtType = `fields:
  - {name: a, type: number, task: a}
  - {name: b, type: number, task: b}
  - {name: c, type: number, task: c}
tasks:
  - {id: a, tool: test.doubt, input: {url: "${input.url}", name: "${input.name}-a", ways: "${input.a}"}, value: "result.?status.orValue(0)", attempts: 3, backoff: 1s}
  - {id: b, tool: test.doubt, input: {url: "${input.url}", name: "${input.name}-b", ways: "${input.b}"}, value: "result.?status.orValue(0)", attempts: 3, backoff: 1s}
  - {id: c, tool: test.doubt, input: {url: "${input.url}", name: "${input.name}-c", ways: "${input.c}"}, value: "result.?status.orValue(0)", attempts: 3, backoff: 1s}
`

// doubtRun is a composition or an extraction with three steps that end in the given ways.
type doubtRun struct {
	session, name string
	input         map[string]any
}

// TestChaos_Doubt makes a tool that must not run twice fail in every possible way, in compositions and extractions that ask for retries.
// Each step must have at most one effect, plus one for each time that a person said that it had no effect.
func TestChaos_Doubt(t *testing.T) {
	t.Parallel()
	runs, seed := chaos(t, 1000, 60, 12)
	random := rand.New(rand.NewPCG(uint64(seed), 11))
	o, r := tenantEnv{testEnv: newTestEnv(t)}, newLedgerReceiver(t)
	o.tenant = "doubt-" + strings.ToLower(o.queue[len(o.queue)-8:])
	var deaths atomic.Int64
	t.Cleanup(o.supervise(t.Context(), 4, &deaths))
	require.True(t, eventually(t.Context(), patience, func() bool {
		_, err := o.Approvals(t.Context(), o.tenant, "")
		return err == nil
	}), "no worker came up")
	g := o.withEntityType(doubtType)
	o.install("policy.yaml", doubtPolicy, o.trusting)
	stop := make(chan struct{})
	var answering, going sync.WaitGroup
	answering.Go(func() { o.reconcile(r, stop) })

	var all []doubtRun
	began := time.Now()
	slots := make(chan struct{}, 40)
	for i := range runs {
		one := doubtRun{session: newID(o.tenant), name: fmt.Sprintf("d%d", i), input: map[string]any{"url": r.URL, "name": fmt.Sprintf("d%d", i)}}
		for _, step := range []string{"a", "b", "c"} {
			one.input[step] = someWays(random)
		}
		all = append(all, one)
		slots <- struct{}{}
		going.Go(func() {
			defer func() { <-slots }()
			if err := g.doubtful(one, i%3 == 2); err != nil {
				t.Errorf("%s %v: %v", one.session, one.input, err)
			}
		})
	}
	going.Wait()
	close(stop)
	answering.Wait()
	t.Logf("%d runs in %s, %d deaths of workers", len(all), time.Since(began).Round(time.Second), deaths.Load())
	o.requireOnce(r, all)
}

// someWays chooses how up to four attempts of a step end. It chooses few deaths of the worker, because they interrupt all calls of that
// worker.
func someWays(random *rand.Rand) []string {
	ways := make([]string, 1+random.IntN(4))
	all := probe.DoubtWays()
	for i := range ways {
		if i == 0 && random.IntN(3) == 0 {
			ways[i] = "refused" // make many retries
			continue
		}
		ways[i] = all[random.IntN(len(all))]
		for (ways[i] == "cut" || ways[i] == "killed") && random.IntN(4) > 0 {
			ways[i] = all[random.IntN(len(all))]
		}
	}
	return append(ways, "succeeds") // a call that people let run repeatedly must end at last
}

// stuckAfter is the time after which a run no longer goes on. A run that people answer at once ends within two minutes.
const stuckAfter = 10 * time.Minute

// doubtful starts a run and waits for its end.
func (g entityEnv) doubtful(one doubtRun, extraction bool) error {
	raw, err := json.Marshal(one.input)
	if err != nil {
		return err
	}
	in := client.CallInput{Tenant: g.tenant, Document: doubtSpec, DocumentName: "doubt.yaml", Input: raw, Principal: jig.Principal{ID: "tester"}}
	if extraction {
		e, _, err := g.db.CreateEntity(g.t.Context(), entity.NewEntity{
			Entity: entity.Entity{Tenant: g.tenant, Type: g.kind, Title: one.name, Content: json.RawMessage(`{}`)},
		})
		if err != nil {
			return err
		}
		in = g.extraction(map[string]any{"id": e.ID, "input": one.input})
	}
	if _, err := g.StartCall(g.t.Context(), in, one.session); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), stuckAfter)
	defer cancel()
	if _, err = g.WaitCall(ctx, g.tenant, one.session); ctx.Err() != nil {
		err = fmt.Errorf("%w: %s\nof its composition: %s", err, g.stuck(one.session), g.stuck(jig.QualifiedCallID(one.session, "1.1")))
	}
	return err
}

// requireOnce counts the effects of each step and compares them with the people's answers and the log.
func (o tenantEnv) requireOnce(r *receiver, all []doubtRun) {
	o.t.Helper()
	effects, asked, again, tried := 0, 0, 0, 0
	for _, one := range all {
		denied, succeeded, started, unknown := map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
		events, err := o.Events(o.t.Context(), o.tenant, one.session, 0)
		require.NoError(o.t, err)
		for _, e := range events {
			step := stepOf(e.CallID)
			switch e.Type { //nolint:exhaustive // only these events are about the outcome
			case jig.EventToolReconciled:
				asked++
				if strings.Contains(string(e.Data), `"not_happened"`) {
					denied[step]++
					again++
				}
			case jig.EventToolOutcomeUnknown:
				unknown[step] = true
			case jig.EventToolStarted:
				started[step] = true
				if strings.Contains(e.CallID, "~") {
					tried++
				}
			case jig.EventToolCompleted:
				succeeded[step] = true
			}
		}
		for _, step := range []string{"a", "b", "c"} {
			requests, keys := r.count(one.name + "-" + step)
			require.LessOrEqual(o.t, requests, 1+denied[step], "%s %s %v: at most one effect, plus one for each time that a person said that there was no effect", one.session, step, one.input[step])
			require.LessOrEqual(o.t, keys, 1, "%s %s %v: all attempts must have the same key", one.session, step, one.input[step])
			if succeeded[step] {
				require.Positive(o.t, requests, "%s %s %v: it succeeded without an effect", one.session, step, one.input[step])
			}
			effects += requests
			if !started[step] || step == "c" { // its time limit may end it in other ways
				continue
			}
			switch first := firstWay(one.input[step]); first {
			case "error", "panic", "nothing":
				require.True(o.t, unknown[step], "%s %s %v: its outcome must be unknown", one.session, step, one.input[step])
			case "output":
				require.True(o.t, succeeded[step] || unknown[step], "%s %s %v: a call that took effect succeeds despite bad output", one.session, step, one.input[step])
			}
		}
	}
	o.t.Logf("%d steps, %d effects, %d questions, %d times a person let a call run again, %d retries by themselves", 3*len(all), effects, asked, again, tried)
	require.Positive(o.t, asked, "nobody was asked")
	require.Positive(o.t, tried, "nothing was retried")
}

// firstWay returns how the first attempt of a step ends.
func firstWay(ways any) string {
	list, ok := ways.([]string)
	if !ok {
		return ""
	}
	return list[0]
}

// stepOf returns the step of a call, whichever attempt or item the call is.
func stepOf(call string) string {
	_, path, _ := strings.Cut(call, "/")
	step, _, _ := strings.Cut(path, "~")
	step, _, _ = strings.Cut(step, "[")
	return step
}
