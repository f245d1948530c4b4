package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// statusText returns a status as the OpenAPI document names it; 0 means 200.
func statusText(status int) string { return strconv.Itoa(cmp.Or(status, http.StatusOK)) }

// Identified holds the header of requests that start something.
type Identified struct {
	Key string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]+$" doc:"Repeating a request with the same key returns what the first one started. Use it instead of an id."`
}

// One names a session in the path.
type One struct {
	Session string `path:"session" names:"session" maxLength:"192" doc:"The id of the session"`
}

type startRequest struct {
	Identified
	Body struct {
		Origin
		ID           string            `json:"id,omitempty" doc:"An id of your own, unique in the tenant, such as order-7"`
		Agent        string            `json:"agent,omitempty" names:"agent" doc:"The name of a registered agent"`
		Document     string            `json:"document,omitempty" doc:"The document of an agent that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Task         string            `json:"task,omitempty" doc:"The first message to the agent"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The input, an object that fits the agent's schema"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More inputs, as strings that the agent's schema converts"`
		Model        string            `json:"model,omitempty" doc:"A model instead of the agent's own"`
	} `nameHint:"StartSession"`
}

// startedSession is a session that a request started, or had started before.
type startedSession struct {
	SessionID string     `json:"session_id"`
	ClientID  string     `json:"client_id,omitempty" doc:"The id that the client chose"`
	Status    jig.Status `json:"status" enum:"working,input_required,completed,failed,canceled"`
}

type startAnswer struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed" doc:"true if nothing was started because the same request was made before"`
	Body     startedSession
}

func (a *API) startSession(ctx context.Context, in *startRequest) (*startAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.Agent != "" && b.Document != "" {
		return nil, invalid("give an agent or a document, not both").WithField("document")
	}
	o := client.StartOptions{
		Tenant: tenant, ID: b.ID, Key: in.Key, Agent: b.Agent, Document: b.Document, Task: b.Task, Input: b.Input, Pairs: b.Pairs, Model: b.Model,
		Principal: who, Source: b.source(), Check: true,
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
		Body: startedSession{SessionID: started.SessionID, ClientID: started.ClientID, Status: jig.StatusWorking},
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

type listSessionsRequest struct {
	Status      string    `query:"status" enum:"working,input_required,completed,failed,canceled"`
	Agent       string    `query:"agent" names:"agent" maxLength:"200" doc:"Only sessions of this agent; call selects single calls"`
	RequestedBy string    `query:"requested_by" names:"person" maxLength:"200" doc:"Only sessions that this principal started"`
	Reason      string    `query:"reason" maxLength:"200" doc:"Only sessions with this reason, e.g. partial for extractions that failed in part"`
	Parent      string    `query:"parent" names:"session" maxLength:"192" doc:"Only sessions that this session started"`
	Children    bool      `query:"children" doc:"Include sessions that other sessions started"`
	Before      time.Time `query:"before" doc:"Only sessions that were started before this time"`
	After       time.Time `query:"after" doc:"Only sessions that were started after this time"`
	Page
}

// Page holds the parameters of lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page, with the same filter"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"40" doc:"The maximum number of entries. A page may have fewer even if more follow"`
}

type sessionsAnswer struct {
	Body struct {
		Sessions []protocol.SessionItem `json:"sessions"`
		Next     string                 `json:"next_cursor,omitempty"`
	} `nameHint:"SessionList"`
}

func (a *API) listSessions(ctx context.Context, in *listSessionsRequest) (*sessionsAnswer, error) {
	tenant, _ := callerOf(ctx)
	found, err := a.options.Engine.Sessions.Sessions(ctx, tenant, protocol.SessionFilter{
		Status: jig.Status(in.Status), Agent: in.Agent, RequestedBy: in.RequestedBy, Reason: in.Reason, ParentID: in.Parent, Roots: !in.Children && in.Parent == "",
		Before: in.Before, After: in.After,
	}, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	var answer sessionsAnswer
	answer.Body.Sessions, answer.Body.Next = append([]protocol.SessionItem{}, found.Sessions...), found.Next
	return &answer, nil
}

type sessionAnswer struct{ Body jig.SessionView }

func (a *API) getSession(ctx context.Context, in *One) (*sessionAnswer, error) {
	tenant, _ := callerOf(ctx)
	view, err := a.options.Engine.Status(ctx, tenant, in.Session)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return &sessionAnswer{Body: view}, err
	}
	result, err := a.options.Engine.SessionResult(ctx, tenant, in.Session) // no worker may have picked it up yet
	return &sessionAnswer{Body: jig.SessionView{
		SessionID: result.SessionID, ClientID: result.ClientID, Status: result.Status, Reason: result.Reason, Error: result.Error,
		Pending: []jig.Pending{}, Calls: []jig.CallView{},
	}}, err
}

type resultRequest struct {
	One
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"How many seconds to wait for the end"`
}

type resultAnswer struct {
	Status int
	Body   protocol.SessionResult
}

func (a *API) getResult(ctx context.Context, in *resultRequest) (*resultAnswer, error) {
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

type transcriptRequest struct {
	One
	Cursor string `query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page"`
}

type transcriptAnswer struct {
	Body struct {
		SessionID string                     `json:"session_id"`
		ClientID  string                     `json:"client_id,omitempty"`
		Opening   *protocol.Opening          `json:"opening,omitempty" doc:"What the session was started with; only on the first page"`
		Entries   []protocol.TranscriptEntry `json:"entries"`
		Next      string                     `json:"next_cursor,omitempty"`
	} `nameHint:"Transcript"`
}

func (a *API) getTranscript(ctx context.Context, in *transcriptRequest) (*transcriptAnswer, error) {
	tenant, _ := callerOf(ctx)
	found, err := a.options.Engine.Transcript(ctx, tenant, in.Session, in.Cursor)
	if err != nil {
		return nil, err
	}
	var answer transcriptAnswer
	b := &answer.Body
	b.SessionID, b.ClientID, b.Opening, b.Entries, b.Next = found.SessionID, found.ClientID, found.Opening, found.Entries, found.Next
	return &answer, nil
}

type messageRequest struct {
	One
	Body struct {
		Text string `json:"text" minLength:"1"`
		ID   string `json:"id,omitempty" maxLength:"256" doc:"An id of your own: the session accepts only one message with it"`
	} `nameHint:"SendMessage"`
}

// acceptedAnswer confirms that a request was passed on to a session.
type acceptedAnswer struct {
	Body struct {
		SessionID string `json:"session_id"`
	} `nameHint:"Accepted"`
}

func accepted(tenant, session string) *acceptedAnswer {
	var answer acceptedAnswer
	answer.Body.SessionID = jig.SessionID(tenant, session)
	return &answer
}

// messageAnswer confirms that a message was passed on to a session.
type messageAnswer struct {
	Body struct {
		SessionID string `json:"session_id"`
		Note      string `json:"note,omitempty" doc:"Present if nobody but the author could approve the calls that follow, unless a policy says otherwise"`
	} `nameHint:"MessageAccepted"`
}

func (a *API) sendMessage(ctx context.Context, in *messageRequest) (*messageAnswer, error) {
	tenant, who := callerOf(ctx)
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := a.options.Engine.Say(ctx, tenant, in.Session, protocol.Message{Text: in.Body.Text, By: who.ID, ID: in.Body.ID}); err != nil {
		return nil, err
	}
	var answer messageAnswer
	answer.Body.SessionID = jig.SessionID(tenant, in.Session)
	if !settings.OthersApprove(who, time.Now()) {
		answer.Body.Note = "calls that rest on this message are denied if they need an approval: nobody else in this tenant could give it by default"
	}
	return &answer, nil
}

type eventRequest struct {
	One
	Body struct {
		Name string          `json:"name" minLength:"1" maxLength:"128" doc:"The name for which a composition waits"`
		Data json.RawMessage `json:"data,omitempty" doc:"Any JSON, at most 32 KiB"`
		ID   string          `json:"id,omitempty" maxLength:"256" doc:"An id of your own: the session accepts only one event with it"`
	} `nameHint:"SendEvent"`
}

func (a *API) sendEvent(ctx context.Context, in *eventRequest) (*acceptedAnswer, error) {
	tenant, who := callerOf(ctx)
	err := a.options.Engine.Event(ctx, tenant, in.Session, protocol.Event{Name: in.Body.Name, Data: in.Body.Data, ID: in.Body.ID, By: who.ID})
	return accepted(tenant, in.Session), err
}

type cancelRequest struct {
	One
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for people who look at the session's workflow"`
	} `nameHint:"Cancel"`
}

func (a *API) cancelSession(ctx context.Context, in *cancelRequest) (*acceptedAnswer, error) {
	tenant, who := callerOf(ctx)
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return accepted(tenant, in.Session), a.options.Engine.CancelBecause(ctx, tenant, in.Session, reason, who.ID)
}

type retryRequest struct {
	One
	Asked
	Body *struct {
		MayHaveHappened bool `json:"may_have_happened,omitempty" doc:"Retry even if calls of the session may have taken effect; the effects may then happen twice"`
	} `nameHint:"Retry"`
}

func (a *API) retrySession(ctx context.Context, in *retryRequest) (*callAnswer, error) {
	tenant, _ := callerOf(ctx)
	session := jig.SessionID(tenant, in.Session)
	if _, err := a.standing(ctx, tenant, session); err != nil {
		return nil, err
	}
	return a.callOf(ctx, in.Asked, toolname.SessionsRetry, struct {
		SessionID       string `json:"session_id"`
		MayHaveHappened bool   `json:"may_have_happened,omitempty"`
	}{session, in.Body != nil && in.Body.MayHaveHappened})
}
