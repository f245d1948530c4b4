package client

import (
	"context"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// TriggerSchedule starts a schedule's session or call immediately, alongside sessions that are still running, even if the schedule is paused or has no
// starts left, and returns the session's id. The schedule's own principal, and whoever operates schedules, start it for the principal of the
// schedule; for anybody else, it is a start in their own name.
func (c *Client) TriggerSchedule(ctx context.Context, r ScheduleRequest) (sessionID string, err error) {
	d, answer, err := c.operate(ctx, &r, protocol.ScheduleTrigger)
	if err != nil {
		return "", err
	}
	call, start := actionOf(d)
	switch {
	case call == nil && start == nil:
		return "", unreadable(r.Name)
	case answer.Own && call != nil:
		call.Tenant, call.Principal, call.Source, call.Proof, call.Mandate = r.Tenant, r.By, jig.SourceAPI, "", nil
		started, err := c.StartCall(ctx, *call, "")
		return started.SessionID, err
	case answer.Own:
		o := optionsOf(*start)
		o.Tenant, o.Principal, o.Source = r.Tenant, r.By, jig.SourceAPI
		started, err := c.Start(ctx, o)
		return started.SessionID, err
	}
	return c.triggerAs(ctx, r, call, start)
}

// triggerAs starts the call or the session of a schedule for the schedule's principal, and says who triggered it.
func (c *Client) triggerAs(ctx context.Context, r ScheduleRequest, call *protocol.CallInput, start *protocol.StartSession) (string, error) {
	base := sessionBase(r.Tenant, r.Name)
	triggered := &protocol.Triggered{By: r.By}
	for range 3 { // another start may take the same second
		id := base + time.Now().UTC().Format(appendedTime)
		content := ""
		if call != nil {
			content = callRequest(*call).Digest()
		} else {
			content = optionsOf(*start).request().Digest()
		}
		var err error
		triggered.Proof, err = c.vouch(ctx, protocol.Statement{
			Kind: protocol.StateTrigger, Tenant: r.Tenant, Principal: r.By, Session: id, Content: content, Source: jig.SourceSchedule,
		})
		if err != nil {
			return "", err
		}
		var started Started
		if call != nil {
			call.Triggered = triggered
			started, err = c.startOnce(ctx, c.callStart(id, *call), protocol.CallWorkflow, *call)
		} else {
			start.Triggered = triggered
			o := optionsOf(*start)
			o.ID, o.Tenant = id, r.Tenant
			var options sdk.StartWorkflowOptions
			var input protocol.PassInput
			options, input = c.sessionStart(o, *start)
			started, err = c.startOnce(ctx, options, protocol.PassWorkflow, input)
		}
		if err != nil || !started.Existing {
			return started.SessionID, err
		}
		if !sleep(ctx, time.Second) {
			return "", translate(ctx.Err())
		}
	}
	return "", jig.Errorf(jig.CodeConflict, "schedule %s keeps starting sessions in the same second", r.Name).WithField("name")
}

// TakeOverSchedule lets a schedule act for the one who asks, with their credential, so that it no longer ends with the person or the credential that
// created it. Its times and what it starts stay. The error is NOT_PERMITTED unless the one who asks manages the tenant.
func (c *Client) TakeOverSchedule(ctx context.Context, r ScheduleRequest) (Schedule, error) {
	d, _, err := c.operate(ctx, &r, protocol.ScheduleTakeOver)
	if err != nil {
		return Schedule{}, err
	}
	o := ScheduleOptions{Tenant: r.Tenant, Name: r.Name, Mandate: r.Mandate}
	call, start := actionOf(d)
	switch {
	case call != nil:
		call.Principal, call.Proof = r.By, ""
		o.Call = call
	case start != nil:
		session := optionsOf(*start)
		session.Principal = r.By
		o.Session = &session
	default:
		return Schedule{}, unreadable(r.Name)
	}
	action, _, err := c.scheduleAction(ctx, o)
	if err != nil {
		return Schedule{}, err
	}
	update := func(in sdk.ScheduleUpdateInput) (*sdk.ScheduleUpdate, error) { //nolint:unparam // the type is the SDK's
		in.Description.Schedule.Action = action
		return &sdk.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}
	if err := c.onSchedule(ctx, r.Tenant, r.Name, busy, func(ctx context.Context, h sdk.ScheduleHandle) error {
		return h.Update(ctx, sdk.ScheduleUpdateOptions{DoUpdate: update})
	}); err != nil {
		return Schedule{}, err
	}
	return c.Schedule(ctx, r.Tenant, r.Name)
}

// unreadable returns the error for a schedule whose action jig cannot decode.
func unreadable(name string) error {
	return jig.Errorf(jig.CodeConflict, "schedule %s was changed by another program, so jig does not know what it starts", name).WithField("name")
}

// optionsOf returns the options of a start that a schedule keeps.
func optionsOf(s protocol.StartSession) StartOptions {
	return StartOptions{
		Agent: s.Agent, Document: s.Document, DocumentName: s.DocumentName, Task: s.Task, Input: s.Input, Pairs: s.Pairs, Model: s.Model, Principal: s.Principal,
		Source: s.Source,
	}
}
