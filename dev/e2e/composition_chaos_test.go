package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// chaosSpec has fifty calls in loops, branches and a sequence, with an approval in the middle. On request it fails at the end, so that
// everything that can be undone is undone.
const chaosSpec = `kind: composition
name: probe.chaos
description: Fifty calls, one of which a person must allow.
input_schema:
  type: object
  required: [url, name]
  properties: {url: {type: string}, name: {type: string}, fail: {type: boolean, default: false}}
steps:
  - id: first
    for_each: lists.range(20)
    max_parallel: 5
    tool: test.keyed
    input: {url: "${input.url}", name: "${input.name}-a${item}", before: 10, after: 10}
    undo: {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-undo-a${item}"}}
  - parallel:
      - id: left
        for_each: lists.range(8)
        tool: test.quick
        input: {value: "l${item}"}
      - id: block
        steps:
          - id: effect
            tool: test.effect
            input: {url: "${input.url}", name: "${input.name}-e1", before: 20, after: 40}
          - id: seen
            tool: test.echo
            input: {value: "${string(steps.effect.success)}"}
  - switch:
      - when: steps.first.all(r, r.success) && steps.left.size() == 8
        steps:
          - id: gate
            tool: test.write
            input: {url: "${input.url}", name: "${input.name}-w"}
            undo: {tool: test.keyed, input: {url: "${input.url}", name: "${input.name}-undo-w"}}
      - else: true
        steps:
          - fail: {message: "a branch that must not be taken"}
  - id: last
    for_each: lists.range(15)
    max_parallel: 3
    steps:
      - id: one
        tool: test.quick
        input: {value: "q${index}"}
      - id: two
        if: index % 3 == 0
        tool: test.effect
        input: {url: "${input.url}", name: "${input.name}-f${index}", before: 5, after: 15}
    output: {value: "${steps.one.data.value}"}
  - if: input.fail
    fail: {message: told to}
output: {last: "${steps.last.map(r, r.data.value).join(',')}", gate: "${steps.gate.success}"}
`

// TestChaos_KillWorkerInCompositions kills the worker at random moments of compositions. Each must end as it would have without kills, each
// effect must happen once, and undo must run exactly once.
func TestChaos_KillWorkerInCompositions(t *testing.T) { //nolint:paralleltest // it kills the worker of all its sessions
	kills, seed := chaos(t, 100, 25, 4)
	random := rand.New(rand.NewPCG(uint64(seed), 3))
	d, r := startEnv(t), newReceiver(t)

	flock := &sessionSet{}
	begin := func() {
		n := len(flock.list())
		flock.add(d.compose(chaosSpec, map[string]any{"url": r.URL, "name": fmt.Sprintf("c%d", n), "fail": n%3 == 2}))
	}
	begin()
	begin()
	stop := make(chan struct{})
	var answering sync.WaitGroup
	answering.Go(func() { d.answer(r, flock, stop) })
	for kill := range kills {
		if kill%3 == 0 {
			begin()
		}
		pause := time.Duration(random.IntN(2000)) * time.Millisecond
		eventually(t.Context(), pause, func() bool { return false })
		d.kill()
		d.start()
	}
	for i, id := range flock.list() {
		result := d.output(id)
		name := fmt.Sprintf("c%d", i)
		once := []string{"e1", "f0", "f3", "f6", "f9", "f12"}
		for n := range 20 {
			_, keys := r.count(fmt.Sprintf("%s-a%d", name, n))
			require.Equal(t, 1, keys, "%s a%d", id, n)
			_, keys = r.count(fmt.Sprintf("%s-undo-a%d", name, n))
			require.Equal(t, map[bool]int{false: 0, true: 1}[i%3 == 2], keys, "%s undo-a%d", id, n)
		}
		for _, effect := range once {
			requests, _ := r.count(name + "-" + effect)
			require.Equal(t, 1, requests, "%s %s: an unkeyed effect must happen once", id, effect)
		}
		_, keys := r.count(name + "-w")
		require.Equal(t, 1, keys, "%s w", id)
		if i%3 == 2 {
			require.False(t, result.Success)
			require.Contains(t, result.Error.Message, "told to")
			require.Len(t, d.events(id, jig.EventToolUndone), 21)
			continue
		}
		require.True(t, result.Success, "%s: %+v", id, result.Error)
		require.JSONEq(t, `{"gate":true,"last":"q0,q1,q2,q3,q4,q5,q6,q7,q8,q9,q10,q11,q12,q13,q14"}`, string(result.Data))
	}
	close(stop)
	answering.Wait()
}
