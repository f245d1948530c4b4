package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// statusAtOnce bounds how many sessions' statuses are read at the same time.
	statusAtOnce = 8
)

// Schedules lists a tenant's schedules by name. A list may lag a second or so behind a change.
func (c *Client) Schedules(ctx context.Context, tenant string) ([]Schedule, error) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	if err := jig.CheckTenant(tenant); err != nil {
		return nil, translate(err)
	}
	var list []Schedule
	err := c.repeat(ctx, func(ctx context.Context) error {
		list = []Schedule{}
		found, err := c.temporal.ScheduleClient().List(ctx, sdk.ScheduleListOptions{Query: fmt.Sprintf("%s = %q", protocol.AttrTenant, tenant)})
		if err != nil {
			return err //nolint:wrapcheck // translate is called below
		}
		for found.HasNext() {
			entry, err := found.Next()
			if err != nil {
				return err //nolint:wrapcheck // translate is called below
			}
			if name, ours := strings.CutPrefix(entry.ID, tenantPrefix(tenant)); ours {
				list = append(list, listed(name, entry))
			}
		}
		return nil
	}, busy)
	if err != nil {
		return nil, translate(err)
	}
	slices.SortFunc(list, func(a, b Schedule) int { return strings.Compare(a.Name, b.Name) })
	var last []*ScheduledSession
	for i := range list {
		if list[i].Last != nil {
			last = append(last, list[i].Last)
		}
	}
	_, err = c.fillStatus(ctx, last)
	return list, err
}

func listed(name string, entry *sdk.ScheduleListEntry) Schedule {
	var what starts
	if payload := entry.Memo.GetFields()[scheduleMemo]; payload != nil {
		// A schedule whose memo cannot be read stays in the list, but without its agent, tool and task.
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &what) //nolint:errcheck // an unreadable memo leaves these fields empty
	}
	s := Schedule{
		Name: name, Agent: what.Agent, Tool: what.Tool, Task: what.Task, Paused: entry.Paused, Note: entry.Note,
		Next: append([]time.Time{}, entry.NextActionTimes...),
	}
	s.Timetable, s.When = timetable(entry.Spec)
	if recent := recentSessions(entry.RecentActions); len(recent) > 0 {
		s.Last = &recent[len(recent)-1]
	}
	return s
}

// WholeSchedules returns the schedules of a tenant by name, with what they start, for whom and with which credential, but without their sessions.
func (c *Client) WholeSchedules(ctx context.Context, tenant string) ([]Schedule, error) {
	list, err := c.Schedules(ctx, tenant)
	if err != nil {
		return nil, err
	}
	whole := make([]Schedule, len(list))
	err = few(len(list), func(i int) error {
		d, err := c.describeSchedule(ctx, tenant, list[i].Name)
		if isNotFound(err) { // deleted since
			return nil
		}
		if err == nil {
			whole[i] = described(list[i].Name, d)
		}
		return err
	})
	return slices.DeleteFunc(whole, func(s Schedule) bool { return s.Name == "" }), err
}

// Schedule returns one schedule. An unknown one is NOT_FOUND.
func (c *Client) Schedule(ctx context.Context, tenant, name string) (Schedule, error) {
	d, err := c.describeSchedule(ctx, tenant, name)
	if err != nil {
		return Schedule{}, err
	}
	s := described(name, d)
	s.Recent = recentSessions(d.Info.RecentActions)
	var all []*ScheduledSession
	for _, run := range d.Info.RunningWorkflows {
		if !slices.ContainsFunc(s.Recent, func(r ScheduledSession) bool { return r.SessionID == run.WorkflowID }) { // older than the latest ten
			all = append(all, &ScheduledSession{SessionID: run.WorkflowID})
		}
	}
	for i := range s.Recent {
		all = append(all, &s.Recent[i])
	}
	open, err := c.fillStatus(ctx, all)
	if err != nil {
		return Schedule{}, err
	}
	for i, session := range all {
		if open[i] {
			s.Running = append(s.Running, *session)
		}
	}
	if n := len(s.Recent); n > 0 {
		s.Last = &s.Recent[n-1]
	}
	return s, nil
}

func (c *Client) describeSchedule(ctx context.Context, tenant, name string) (*sdk.ScheduleDescription, error) {
	var d *sdk.ScheduleDescription
	err := c.onSchedule(ctx, tenant, name, busy, func(ctx context.Context, h sdk.ScheduleHandle) (err error) {
		d, err = h.Describe(ctx)
		return err //nolint:wrapcheck // translated by onSchedule
	})
	return d, err
}

func described(name string, d *sdk.ScheduleDescription) Schedule {
	s := Schedule{
		Name: name, Next: append([]time.Time{}, d.Info.NextActionTimes...), CreatedAt: d.Info.CreatedAt,
		Counts: &ScheduleCounts{
			Started: d.Info.NumActions, Skipped: d.Info.NumActionsSkippedOverlap, Missed: d.Info.NumActionsMissedCatchupWindow,
		},
	}
	s.Timetable, s.When = timetable(d.Schedule.Spec)
	if p := d.Schedule.Policy; p != nil {
		s.Overlap, s.CatchUp = overlapOf(p.Overlap), Span(p.CatchupWindow)
	}
	if state := d.Schedule.State; state != nil {
		s.Paused, s.Note = state.Paused, state.Note
		if state.LimitedActions {
			s.Remaining = &state.RemainingActions
		}
	}
	readAction(&s, d)
	return s
}

// actionOf returns what an action starts: a call or a session. Both are nil if it cannot be decoded, because another program made it.
func actionOf(d *sdk.ScheduleDescription) (call *protocol.CallInput, start *protocol.StartSession) {
	action, ok := d.Schedule.Action.(*sdk.ScheduleWorkflowAction)
	if !ok || len(action.Args) == 0 {
		return nil, nil
	}
	payload, ok := action.Args[0].(*commonpb.Payload)
	if !ok {
		return nil, nil
	}
	read := func(to any) bool { return converter.GetDefaultDataConverter().FromPayload(payload, to) == nil }
	switch action.Workflow {
	case protocol.CallWorkflow:
		var input protocol.CallInput
		if read(&input) {
			return &input, nil
		}
	case protocol.PassWorkflow:
		var input protocol.PassInput
		if read(&input) {
			return nil, input.Start
		}
	}
	return nil, nil
}

// readAction fills in what a schedule starts.
func readAction(s *Schedule, d *sdk.ScheduleDescription) {
	call, start := actionOf(d)
	switch {
	case call != nil:
		s.Tool, s.Input, s.Pairs, s.Principal = call.Tool, call.Input, call.Pairs, call.Principal.ID
		s.Maker, s.Credential = call.Principal.Maker, credential(call.Mandate)
	case start != nil:
		s.Agent = StartOptions{Agent: start.Agent, DocumentName: start.DocumentName}.shownAgent()
		s.Task, s.Model, s.Input, s.Pairs, s.Principal = start.Task, start.Model, start.Input, start.Pairs, start.Principal.ID
		s.Maker, s.Credential = start.Principal.Maker, credential(start.Mandate)
	}
}

func recentSessions(actions []sdk.ScheduleActionResult) []ScheduledSession {
	var list []ScheduledSession
	for _, action := range actions {
		if run := action.StartWorkflowResult; run != nil {
			list = append(list, ScheduledSession{SessionID: run.WorkflowID, DueAt: action.ScheduleTime, StartedAt: action.ActualTime})
		}
	}
	return list
}

// fillStatus reads the statuses of sessions from Temporal, a few at a time. open says which of them have not ended.
func (c *Client) fillStatus(ctx context.Context, sessions []*ScheduledSession) (open []bool, err error) {
	open = make([]bool, len(sessions))
	err = few(len(sessions), func(i int) (err error) {
		open[i], err = c.scheduledStatus(ctx, sessions[i])
		return err
	})
	return open, err
}

// few calls do for 0 to n-1, a few at a time, and returns the first error in that order.
func few(n int, do func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, statusAtOnce)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	group.Wait()
	return cmp.Or(errs...) //nolint:wrapcheck // it is an error of do
}

func (c *Client) scheduledStatus(ctx context.Context, session *ScheduledSession) (open bool, err error) {
	err = translate(c.repeat(ctx, func(ctx context.Context) error {
		answer, err := c.temporal.DescribeWorkflowExecution(ctx, session.SessionID, "")
		if isNotFound(translate(err)) {
			return nil
		}
		if err != nil {
			return err
		}
		info := answer.GetWorkflowExecutionInfo()
		said, _ := keyword(info.GetSearchAttributes().GetIndexedFields(), protocol.AttrStatus)
		open = live(info.GetStatus())
		session.Status = sessionStatus(info.GetStatus(), jig.Status(said))
		return nil
	}, busy))
	return open, err
}

// sessionStatus combines the status of the workflow with the status that the session reported last. A session whose workflow was ended
// externally has not reported its end.
func sessionStatus(status enumspb.WorkflowExecutionStatus, said jig.Status) jig.Status {
	switch {
	case live(status):
		if said == jig.StatusInputRequired {
			return said
		}
		return jig.StatusWorking
	case said.Final():
		return said
	case status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return jig.StatusCompleted
	case status == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return jig.StatusCanceled
	default:
		return jig.StatusFailed
	}
}
