package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/workflows"
)

// status calls tasks.getStatus for an entity.
func (g entityEnv) status(id string, permissions ...string) (jig.EntityStatus, *jig.ToolResult) {
	g.t.Helper()
	in := callInput("tasks.getStatus", map[string]any{"entity_id": id})
	in.Tenant, in.Principal.Permissions = g.tenant, permissions
	result, err := g.Trigger(g.t.Context(), in, "")
	require.NoError(g.t, err)
	done, err := g.WaitCall(g.t.Context(), g.tenant, result.SessionID)
	require.NoError(g.t, err)
	var out jig.EntityStatus
	if done.Result.Success {
		require.NoError(g.t, json.Unmarshal(done.Result.Data, &out))
	}
	return out, done.Result
}

func statuses(s jig.EntityStatus) map[string]string {
	out := map[string]string{}
	for id, t := range s.Tasks {
		out[id] = t.Status
	}
	return out
}

func TestFollow_AnEntity(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(graphTasks), newReceiver(t)
	e := g.entity(map[string]any{"url": r.URL, "name": "n"})
	none := map[string]string{
		"facts": "pending", "note": "pending", "publish": "pending", "link": "pending", "broken": "pending", "after": "pending", "loud": "pending",
	}
	s, _ := g.status(e.ID, "entities.thing.read")
	require.Equal(t, jig.ExtractionNone, s.Status)
	require.Equal(t, none, statuses(s))
	got := g.jig("watch", e.ID, "--tenant", g.tenant)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "entities.extract")
	require.Equal(t, 1, g.jig("status", "ent_none", "--tenant", g.tenant).code)
	require.Equal(t, 1, g.jig("status", e.ID, "--tenant", g.tenant+"x").code, "another tenant must not find it")
	_, denied := g.status(e.ID, "entities.thing.write")
	require.Equal(t, jig.CodeNotFound, denied.Error.Code)

	session := g.extract(map[string]any{"id": e.ID})
	g.waiting(session)
	half := map[string]string{
		"facts": "completed", "note": "completed", "publish": "pending", "link": "pending", "broken": "failed", "after": "skipped", "loud": "skipped",
	}
	require.True(t, eventually(t.Context(), patience, func() bool {
		s, _ = g.status(e.ID, "entities.*.read")
		return statuses(s)["broken"] == "failed"
	}))
	require.Equal(t, half, statuses(s))
	require.Equal(t, jig.ExtractionRunning, s.Status)
	require.Equal(t, session, s.SessionID)
	require.Equal(t, "1.1", s.Call)
	require.Equal(t, []string{"facts", "note"}, s.Filled)
	require.Equal(t, jig.CodeConflict, s.Tasks["broken"].Error.Code)

	var progress protocol.Progress
	value, err := shared.temporal.QueryWorkflow(t.Context(), workflows.FrameWorkflowID(session, "1.1"), "", protocol.QueryStatus)
	require.NoError(t, err)
	require.NoError(t, value.Get(&progress))
	require.Equal(t, protocol.Progress{Done: 2, Running: 1, Failed: 1, Skipped: 2, Total: 7}, progress)
	require.Contains(t, g.page(workflows.FrameWorkflowID(session, "1.1"), "").GetCurrentDetails(), "2 of 7 done, 1 running, 1 failed, 2 skipped")

	g.signal(session, protocol.SignalDeny, map[string]string{"call": "1.1/publish", "by": "ana"})
	g.filled(session, e)
	details := g.page(workflows.FrameWorkflowID(session, "1.1"), "").GetCurrentDetails()
	require.Contains(t, details, "Ended: succeeded `7 tasks: ")
	require.NotContains(t, details, " done, ")
	got = g.jig("watch", e.ID, "--tenant", g.tenant)
	require.Zero(t, got.code, got.err)
	for _, line := range []string{
		"✓ 1.1/facts test.keyed task completed · facts of " + e.ID, "task skipped · after of " + e.ID + ": broken has no value",
		"task skipped · loud of " + e.ID + ": its condition does not hold", "entity updated · note of " + e.ID,
	} {
		require.Contains(t, got.out, line)
	}
	var report struct {
		jig.EntityStatus
		Session jig.SessionView `json:"session"`
	}
	g.says(0, &report, "status", e.ID)
	require.Equal(t, jig.ExtractionPartial, report.Status)
	require.Equal(t, "failed", report.Tasks["publish"].Status)
	require.Equal(t, "skipped", report.Tasks["link"].Status)
	require.Equal(t, session, report.Session.SessionID)
	require.Contains(t, g.jig("status", e.ID, "--tenant", g.tenant).out, "partial")

	// Tasks that keep their values say so, and the new extraction is the one to follow.
	session = g.extract(map[string]any{"id": e.ID, "mode": "retry", "fields": []string{"after"}})
	out, _ := g.filled(session, e)
	require.Equal(t, extraction.Counts{Total: 2, Failed: 1, Skipped: 1}, out.Counts)
	s, _ = g.status(e.ID, "*")
	require.Equal(t, session, s.SessionID)
	require.Equal(t, "completed", s.Tasks["facts"].Status, "tasks that were not requested keep their status")
}

// Anybody with the permission can restart a failed session, once. A session that is running or has completed cannot be restarted.
func TestRetry_OfASession(t *testing.T) {
	t.Parallel()
	o, r := joinTenantEnv(t), newReceiver(t)
	retry := func(id string) (string, *jig.ToolResult) {
		t.Helper()
		call := o.asks("sessions.retry", map[string]any{"session_id": id})
		o.trusting(call)
		done, err := o.WaitCall(t.Context(), o.tenant, call)
		require.NoError(t, err)
		var data struct {
			SessionID string `json:"session_id"`
		}
		if done.Result.Success {
			require.NoError(t, json.Unmarshal(done.Result.Data, &data))
		}
		return data.SessionID, done.Result
	}
	refused := func(o tenantEnv, id string) jig.Code { // nobody is asked about a session that cannot be retried
		t.Helper()
		done := o.trigger("sessions.retry", map[string]any{"session_id": id})
		require.Equal(t, jig.CallFailed, done.Status)
		return done.Result.Error.Code
	}
	failed := o.trigger("test.fail", map[string]any{"name": "x"})
	require.Equal(t, jig.CallFailed, failed.Status)
	again, _ := retry(failed.SessionID)
	require.NotEqual(t, failed.SessionID, again)
	require.Equal(t, jig.CodeConflict, o.ended(again, jig.CallFailed).Result.Error.Code, "the new call fails like the old one")
	view, err := o.Status(t.Context(), o.tenant, again)
	require.NoError(t, err)
	require.Equal(t, "test.fail", view.Calls[0].Tool)

	id := o.run(agent(`["*"]`, `    - when: pass == 1
      calls: [{tool: test.write, input: {url: "`+r.URL+`", name: w}}]
    - answer: "it is done"
`), nil)
	o.waiting(id)
	require.Equal(t, jig.CodeConflict, refused(o, id))
	require.NoError(t, o.Cancel(t.Context(), o.tenant, id))
	require.Equal(t, jig.StatusCanceled, o.finish(id).Status)
	again, _ = retry(id)
	require.Equal(t, id, again)
	require.Equal(t, "it is done", o.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted }).Answer)
	require.Contains(t, o.came(id, jig.EventMessageAdded, 1), "Try again")
	require.Equal(t, jig.CodeConflict, refused(o, id))
	require.Equal(t, jig.CodeNotFound, refused(o, "ses_none"))
	other := tenantEnv{testEnv: o.testEnv, tenant: strings.ToLower(o.tenant) + "x"}
	require.Equal(t, jig.CodeNotFound, refused(other, failed.SessionID), "another tenant must not find it")
}
