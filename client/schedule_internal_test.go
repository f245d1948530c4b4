package client

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

var seven = time.Date(2026, 1, 2, 7, 0, 0, 0, time.UTC)

func nightly() ScheduleOptions {
	return ScheduleOptions{
		Tenant: "acme", Name: "nightly", When: Timetable{Cron: []string{"0 7 * * 1-5"}, Timezone: "Europe/Berlin"},
		Session: &StartOptions{
			Agent: "review", Task: "check it\nand more", Input: json.RawMessage(`{"path":"."}`), Pairs: map[string]string{"depth": "2"},
			Model: "script/x", Principal: jig.Principal{ID: "ana", Claimed: true},
		},
	}
}

func hourly() ScheduleOptions {
	return ScheduleOptions{
		Name: "hourly", When: Timetable{Every: Span(time.Hour), Offset: Span(5 * time.Minute)},
		Call: &CallInput{Tool: "deps.list", Input: json.RawMessage(`{"path":"."}`), Principal: jig.Principal{ID: "ana", Claimed: true}},
	}
}

// ran returns the result of a schedule's action.
func ran(id string, due time.Time) sdk.ScheduleActionResult {
	return sdk.ScheduleActionResult{
		ScheduleTime: due, ActualTime: due.Add(time.Second), StartWorkflowResult: &sdk.ScheduleWorkflowExecution{WorkflowID: id, FirstExecutionRunID: "run"},
	}
}

func TestSchedule_StartsTheSameSessionAsStart(t *testing.T) {
	t.Parallel()
	var direct sdk.StartWorkflowOptions
	var input protocol.PassInput
	f := newFakeScheduler()
	f.start = func(o sdk.StartWorkflowOptions, in protocol.PassInput) error { direct, input = o, in; return nil }
	o := nightly()
	session := *o.Session
	session.Tenant, session.ID = "acme", "nightly"
	_, err := f.client().Start(t.Context(), session)
	require.NoError(t, err)

	got, err := f.client().CreateSchedule(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "jig/acme/nightly", f.created[0].ID)
	action := as[*sdk.ScheduleWorkflowAction](t, f.created[0].Action)
	input.Start.Source = jig.SourceSchedule
	require.Equal(t, &sdk.ScheduleWorkflowAction{
		ID: "ses_acme:nightly", Workflow: protocol.PassWorkflow, Args: []any{input}, TaskQueue: direct.TaskQueue,
		StaticSummary: direct.StaticSummary, TypedSearchAttributes: direct.TypedSearchAttributes, Priority: direct.Priority,
		Memo: map[string]any{protocol.MemoSummary: direct.StaticSummary},
	}, action)
	tenant, ok := f.created[0].TypedSearchAttributes.GetKeyword(sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant))
	require.True(t, ok, "lists ask for it")
	require.Equal(t, "acme", tenant)
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, f.created[0].Overlap)
	require.Equal(t, time.Hour, f.created[0].CatchupWindow)

	require.Equal(t, Schedule{
		Name: "nightly", Agent: "review", Task: "check it\nand more", Model: "script/x", Input: json.RawMessage(`{"path":"."}`),
		Pairs: map[string]string{"depth": "2"}, Principal: "ana", When: "0 7 * * 1-5 Europe/Berlin",
		Timetable: Timetable{Cron: []string{"0 7 * * 1-5"}, Timezone: "Europe/Berlin"},
		Overlap:   OverlapSkip, CatchUp: Span(time.Hour), Next: []time.Time{}, Counts: &ScheduleCounts{},
	}, got)
}

func TestSchedule_RunsTheSameCallAsTrigger(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	o := hourly()
	o.Overlap, o.CatchUp, o.Limit, o.Paused, o.Note = OverlapBufferOne, time.Minute, 3, true, "not yet"
	got, err := f.client().CreateSchedule(t.Context(), o)
	require.NoError(t, err)
	action := as[*sdk.ScheduleWorkflowAction](t, f.created[0].Action)
	input := *o.Call
	input.Tenant, input.Source = jig.DefaultTenant, jig.SourceSchedule
	direct := f.client().callStart("ses_hourly", input)
	require.Equal(t, &sdk.ScheduleWorkflowAction{
		ID: "ses_hourly", Workflow: protocol.CallWorkflow, Args: []any{input}, TaskQueue: protocol.TaskQueue,
		StaticSummary: direct.StaticSummary, TypedSearchAttributes: direct.TypedSearchAttributes, Priority: direct.Priority,
		Memo: map[string]any{protocol.MemoSummary: "deps.list: path=."},
	}, action)
	three := 3
	require.Equal(t, Schedule{
		Name: "hourly", Tool: "deps.list", Input: json.RawMessage(`{"path":"."}`), Principal: "ana", When: "every 1h offset 5m",
		Timetable: Timetable{Every: Span(time.Hour), Offset: Span(5 * time.Minute)},
		Overlap:   OverlapBufferOne, CatchUp: Span(time.Minute), Paused: true, Note: "not yet", Remaining: &three,
		Next: []time.Time{}, Counts: &ScheduleCounts{},
	}, got)
}

func TestSchedule_Sessions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ tenant, name, base string }{
		{"", "nightly", "ses_nightly"}, {"default", "nightly", "ses_nightly"}, {"acme", "nightly", "ses_acme:nightly"},
	} {
		base := sessionBase(row.tenant, row.name)
		require.Equal(t, row.base, base)
		require.NoError(t, jig.CheckSessionID(base+"-2026-11-21T07:00:00Z"), "the form that Temporal makes")
		require.NoError(t, CheckScheduleName(row.tenant, row.name))
	}
	long := strings.Repeat("n", 63)
	require.NoError(t, CheckScheduleName("acme", long))
	require.ErrorContains(t, CheckScheduleName(long, long), "together are too long")
}

func TestScheduleOptions_Invalid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(o *ScheduleOptions)
		field  string
	}{
		"no name":         {func(o *ScheduleOptions) { o.Name = "" }, "name"},
		"bad name":        {func(o *ScheduleOptions) { o.Name = "a/b" }, "name"},
		"bad tenant":      {func(o *ScheduleOptions) { o.Tenant = "_global" }, "tenant"},
		"nothing":         {func(o *ScheduleOptions) { o.Session = nil }, "agent"},
		"no agent":        {func(o *ScheduleOptions) { o.Session = &StartOptions{} }, "agent"},
		"both":            {func(o *ScheduleOptions) { o.Call = &CallInput{Tool: "a.b"} }, "tool"},
		"bad tool":        {func(o *ScheduleOptions) { o.Session, o.Call = nil, &CallInput{Tool: "no nonsense"} }, "tool"},
		"large input":     {func(o *ScheduleOptions) { o.Session.Task = strings.Repeat("t", 49<<10) }, "input"},
		"no times":        {func(o *ScheduleOptions) { o.When = Timetable{} }, "cron"},
		"four fields":     {func(o *ScheduleOptions) { o.When.Cron = []string{"0 7 * *"} }, "cron"},
		"no such day":     {func(o *ScheduleOptions) { o.When.Cron = []string{"0 7 * * *", "0 0 31 2 *"} }, "cron"},
		"no such days":    {func(o *ScheduleOptions) { o.When.Cron = []string{"0 0 0 30-31 FEB * *"} }, "cron"},
		"in no month":     {func(o *ScheduleOptions) { o.When.Cron = []string{"0 0 31 4,6,9-9,nov * 2030"} }, "cron"},
		"zone in line":    {func(o *ScheduleOptions) { o.When.Cron = []string{"TZ=Asia/Tokyo 0 7 * * *"} }, "cron"},
		"interval inside": {func(o *ScheduleOptions) { o.When.Cron = []string{"@every 1h"} }, "cron"},
		"too often":       {func(o *ScheduleOptions) { o.When.Every = Span(time.Millisecond) }, "every"},
		"backwards":       {func(o *ScheduleOptions) { o.When.Every = Span(-time.Hour) }, "every"},
		"only an offset":  {func(o *ScheduleOptions) { o.When.Offset = Span(time.Minute) }, "offset"},
		"offset too long": {func(o *ScheduleOptions) { o.When.Every, o.When.Offset = Span(time.Minute), Span(time.Minute) }, "offset"},
		"jitter":          {func(o *ScheduleOptions) { o.When.Jitter = Span(-1) }, "jitter"},
		"end first":       {func(o *ScheduleOptions) { o.When.Start, o.When.End = seven, seven }, "end"},
		"overlap":         {func(o *ScheduleOptions) { o.Overlap = "sometimes" }, "overlap"},
		"catch-up":        {func(o *ScheduleOptions) { o.CatchUp = time.Second }, "catch-up"},
		"limit":           {func(o *ScheduleOptions) { o.Limit = -1 }, "limit"},
	} {
		o := nightly()
		row.change(&o)
		f := newFakeScheduler()
		_, err := f.client().CreateSchedule(t.Context(), o)
		var e *jig.Error
		require.ErrorAs(t, err, &e, name)
		require.Contains(t, []jig.Code{jig.CodeInvalidInput, jig.CodeMissingParam}, e.Code, name)
		require.Equal(t, row.field, e.Field, name)
		require.Empty(t, f.created, name)
	}
}

func TestCreateSchedule_Errors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err   error
		code  jig.Code
		field string
		text  string
	}{
		"taken":       {sdktemporal.ErrScheduleAlreadyRunning, jig.CodeConflict, "name", "schedule nightly already exists"},
		"taken (v2)":  {serviceerror.NewAlreadyExists("x"), jig.CodeConflict, "name", "jig schedule describe nightly"},
		"cron":        {serviceerror.NewInvalidArgument("Invalid schedule spec: DayOfWeek is not in range [0-7]"), jig.CodeInvalidInput, "cron", "DayOfWeek"},
		"zone":        {serviceerror.NewInvalidArgument("Invalid schedule spec: unknown time zone Europe/Berlin"), jig.CodeInvalidInput, "timezone", `"Europe/Berlin"`},
		"attributes":  {serviceerror.NewInvalidArgument("no mapping defined for search attribute JigTenant"), jig.CodeInvalidInput, "", "docs/operations.md"},
		"forbidden":   {serviceerror.NewPermissionDenied("no", ""), jig.CodeNotPermitted, "", "no"},
		"unavailable": {serviceerror.NewUnavailable("away"), jig.CodeUnavailable, "", "away"},
	} {
		f := newFakeScheduler()
		f.errs = []error{row.err}
		_, err := f.client().CreateSchedule(t.Context(), nightly())
		var e *jig.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, row.code, e.Code, name)
		require.Equal(t, row.field, e.Field, name)
		require.ErrorContains(t, err, row.text, name)
		require.Len(t, f.created, 1, "%s: a request that may have arrived is not sent again", name)
	}
	f := newFakeScheduler()
	f.errs = []error{exhausted()}
	_, err := f.client().CreateSchedule(t.Context(), nightly())
	require.NoError(t, err)
	require.Len(t, f.created, 2, "a request that the server refused is sent again")
}

func TestSchedule_Unknown(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	c := f.client()
	_, err := c.CreateSchedule(t.Context(), nightly())
	require.NoError(t, err)
	for name, do := range map[string]func(tenant, name string) error{
		"describe": func(tenant, name string) error { _, err := c.Schedule(t.Context(), tenant, name); return err },
		"pause": func(tenant, name string) error {
			_, err := c.PauseSchedule(t.Context(), ScheduleRequest{Tenant: tenant, Name: name})
			return err
		},
		"resume": func(tenant, name string) error {
			_, err := c.ResumeSchedule(t.Context(), ScheduleRequest{Tenant: tenant, Name: name})
			return err
		},
		"trigger": func(tenant, name string) error {
			_, err := c.TriggerSchedule(t.Context(), ScheduleRequest{Tenant: tenant, Name: name})
			return err
		},
		"delete": func(tenant, name string) error {
			return c.DeleteSchedule(t.Context(), ScheduleRequest{Tenant: tenant, Name: name})
		},
	} {
		require.EqualError(t, do("acme", "nightlx"), "NOT_FOUND: there is no schedule nightlx (name)", name)
		require.ErrorIs(t, do("default", "nightly"), &jig.Error{Code: jig.CodeNotFound}, "%s: another tenant's", name)
		require.ErrorIs(t, do("acme", "../x"), &jig.Error{Code: jig.CodeInvalidInput}, name)
		f.errs = []error{serviceerror.NewNamespaceNotFound("elsewhere")}
		require.ErrorContains(t, do("acme", "nightly"), "Temporal has no namespace elsewhere", name)
	}
	require.Len(t, f.kept, 1)
}

func TestSchedule_PauseResumeDelete(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	c := f.client()
	_, err := c.CreateSchedule(t.Context(), nightly())
	require.NoError(t, err)
	f.errs = []error{exhausted()}
	s, err := c.PauseSchedule(t.Context(), asks("holidays"))
	require.NoError(t, err)
	require.True(t, s.Paused)
	require.Equal(t, "holidays", s.Note)
	s, err = c.ResumeSchedule(t.Context(), asks("back"))
	require.NoError(t, err)
	require.False(t, s.Paused)
	require.Equal(t, "back", s.Note)
	require.NoError(t, c.DeleteSchedule(t.Context(), asks("")))
	require.Empty(t, f.kept)
}

func TestList_ShowsOnlyTheTenantsSessions(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	f.describe = func(id string) (string, string, enumspb.WorkflowExecutionStatus, error) {
		if id != "ses_acme:nightly-2" {
			return unknown(id)
		}
		return protocol.PassWorkflow, "acme", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, nil
	}
	c := f.client()
	other, weekly := hourly(), nightly()
	other.Tenant, weekly.Name = "default", "archive"
	for _, o := range []ScheduleOptions{nightly(), weekly, other} {
		_, err := c.CreateSchedule(t.Context(), o)
		require.NoError(t, err)
	}
	f.kept["jig-sweep-jig"] = f.kept["jig/default/hourly"]
	info := &f.kept["jig/acme/nightly"].d.Info
	info.NextActionTimes = []time.Time{seven}
	info.RecentActions = []sdk.ScheduleActionResult{ran("ses_acme:nightly-1", seven.Add(-48*time.Hour)), ran("ses_acme:nightly-2", seven.Add(-24*time.Hour))}
	f.errs = []error{exhausted()}
	list, err := c.Schedules(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, `JigTenant = "acme"`, f.query)
	require.Len(t, list, 2)
	require.Equal(t, "archive", list[0].Name)
	require.Nil(t, list[0].Last)
	require.Equal(t, Schedule{
		Name: "nightly", Agent: "review", Task: "check it\nand more", When: "0 7 * * 1-5 Europe/Berlin",
		Timetable: Timetable{Cron: []string{"0 7 * * 1-5"}, Timezone: "Europe/Berlin"}, Next: []time.Time{seven},
		Last: &ScheduledSession{
			SessionID: "ses_acme:nightly-2", DueAt: seven.Add(-24 * time.Hour), StartedAt: seven.Add(-24*time.Hour + time.Second), Status: jig.StatusCompleted,
		},
	}, list[1])

	whole, err := c.WholeSchedules(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, []string{"archive ana", "nightly ana"}, []string{whole[0].Name + " " + whole[0].Principal, whole[1].Name + " " + whole[1].Principal})

	list, err = c.Schedules(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, list, 1, "the sweeper's schedule belongs to no tenant")
	require.Equal(t, "deps.list", list[0].Tool)

	f.errs = []error{serviceerror.NewPermissionDenied("no", "")}
	_, err = c.Schedules(t.Context(), "acme")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeNotPermitted})
	_, err = c.Schedules(t.Context(), "_global")
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
}

func TestSchedule_ShowsWhatRuns(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	f.describe = func(id string) (string, string, enumspb.WorkflowExecutionStatus, error) {
		switch id {
		case "old", "b":
			return running(id)
		case "gone":
			return unknown(id)
		default:
			return protocol.PassWorkflow, "acme", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
		}
	}
	c := f.client()
	_, err := c.CreateSchedule(t.Context(), nightly())
	require.NoError(t, err)
	info := &f.kept["jig/acme/nightly"].d.Info
	info.NumActions, info.NumActionsSkippedOverlap, info.NumActionsMissedCatchupWindow, info.CreatedAt = 12, 3, 1, seven
	info.RecentActions = []sdk.ScheduleActionResult{ran("gone", seven), ran("a", seven), ran("b", seven)}
	info.RunningWorkflows = []sdk.ScheduleWorkflowExecution{{WorkflowID: "old"}, {WorkflowID: "b"}}
	s, err := c.Schedule(t.Context(), "acme", "nightly")
	require.NoError(t, err)
	require.Equal(t, &ScheduleCounts{Started: 12, Skipped: 3, Missed: 1}, s.Counts)
	require.Equal(t, seven, s.CreatedAt)
	status := map[string]jig.Status{}
	for _, session := range s.Recent {
		status[session.SessionID] = session.Status
	}
	require.Equal(t, map[string]jig.Status{"gone": "", "a": jig.StatusFailed, "b": jig.StatusWorking}, status)
	require.Len(t, s.Running, 2)
	require.Equal(t, "old", s.Running[0].SessionID)
	require.Equal(t, "b", s.Running[1].SessionID)
	require.Equal(t, "b", s.Last.SessionID)
}

func TestSchedule_SessionStatus(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status enumspb.WorkflowExecutionStatus
		said   jig.Status
		want   jig.Status
	}{
		{enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, jig.StatusWorking, jig.StatusWorking},
		{enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, jig.StatusInputRequired, jig.StatusInputRequired},
		{enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, jig.StatusCompleted, jig.StatusWorking},
		{enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, jig.StatusWorking, jig.StatusCompleted},
		{enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, jig.StatusFailed, jig.StatusFailed},
		{enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, jig.StatusWorking, jig.StatusCanceled},
		{enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, jig.StatusInputRequired, jig.StatusFailed},
		{enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, "", jig.StatusFailed},
	} {
		require.Equal(t, row.want, sessionStatus(row.status, row.said), "%s %s", row.status, row.said)
	}
}

// asks is a request of somebody to operate the schedule of the tests.
func asks(note string) ScheduleRequest {
	return ScheduleRequest{Tenant: "acme", Name: "nightly", By: jig.Principal{ID: "dan"}, Note: note}
}

// The worker is asked, and records, before anything happens to a schedule.
func TestSchedule_NothingHappensThatTheWorkerRefuses(t *testing.T) {
	t.Parallel()
	f := newFakeScheduler()
	c := f.client()
	_, err := c.CreateSchedule(t.Context(), nightly())
	require.NoError(t, err)
	var asked []protocol.OperateRequest
	f.activity = func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.WriteOperate), name)
		asked = append(asked, request.(protocol.OperateRequest)) //nolint:errcheck,forcetypeassert // the test fails if it is not
		return nil, errNotSet
	}
	f.start = func(sdk.StartWorkflowOptions, protocol.PassInput) error {
		require.Fail(t, "nothing starts")
		return nil
	}
	_, paused := c.PauseSchedule(t.Context(), asks("a freeze"))
	_, resumed := c.ResumeSchedule(t.Context(), asks(""))
	_, triggered := c.TriggerSchedule(t.Context(), asks(""))
	_, taken := c.TakeOverSchedule(t.Context(), asks(""))
	for _, err := range []error{paused, resumed, triggered, taken, c.DeleteSchedule(t.Context(), asks(""))} {
		require.Error(t, err)
	}
	require.Len(t, f.kept, 1)
	require.False(t, f.kept["jig/acme/nightly"].d.Schedule.State.Paused)
	owner := nightly().principal().ID
	require.Equal(t, []protocol.OperateRequest{
		{Tenant: "acme", Schedule: "nightly", Action: protocol.SchedulePause, Owner: owner, By: "dan", Note: "a freeze"},
		{Tenant: "acme", Schedule: "nightly", Action: protocol.ScheduleResume, Owner: owner, By: "dan"},
		{Tenant: "acme", Schedule: "nightly", Action: protocol.ScheduleTrigger, Owner: owner, By: "dan"},
		{Tenant: "acme", Schedule: "nightly", Action: protocol.ScheduleTakeOver, Owner: owner, By: "dan"},
		{Tenant: "acme", Schedule: "nightly", Action: protocol.ScheduleDelete, Owner: owner, By: "dan"},
	}, asked)
}

// A trigger starts the session of the schedule for the schedule's principal, and says who triggered it. Somebody who may not operate the schedule
// starts a session of their own.
func TestTrigger_SaysWhoTriggers(t *testing.T) {
	t.Parallel()
	for own, id := range map[bool]string{false: "ses_acme:nightly-", true: "ses_"} {
		f := newFakeScheduler()
		c := f.client()
		o := nightly()
		_, err := c.CreateSchedule(t.Context(), o)
		require.NoError(t, err)
		f.activity = func(sdk.StartActivityOptions, string, any) (any, error) { return protocol.OperateAnswer{Own: own}, nil }
		var started protocol.StartSession
		f.start = func(_ sdk.StartWorkflowOptions, in protocol.PassInput) error {
			started = *in.Start
			return nil
		}
		session, err := c.TriggerSchedule(t.Context(), asks(""))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(session, id), session)
		require.Equal(t, o.Session.Task, started.Task)
		if own {
			require.Equal(t, "dan", started.Principal.ID)
			require.Nil(t, started.Triggered)
			continue
		}
		require.Equal(t, o.Session.Principal.ID, started.Principal.ID)
		require.Equal(t, "dan", started.Triggered.By.ID)
	}
}

// Whoever takes over a schedule is its principal from then on, with their own credential. Everything else stays.
func TestTakeOver_ActsForTheOneWhoAsks(t *testing.T) {
	t.Parallel()
	call := hourly()
	call.Tenant, call.Name = "acme", "nightly"
	for name, o := range map[string]ScheduleOptions{"agent": nightly(), "call": call} {
		f := newFakeScheduler()
		c := f.client()
		o.Mandate = &protocol.Mandate{Credential: "api_key:old", Persons: []string{"ana"}}
		o.Paused, o.Note, o.Limit = true, "not yet", 3
		before, err := c.CreateSchedule(t.Context(), o)
		require.NoError(t, err, name)
		r := asks("")
		r.By.Maker, r.Mandate = "eve", &protocol.Mandate{Credential: "api_key:new", Persons: []string{"dan"}}
		after, err := c.TakeOverSchedule(t.Context(), r)
		require.NoError(t, err, name)
		require.Equal(t, []string{"dan", "eve", "api_key:new"}, []string{after.Principal, after.Maker, after.Credential}, name)
		called, started := actionOf(&f.kept["jig/acme/nightly"].d)
		if called != nil {
			require.Equal(t, r.Mandate, called.Mandate)
		} else {
			require.Equal(t, r.Mandate, started.Mandate)
		}
		after.Principal, after.Maker, after.Credential = before.Principal, before.Maker, before.Credential
		require.Equal(t, before, after, name)
	}
}
