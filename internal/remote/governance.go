package remote

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// Grants lists standing approvals, like [client.Client.Grants].
func (c *Client) Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error) {
	list, err := call(ctx, c, api.ListGrants, api.ListGrantsRequest{All: all})
	return list.Grants, err
}

// GrantFits returns the waiting calls that a grant covers, like [client.Client.GrantFits].
func (c *Client) GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error) {
	list, err := call(ctx, c, api.ListGrantCalls, api.GrantPath{Grant: grant})
	return list.Approvals, err
}

// CredentialEvents lists what happened with the tenant's credentials, the newest first. An empty kind or principal means all.
func (c *Client) CredentialEvents(ctx context.Context, kind, principal, cursor string, limit int) (identity.CredentialEvents, error) {
	return call(ctx, c, api.ListCredentialEvents, api.CredentialEventsRequest{Kind: kind, Principal: principal, Page: api.Page{Cursor: cursor, Limit: limit}})
}

// TakeOverKey makes the client's credential the one that made an API key, and gives the key a new text.
func (c *Client) TakeOverKey(ctx context.Context, id string) (credential.CreatedKey, error) {
	return call(ctx, c, api.TakeOverAPIKey, api.APIKeyPath{Key: id})
}

// Dependents lists what ends with a person or with an API key. One of them is empty.
func (c *Client) Dependents(ctx context.Context, person, key string) ([]identity.Dependent, error) {
	list, err := call(ctx, c, api.ListDependents, api.DependentsRequest{Person: person, Key: key})
	return list.Dependents, err
}

// RevokeGrant revokes a standing approval, like [client.Client.RevokeGrant].
func (c *Client) RevokeGrant(ctx context.Context, r protocol.GrantsRequest) (jig.Grant, error) {
	return call(ctx, c, api.RevokeGrant, api.RevokeGrantRequest{GrantPath: api.GrantPath{Grant: r.Revoke}, Body: &api.RevokeGrantBody{Token: r.Token}})
}

// Pause holds back calls, like [client.Client.Pause].
func (c *Client) Pause(ctx context.Context, r protocol.PauseRequest) (protocol.PauseResult, error) {
	return call(ctx, c, api.Pause, pauseCalls(r))
}

// Resume ends a pause, like [client.Client.Resume].
func (c *Client) Resume(ctx context.Context, r protocol.PauseRequest) (protocol.PauseResult, error) {
	return call(ctx, c, api.Resume, pauseCalls(r))
}

func pauseCalls(r protocol.PauseRequest) (in api.PauseRequest) {
	in.Body.Scope, in.Body.Target, in.Body.Reason, in.Body.Token = r.Scope, r.Target, r.Reason, r.Token
	return in
}

// Installation returns the id of the installation, like [client.Client.Installation].
func (c *Client) Installation(context.Context, string) (string, error) { return c.Me.Installation, nil }

// Policies lists the policies in force, like [client.Client.Policies].
func (c *Client) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	list, err := call(ctx, c, api.ListPolicies, struct{}{})
	return list.Policies, err
}

// Backtest shows what a policy document would have decided, like [client.Client.Backtest].
func (c *Client) Backtest(
	ctx context.Context, tenant string, document []byte, since time.Time, all bool, fn func(protocol.BacktestPage) error,
) error {
	var in api.BacktestRequest
	in.Body.Document, in.Body.Since, in.Body.All = string(document), since, all
	for {
		page, err := call(ctx, c, api.BacktestPolicy, in)
		if err != nil {
			return err
		}
		if err := fn(page); err != nil || page.Next == "" || page.Next == in.Body.Cursor {
			return err
		}
		in.Body.Cursor = page.Next
	}
}

// Audit calls fn with the pages of the audit chain, like [client.Client.Audit].
func (c *Client) Audit(ctx context.Context, r protocol.AuditRequest, fn func(protocol.AuditPage) error) error {
	return r.Pages(func(r protocol.AuditRequest) (protocol.AuditPage, error) { return call(ctx, c, api.GetAudit, r) }, fn)
}

// Catalog lists the tools and the registered documents, like [client.Client.Catalog].
func (c *Client) Catalog(ctx context.Context, tenant string) (client.Catalog, error) {
	return call(ctx, c, api.ListTools, struct{}{})
}

// Document returns a registered document, like [client.Client.Document].
func (c *Client) Document(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	return c.DocumentAt(ctx, tenant, kind, name, "")
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
