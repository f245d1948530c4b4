package client

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig/internal/protocol"
)

// fakeScheduler is a Temporal client that stores schedules as the server would. Its next requests fail with errs.
type fakeScheduler struct {
	*fake

	kept    map[string]*fakeSchedule
	created []sdk.ScheduleOptions
	query   string
	errs    []error
}

type fakeSchedule struct {
	d    sdk.ScheduleDescription
	memo map[string]any
}

func newFakeScheduler() *fakeScheduler {
	return &fakeScheduler{fake: &fake{describe: running, activity: func(sdk.StartActivityOptions, string, any) (any, error) { return protocol.OperateAnswer{}, nil }}, kept: map[string]*fakeSchedule{}}
}

func (f *fakeScheduler) client() *Client { return newClient(f, nil, Options{}) }

func (f *fakeScheduler) ScheduleClient() sdk.ScheduleClient { return f }

// fail returns the next prepared error.
func (f *fakeScheduler) fail() error {
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *fakeScheduler) Create(_ context.Context, o sdk.ScheduleOptions) (sdk.ScheduleHandle, error) {
	f.created = append(f.created, o)
	if err := f.fail(); err != nil {
		return nil, err
	}
	if f.kept[o.ID] != nil {
		return nil, sdktemporal.ErrScheduleAlreadyRunning
	}
	action, ok := o.Action.(*sdk.ScheduleWorkflowAction)
	if !ok {
		return nil, errors.New("no workflow is started")
	}
	stored := *action
	payload, err := converter.GetDefaultDataConverter().ToPayload(action.Args[0])
	if err != nil {
		return nil, err
	}
	stored.Args = []any{payload}
	f.kept[o.ID] = &fakeSchedule{memo: o.Memo, d: sdk.ScheduleDescription{Schedule: sdk.Schedule{
		Action: &stored, Spec: &o.Spec, Policy: &sdk.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow},
		State: &sdk.ScheduleState{Note: o.Note, Paused: o.Paused, LimitedActions: o.RemainingActions > 0, RemainingActions: o.RemainingActions},
	}}}
	return nil, nil // callers do not use the handle
}

func (f *fakeScheduler) List(_ context.Context, o sdk.ScheduleListOptions) (sdk.ScheduleListIterator, error) {
	f.query = o.Query
	list := &fakeList{err: f.fail()}
	for id, s := range f.kept {
		memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
		for field, v := range s.memo {
			payload, err := converter.GetDefaultDataConverter().ToPayload(v)
			if err != nil {
				return nil, err
			}
			memo.Fields[field] = payload
		}
		list.entries = append(list.entries, &sdk.ScheduleListEntry{
			ID: id, Spec: s.d.Schedule.Spec, Memo: memo, Note: s.d.Schedule.State.Note, Paused: s.d.Schedule.State.Paused,
			RecentActions: s.d.Info.RecentActions, NextActionTimes: s.d.Info.NextActionTimes,
		})
	}
	return list, nil
}

type fakeList struct {
	entries []*sdk.ScheduleListEntry
	err     error
}

func (l *fakeList) HasNext() bool { return l.err != nil || len(l.entries) > 0 }

func (l *fakeList) Next() (*sdk.ScheduleListEntry, error) {
	if l.err != nil {
		return nil, l.err
	}
	entry := l.entries[0]
	l.entries = l.entries[1:]
	return entry, nil
}

func (f *fakeScheduler) GetHandle(_ context.Context, id string) sdk.ScheduleHandle {
	return fakeHandle{f: f, id: id}
}

type fakeHandle struct {
	sdk.ScheduleHandle
	f  *fakeScheduler
	id string
}

func (h fakeHandle) on(do func(s *fakeSchedule)) error {
	if err := h.f.fail(); err != nil {
		return err
	}
	s := h.f.kept[h.id]
	if s == nil {
		return serviceerror.NewNotFound("workflow not found for ID: temporal-sys-scheduler:" + h.id)
	}
	do(s)
	return nil
}

func (h fakeHandle) Describe(context.Context) (*sdk.ScheduleDescription, error) {
	var d sdk.ScheduleDescription
	err := h.on(func(s *fakeSchedule) { d = s.d })
	return &d, err
}

func (h fakeHandle) Pause(_ context.Context, o sdk.SchedulePauseOptions) error {
	return h.on(func(s *fakeSchedule) { s.d.Schedule.State.Paused, s.d.Schedule.State.Note = true, o.Note })
}

func (h fakeHandle) Unpause(_ context.Context, o sdk.ScheduleUnpauseOptions) error {
	return h.on(func(s *fakeSchedule) { s.d.Schedule.State.Paused, s.d.Schedule.State.Note = false, o.Note })
}

func (h fakeHandle) Update(_ context.Context, o sdk.ScheduleUpdateOptions) error {
	return h.on(func(s *fakeSchedule) {
		changed, err := o.DoUpdate(sdk.ScheduleUpdateInput{Description: s.d})
		if err != nil {
			return
		}
		action, ok := changed.Schedule.Action.(*sdk.ScheduleWorkflowAction)
		payload, err := converter.GetDefaultDataConverter().ToPayload(action.Args[0])
		if ok && err == nil {
			action.Args = []any{payload}
			s.d.Schedule = *changed.Schedule
		}
	})
}

func (h fakeHandle) Delete(context.Context) error {
	return h.on(func(*fakeSchedule) { delete(h.f.kept, h.id) })
}
