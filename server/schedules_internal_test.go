package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
)

// schedules keeps schedules as Temporal does, and starts nothing at their times. A trigger is recorded as a start.
type schedules struct {
	sdk.ScheduleClient

	mu   sync.Mutex
	list map[string]*sdk.ScheduleDescription
}

func newSchedules() *schedules { return &schedules{list: map[string]*sdk.ScheduleDescription{}} }

func (s *schedules) Create(_ context.Context, o sdk.ScheduleOptions) (sdk.ScheduleHandle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list[o.ID] != nil {
		return nil, sdktemporal.ErrScheduleAlreadyRunning
	}
	stored, err := encoded(o.Action)
	if err != nil {
		return nil, err
	}
	s.list[o.ID] = &sdk.ScheduleDescription{Schedule: sdk.Schedule{
		Action: stored, Spec: &o.Spec, Policy: &sdk.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow},
		State: &sdk.ScheduleState{Note: o.Note, Paused: o.Paused, LimitedActions: o.RemainingActions > 0, RemainingActions: o.RemainingActions},
	}}
	return nil, nil // nobody uses the handle
}

// encoded returns an action as Temporal stores it.
func encoded(a sdk.ScheduleAction) (*sdk.ScheduleWorkflowAction, error) {
	action, ok := a.(*sdk.ScheduleWorkflowAction)
	if !ok {
		return nil, serviceerror.NewInvalidArgument("no workflow is started")
	}
	stored := *action
	payload, err := converter.GetDefaultDataConverter().ToPayload(action.Args[0])
	stored.Args = []any{payload}
	return &stored, err
}

// List ignores the query: clients leave out the schedules of other tenants by their ids.
func (s *schedules) List(context.Context, sdk.ScheduleListOptions) (sdk.ScheduleListIterator, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found scheduleList
	for id, d := range s.list {
		found = append(found, &sdk.ScheduleListEntry{
			ID: id, Spec: d.Schedule.Spec, Memo: &commonpb.Memo{}, Note: d.Schedule.State.Note, Paused: d.Schedule.State.Paused, RecentActions: d.Info.RecentActions,
		})
	}
	return &found, nil
}

type scheduleList []*sdk.ScheduleListEntry

func (l *scheduleList) HasNext() bool { return len(*l) > 0 }

func (l *scheduleList) Next() (*sdk.ScheduleListEntry, error) {
	entry := (*l)[0]
	*l = (*l)[1:]
	return entry, nil
}

func (s *schedules) GetHandle(_ context.Context, id string) sdk.ScheduleHandle {
	return schedule{all: s, id: id}
}

type schedule struct {
	sdk.ScheduleHandle

	all *schedules
	id  string
}

func (h schedule) on(do func(d *sdk.ScheduleDescription)) error {
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	d := h.all.list[h.id]
	if d == nil {
		return serviceerror.NewNotFound("schedule not found")
	}
	do(d)
	return nil
}

func (h schedule) Describe(context.Context) (*sdk.ScheduleDescription, error) {
	var found sdk.ScheduleDescription
	err := h.on(func(d *sdk.ScheduleDescription) {
		found = *d
		state := *d.Schedule.State
		found.Schedule.State = &state
	})
	return &found, err
}

func (h schedule) Pause(_ context.Context, o sdk.SchedulePauseOptions) error {
	return h.on(func(d *sdk.ScheduleDescription) { d.Schedule.State.Paused, d.Schedule.State.Note = true, o.Note })
}

func (h schedule) Unpause(_ context.Context, o sdk.ScheduleUnpauseOptions) error {
	return h.on(func(d *sdk.ScheduleDescription) { d.Schedule.State.Paused, d.Schedule.State.Note = false, o.Note })
}

func (h schedule) Update(_ context.Context, o sdk.ScheduleUpdateOptions) (err error) {
	missing := h.on(func(d *sdk.ScheduleDescription) {
		var changed *sdk.ScheduleUpdate
		if changed, err = o.DoUpdate(sdk.ScheduleUpdateInput{Description: *d}); err != nil {
			return
		}
		d.Schedule = *changed.Schedule
		d.Schedule.Action, err = encoded(d.Schedule.Action)
	})
	return errors.Join(missing, err)
}

func (h schedule) Delete(context.Context) error {
	return h.on(func(*sdk.ScheduleDescription) { delete(h.all.list, h.id) })
}

func (h schedule) Trigger(context.Context, sdk.ScheduleTriggerOptions) error {
	return h.on(func(d *sdk.ScheduleDescription) {
		d.Info.NumActions++
		run := &sdk.ScheduleWorkflowExecution{WorkflowID: fmt.Sprintf("%s%d", jig.SessionPrefix, d.Info.NumActions)}
		d.Info.RecentActions = []sdk.ScheduleActionResult{{StartWorkflowResult: run}}
	})
}
