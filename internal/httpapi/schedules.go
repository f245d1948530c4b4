package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

type createScheduleRequest struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"63" doc:"Lower-case letters, digits, '.', '_' and '-'"`

		Agent        string            `json:"agent,omitempty" names:"agent" doc:"The agent to start"`
		Document     string            `json:"document,omitempty" doc:"The document of an agent that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Task         string            `json:"task,omitempty" doc:"The first message to the agent"`
		Model        string            `json:"model,omitempty" doc:"A model instead of the agent's own"`
		Tool         string            `json:"tool,omitempty" names:"tool" maxLength:"64" doc:"The tool or the registered composition to run, instead of an agent"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The input of each run"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More inputs, as strings that the schema converts"`

		client.Timetable
		Overlap client.Overlap `json:"overlap,omitempty" enum:"skip,buffer_one,buffer_all,cancel_other,terminate_other,allow_all" doc:"What to do if the previous run has not ended. Default: skip"`
		CatchUp client.Span    `json:"catch_up,omitempty" doc:"How late a missed start may still happen, e.g. 1h. Default: 1h"`
		Paused  bool           `json:"paused,omitempty"`
		Note    string         `json:"note,omitempty" maxLength:"1000"`
		Limit   int            `json:"limit,omitempty" minimum:"0" doc:"Ends the schedule after that many starts"`
	} `nameHint:"CreateSchedule"`
}

type scheduleAnswer struct{ Body client.Schedule }

// shown returns the answer with a schedule.
func shown(s client.Schedule, err error) (*scheduleAnswer, error) {
	s.Next = append([]time.Time{}, s.Next...)
	return &scheduleAnswer{Body: s}, err
}

func (a *API) createSchedule(ctx context.Context, in *createScheduleRequest) (*scheduleAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if err := a.mayCall(ctx, b.Tool); err != nil {
		return nil, err
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
		return nil, err
	}
	return shown(a.options.Engine.CreateSchedule(ctx, o))
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
func operates(ctx context.Context, name, note string) client.ScheduleRequest {
	c := exchangeOf(ctx).caller
	may, manages := c.allows(credential.ScopeOperate), c.allows(credential.ScopeManage)
	return client.ScheduleRequest{
		Tenant: c.tenant, Name: name, By: c.principal, Note: note, Operates: &may, Manages: &manages,
		Mandate: &protocol.Mandate{Credential: c.kind + ":" + c.id},
	}
}

type schedulesAnswer struct {
	Body struct {
		Schedules []client.Schedule `json:"schedules"`
	} `nameHint:"ScheduleList"`
}

func (a *API) listSchedules(ctx context.Context, _ *struct{}) (*schedulesAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Schedules.Schedules(ctx, tenant)
	var answer schedulesAnswer
	answer.Body.Schedules = append([]client.Schedule{}, list...)
	return &answer, err
}

// OneSchedule names a schedule in the path.
type OneSchedule struct {
	Schedule string `path:"schedule" names:"schedule" maxLength:"63" doc:"The name of the schedule"`
}

func (a *API) getSchedule(ctx context.Context, in *OneSchedule) (*scheduleAnswer, error) {
	tenant, _ := callerOf(ctx)
	return shown(a.options.Engine.Schedule(ctx, tenant, in.Schedule))
}

type noteRequest struct {
	OneSchedule
	Body *struct {
		Note string `json:"note,omitempty" maxLength:"1000" doc:"A note for people; it replaces the previous one"`
	} `nameHint:"ScheduleNote"`
}

func (in *noteRequest) note() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.Note
}

func (a *API) pauseSchedule(ctx context.Context, in *noteRequest) (*scheduleAnswer, error) {
	return shown(a.options.Engine.PauseSchedule(ctx, operates(ctx, in.Schedule, in.note())))
}

func (a *API) resumeSchedule(ctx context.Context, in *noteRequest) (*scheduleAnswer, error) {
	return shown(a.options.Engine.ResumeSchedule(ctx, operates(ctx, in.Schedule, in.note())))
}

func (a *API) takeOverSchedule(ctx context.Context, in *OneSchedule) (*scheduleAnswer, error) {
	tenant, _ := callerOf(ctx)
	s, err := a.options.Engine.Schedule(ctx, tenant, in.Schedule)
	if err != nil {
		return nil, err
	}
	if err := a.mayCall(ctx, s.Tool); err != nil {
		return nil, err
	}
	r := operates(ctx, in.Schedule, "")
	if r.Mandate, err = a.mandate(ctx); err != nil {
		return nil, err
	}
	return shown(a.options.Engine.TakeOverSchedule(ctx, r))
}

type triggeredAnswer struct {
	Body struct {
		SessionID string     `json:"session_id,omitempty" doc:"The session"`
		ClientID  string     `json:"client_id,omitempty"`
		Status    jig.Status `json:"status" enum:"working"`
	} `nameHint:"Triggered"`
}

func (a *API) triggerSchedule(ctx context.Context, in *OneSchedule) (*triggeredAnswer, error) {
	tenant, _ := callerOf(ctx)
	if err := a.mayStart(tenant); err != nil {
		return nil, err
	}
	session, err := a.options.Engine.TriggerSchedule(ctx, operates(ctx, in.Schedule, ""))
	var answer triggeredAnswer
	answer.Body.SessionID, answer.Body.ClientID, answer.Body.Status = session, jig.ClientID(session), jig.StatusWorking
	return &answer, err
}

func (a *API) deleteSchedule(ctx context.Context, in *OneSchedule) (*struct{}, error) {
	return &struct{}{}, a.options.Engine.DeleteSchedule(ctx, operates(ctx, in.Schedule, ""))
}
