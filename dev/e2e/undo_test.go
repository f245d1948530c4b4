package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// probeBook declares its undo in the contract; the job's first step says itself how it is undone, and its last has no undo.
const probeBook = `kind: composition
name: probe.book
description: Books a seat.
input_schema: {type: object, required: [url, seat], properties: {url: {type: string}, seat: {type: string}}}
undo: test.write
undo_input: "{'url': input.url, 'name': 'cancel-' + result.name}"
steps: [{id: seat, tool: test.keyed, input: {url: "${input.url}", name: "${input.seat}"}}]
output: {name: "${input.seat}"}
`

const probeJob = `kind: composition
name: probe.job
input_schema: {type: object, required: [url], properties: {url: {type: string}}}
steps:
  - {id: one, tool: test.keyed, input: {url: "${input.url}", name: one}, undo: {tool: test.keyed, input: {url: "${input.url}", name: undo-one}}}
  - {id: two, tool: probe.book, input: {url: "${input.url}", seat: a7}}
  - {id: three, tool: test.once, input: {url: "${input.url}", name: three}}
`

// The undo of a session calls each declared undo once, the newest first, asks like any call, survives the death of the worker, and says what it could
// not undo.
func TestUndo_OfASession(t *testing.T) {
	t.Parallel()
	d, r := startEnv(t), newReceiver(t)
	d.register(map[string]string{"book.yaml": probeBook})
	id := d.compose(probeJob, map[string]any{"url": r.URL})
	d.waiting(id)
	early := d.jig("undo", id)
	require.Equal(t, 1, early.code)
	require.Contains(t, early.err, "has not ended")
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/three", "by": "ana"})
	require.True(t, d.output(id).Success)

	undo := d.jig("undo", id, "--no-wait", "--id", "back")
	require.Equal(t, 3, undo.code, undo.err)
	view := d.waiting("default.back")
	require.Len(t, view.Pending, 1)
	require.Equal(t, []string{"1.1/1.1_two.undo", "test.write"}, []string{view.Pending[0].Call, view.Pending[0].Tool}, "what has no undo is passed over, the newest comes first")
	require.JSONEq(t, `{"url": "`+r.URL+`", "name": "cancel-a7"}`, string(view.Pending[0].Input))
	d.kill()
	d.start()
	require.Contains(t, d.jig("undo", id, "--yes").err, "has undone it already, or will", "a second undo does not repeat the first")
	d.signal("default.back", protocol.SignalApprove, map[string]string{"call": "1.1/1.1_two.undo", "by": "ana"})
	result := d.output("default.back")
	require.False(t, result.Success)
	require.Contains(t, result.Error.Message, "not undone: 1.1/three test.once: test.once declares no undo")
	for name, times := range map[string]int{"one": 1, "a7": 1, "three": 1, "cancel-a7": 1, "undo-one": 1} {
		_, keys := r.count(name)
		require.Equal(t, times, keys, name)
	}
	again := d.jig("undo", id, "--call", "1.1/two", "--output", "json")
	require.Equal(t, 0, again.code, again.err)
	require.Contains(t, again.out, `"undone_before":[{"session_id":"`+id+`","call":"1.1/two","tool":"probe.book","by":"default.back/1.1/1.1_two.undo"}]`)
	for arguments, failure := range map[string]string{"1.1/nothing": "has changed nothing that could be undone", "first": "not a call id"} {
		refused := d.jig("undo", id, "--call", arguments)
		require.NotZero(t, refused.code)
		require.Contains(t, refused.err, failure)
	}
	require.Equal(t, jig.StatusFailed, d.finish("default.back").Status)
}
