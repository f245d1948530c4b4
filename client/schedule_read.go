package client

import (
	"cmp"
	"context"
	"encoding/json"
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

// Schedule is the current state of a schedule. A list leaves out the fields marked below; [Client.Schedule] fills in all of them.
type Schedule struct {
	Name string `json:"name"`
	// Agent or Tool names what the schedule starts; Task is the agent's task (in a list only its beginning).
	Agent string `json:"agent,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Task  string `json:"task,omitempty"`
	// Model, Input, Pairs and Principal are passed to each run; not in a list.
	Model     string            `json:"model,omitempty"`
	Input     json.RawMessage   `json:"input,omitempty"`
	Pairs     map[string]string `json:"pairs,omitempty"`
	Principal string            `json:"principal,omitempty"`
	// Maker is who made the credential with which the schedule was created, for its principal, and Credential names it if it is an API key:
	// api_key:<id>. The schedule ends with them. Not in a list.
	Maker      string `json:"maker,omitempty"`
	Credential string `json:"credential,omitempty"`
	// When describes the timetable in one line. The fields of Timetable are its parts.
	When string `json:"when"`
	Timetable
	// Overlap and CatchUp are the schedule's policies; not in a list.
	Overlap Overlap `json:"overlap,omitempty"`
	CatchUp Span    `json:"catch_up,omitzero"`
	Paused  bool    `json:"paused"`
	Note    string  `json:"note,omitempty"`
	// Remaining is how many starts are left; nil if there is no limit; not in a list.
	Remaining *int `json:"remaining,omitempty"`
	// Next lists the coming start times, soonest first: up to 5 in a list, otherwise up to 10.
	Next []time.Time `json:"next"`
	// Last is the latest session; nil before the first.
	Last *ScheduledSession `json:"last,omitempty"`
	// Recent are the latest 10 sessions and Running those that have not ended, both oldest first; not in a list.
	Recent  []ScheduledSession `json:"recent,omitempty"`
	Running []ScheduledSession `json:"running,omitempty"`
	// Counts and CreatedAt are not in a list.
	Counts    *ScheduleCounts `json:"counts,omitempty"`
	CreatedAt time.Time       `json:"created_at,omitzero"`
}

// ScheduledSession is a session that a schedule started.
type ScheduledSession struct {
	SessionID string `json:"session_id"`
	// DueAt is the scheduled time, including jitter, and StartedAt the time of the actual start; zero if the server no longer knows.
	DueAt     time.Time `json:"due_at,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Status is empty if Temporal has forgotten the session because its retention time is over.
	Status jig.Status `json:"status,omitempty"`

	open bool
}

// ScheduleCounts count what happened at the schedule's times so far.
type ScheduleCounts struct {
	// Started counts sessions, including those started by [Client.TriggerSchedule].
	Started int `json:"started"`
	// Skipped counts times at which nothing was started because a session was still running.
	Skipped int `json:"skipped"`
	// Missed counts times that passed while the server was down and were too old to catch up on.
	Missed int `json:"missed"`
}

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
	return list, c.fillStatus(ctx, last)
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
	all := make([]*ScheduledSession, 0, len(s.Recent))
	for i := range s.Recent {
		all = append(all, &s.Recent[i])
	}
	var others []ScheduledSession // running sessions that are older than the latest ten
	for _, run := range d.Info.RunningWorkflows {
		if !slices.ContainsFunc(s.Recent, func(r ScheduledSession) bool { return r.SessionID == run.WorkflowID }) {
			others = append(others, ScheduledSession{SessionID: run.WorkflowID})
		}
	}
	for i := range others {
		all = append(all, &others[i])
	}
	if err := c.fillStatus(ctx, all); err != nil {
		return Schedule{}, err
	}
	for _, session := range slices.Concat(others, s.Recent) {
		if session.open {
			s.Running = append(s.Running, session)
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
	s.readAction(d)
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
func (s *Schedule) readAction(d *sdk.ScheduleDescription) {
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

// fillStatus reads the statuses of sessions from Temporal, a few at a time.
func (c *Client) fillStatus(ctx context.Context, sessions []*ScheduledSession) error {
	return few(len(sessions), func(i int) error { return c.scheduledStatus(ctx, sessions[i]) })
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

func (c *Client) scheduledStatus(ctx context.Context, session *ScheduledSession) error {
	return translate(c.repeat(ctx, func(ctx context.Context) error {
		answer, err := c.temporal.DescribeWorkflowExecution(ctx, session.SessionID, "")
		if isNotFound(translate(err)) {
			return nil
		}
		if err != nil {
			return err
		}
		info := answer.GetWorkflowExecutionInfo()
		said, _ := keyword(info.GetSearchAttributes().GetIndexedFields(), protocol.AttrStatus)
		session.open = live(info.GetStatus())
		session.Status = sessionStatus(info.GetStatus(), jig.Status(said))
		return nil
	}, busy))
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
