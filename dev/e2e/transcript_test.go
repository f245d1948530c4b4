package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/protocol"
)

// What a model was asked and said, and what became of its calls, can be read later, also after the worker died.
func TestTranscript_OfASession(t *testing.T) {
	t.Parallel()
	for _, model := range providers {
		t.Run(model[:6], func(t *testing.T) {
			t.Parallel()
			d := withModel(t, func(r modeltest.Request) modeltest.Reply {
				if len(r.Turns) > 1 {
					return modeltest.Text("It is echoed.")
				}
				reply := modeltest.Calls(ask("test.echo", `{"value":"a"}`))
				reply.Text = "I echo it.\u202e\x1b[2J"
				return reply
			})
			id := d.converse(model, `["test.echo"]`)
			require.Equal(t, "It is echoed.", d.finish(id).Answer)
			d.kill()
			d.start()
			var page protocol.Transcript
			d.prints(0, &page, "transcript", id)
			require.Equal(t, []string{"draft:probe", model, "Do what you are asked."},
				[]string{page.Opening.Agent, page.Opening.Model, page.Opening.Instructions})
			require.Len(t, page.Entries, 4)
			require.Equal(t, []string{"go", "tester"}, []string{page.Entries[0].Text, page.Entries[0].By})
			require.Equal(t, []string{"I echo it.\u202e\x1b[2J", model}, []string{page.Entries[1].Text, page.Entries[1].Model}, "JSON has the exact text")
			call := page.Entries[2]
			require.Equal(t, []string{"1.1", "test.echo", "succeeded"}, []string{call.Call, call.Tool, string(call.Status)})
			require.JSONEq(t, `{"value":"a"}`, string(call.Input))
			require.Equal(t, "It is echoed.", page.Entries[3].Text)

			got := d.jig("transcript", id)
			require.Zero(t, got.code, got.err)
			require.Contains(t, got.out, "  I echo it.\uFFFD [2J\n", "a text cannot move the cursor of the terminal")
			d.sameForStrangers(id, "transcript", "SESSION")

			got = d.jig("events", id)
			require.Contains(t, got.out, "pass 1   · model says · I echo it.")
			require.Len(t, d.events(id, jig.EventMessageAdded), 2, "the task, and what the model said beside its call")
		})
	}
}

// Sessions can be found by status, agent, person and parent; another tenant sees none of them.
func TestSessionList_ShowsSessions(t *testing.T) {
	t.Parallel()
	d, r := joinTenantEnv(t), newReceiver(t)
	last := "last-" + d.name[:8]
	ids := func(args ...string) []string {
		t.Helper()
		var page protocol.SessionList
		d.prints(0, &page, append([]string{"sessions", "--tenant", d.tenant}, args...)...)
		list := []string{}
		for _, s := range page.Sessions {
			list = append(list, s.SessionID)
		}
		return list
	}
	d.trusting(d.asks("catalog.put", map[string]any{"documents": []map[string]string{{"path": "last.md", "body": named(agent(`["test.*"]`, gatedRules), last)}}}))
	require.True(t, eventually(t.Context(), patience, func() bool {
		c, err := d.Catalog(t.Context(), d.tenant)
		return err == nil && len(c.Agents) == 1
	}))
	parent := d.run(delegating(last), map[string]any{"url": r.URL, "name": "w"})
	require.True(t, eventually(t.Context(), patience, func() bool {
		return len(ids("--status", "input_required")) == 1
	}), "the parent waits for what its child waits for")
	child := jig.ChildSessionID(parent, "1.1")
	done := d.trigger("test.echo", map[string]any{"value": "a"})
	require.Equal(t, []string{parent}, ids("--status", "input_required"))
	require.Equal(t, []string{child}, ids("--parent", parent))
	require.Equal(t, []string{child}, ids("--children", "--agent", last))
	require.Equal(t, done.SessionID, ids("--limit", "1")[0], "the newest is first")
	require.NotContains(t, ids(), child)
	require.Empty(t, ids("--requested-by", "nobody"))
	require.Empty(t, ids("--older", "1h"))

	text := d.jig("sessions", "--tenant", d.tenant)
	require.Regexp(t, parent+` +draft:probe +input_required +1 `, text.out)
	require.Regexp(t, done.SessionID+` +test.echo +completed `, text.out)
	stranger := d.jig("sessions", "--tenant", "stranger-"+d.name[:8], "--parent", parent)
	require.Equal(t, commandResult{out: "", err: "no sessions\n"}, stranger)

	// The only call that waits can be approved without naming it, in the child through its parent.
	require.Equal(t, 1, d.jig("approve", done.SessionID, "--tenant", d.tenant).code)
	got := d.jig("approve", parent, "--tenant", d.tenant, "--as", "ana")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, parent+" 1.1 → "+child+" 1.1 test.write waits for approval")
	require.True(t, eventually(t.Context(), patience, func() bool { return len(ids("--status", "completed", "--parent", parent)) == 1 }))
}
