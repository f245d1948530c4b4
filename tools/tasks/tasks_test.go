package tasks_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/tasks"
)

// place is what the tools meet.
type place struct {
	sessions map[string]jig.Session
	readable map[string]bool
	said     []string
	started  map[string]tasks.Start
	// taken are sessions with the ids of messages that they took.
	taken map[string]bool
}

func (p *place) Message(_ context.Context, tenant, session string, m tasks.Message) error {
	p.said = append(p.said, tenant+" "+session+" "+m.By+": "+m.Text)
	p.taken[session+" "+m.ID] = true
	return nil
}

func (p *place) StartCall(_ context.Context, _, session string, c tasks.Start) error {
	p.started[session] = c
	return nil
}

func (p *place) run(t *testing.T, tool, input string, attempt int) jig.ToolResult {
	t.Helper()
	registry, err := tools.NewRegistry(tasks.Tools(tasks.Options{
		Readable: func(_ context.Context, inv jig.Invocation, id string) (jig.Entity, bool, error) {
			return jig.Entity{ID: id}, inv.Tenant == "acme" && p.readable[id], nil
		},
		Status: func(_ context.Context, _, id string) (jig.EntityStatus, error) {
			return jig.EntityStatus{
				EntityID: id, Type: "page", Status: jig.ExtractionPartial, Filled: []string{"text"}, Tasks: map[string]jig.TaskState{
					"text": {Status: "completed", Attempts: 1}, "words": {Status: "kept"}, "note": {Status: "failed", Error: jig.Errorf(jig.CodeDenied, "no")},
				},
			}, nil
		},
		Session: func(_ context.Context, tenant, id string) (jig.Session, error) {
			if s, ok := p.sessions[id]; ok && tenant == "acme" {
				return s, nil
			}
			return jig.Session{}, jig.Errorf(jig.CodeNotFound, "none")
		},
		Call: func(_ context.Context, _, session, call string) (jig.Call, error) {
			if session == "ses_lost" {
				return jig.Call{}, jig.Errorf(jig.CodeNotFound, "none")
			}
			require.Equal(t, "1.1", call)
			return jig.Call{Tool: "file.write"}, nil
		},
		Said:    func(_ context.Context, _, session, id string) (bool, error) { return p.taken[session+" "+id], nil },
		Starter: p,
	})...)
	require.NoError(t, err)
	return registry.Run(t.Context(), tool, []byte(input), jig.Invocation{
		Tenant: "acme", Principal: jig.Principal{ID: "ana"}, SessionID: "ses_op", CallID: "1.1", Attempt: attempt, IdempotencyKey: "ses_op/1.1",
	})
}

func newPlace() *place {
	session := func(agent string, status jig.Status) jig.Session {
		return jig.Session{
			ID: "ses_" + agent + "_" + string(status), Agent: jig.Agent{Name: agent}, Status: status, Principal: jig.Principal{ID: "bo"},
			Input: []byte(`{"path":"a"}`), Catalogue: map[string]string{"file.write": "v1"}, Error: jig.Errorf(jig.CodeTimeout, "too slow"),
		}
	}
	p := &place{sessions: map[string]jig.Session{}, readable: map[string]bool{"ent_1": true}, started: map[string]tasks.Start{}, taken: map[string]bool{}}
	for _, agent := range []string{"call", "writer"} {
		for _, status := range []jig.Status{jig.StatusWorking, jig.StatusInputRequired, jig.StatusCompleted, jig.StatusFailed, jig.StatusCanceled} {
			s := session(agent, status)
			p.sessions[s.ID] = s
		}
	}
	lost := session("call", jig.StatusFailed)
	lost.ID = "ses_lost"
	p.sessions["ses_lost"] = lost
	return p
}

func TestGetStatus(t *testing.T) {
	t.Parallel()
	p := newPlace()
	r := p.run(t, tasks.GetStatusTool, `{"entity_id":"ent_1"}`, 1)
	require.True(t, r.Success, "%+v", r.Error)
	require.Equal(t, "partial: 2 of 3 tasks have a value, 1 failed", r.Summary)
	var out jig.EntityStatus
	require.NoError(t, json.Unmarshal(r.Data, &out))
	require.Equal(t, "failed", out.Tasks["note"].Status)
	require.Equal(t, []string{"text"}, out.Filled)
	r = p.run(t, tasks.GetStatusTool, `{"entity_id":"ent_2"}`, 1)
	require.Equal(t, jig.CodeNotFound, r.Error.Code)
	require.Equal(t, "/entity_id", r.Error.Field)
}

func TestRetryOfAnAgent(t *testing.T) {
	t.Parallel()
	p := newPlace()
	for _, status := range []string{"failed", "canceled"} {
		r := p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_`+status+`"}`, 1)
		require.True(t, r.Success, "%+v", r.Error)
		require.JSONEq(t, `{"session_id":"ses_writer_`+status+`","of":"ses_writer_`+status+`"}`, string(r.Data))
	}
	require.Len(t, p.said, 2)
	require.Contains(t, p.said[0], "acme ses_writer_failed ana: Try again")
	require.Contains(t, p.said[0], "too slow")
	require.Empty(t, p.started)

	// An attempt that comes after one whose word arrived finds the session under way, as it was to be.
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_working"}`, 2).Success)
	require.Len(t, p.said, 2)

	// One whose pass has ended again meanwhile is not told once more; one that was never told is.
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_failed"}`, 2).Success)
	require.Len(t, p.said, 2)
	p.taken = map[string]bool{}
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_failed"}`, 2).Success)
	require.Len(t, p.said, 3)
}

func TestRetryOfACall(t *testing.T) {
	t.Parallel()
	p := newPlace()
	id := jig.ChildSessionID("ses_op", "1.1")
	for attempt := 1; attempt < 3; attempt++ {
		r := p.run(t, tasks.RetryTool, `{"session_id":"ses_call_failed"}`, attempt)
		require.True(t, r.Success, "%+v", r.Error)
		require.JSONEq(t, `{"session_id":"`+id+`","of":"ses_call_failed"}`, string(r.Data))
	}
	require.Equal(t, map[string]tasks.Start{id: {
		Tool: "file.write", Version: "v1", Input: []byte(`{"path":"a"}`), Parent: "ses_op", ParentCall: "1.1",
	}}, p.started)
}

func TestWhatIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace()
	for id, code := range map[string]jig.Code{
		"ses_writer_working": jig.CodeConflict, "ses_writer_input_required": jig.CodeConflict, "ses_writer_completed": jig.CodeConflict,
		"ses_call_working": jig.CodeConflict, "ses_call_completed": jig.CodeConflict, "ses_none": jig.CodeNotFound, "ses_lost": jig.CodeNotFound,
	} {
		r := p.run(t, tasks.RetryTool, `{"session_id":"`+id+`"}`, 1)
		require.Equal(t, code, r.Error.Code, id)
		require.Equal(t, "/session_id", r.Error.Field, id)
		require.NotEmpty(t, r.Error.Hint, id)
	}
	require.Empty(t, p.said)
	require.Empty(t, p.started)
}
