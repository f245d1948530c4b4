package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestStart_CheckedStartThatCannotWorkStartsNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err    error
		starts bool
	}{
		"there is no such agent": {jig.Errorf(jig.CodeNotFound, "there is no agent reveiw").WithField("agent"), false}, //nolint:misspell // on purpose
		"the input does not fit": {jig.Errorf(jig.CodeInvalidInput, "unknown input"), false},
		"no database":            {jig.Errorf(jig.CodeUnavailable, "the database does not answer"), true},
		"an older worker":        {jig.Errorf(jig.CodeInternal, "unable to find activityType=jig.check"), true},
		"nothing is wrong":       {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := false
			f := &fake{
				activity: func(_ sdk.StartActivityOptions, activity string, request any) (any, error) {
					require.Equal(t, string(protocol.CheckStart), activity)
					in, ok := request.(protocol.CheckRequest)
					require.True(t, ok)
					require.Equal(t, "review", in.Start.Agent)
					return nil, row.err
				},
				start: func(sdk.StartWorkflowOptions, protocol.PassInput) error { begun = true; return nil },
			}
			_, err := newTestClient(f).Start(t.Context(), StartOptions{Agent: "review", Check: true})
			require.Equal(t, row.starts, begun)
			if !row.starts {
				require.ErrorIs(t, err, row.err)
			}
		})
	}
}

func TestStart_WithoutAWorkerIsNotChecked(t *testing.T) {
	t.Parallel()
	begun := false
	f := &fake{activity: noWorkerAnswers, start: func(sdk.StartWorkflowOptions, protocol.PassInput) error { begun = true; return nil }}
	_, err := newTestClient(f).Start(t.Context(), StartOptions{Agent: "review", Check: true})
	require.NoError(t, err)
	require.True(t, begun)
}

func TestStart_ExistingSessionIsNotCheckedAgain(t *testing.T) {
	t.Parallel()
	f := taken(protocol.PassWorkflow, jig.SessionRequest{Agent: "review"})
	started, err := newTestClient(f).Start(t.Context(), StartOptions{ID: "order-7", Agent: "review", Check: true})
	require.NoError(t, err, "its agent may have been removed since")
	require.True(t, started.Existing)
}

func TestTrigger_NamesTheCallsThatWait(t *testing.T) {
	t.Parallel()
	f := &fake{
		update: func(sdk.UpdateWorkflowOptions) (any, error) {
			return protocol.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallExecuting}, nil
		},
		activity: func(sdk.StartActivityOptions, string, any) (any, error) {
			return jig.SessionView{SessionID: "ses_1", Pending: []jig.Pending{{Call: "1.1/publish", Tool: "cms.publish", Digest: "d1", Kind: jig.PendingApproval}}}, nil
		},
	}
	result, err := newTestClient(f).Trigger(t.Context(), protocol.CallInput{Tool: "my.pages"}, "")
	require.NoError(t, err)
	require.Equal(t, []protocol.WaitingCall{{SessionID: "ses_1", Call: "1.1/publish", Tool: "cms.publish", Kind: jig.PendingApproval, Digest: "d1"}}, result.Pending)
}

func TestRecord_JoinsThePiecesOfAnInput(t *testing.T) {
	t.Parallel()
	input := []byte(`"` + strings.Repeat("x", 300) + `"`)
	f := &fake{activity: func(_ sdk.StartActivityOptions, activity string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadRecord), activity)
		in, ok := request.(protocol.RecordRequest)
		require.True(t, ok)
		require.Equal(t, []string{"acme", "acme.order-7", "1.1"}, []string{in.Tenant, in.SessionID, in.Call})
		to := min(len(input), in.Offset+100)
		return protocol.RecordPage{Record: protocol.CallRecord{Call: "1.1", Digest: "d"}, Input: input[in.Offset:to], Size: len(input)}, nil
	}}
	record, err := newTestClient(f).Record(t.Context(), "acme", "order-7", "1.1")
	require.NoError(t, err)
	require.JSONEq(t, string(input), string(record.Input))
}

func TestSessionResult_OfASessionThatCouldNotBeOpened(t *testing.T) {
	t.Parallel()
	unknown := jig.Errorf(jig.CodeNotFound, "there is no session").WithField("session_id")
	live := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	f := &fake{
		activity: func(sdk.StartActivityOptions, string, any) (any, error) { return nil, unknown },
		describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
			return protocol.PassWorkflow, "default", live, nil
		},
	}
	c := newTestClient(f)
	r, err := c.SessionResult(t.Context(), "", "ses_1")
	require.NoError(t, err)
	require.Equal(t, jig.StatusWorking, r.Status, "no worker has picked it up yet")
	live = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	f.result = func() (any, error) {
		return protocol.PassResult{SessionID: "ses_1", Status: jig.StatusFailed, Reason: "x"}, nil
	}
	r, err = c.SessionResult(t.Context(), "", "ses_1")
	require.NoError(t, err)
	require.Equal(t, jig.StatusFailed, r.Status)
	_, foreign := c.SessionResult(t.Context(), "acme", "ses_1")
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(foreign))
}

// A refused call or session does not use up the id that the caller chose: nothing is started.
func TestTrigger_RefusalsDoNotUseUpTheID(t *testing.T) {
	t.Parallel()
	for _, code := range []jig.Code{jig.CodeToolNotFound, jig.CodeInvalidInput, jig.CodeMissingParam, jig.CodeNotPermitted} {
		f := &fake{
			describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
				return "", "", 0, serviceerror.NewNotFound("no such workflow")
			},
			activity: func(_ sdk.StartActivityOptions, name string, _ any) (any, error) {
				require.Equal(t, string(protocol.CheckStart), name)
				return nil, applicationError(code, "refused")
			},
			update: func(sdk.UpdateWorkflowOptions) (any, error) { panic("a refused call was started") },
			start:  func(sdk.StartWorkflowOptions, protocol.PassInput) error { panic("a refused call was started") },
		}
		_, err := newTestClient(f).Trigger(t.Context(), CallInput{Tool: "shop.order"}, "order-7")
		require.Equal(t, code, jig.CodeOf(err))
		_, err = newTestClient(f).Trigger(t.Context(), CallInput{Tool: "shop.order", Key: "k"}, "")
		require.Equal(t, code, jig.CodeOf(err))
		_, err = newTestClient(f).StartCall(t.Context(), CallInput{Tool: "shop.order"}, "order-7")
		require.Equal(t, code, jig.CodeOf(err))
		_, err = newTestClient(f).Start(t.Context(), StartOptions{Agent: "desk", ID: "order-7"})
		require.Equal(t, code, jig.CodeOf(err))
	}
}
