package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestStart_SetsWhatListsShow(t *testing.T) {
	t.Parallel()
	f := &fake{start: func(o sdk.StartWorkflowOptions, in protocol.PassInput) error {
		require.Equal(t, "acme.order-7", o.ID)
		require.Equal(t, "jig", o.TaskQueue)
		require.Equal(t, "acme", o.Priority.FairnessKey)
		require.Equal(t, "review: check it", o.StaticSummary)
		require.Equal(t, "review: check it", o.Memo[protocol.MemoSummary])
		require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, o.WorkflowIDReusePolicy)
		tenant, ok := o.TypedSearchAttributes.GetKeyword(sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant))
		require.True(t, ok)
		require.Equal(t, "acme", tenant)
		status, ok := o.TypedSearchAttributes.GetKeyword(sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus))
		require.True(t, ok)
		require.Equal(t, "working", status)
		pass, ok := o.TypedSearchAttributes.GetInt64(sdktemporal.NewSearchAttributeKeyInt64(protocol.AttrPass))
		require.True(t, ok)
		require.EqualValues(t, 1, pass)
		require.Equal(t, "acme", in.Tenant)
		require.Equal(t, "review", in.Start.Agent)
		require.Equal(t, map[string]string{"path": "."}, in.Start.Pairs)
		return nil
	}}
	started, err := newTestClient(f).Start(t.Context(), StartOptions{
		Tenant: "acme", ID: "order-7", Agent: "review", Task: "check it\nand more", Pairs: map[string]string{"path": "."},
	})
	require.NoError(t, err)
	require.Equal(t, Started{SessionID: "acme.order-7", ClientID: "order-7"}, started)
}

// taken returns a fake in which every id of the tenant default belongs to a running session that request r started.
func taken(kind string, r jig.SessionRequest) *fake {
	there := serviceerror.NewWorkflowExecutionAlreadyStarted("taken", "", "run")
	return &fake{
		request: r.Digest(),
		start:   func(sdk.StartWorkflowOptions, protocol.PassInput) error { return there },
		describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
			return kind, "default", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
		},
		update: func(o sdk.UpdateWorkflowOptions) (any, error) { return nil, there },
	}
}

func TestStart_SameIDAndRequestReturnsTheExistingSession(t *testing.T) {
	t.Parallel()
	c := newTestClient(taken(protocol.PassWorkflow, jig.SessionRequest{Agent: "review", Input: json.RawMessage(`{"a":1,"b":2}`), Principal: "ana"}))
	same := StartOptions{ID: "order-7", Agent: "review", Input: json.RawMessage(`{ "b": 2, "a": 1 }`), Principal: jig.Principal{ID: "ana"}}
	for _, id := range []string{"order-7", "default.order-7"} {
		same.ID = id
		started, err := c.Start(t.Context(), same)
		require.NoError(t, err)
		require.Equal(t, Started{SessionID: "default.order-7", ClientID: "order-7", Existing: true}, started)
	}
}

func TestStart_SameIDWithAnotherRequestIsConflict(t *testing.T) {
	t.Parallel()
	c := newTestClient(taken(protocol.PassWorkflow, jig.SessionRequest{Agent: "review", Task: "t", Model: "m", Principal: "ana"}))
	same := StartOptions{ID: "order-7", Agent: "review", Task: "t", Model: "m", Principal: jig.Principal{ID: "ana"}}
	_, err := c.Start(t.Context(), same)
	require.NoError(t, err)
	for name, change := range map[string]func(*StartOptions){
		"agent":     func(o *StartOptions) { o.Agent = "other" },
		"document":  func(o *StartOptions) { o.Document = "---" },
		"task":      func(o *StartOptions) { o.Task = "other" },
		"input":     func(o *StartOptions) { o.Input = json.RawMessage(`{"a":1}`) },
		"pairs":     func(o *StartOptions) { o.Pairs = map[string]string{"a": "1"} },
		"model":     func(o *StartOptions) { o.Model = "other" },
		"principal": func(o *StartOptions) { o.Principal.ID = "ben" },
	} {
		other := same
		change(&other)
		_, err := c.Start(t.Context(), other)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict}, name)
	}
	_, err = c.StartCall(t.Context(), CallInput{Tool: "file.read", Principal: jig.Principal{ID: "ana"}}, "order-7")
	require.Error(t, err)

	// A workflow of another tenant under this id cannot have been started by a client. It is a conflict, not the requested session.
	foreign := taken(protocol.PassWorkflow, same.request())
	foreign.describe = func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
		return protocol.PassWorkflow, "acme", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	_, err = newTestClient(foreign).Start(t.Context(), same)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict})
}

func TestTrigger_SameIDWithAnotherRequestIsConflict(t *testing.T) {
	t.Parallel()
	call := CallInput{Tool: "file.read", Input: json.RawMessage(`{"path":"a"}`), Principal: jig.Principal{ID: "ana"}}
	want := CallResult{SessionID: "default.order-7", ClientID: "order-7", Call: "1.1", Status: jig.CallSucceeded}
	first := true
	f := taken(protocol.CallWorkflow, callRequest(call))
	there := f.update
	f.update = func(o sdk.UpdateWorkflowOptions) (any, error) {
		if first { // the update that is sent with the start
			first = false
			return there(o)
		}
		return want, nil
	}
	got, err := newTestClient(f).Trigger(t.Context(), call, "order-7")
	require.NoError(t, err)
	require.Equal(t, want, got, "the same request gets the existing call")

	for name, change := range map[string]func(*CallInput){
		"tool":      func(in *CallInput) { in.Tool = "file.list" },
		"input":     func(in *CallInput) { in.Input = json.RawMessage(`{"path":"b"}`) },
		"pairs":     func(in *CallInput) { in.Pairs = map[string]string{"path": "b"} },
		"principal": func(in *CallInput) { in.Principal.ID = "ben" },
	} {
		other := call
		change(&other)
		_, err := newTestClient(taken(protocol.CallWorkflow, callRequest(call))).Trigger(t.Context(), other, "order-7")
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict}, name)
		require.ErrorContains(t, err, "another request", name)
	}
}

func TestStart_RefusesIDsThatJigMakes(t *testing.T) {
	t.Parallel()
	c := newTestClient(&fake{})
	for _, id := range []string{"ses_a", jig.ChildSessionID("acme.order-7", "1.1"), "default.ses_a", "a b", strings.Repeat("x", 65)} {
		_, err := c.Start(t.Context(), StartOptions{ID: id, Agent: "review"})
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, id)
		_, err = c.StartCall(t.Context(), CallInput{Tool: "file.read"}, id)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, id)
		_, err = c.Trigger(t.Context(), CallInput{Tool: "file.read"}, id)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, id)
	}
}

func TestStartChild_AnotherTenantsSessionIsNotTheChild(t *testing.T) {
	t.Parallel()
	for tenant, found := range map[string]bool{"default": true, "acme": false} {
		f := taken(protocol.CallWorkflow, jig.SessionRequest{})
		err := newTestClient(f).StartChild(t.Context(), CallInput{Tenant: tenant, Tool: "entities.extract"}, jig.ChildSessionID("ses_a", "1.1"))
		require.Equal(t, found, err == nil, tenant)
	}
}

func TestStart_RepeatsWhileTheServerIsBusy(t *testing.T) {
	t.Parallel()
	tries := 0
	f := &fake{start: func(sdk.StartWorkflowOptions, protocol.PassInput) error {
		if tries++; tries < 3 {
			return exhausted()
		}
		return nil
	}}
	started, err := newTestClient(f).Start(t.Context(), StartOptions{Agent: "review"})
	require.NoError(t, err)
	require.False(t, started.Existing)
	require.NoError(t, jig.CheckSessionID(started.SessionID))
	require.Equal(t, 3, tries)
}

// The answer to a start may get lost. If jig made the id, a session that the next attempt finds under it was started by this request.
func TestStart_FreshIDNeverReturnsAnotherSession(t *testing.T) {
	t.Parallel()
	for given, existing := range map[string]bool{"": false, "mine": true} {
		tries := 0
		f := taken(protocol.PassWorkflow, jig.SessionRequest{Agent: "review"})
		f.start = func(sdk.StartWorkflowOptions, protocol.PassInput) error {
			if tries++; tries < 2 {
				return serviceerror.NewUnavailable("the connection broke")
			}
			return serviceerror.NewWorkflowExecutionAlreadyStarted("there", "", "")
		}
		started, err := newTestClient(f).Start(t.Context(), StartOptions{Agent: "review", ID: given})
		require.NoError(t, err)
		require.Equal(t, existing, started.Existing, given)
	}
}

func TestStart_StoresLargeValuesSeparately(t *testing.T) {
	t.Parallel()
	document := strings.Repeat("d", 300<<10)
	input := json.RawMessage(`{"text":"` + strings.Repeat("i", 40<<10) + `"}`)
	uploaded := map[string]string{}
	var got protocol.StartSession
	f := &fake{
		activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
			require.Equal(t, string(protocol.WriteArtifact), name)
			up := as[protocol.UploadRequest](t, request)
			require.LessOrEqual(t, len(up.Data), 128<<10)
			require.EqualValues(t, len(uploaded[up.ID]), up.Offset)
			uploaded[up.ID] += string(up.Data)
			return nil, nil // callers ignore the result of an upload
		},
		start: func(_ sdk.StartWorkflowOptions, in protocol.PassInput) error { got = *in.Start; return nil },
	}
	c := newTestClient(f)
	_, err := c.Start(t.Context(), StartOptions{Document: document, DocumentName: "dir/mine.md", Input: input})
	require.NoError(t, err)
	require.Empty(t, got.Document)
	require.Equal(t, document, uploaded[got.DocumentArtifact])
	require.Equal(t, input, got.Input, "it fits beside the reference")
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.Less(t, len(b), 64<<10)

	_, err = c.Start(t.Context(), StartOptions{Agent: "review", Task: strings.Repeat("t", 49<<10)})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
}

func TestStart_RefusesInvalidRequests(t *testing.T) {
	t.Parallel()
	c := newTestClient(&fake{})
	for name, o := range map[string]StartOptions{
		"no agent":   {},
		"bad id":     {Agent: "a", ID: "a b"},
		"bad tenant": {Agent: "a", Tenant: "_global"},
	} {
		_, err := c.Start(t.Context(), o)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, name)
	}
}

func TestMessage_IsSent(t *testing.T) {
	t.Parallel()
	var sent protocol.Message
	f := &fake{describe: running, signal: func(o sdk.StartWorkflowOptions, name string, arg any) error {
		require.Equal(t, protocol.SignalMessage, name)
		require.Equal(t, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, o.WorkflowIDReusePolicy)
		sent = as[protocol.Message](t, arg)
		return nil
	}}
	require.NoError(t, newTestClient(f).Message(t.Context(), "default", "ses_a", "go on", "ana"))
	require.Equal(t, protocol.Message{Text: "go on", By: "ana"}, sent)

	missing := func(sdk.StartActivityOptions, string, any) (any, error) {
		return nil, applicationError(jig.CodeNotFound, "there is no session ses_a")
	}
	f.activity = missing
	err := newTestClient(f).Message(t.Context(), "acme", "ses_a", "go on", "ana")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound}, "another tenant's session")

	f = &fake{describe: unknown, activity: missing}
	err = newTestClient(f).Message(t.Context(), "default", "ses_a", "go on", "ana")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})
}

func TestEvent_IsSent(t *testing.T) {
	t.Parallel()
	var sent Event
	f := &fake{describe: running, signal: func(_ sdk.StartWorkflowOptions, name string, arg any) error {
		require.Equal(t, protocol.SignalEvent, name)
		sent = as[Event](t, arg)
		return nil
	}}
	require.NoError(t, newTestClient(f).Event(t.Context(), "default", "ses_a", Event{Name: "paid", Data: json.RawMessage(`{"n":1}`), By: "ana", ID: "p1"}))
	require.Equal(t, Event{Name: "paid", Data: json.RawMessage(`{"n":1}`), By: "ana", ID: "p1"}, sent)
	require.NoError(t, newTestClient(f).Event(t.Context(), "default", "ses_a", Event{Name: "paid"}))
	require.NotEmpty(t, sent.ID, "a repeated request is no second event")
	for field, e := range map[string]Event{"name": {}, "data": {Name: "paid", Data: json.RawMessage(`{`)}} {
		require.Equal(t, field, jig.AsError(newTestClient(f).Event(t.Context(), "default", "ses_a", e)).Field)
	}
	require.ErrorIs(t, newTestClient(f).Event(t.Context(), "acme", "ses_a", Event{Name: "paid"}), &jig.Error{Code: jig.CodeNotFound}, "another tenant's session")
	require.ErrorIs(t, newTestClient(&fake{describe: unknown}).Event(t.Context(), "default", "ses_a", Event{Name: "paid"}), &jig.Error{Code: jig.CodeNotFound})
}

func TestCancel_IsSent(t *testing.T) {
	t.Parallel()
	require.NoError(t, newTestClient(&fake{describe: running, cancel: func() error { return nil }}).Cancel(t.Context(), "default", "ses_a"))
	err := newTestClient(&fake{describe: completed}).Cancel(t.Context(), "default", "ses_a")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeConflict})
	err = newTestClient(&fake{describe: unknown}).Cancel(t.Context(), "default", "ses_a")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})
}

func TestResult_FetchesTheWholeAnswer(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("word ", 60_000)
	f := &fake{
		describe: completed,
		result: func() (any, error) {
			return protocol.PassResult{SessionID: "ses_a", Status: jig.StatusCompleted, Answer: whole[:100], Truncated: true, Passes: 3}, nil
		},
		activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
			if name == string(protocol.ReadStatus) {
				return jig.SessionView{SessionID: "ses_a", AnswerArtifact: "art_1"}, nil
			}
			at := as[protocol.ArtifactRequest](t, request).Offset
			return protocol.ArtifactChunk{Data: []byte(whole[at:min(at+chunkBytes, int64(len(whole)))]), Size: int64(len(whole))}, nil
		},
	}
	result, err := newTestClient(f).Result(t.Context(), "default", "ses_a")
	require.NoError(t, err)
	require.Equal(t, whole, result.Answer)
	require.False(t, result.Truncated)
	require.Equal(t, 3, result.Passes)
}

func TestResult_OfAnUnknownSession(t *testing.T) {
	t.Parallel()
	missing := func(sdk.StartActivityOptions, string, any) (any, error) {
		return nil, applicationError(jig.CodeNotFound, "there is no session")
	}
	_, err := newTestClient(&fake{describe: unknown, activity: missing}).Result(t.Context(), "default", "ses_a")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotFound})

	kept := func(sdk.StartActivityOptions, string, any) (any, error) {
		return jig.SessionView{SessionID: "ses_a", Status: jig.StatusCompleted, Answer: "yes", Pass: 4}, nil
	}
	result, err := newTestClient(&fake{describe: unknown, activity: kept}).Result(t.Context(), "default", "ses_a")
	require.NoError(t, err, "Temporal has forgotten it, the store has not")
	require.Equal(t, "yes", result.Answer)
	require.Equal(t, 4, result.Passes)
}

func TestTrigger_WaitsForTheResult(t *testing.T) {
	t.Parallel()
	want := protocol.CallResult{SessionID: "ses_a", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "done"}}
	f := &fake{describe: running, update: func(o sdk.UpdateWorkflowOptions) (any, error) {
		require.Equal(t, protocol.UpdateWait, o.UpdateName)
		return want, nil
	}}
	got, err := newTestClient(f).Trigger(t.Context(), protocol.CallInput{Tool: "file.read"}, "")
	require.NoError(t, err)
	require.Equal(t, want, got)

	_, err = newTestClient(f).Trigger(t.Context(), protocol.CallInput{Tool: "nonsense"}, "")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})

	ended := &fake{
		request: jig.SessionRequest{Tool: "file.read"}.Digest(),
		describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
			return protocol.CallWorkflow, "default", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
		},
		update: func(sdk.UpdateWorkflowOptions) (any, error) {
			return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("taken", "", "run")
		},
		result: func() (any, error) { r := want; r.SessionID = "default.order-7"; return r, nil },
	}
	got, err = newTestClient(ended).Trigger(t.Context(), protocol.CallInput{Tool: "file.read"}, "order-7")
	require.NoError(t, err)
	want.SessionID, want.ClientID = "default.order-7", "order-7"
	require.Equal(t, want, got, "the existing call")
}

func applicationError(code jig.Code, message string) error {
	e := jig.Error{Code: code, Message: message, Hint: "look"} // a value, because the error is not encoded here
	return sdktemporal.NewApplicationErrorWithOptions(message, string(code), sdktemporal.ApplicationErrorOptions{Details: []any{e}})
}

func TestStart_DocumentNamesTheAgent(t *testing.T) {
	t.Parallel()
	require.Equal(t, "mine", StartOptions{DocumentName: `C:\x\mine.md`}.shownAgent())
}
