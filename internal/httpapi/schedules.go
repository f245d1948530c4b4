package httpapi

import (
	"cmp"
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// serveSchedules serves the operations on schedules.
func (a *API) serveSchedules() {
	serve(a, api.ListSchedules, a.listSchedules)
	serve(a, api.CreateSchedule, a.createSchedule)
	serve(a, api.GetSchedule, a.getSchedule)
	serve(a, api.PauseSchedule, a.pauseSchedule)
	serve(a, api.ResumeSchedule, a.resumeSchedule)
	serve(a, api.TakeOverSchedule, a.takeOverSchedule)
	serve(a, api.TriggerSchedule, a.triggerSchedule)
	serveAs(a, api.DeleteSchedule, a.deleteSchedule)
}

func (a *API) createSchedule(ctx context.Context, in *api.CreateScheduleRequest) (client.Schedule, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if err := a.mayCall(ctx, b.Tool); err != nil {
		return client.Schedule{}, err
	}
	o := client.ScheduleOptions{
		Tenant: tenant, Name: b.Name, When: b.Timetable, Overlap: b.Overlap, CatchUp: time.Duration(b.CatchUp), Paused: b.Paused, Note: b.Note, Limit: b.Limit,
	}
	if b.Agent != "" || b.Document != "" {
		o.Session = &client.StartOptions{
			Agent: b.Agent, Document: b.Document, Task: b.Task, Model: b.Model, Input: b.Input, Pairs: b.Pairs, Principal: who,
		}
		if b.Document != "" {
			o.Session.DocumentName = cmp.Or(b.DocumentName, "agent.md")
		}
	}
	if b.Tool != "" {
		o.Call = &protocol.CallInput{Tool: b.Tool, Input: b.Input, Pairs: b.Pairs, Principal: who}
	}
	var err error
	if o.Mandate, err = a.mandate(ctx); err != nil {
		return client.Schedule{}, err
	}
	return a.options.Engine.CreateSchedule(ctx, o)
}

// mandate returns what a schedule keeps about the credential of a request, so that it ends with that credential.
func (a *API) mandate(ctx context.Context) (*protocol.Mandate, error) {
	c := exchangeOf(ctx).caller
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	return &protocol.Mandate{
		Credential: c.kind + ":" + c.id, Persons: settings.Persons(identity.Link{Principal: c.principal.ID, Maker: c.principal.Maker}),
	}, nil
}

// operates returns the request to operate a schedule.
func operates(ctx context.Context, name string) client.ScheduleRequest {
	c := exchangeOf(ctx).caller
	may, manages := c.allows(credential.ScopeOperate), c.allows(credential.ScopeManage)
	return client.ScheduleRequest{
		Tenant: c.tenant, Name: name, By: c.principal, Operates: &may, Manages: &manages,
		Mandate: &protocol.Mandate{Credential: c.kind + ":" + c.id},
	}
}

func (a *API) listSchedules(ctx context.Context, _ *struct{}) (api.ScheduleList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Schedules.Schedules(ctx, tenant)
	return api.ScheduleList{Schedules: list}, err
}

func (a *API) getSchedule(ctx context.Context, in *api.SchedulePath) (client.Schedule, error) {
	tenant, _ := callerOf(ctx)
	return a.options.Engine.Schedule(ctx, tenant, in.Schedule)
}

// noted returns the request to operate a schedule with a note.
func noted(ctx context.Context, in *api.ScheduleNoteRequest) client.ScheduleRequest {
	r := operates(ctx, in.Schedule)
	if in.Body != nil {
		r.Note = in.Body.Note
	}
	return r
}

func (a *API) pauseSchedule(ctx context.Context, in *api.ScheduleNoteRequest) (client.Schedule, error) {
	return a.options.Engine.PauseSchedule(ctx, noted(ctx, in))
}

func (a *API) resumeSchedule(ctx context.Context, in *api.ScheduleNoteRequest) (client.Schedule, error) {
	return a.options.Engine.ResumeSchedule(ctx, noted(ctx, in))
}

func (a *API) takeOverSchedule(ctx context.Context, in *api.SchedulePath) (client.Schedule, error) {
	tenant, _ := callerOf(ctx)
	s, err := a.options.Engine.Schedule(ctx, tenant, in.Schedule)
	if err != nil {
		return s, err
	}
	if err := a.mayCall(ctx, s.Tool); err != nil {
		return s, err
	}
	r := operates(ctx, in.Schedule)
	if r.Mandate, err = a.mandate(ctx); err != nil {
		return s, err
	}
	return a.options.Engine.TakeOverSchedule(ctx, r)
}

func (a *API) triggerSchedule(ctx context.Context, in *api.SchedulePath) (api.Triggered, error) {
	tenant, _ := callerOf(ctx)
	if err := a.mayStart(tenant); err != nil {
		return api.Triggered{}, err
	}
	session, err := a.options.Engine.TriggerSchedule(ctx, operates(ctx, in.Schedule))
	return api.Triggered{SessionID: session, ClientID: jig.ClientID(session), Status: jig.StatusWorking}, err
}

func (a *API) deleteSchedule(ctx context.Context, in *api.SchedulePath) (*struct{}, error) {
	return &struct{}{}, a.options.Engine.DeleteSchedule(ctx, operates(ctx, in.Schedule))
}
