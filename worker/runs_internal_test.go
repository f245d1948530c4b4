package worker

import (
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/jig-run/jig/internal/ledger"
)

// A parent cancels its children when it no longer needs them, which is nobody's decision. Other workflows have no such right.
func TestEndingOf_ReadsHistoryEvents(t *testing.T) {
	t.Parallel()
	requested := func(by string) *historypb.HistoryEvent {
		asked := &historypb.WorkflowExecutionCancelRequestedEventAttributes{Cause: "not needed", Identity: "4711@desk"}
		if by != "" {
			asked.ExternalWorkflowExecution = &commonpb.WorkflowExecution{WorkflowId: by}
		}
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
			WorkflowExecutionCancelRequestedEventAttributes: asked,
		}}
	}
	canceled := ledger.Ending{How: ledger.EndedCanceled, Reason: "not needed", Identity: "4711@desk"}
	for name, row := range map[string]struct {
		event  *historypb.HistoryEvent
		parent string
		want   ledger.Ending
	}{
		"by a client":                    {requested(""), "", canceled},
		"of a child by a client":         {requested(""), "ses_1", canceled},
		"by its parent":                  {requested("ses_1"), "ses_1", ledger.Ending{How: ledger.EndedItself}},
		"by another workflow":            {requested("ses_2"), "", canceled},
		"of a child by another workflow": {requested("ses_2"), "ses_1", canceled},
		"timed out": {
			&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT}, "", ledger.Ending{How: ledger.EndedTimedOut},
		},
	} {
		got, ok := endingOf(row.event, row.parent)
		require.True(t, ok, name)
		require.Equal(t, row.want, got, name)
	}
	_, ok := endingOf(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_FIRED}, "")
	require.False(t, ok)
}
