package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/jig-run/jig/internal/protocol"
)

// fake is a Temporal client made of functions. A request whose function is not set fails with errNotSet.
type fake struct {
	start    func(o sdk.StartWorkflowOptions, in protocol.PassInput) error
	signal   func(o sdk.StartWorkflowOptions, name string, arg any) error
	cancel   func() error
	describe func(id string) (kind, tenant string, status enumspb.WorkflowExecutionStatus, err error)
	// request is the digest in the memo of every described workflow.
	request  string
	update   func(o sdk.UpdateWorkflowOptions) (any, error)
	activity func(o sdk.StartActivityOptions, name string, request any) (any, error)
	result   func() (any, error)
	// looks are the errors of the first attempts to get an activity's result.
	looks []error
}

var errNotSet = errors.New("the test has not set up this request")

func (f *fake) ExecuteWorkflow(_ context.Context, o sdk.StartWorkflowOptions, _ any, args ...any) (sdk.WorkflowRun, error) {
	in, ok := args[0].(protocol.PassInput)
	if _, call := args[0].(protocol.CallInput); !ok && !call {
		return nil, fmt.Errorf("started with %T", args[0])
	}
	if f.start == nil {
		return nil, errNotSet
	}
	return nil, f.start(o, in)
}

func (f *fake) GetWorkflow(context.Context, string, string) sdk.WorkflowRun { return fakeRun{f: f} }

func (f *fake) SignalWithStartWorkflow(_ context.Context, _, name string, arg any, o sdk.StartWorkflowOptions, _ any, _ ...any) (sdk.WorkflowRun, error) {
	if f.signal == nil {
		return nil, errNotSet
	}
	return nil, f.signal(o, name, arg)
}

func (f *fake) SignalWorkflow(_ context.Context, _, _, name string, arg any) error {
	if f.signal == nil {
		return errNotSet
	}
	return f.signal(sdk.StartWorkflowOptions{}, name, arg)
}

func (f *fake) CancelWorkflowWithOptions(context.Context, sdk.CancelWorkflowOptions) error {
	if f.cancel == nil {
		return errNotSet
	}
	return f.cancel()
}

func (f *fake) DescribeWorkflowExecution(_ context.Context, id, run string) (*workflowservicepb.DescribeWorkflowExecutionResponse, error) {
	if f.describe == nil {
		return nil, errNotSet
	}
	kind, tenant, status, err := f.describe(id)
	if err != nil {
		return nil, err
	}
	owner, err := converter.GetDefaultDataConverter().ToPayload(tenant)
	if err != nil {
		return nil, err
	}
	request, err := converter.GetDefaultDataConverter().ToPayload(f.request)
	if err != nil {
		return nil, err
	}
	return &workflowservicepb.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}, StartTime: timestamppb.Now(),
		Type: &commonpb.WorkflowType{Name: kind}, Status: status,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{protocol.AttrTenant: owner}},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{memoRequest: request}},
	}}, nil
}

func (f *fake) UpdateWorkflow(_ context.Context, o sdk.UpdateWorkflowOptions) (sdk.WorkflowUpdateHandle, error) {
	if f.update == nil {
		return nil, errNotSet
	}
	v, err := f.update(o)
	if err != nil {
		return nil, err
	}
	return fakeUpdate{value: v}, nil
}

func (f *fake) NewWithStartWorkflowOperation(sdk.StartWorkflowOptions, any, ...any) sdk.WithStartWorkflowOperation {
	return nil
}

func (f *fake) UpdateWithStartWorkflow(ctx context.Context, o sdk.UpdateWithStartWorkflowOptions) (sdk.WorkflowUpdateHandle, error) {
	return f.UpdateWorkflow(ctx, o.UpdateOptions)
}

func (f *fake) ExecuteActivity(_ context.Context, o sdk.StartActivityOptions, activity any, args ...any) (sdk.ActivityHandle, error) {
	if f.activity == nil {
		return nil, errNotSet
	}
	v, err := f.activity(o, fmt.Sprint(activity), args[0])
	if busy(err) {
		return nil, err
	}
	return fakeActivity{f: f, value: v, err: err}, nil
}

// ScheduleClient returns nil; fakeScheduler overrides it.
func (f *fake) ScheduleClient() sdk.ScheduleClient { return nil }

func (f *fake) Close() {}

// copyTo copies a value by encoding and decoding it, as if it were sent over the network.
func copyTo(ptr, v any) error {
	if ptr == nil || v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, ptr)
}

type fakeRun struct {
	sdk.WorkflowRun
	f *fake
}

func (r fakeRun) Get(_ context.Context, ptr any) error {
	if r.f.result == nil {
		return errNotSet
	}
	v, err := r.f.result()
	if err != nil {
		return err
	}
	return copyTo(ptr, v)
}

type fakeUpdate struct {
	sdk.WorkflowUpdateHandle
	value any
	err   error
}

func (u fakeUpdate) Get(_ context.Context, ptr any) error {
	if u.err != nil {
		return u.err
	}
	return copyTo(ptr, u.value)
}

type fakeActivity struct {
	sdk.ActivityHandle
	f     *fake
	value any
	err   error
}

func (a fakeActivity) Get(_ context.Context, ptr any) error {
	if looks := a.f.looks; len(looks) > 0 {
		a.f.looks = looks[1:]
		return looks[0]
	}
	if a.err != nil {
		return a.err
	}
	return copyTo(ptr, a.value)
}

func notFound() error { return serviceerror.NewNotFound("no such workflow") }

func exhausted() error {
	return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "busy")
}

func running(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
	return protocol.PassWorkflow, "default", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

func completed(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
	return protocol.PassWorkflow, "default", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
}

func unknown(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
	return "", "", 0, notFound()
}

// as returns v as a T and fails the test if it has another type.
func as[T any](t *testing.T, v any) T {
	t.Helper()
	typed, ok := v.(T)
	require.True(t, ok, "%T", v)
	return typed
}

// testTimeout is longer than any test takes, however busy the machine is, so that a request that the test has not set up is never sent.
const testTimeout = time.Hour

func newTestClient(f *fake) *Client {
	return newClient(f, f, Options{WorkerTimeout: testTimeout, RetryFor: testTimeout})
}
