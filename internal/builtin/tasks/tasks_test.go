package tasks_test

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/tasks"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/tools"
)

// place is a fake environment for the tools.
type place struct {
	sessions map[string]jig.Session
	readable map[string]bool
	said     []string
	started  map[string]tasks.Start
	doubtful map[string][]string
	// filled are the completed inputs of calls, as they were approved.
	filled map[string][]byte
	// changed is called between the approval of a call and its run.
	changed func()
	// taken records the sessions that received a message, each with the id of the message.
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
		Readable: func(_ context.Context, inv jig.Invocation, id string) (entity.Entity, bool, error) {
			return entity.Entity{ID: id}, inv.Tenant == "acme" && p.readable[id], nil
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
		Doubtful: func(_ context.Context, _, session string) ([]string, error) { return p.doubtful[session], nil },
		Said:     func(_ context.Context, _, session, id string) (bool, error) { return p.taken[session+" "+id], nil },
		Starter:  p,
	})...)
	require.NoError(t, err)
	inv := jig.Invocation{
		Tenant: "acme", Principal: jig.Principal{ID: "ana"}, SessionID: "ses_op", CallID: "1.1", Attempt: attempt, IdempotencyKey: "ses_op/1.1",
	}
	filled := []byte(input)
	if attempt == 1 { // as when the call is admitted
		if filled, err = registry.Fill(t.Context(), tool, filled, inv); err != nil {
			return jig.Failure(jig.AsError(err))
		}
		p.filled[input] = filled
	} else if approved, ok := p.filled[input]; ok {
		filled = approved
	}
	if p.changed != nil {
		p.changed()
	}
	return registry.Run(t.Context(), tool, filled, inv)
}

func newPlace() *place {
	session := func(agent string, status jig.Status) jig.Session {
		return jig.Session{
			ID: "ses_" + agent + "_" + string(status), Agent: jig.Agent{Name: agent}, Status: status, Principal: jig.Principal{ID: "bo"},
			Input: []byte(`{"path":"a"}`), Catalog: map[string]string{"file.write": "v1"}, Error: jig.Errorf(jig.CodeTimeout, "too slow"),
		}
	}
	p := &place{
		sessions: map[string]jig.Session{}, readable: map[string]bool{"ent_1": true}, started: map[string]tasks.Start{}, taken: map[string]bool{},
		filled: map[string][]byte{}, doubtful: map[string][]string{},
	}
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

func TestGetStatus_ReturnsTheTasks(t *testing.T) {
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

func TestRetry_StartsAnAgentAgain(t *testing.T) {
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

	// A second attempt, after a first one whose message arrived, finds the session running, as it should be.
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_working"}`, 2).Success)
	require.Len(t, p.said, 2)

	// If the pass has already ended again, the message is not sent twice. If it was never sent, it is sent now.
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_failed"}`, 2).Success)
	require.Len(t, p.said, 2)
	p.taken = map[string]bool{}
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_failed"}`, 2).Success)
	require.Len(t, p.said, 3)
}

func TestRetry_MakesACallAgain(t *testing.T) {
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

func TestRetry_Refuses(t *testing.T) {
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

// The message of a retry counts as typed, so it must not repeat an error that may come from what the session has read.
func TestRetryOfAnAgent_ThatHasReadUntrustedData(t *testing.T) {
	t.Parallel()
	p := newPlace()
	misled := p.sessions["ses_writer_failed"]
	misled.ReadUntrusted = true
	p.sessions[misled.ID] = misled
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_writer_failed"}`, 1).Success)
	require.Len(t, p.said, 1)
	require.NotContains(t, p.said[0], "too slow")
}

// The reviewer of a retry sees the session and call that are really retried, regardless of what the caller wrote into the input.
func TestRetry_ReviewerSeesWhatIsRetried(t *testing.T) {
	t.Parallel()
	p := newPlace()
	require.True(t, p.run(t, tasks.RetryTool, `{"session_id":"ses_call_failed","retries":{"agent":"a","principal":"b","status":"failed","pass":1,"tool":"file.read"}}`, 1).Success)
	require.Len(t, p.filled, 1)
	for _, filled := range p.filled {
		require.JSONEq(t, `{"session_id":"ses_call_failed","retries":{"agent":"call","principal":"bo","status":"failed","pass":0,"error":"TIMEOUT: too slow",
			"tool":"file.write","version":"v1","input":{"path":"a"},"input_sha256":"8ddd87d0bf7f1e37c6c7b5f4e0c1e2ce0c5d0d4c3c0b5b0a5d0f0f0a5b5c5d5e"}}`,
			regexp.MustCompile(`"input_sha256":"[0-9a-f]{64}"`).ReplaceAllString(string(filled),
				`"input_sha256":"8ddd87d0bf7f1e37c6c7b5f4e0c1e2ce0c5d0d4c3c0b5b0a5d0f0f0a5b5c5d5e"`))
	}
}

// A session that has changed since the approval is not retried, because the retry would not be the approved one.
func TestRetry_RunsOnlyWhatWasApproved(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"ses_call_failed", "ses_writer_failed"} {
		p := newPlace()
		p.changed = func() {
			s := p.sessions[id]
			s.Pass, s.Error = 2, jig.Errorf(jig.CodeDenied, "something else")
			p.sessions[id] = s
		}
		r := p.run(t, tasks.RetryTool, `{"session_id":"`+id+`"}`, 1)
		require.Equal(t, jig.CodeConflict, r.Error.Code)
		require.Empty(t, p.started)
		require.Empty(t, p.said)
	}
	p := newPlace() // the input was never completed for a reviewer
	require.Equal(t, jig.CodeConflict, p.run(t, tasks.RetryTool, `{"session_id":"ses_call_failed"}`, 2).Error.Code)
}

// A call that may have taken effect is repeated only if the caller sets may_have_happened, and the reviewer sees it.
func TestRetry_OfAnUnknownCallMustBeRequestedExplicitly(t *testing.T) {
	t.Parallel()
	p := newPlace()
	p.doubtful["ses_call_failed"] = []string{"1.1 bank.pay"}
	r := p.run(t, tasks.RetryTool, `{"session_id":"ses_call_failed"}`, 1)
	require.Equal(t, jig.CodeConflict, r.Error.Code)
	require.Equal(t, "/may_have_happened", r.Error.Field)
	require.Empty(t, p.started)
	input := `{"session_id":"ses_call_failed","may_have_happened":true}`
	require.True(t, p.run(t, tasks.RetryTool, input, 1).Success)
	require.Contains(t, string(p.filled[input]), `"doubtful":["1.1 bank.pay"]`)
	require.Len(t, p.started, 1)
}
