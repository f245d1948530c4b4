package remote

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
)

// Catalog lists the tools and the registered documents, like [client.Client.Catalog].
func (c *Client) Catalog(ctx context.Context, tenant string) (client.Catalog, error) {
	return call(ctx, c, api.ListTools, struct{}{})
}

// Document returns a registered document, like [client.Client.Document].
func (c *Client) Document(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	found, err := call(ctx, c, api.GetDocument, api.GetDocumentRequest{DocumentPath: api.DocumentPath{Kind: kind, Name: name}})
	return []byte(found.Text), err
}

// Entity returns the state of an entity's latest extraction, like [client.Client.Entity].
func (c *Client) Entity(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	return call(ctx, c, api.GetExtraction, api.EntityPath{Entity: id})
}

// CreateSchedule creates a schedule, like [client.Client.CreateSchedule].
func (c *Client) CreateSchedule(ctx context.Context, o client.ScheduleOptions) (client.Schedule, error) {
	if err := o.Check(); err != nil {
		return client.Schedule{}, err
	}
	var in api.CreateScheduleRequest
	b := &in.Body
	b.Name, b.Timetable, b.Overlap, b.CatchUp, b.Paused, b.Note, b.Limit = o.Name, o.When, o.Overlap, client.Span(o.CatchUp), o.Paused, o.Note, o.Limit
	if s := o.Session; s != nil {
		b.Agent, b.Document, b.DocumentName, b.Task, b.Model = s.Agent, s.Document, s.DocumentName, s.Task, s.Model
		b.Input, b.Pairs = value(s.Input), s.Pairs
		if s.Document != "" {
			b.Agent = ""
		}
	} else {
		b.Tool, b.Input, b.Pairs = o.Call.Tool, value(o.Call.Input), o.Call.Pairs
	}
	return call(ctx, c, api.CreateSchedule, in)
}

// Schedules lists schedules, like [client.Client.Schedules].
func (c *Client) Schedules(ctx context.Context, tenant string) ([]client.Schedule, error) {
	list, err := call(ctx, c, api.ListSchedules, struct{}{})
	return list.Schedules, err
}

// Schedule returns one schedule, like [client.Client.Schedule].
func (c *Client) Schedule(ctx context.Context, tenant, name string) (client.Schedule, error) {
	return call(ctx, c, api.GetSchedule, api.SchedulePath{Schedule: name})
}

// PauseSchedule pauses a schedule, like [client.Client.PauseSchedule].
func (c *Client) PauseSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	return call(ctx, c, api.PauseSchedule, noted(r))
}

// ResumeSchedule resumes a schedule, like [client.Client.ResumeSchedule].
func (c *Client) ResumeSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	return call(ctx, c, api.ResumeSchedule, noted(r))
}

func noted(r client.ScheduleRequest) api.ScheduleNoteRequest {
	return api.ScheduleNoteRequest{SchedulePath: api.SchedulePath{Schedule: r.Name}, Body: &api.ScheduleNote{Note: r.Note}}
}

// TakeOverSchedule takes over a schedule, like [client.Client.TakeOverSchedule].
func (c *Client) TakeOverSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	return call(ctx, c, api.TakeOverSchedule, api.SchedulePath{Schedule: r.Name})
}

// TriggerSchedule starts a schedule's session at once, like [client.Client.TriggerSchedule].
func (c *Client) TriggerSchedule(ctx context.Context, r client.ScheduleRequest) (string, error) {
	started, err := call(ctx, c, api.TriggerSchedule, api.SchedulePath{Schedule: r.Name})
	return started.SessionID, err
}

// DeleteSchedule deletes a schedule, like [client.Client.DeleteSchedule].
func (c *Client) DeleteSchedule(ctx context.Context, r client.ScheduleRequest) error {
	_, err := call(ctx, c, api.DeleteSchedule, api.SchedulePath{Schedule: r.Name})
	return err
}
