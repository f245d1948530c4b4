package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func taskEvent(kind jig.EventType, seconds int, call, data string) jig.Event {
	at := time.Date(2026, 1, 31, 9, 0, seconds, 0, time.UTC)
	return jig.Event{Type: kind, At: at, Pass: 1, CallID: call, Data: json.RawMessage(data)}
}

func filling() *fake {
	return &fake{
		entity: jig.EntityStatus{
			EntityID: "ent_1", Type: "page", Title: "Start", SessionID: "ses_1", Call: "1.1/ent_1", Status: jig.ExtractionPartial,
			Filled: []string{"text"}, Tasks: map[string]jig.TaskState{
				"text": {Status: "completed", Attempts: 2}, "words": {Status: "failed", Error: jig.Errorf(jig.CodeTimeout, "too slow")},
				"note": {Status: "skipped"},
			},
		},
		view: jig.SessionView{SessionID: "ses_1", Agent: "call", Status: jig.StatusWorking, Pass: 1, Calls: []jig.CallView{
			{Call: "1.1/ent_1/text", Tool: "http.get", Status: jig.CallSucceeded}, {Call: "1.1/ent_1/text/page", Tool: "file.read", Status: jig.CallSucceeded},
		}},
		pages: []client.EventsPage{{Status: jig.StatusCompleted, Events: []jig.Event{
			taskEvent(jig.EventTaskStarted, 1, "1.1/ent_1/text", `{"entity_id":"ent_1","task":"text","kind":"tool"}`),
			taskEvent(jig.EventTaskStarted, 1, "1.1/ent_2/text", `{"entity_id":"ent_2","task":"text","kind":"tool"}`),
			taskEvent(jig.EventToolCompleted, 2, "1.1/ent_2/text", `{"summary":"of another"}`),
			taskEvent(jig.EventToolStarted, 2, "1.1/ent_1/text/page", `{}`),
			taskEvent(jig.EventToolFailed, 3, "1.1/ent_1/text/other", `{"error":{"code":"TIMEOUT","message":"no answer"}}`),
			taskEvent(jig.EventTaskCompleted, 4, "1.1/ent_1/text~2", `{"entity_id":"ent_1","task":"text","kind":"tool","attempts":2}`),
			taskEvent(jig.EventEntityUpdated, 4, "", `{"entity_id":"ent_1","task":"text","fields":["text","size"]}`),
			taskEvent(jig.EventTaskFailed, 5, "", `{"entity_id":"ent_1","task":"words","kind":"compute","error":{"code":"TIMEOUT","message":"too slow"}}`),
			taskEvent(jig.EventTaskSkipped, 5, "", `{"entity_id":"ent_1","task":"note","kind":"compute","because":"words"}`),
			taskEvent(jig.EventTaskSkipped, 5, "", `{"entity_id":"ent_1","task":"loud","kind":"compute","because":"condition"}`),
			{Type: jig.EventSessionCompleted, At: time.Date(2026, 1, 31, 9, 0, 6, 0, time.UTC)},
		}}},
	}
}

// `jig watch ENTITY` follows the session that fills the entity. It shows the entity's own tasks, and not those of other entities in the
// same session.
func TestWatch_Entity(t *testing.T) {
	t.Parallel()
	out := jigCLI(t, filling(), nil, "watch", "ent_1")
	require.Equal(t, exitDone, out.code, out.stderr)
	require.Contains(t, out.stderr, `page "Start" (ent_1): session ses_1`)
	for _, line := range []string{
		"task started · text of ent_1", "✓ 1.1/ent_1/text~2 task completed · text of ent_1, 2 attempts (3.0 s)", "entity updated · text, size of ent_1",
		"✗ task failed · words of ent_1: TIMEOUT: too slow", "task skipped · note of ent_1: words has no value",
		"task skipped · loud of ent_1: its condition does not hold", "session completed",
	} {
		require.Contains(t, out.stdout, line)
	}
	require.NotContains(t, out.stdout, "ent_2")
	require.NotContains(t, out.stdout, "text/page", "calls that a task's call makes in turn are left out")
	require.Contains(t, out.stdout, "text/other", "unless something went wrong")
}

func TestStatus_Entity(t *testing.T) {
	t.Parallel()
	out := jigCLI(t, filling(), nil, "status", "ent_1")
	require.Equal(t, exitDone, out.code, out.stderr)
	for _, text := range []string{"ent_1", "Start", "partial", "text", "2 attempts", "TIMEOUT: too slow", "ses_1", "working"} {
		require.Contains(t, out.stdout, text)
	}
	require.Contains(t, out.stderr, "fill the missing fields: jig trigger entities.extract --input id=ent_1 --input mode=retry")
	require.Contains(t, out.stdout, "http.get")
	require.NotContains(t, out.stdout, "file.read")
	out = jigCLI(t, filling(), nil, "status", "ent_1", "--output", "json")
	var report entityReport
	require.NoError(t, json.Unmarshal([]byte(out.stdout), &report))
	require.Equal(t, "failed", report.Tasks["words"].Status)
	require.Equal(t, "ses_1", report.Session.SessionID)

	starting := filling()
	starting.viewErr = jig.Errorf(jig.CodeNotFound, "there is no session")
	out = jigCLI(t, starting, nil, "status", "ent_1", "--output", "json")
	require.Equal(t, exitDone, out.code, "a session that is about to begin has no row yet: %s", out.stderr)
}

// The result of an extraction can be long. The status shows the beginning of each value, and how to get the rest.
func TestStatus_EntityShowsExcerptsOfItsValues(t *testing.T) {
	t.Parallel()
	e := filling()
	e.view.Status = jig.StatusCompleted
	e.view.Output = json.RawMessage(`{"values":{"title":"Start","text":"` + strings.Repeat("x", 10_000) + `"},"provenance":{"title":{"task":"words"}}}`)
	out := jigCLI(t, e, nil, "status", "ent_1")
	require.Equal(t, exitDone, out.code, out.stderr)
	require.Contains(t, out.stdout, `"title": "Start"`)
	require.Contains(t, out.stdout, "xxx…")
	require.NotContains(t, out.stdout, "provenance")
	require.Less(t, len(out.stdout), 4000)
	require.Contains(t, out.stderr, "print the whole result: jig result ses_1")
	out = jigCLI(t, e, nil, "status", "ent_1", "--output", "json")
	require.Contains(t, out.stdout, "provenance", "programs get everything")
}

// If nothing fills an entity, or the entity does not exist, the message says what to do.
func TestWatch_EntityWithoutAnExtraction(t *testing.T) {
	t.Parallel()
	none := &fake{entity: jig.EntityStatus{EntityID: "ent_1", Type: "page", Status: jig.ExtractionNone}}
	out := jigCLI(t, none, nil, "watch", "ent_1", "--tenant", "acme")
	require.Equal(t, exitFailed, out.code)
	require.Contains(t, out.stderr, "jig trigger entities.extract --input id=ent_1 --tenant acme")
	out = jigCLI(t, none, nil, "status", "ent_1")
	require.Equal(t, exitDone, out.code)
	require.NotContains(t, out.stderr, "entities.extract", "its type has no tasks")
	none.entity.Tasks = map[string]jig.TaskState{"words": {Status: "pending"}}
	require.Contains(t, jigCLI(t, none, nil, "status", "ent_1").stderr, "start one: jig trigger entities.extract --input id=ent_1")
	missing := &fake{err: jig.Errorf(jig.CodeNotFound, "there is no entity ent_1")}
	require.Equal(t, exitFailed, jigCLI(t, missing, nil, "status", "ent_1").code)
}

// The link to a created entity and the command that follows it are shown to people, not to programs.
func TestTrigger_PrintsTheWatchCommand(t *testing.T) {
	t.Parallel()
	data := json.RawMessage(`{"entity_id":"ent_1","url":"https://example.com/ent_1","session_id":"ses_2","created":true}`)
	made := &fake{trigger: client.CallResult{
		SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: data, Summary: "created"},
	}}
	out := jigCLI(t, made, nil, "trigger", "review.start")
	require.Contains(t, out.stderr, "https://example.com/ent_1")
	require.Contains(t, out.stderr, "jig watch ent_1")
	require.NotContains(t, out.stdout, "jig watch")
	require.NotContains(t, jigCLI(t, made, nil, "trigger", "review.start", "--output", "json").stderr, "jig watch")
	made.trigger.Result.Data = json.RawMessage(`{"entity_id":"ent_1","revision":3}`)
	require.NotContains(t, jigCLI(t, made, nil, "trigger", "entities.update").stderr, "jig watch")
}
