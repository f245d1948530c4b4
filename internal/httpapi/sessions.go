package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// serveSessions serves the operations on sessions and their events.
func (a *API) serveSessions() {
	serveAs(a, api.StartSession, a.startSession)
	read(a, api.ListSessions)
	serve(a, api.GetSession, a.getSession)
	serveAs(a, api.GetResult, a.getResult)
	read(a, api.GetTranscript)
	serveAs(a, api.GetEvents, a.getEvents)
	serveAs(a, api.GetTenantEvents, a.getTenantEvents)
	serve(a, api.SendMessage, a.sendMessage)
	serve(a, api.SendEvent, a.sendEvent)
	serve(a, api.CancelSession, a.cancelSession)
	serve(a, api.PauseSession, a.pauseSession)
	serve(a, api.ResumeSession, a.resumeSession)
	serveAs(a, api.RetrySession, a.retrySession)
	serveAs(a, api.UndoSession, a.undoSession)
}

// statusText returns a status as the OpenAPI document names it; 0 means 200.
func statusText(status int) string { return strconv.Itoa(cmp.Or(status, http.StatusOK)) }

type startAnswer struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed" doc:"true if nothing was started because the same request was made before"`
	Body     api.StartedSession
}

func (a *API) startSession(ctx context.Context, in *api.StartSessionRequest) (*startAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.Agent != "" && b.Document != "" {
		return nil, invalid("give an agent or a document, not both").WithField("document")
	}
	o := client.StartOptions{
		Tenant: tenant, ID: b.ID, Key: in.Key, Agent: b.Agent, Document: b.Document, Task: b.Task, Input: b.Input, Pairs: b.Pairs, Model: b.Model,
		Principal: who, Source: b.From(), Check: true,
	}
	if b.Document != "" {
		o.DocumentName = cmp.Or(b.DocumentName, "agent.md")
	}
	if err := a.mayStart(tenant); err != nil {
		return nil, err
	}
	started, err := a.options.Engine.Start(ctx, o)
	if err != nil {
		return nil, replayed(in.Key, err)
	}
	answer := &startAnswer{
		Status: http.StatusCreated, Location: "/v1/sessions/" + started.SessionID,
		Body: api.StartedSession{SessionID: started.SessionID, ClientID: started.ClientID, Status: jig.StatusWorking},
	}
	if started.Existing {
		answer.Status, answer.Replayed = http.StatusOK, "true"
		if answer.Body.Status, err = a.standing(ctx, tenant, started.SessionID); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// replayed returns the error of a start. Another request under a used key is not a conflict about an id, which the client did not choose.
func replayed(key string, err error) error {
	e := jig.AsError(err)
	if key == "" || e.Code != jig.CodeConflict || e.Field != "id" {
		return err
	}
	return failed(http.StatusUnprocessableEntity, jig.Errorf(jig.CodeConflict, "the idempotency key was used for another request").
		WithField(headerKey).WithHint("repeat the first request exactly, or choose another key"))
}

// standing returns the status of a session, also before a worker has picked it up.
func (a *API) standing(ctx context.Context, tenant, id string) (jig.Status, error) {
	status, _, err := a.progress(ctx, tenant, id)
	return status, err
}

// progress returns the status of a session and its latest pass, also before a worker has picked it up.
func (a *API) progress(ctx context.Context, tenant, id string) (status jig.Status, pass int, err error) {
	session, err := a.options.Log.Session(ctx, tenant, id)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return session.Status, session.Pass, err
	}
	result, err := a.options.Engine.SessionResult(ctx, tenant, id)
	return result.Status, result.Passes, err
}

func (a *API) getSession(ctx context.Context, in *api.SessionPath) (jig.SessionView, error) {
	tenant, _ := callerOf(ctx)
	view, err := a.options.Engine.Status(ctx, tenant, in.Session)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return view, err
	}
	result, err := a.options.Engine.SessionResult(ctx, tenant, in.Session) // no worker may have picked it up yet
	return jig.SessionView{
		SessionID: result.SessionID, ClientID: result.ClientID, Status: result.Status, Reason: result.Reason, Error: result.Error,
		Pending: []jig.Pending{}, Calls: []jig.CallView{},
	}, err
}

type resultAnswer struct {
	Status int
	Body   protocol.SessionResult
}

func (a *API) getResult(ctx context.Context, in *api.ResultRequest) (*resultAnswer, error) {
	tenant, _ := callerOf(ctx)
	result, err := a.options.Engine.SessionResult(ctx, tenant, in.Session)
	if err == nil && !result.Status.Final() && in.Wait > 0 {
		waiting, over := a.patiently(ctx, time.Duration(in.Wait)*time.Second)
		_, err = a.options.Engine.Result(waiting, tenant, in.Session)
		if waiting.Err() != nil {
			err = a.outlived(waiting)
		}
		if over(); err == nil {
			result, err = a.options.Engine.SessionResult(ctx, tenant, in.Session)
		}
	}
	answer := &resultAnswer{Status: http.StatusOK, Body: result}
	if !result.Status.Final() {
		answer.Status = http.StatusAccepted
	}
	return answer, err
}

func accepted(tenant, session string) api.Accepted {
	return api.Accepted{SessionID: jig.SessionID(tenant, session)}
}

func (a *API) sendMessage(ctx context.Context, in *api.MessageRequest) (api.MessageAccepted, error) {
	tenant, who := callerOf(ctx)
	response := api.MessageAccepted{SessionID: jig.SessionID(tenant, in.Session)}
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	if err != nil {
		return response, err
	}
	if err := a.options.Engine.Say(ctx, tenant, in.Session, protocol.Message{Text: in.Body.Text, By: who.ID, ID: in.Body.ID}); err != nil {
		return response, err
	}
	if !settings.OthersApprove(who, time.Now()) {
		response.Note = "calls that rest on this message are denied if they need an approval: nobody else in this tenant could give it by default"
	}
	return response, nil
}

func (a *API) sendEvent(ctx context.Context, in *api.EventRequest) (api.Accepted, error) {
	tenant, who := callerOf(ctx)
	err := a.options.Engine.Event(ctx, tenant, in.Session, protocol.Event{Name: in.Body.Name, Data: in.Body.Data, ID: in.Body.ID, By: who.ID})
	return accepted(tenant, in.Session), err
}

func (a *API) cancelSession(ctx context.Context, in *api.CancelRequest) (api.Accepted, error) {
	tenant, who := callerOf(ctx)
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return accepted(tenant, in.Session), a.options.Engine.CancelBecause(ctx, tenant, in.Session, reason, who.ID)
}

func (a *API) undoSession(ctx context.Context, in *api.UndoRequest) (*callAnswer, error) {
	tenant, _ := callerOf(ctx)
	session := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, session); err != nil {
		return nil, err
	}
	var of api.Undo
	if in.Body != nil {
		of = *in.Body
	}
	return a.callOf(ctx, in.CallHeaders, toolname.SessionsUndo, struct {
		SessionID string `json:"session_id"`
		api.Undo
	}{session, of})
}

func (a *API) retrySession(ctx context.Context, in *api.RetryRequest) (*callAnswer, error) {
	tenant, _ := callerOf(ctx)
	session := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, session); err != nil {
		return nil, err
	}
	return a.callOf(ctx, in.CallHeaders, toolname.SessionsRetry, struct {
		SessionID       string `json:"session_id"`
		MayHaveHappened bool   `json:"may_have_happened,omitempty"`
	}{session, in.Body != nil && in.Body.MayHaveHappened})
}
