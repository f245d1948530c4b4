package e2e_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// TestHistories_AreRecorded takes each path through a session on the real server. If JIG_RECORD_HISTORIES is set, it records the histories of the runs
// for the replay test of package workflows.
func TestHistories_AreRecorded(t *testing.T) {
	t.Parallel()
	record := os.Getenv("JIG_RECORD_HISTORIES") != ""
	if !record {
		t.Log("JIG_RECORD_HISTORIES is not set: nothing is recorded")
	}
	paths := map[string]func(*testEnv, *receiver) string{
		"plain": func(d *testEnv, _ *receiver) string {
			return d.run(agent(`["*"]`, calls(`test.echo {value: a}`, `test.quick {value: b}`)), nil)
		},
		"parallel": func(d *testEnv, r *receiver) string {
			return d.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "lists.range(8)"
      calls: [{tool: test.serial, input: {url: "${input.url}", name: "n${item}", key: "k${item % 2}"}}]
    - answer: done
`, "max_parallel_calls: 3"), map[string]any{"url": r.URL})
		},
		"approval": decided(protocol.SignalApprove),
		"denial":   decided(protocol.SignalDeny),
		"expiry": func(d *testEnv, r *receiver) string {
			return d.run(agent(`["*"]`, gatedRules, "approval_expires: 1s"), map[string]any{"url": r.URL, "name": "w"})
		},
		"edit":    edited,
		"cancel":  canceled,
		"message": spokenTo,
		"duplicate": func(d *testEnv, _ *receiver) string {
			return d.run(agent(`["*"]`, "    - calls: [{tool: test.quick, input: {value: a}}, {tool: test.echo, input: {value: a}}]\n"), nil)
		},
		"passes-200": func(d *testEnv, _ *receiver) string {
			return d.run(agent(`["*"]`, `    - when: pass < 200
      calls: [{tool: test.quick, input: {value: "v${pass}"}}]
    - answer: done
`, "max_passes: 250"), nil)
		},
		"shared-run": func(d *testEnv, _ *receiver) string {
			return d.run(agent(`["*"]`, `    - when: pass < 5
      calls: [{tool: test.quick, input: {value: "v${pass}"}}, {tool: test.echo, input: {value: "v${pass}"}}]
    - answer: done
`, "passes_per_run: auto"), nil)
		},
		"many-calls": func(d *testEnv, _ *receiver) string {
			return d.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "lists.range(130)"
      calls: [{tool: test.quick, input: {value: "v${item}"}}]
    - answer: done
`), nil)
		},
		"call":          triggered,
		"call-answered": answered,
		"call-cancel": func(d *testEnv, r *receiver) string {
			id := d.waitingCall(r)
			d.waiting(id)
			require.NoError(d.t, d.Cancel(d.t.Context(), jig.DefaultTenant, id))
			return id
		},
		"unopened": func(d *testEnv, _ *receiver) string {
			started, err := d.Start(d.t.Context(), client.StartOptions{Agent: "nobody-at-all", Task: "help", Principal: jig.Principal{ID: "tester"}})
			require.NoError(d.t, err)
			return started.SessionID
		},
		"unknown": unknown,
		"composition": func(d *testEnv, r *receiver) string {
			return d.compose(tour, map[string]any{"url": r.URL, "names": []string{"ana", "ben", "cleo"}})
		},
		"composition-approval": composed(gatedSpec, func(d *testEnv, _ *receiver, id string) {
			d.waiting(id)
			d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
		}),
		"composition-denial": composed(gatedSpec, func(d *testEnv, _ *receiver, id string) {
			d.waiting(id)
			d.signal(id, protocol.SignalDeny, map[string]string{"call": "1.1/publish", "by": "ana"})
		}),
		"composition-undo":   composed(undoing, func(*testEnv, *receiver, string) {}),
		"composition-cancel": composed(strings.Replace(undoing, "default: false", "default: true", 1), stopMidway),
		"composition-wait":   composed(waitingSpec, func(d *testEnv, _ *receiver, id string) { d.pay(id) }),
		"composition-loop":   composed(loopSpec("test.echo", 130), func(*testEnv, *receiver, string) {}),
		"composition-nested": nested,
		"agents":             delegated,
		"extraction":         extracted(sevenTasks, map[string]any{"path": "github.com/jig-run/jig"}, func(*testEnv, string) {}),
		"extraction-approval": func(d *testEnv, r *receiver) string {
			return extracted(graphTasks, map[string]any{"url": r.URL, "name": "n"}, func(d *testEnv, id string) {
				d.waiting(id)
				d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
			})(d, r)
		},
	}
	maps.Copy(paths, approvalPaths())
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			corner := joinEnv
			if name == "unknown" { // it kills its worker
				corner = func(t *testing.T) *testEnv { t.Helper(); return startEnv(t) }
			}
			d, r := corner(t), newReceiver(t)
			id := path(d, r)
			require.True(t, d.finish(id).Status.Final())
			if record {
				d.record(name, id)
				d.recordFrames(name, id)
			}
		})
	}
}

func decided(signal string) func(*testEnv, *receiver) string {
	return func(d *testEnv, r *receiver) string {
		id := d.gated(r, "w")
		d.signal(id, signal, map[string]string{"call": "1.1", "by": "ana"})
		return id
	}
}

func edited(d *testEnv, r *receiver) string {
	id := d.gated(r, "w")
	_, err := d.Decide(d.t.Context(), jig.DefaultTenant, id, []jig.Decision{{Call: "1.1", By: "ana", Input: json.RawMessage(fmt.Sprintf(`{"url":%q,"name":"v"}`, r.URL))}})
	require.NoError(d.t, err)
	return id
}

func canceled(d *testEnv, r *receiver) string {
	id := d.gated(r, "w")
	require.NoError(d.t, d.Cancel(d.t.Context(), jig.DefaultTenant, id))
	return id
}

func spokenTo(d *testEnv, _ *receiver) string {
	id := d.run(agent(`["*"]`, `    - when: messages.size() == 0
      calls: [{tool: test.sleep, input: {ms: 700, name: a}}]
    - answer: "heard ${messages.size()}"
`), nil)
	d.signal(id, protocol.SignalMessage, map[string]string{"text": "one", "by": "ana"})
	d.finish(id)
	d.signalWithStart(id)
	return d.until(id, func(v jig.SessionView) bool { return v.Status.Final() && v.Answer == "heard 2" }).SessionID
}

func (d *testEnv) signalWithStart(id string) {
	d.t.Helper()
	require.NoError(d.t, d.Message(d.t.Context(), jig.DefaultTenant, id, "two", "ana"))
}

func triggered(d *testEnv, r *receiver) string {
	result, err := d.Trigger(d.t.Context(), callInput("test.write", map[string]any{"url": r.URL, "name": "w"}), "")
	require.NoError(d.t, err)
	d.signal(result.SessionID, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	return result.SessionID
}

// answered makes a call that needs no person: the update that starts it gets the result when the session is settled.
func answered(d *testEnv, _ *receiver) string {
	result, err := d.Trigger(d.t.Context(), callInput("test.echo", map[string]any{"value": "a"}), "")
	require.NoError(d.t, err)
	require.Equal(d.t, jig.CallSucceeded, result.Status)
	return result.SessionID
}

func unknown(d *testEnv, r *receiver) string {
	id := d.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.effect, input: {url: "${input.url}", name: e, after: 30000}}]
    - answer: done
`), map[string]any{"url": r.URL})
	require.True(d.t, eventually(d.t.Context(), patience, func() bool { n, _ := r.count("e"); return n == 1 }))
	d.kill()
	d.start()
	d.waiting(id)
	d.signal(id, protocol.SignalReconcile, map[string]any{"call": "1.1", "outcome": "happened", "by": "ana"})
	return id
}

func composed(document string, then func(d *testEnv, r *receiver, id string)) func(*testEnv, *receiver) string {
	return func(d *testEnv, r *receiver) string {
		id := d.compose(document, map[string]any{"url": r.URL, "name": "w"})
		then(d, r, id)
		return id
	}
}

func extracted(document string, content map[string]any, then func(d *testEnv, id string)) func(*testEnv, *receiver) string {
	return func(d *testEnv, _ *receiver) string {
		g := tenantEnv{testEnv: d, tenant: "office-" + d.name[:8]}.withEntityType(document)
		id := g.extract(map[string]any{"id": g.entity(content).ID})
		then(d, id)
		return id
	}
}

func stopMidway(d *testEnv, r *receiver, id string) {
	require.True(d.t, eventually(d.t.Context(), patience, func() bool { n, _ := r.count("two-2"); return n == 1 }))
	require.NoError(d.t, d.Cancel(d.t.Context(), jig.DefaultTenant, id))
}

func nested(d *testEnv, r *receiver) string {
	id := d.nest(r)
	d.waiting(id)
	d.signal(id, protocol.SignalApprove, map[string]string{"call": "1.1/inner/publish", "by": "ana"})
	return id
}

// delegated starts an agent that starts another one, whose call waits for a person.
func delegated(d *testEnv, r *receiver) string {
	child := "child-" + strings.ToLower(d.queue[len(d.queue)-6:])
	d.register(map[string]string{"child.md": named(agent(`["test.*"]`, gatedRules), child)})
	id := d.run(delegating(child), map[string]any{"url": r.URL, "name": "w"})
	below := jig.ChildSessionID(id, "1.1")
	d.waiting(below)
	d.signal(below, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	return id
}

// recordFrames records the histories of a session's compositions and of the session that answers its first call.
func (d *testEnv) recordFrames(name, id string) {
	d.t.Helper()
	if child := jig.ChildSessionID(id, "1.1"); name == "agents" {
		d.record(name+"-child", child)
	}
	for _, call := range []string{"1.1", "1.1/inner"} {
		frame := workflows.FrameWorkflowID(id, call)
		if _, err := shared.temporal.DescribeWorkflowExecution(d.t.Context(), frame, ""); err == nil {
			d.record(name+"-"+strings.ReplaceAll(call, "/", "-"), frame)
		}
	}
}

// record records the histories of a session's runs; of very long chains only both ends and some runs in between.
func (d *testEnv) record(name, id string) {
	d.t.Helper()
	runs := d.runs(id)
	for i, run := range runs {
		if len(runs) > 8 && i > 1 && i < len(runs)-2 && i%50 != 0 {
			continue
		}
		history := &historypb.History{}
		for iter := shared.temporal.GetWorkflowHistory(d.t.Context(), id, run, false, 0); iter.HasNext(); {
			event, err := iter.Next()
			require.NoError(d.t, err)
			history.Events = append(history.Events, event)
		}
		b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
		require.NoError(d.t, err)
		file, err := os.Create(filepath.Join("..", "..", "workflows", "testdata", fmt.Sprintf("%s.%03d.json.gz", name, len(runs)-i)))
		require.NoError(d.t, err)
		zipped := gzip.NewWriter(file)
		_, err = zipped.Write(b)
		require.NoError(d.t, err)
		require.NoError(d.t, zipped.Close())
		require.NoError(d.t, file.Close())
	}
}
