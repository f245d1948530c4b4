package remote

import (
	"context"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// Catalog lists the tools and the registered documents, like [client.Client.Catalog].
func (c *Client) Catalog(ctx context.Context, tenant string) (all client.Catalog, err error) {
	err = c.get(ctx, "/v1/tools", nil, &all)
	return all, err
}

// Document returns a registered document, like [client.Client.Document].
func (c *Client) Document(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	var found struct{ Text string }
	err := c.get(ctx, path("documents", kind, name), nil, &found)
	return []byte(found.Text), err
}

// Entity returns the state of an entity's latest extraction, like [client.Client.Entity].
func (c *Client) Entity(ctx context.Context, tenant, id string) (status jig.EntityStatus, err error) {
	err = c.get(ctx, path("entities", id, "extraction"), nil, &status)
	return status, err
}

// CreateSchedule creates a schedule, like [client.Client.CreateSchedule].
func (c *Client) CreateSchedule(ctx context.Context, o client.ScheduleOptions) (client.Schedule, error) {
	if err := o.Check(); err != nil {
		return client.Schedule{}, err
	}
	body := struct {
		Name         string            `json:"name"`
		Agent        string            `json:"agent,omitempty"`
		Document     string            `json:"document,omitempty"`
		DocumentName string            `json:"document_name,omitempty"`
		Task         string            `json:"task,omitempty"`
		Model        string            `json:"model,omitempty"`
		Tool         string            `json:"tool,omitempty"`
		Input        any               `json:"input,omitempty"`
		Pairs        map[string]string `json:"pairs,omitempty"`
		client.Timetable
		Overlap client.Overlap `json:"overlap,omitempty"`
		CatchUp client.Span    `json:"catch_up,omitzero"`
		Paused  bool           `json:"paused,omitempty"`
		Note    string         `json:"note,omitempty"`
		Limit   int            `json:"limit,omitempty"`
	}{
		Name: o.Name, Timetable: o.When, Overlap: o.Overlap, CatchUp: client.Span(o.CatchUp), Paused: o.Paused, Note: o.Note, Limit: o.Limit,
	}
	if s := o.Session; s != nil {
		body.Agent, body.Document, body.DocumentName, body.Task, body.Model = s.Agent, s.Document, s.DocumentName, s.Task, s.Model
		body.Input, body.Pairs = value(s.Input), s.Pairs
		if s.Document != "" {
			body.Agent = ""
		}
	} else {
		body.Tool, body.Input, body.Pairs = o.Call.Tool, value(o.Call.Input), o.Call.Pairs
	}
	var created client.Schedule
	err := c.post(ctx, "/v1/schedules", body, &created)
	return created, err
}

// Schedules lists schedules, like [client.Client.Schedules].
func (c *Client) Schedules(ctx context.Context, tenant string) ([]client.Schedule, error) {
	var answer struct{ Schedules []client.Schedule }
	err := c.get(ctx, "/v1/schedules", nil, &answer)
	return answer.Schedules, err
}

// Schedule returns one schedule, like [client.Client.Schedule].
func (c *Client) Schedule(ctx context.Context, tenant, name string) (s client.Schedule, err error) {
	err = c.get(ctx, path("schedules", name), nil, &s)
	return s, err
}

// PauseSchedule pauses a schedule, like [client.Client.PauseSchedule].
func (c *Client) PauseSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	return c.patchSchedule(ctx, r.Name, "pause", r.Note)
}

// ResumeSchedule resumes a schedule, like [client.Client.ResumeSchedule].
func (c *Client) ResumeSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error) {
	return c.patchSchedule(ctx, r.Name, "resume", r.Note)
}

// TakeOverSchedule takes over a schedule, like [client.Client.TakeOverSchedule].
func (c *Client) TakeOverSchedule(ctx context.Context, r client.ScheduleRequest) (s client.Schedule, err error) {
	err = c.post(ctx, path("schedules", r.Name, "take-over"), nil, &s)
	return s, err
}

func (c *Client) patchSchedule(ctx context.Context, name, operation, note string) (s client.Schedule, err error) {
	err = c.post(ctx, path("schedules", name, operation), map[string]string{"note": note}, &s)
	return s, err
}

// TriggerSchedule starts a schedule's session at once, like [client.Client.TriggerSchedule].
func (c *Client) TriggerSchedule(ctx context.Context, r client.ScheduleRequest) (string, error) {
	var started struct {
		SessionID string `json:"session_id"`
	}
	err := c.post(ctx, path("schedules", r.Name, "trigger"), nil, &started)
	return started.SessionID, err
}

// DeleteSchedule deletes a schedule, like [client.Client.DeleteSchedule].
func (c *Client) DeleteSchedule(ctx context.Context, r client.ScheduleRequest) error {
	return c.decode(ctx, request{method: http.MethodDelete, path: path("schedules", r.Name)}, nil)
}
