package httpapi

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Judgment holds what decisions have in common.
type Judgment struct {
	Call    string            `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
	Digest  string            `json:"digest" minLength:"1" doc:"The digest of the call as it was shown"`
	Input   json.RawMessage   `json:"input,omitempty" doc:"Arguments instead of the requested ones"`
	Grant   *jig.GrantRequest `json:"grant,omitempty" doc:"Asks for a standing approval of further calls"`
	GrantID string            `json:"grant_id,omitempty" names:"grant" doc:"A standing approval that covers the call, and is used once"`
	Reason  string            `json:"reason,omitempty" doc:"Why it was denied; the agent sees it"`
	Note    string            `json:"note,omitempty" doc:"A note for the log"`
	Token   string            `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
}

func (j Judgment) decision(by string, answer jig.Answer) jig.Decision {
	return jig.Decision{
		Call: j.Call, By: by, Answer: answer, Digest: j.Digest, Input: j.Input, Grant: j.Grant, GrantID: j.GrantID, Reason: j.Reason, Note: j.Note,
		Token: j.Token,
	}
}

type decideRequest struct {
	One
	Body struct {
		Judgment
		Answer jig.Answer `json:"answer" enum:"approve,deny"`
	} `nameHint:"Decide"`
}

type ruledAnswer struct{ Body jig.Ruled }

func (a *API) decide(ctx context.Context, in *decideRequest) (*ruledAnswer, error) {
	tenant, who := callerOf(ctx)
	if err := a.opened(ctx, tenant, in.Session); err != nil {
		return nil, err
	}
	return onlyOutcome(a.options.Engine.Decide(ctx, tenant, in.Session, []jig.Decision{in.Body.decision(who.ID, in.Body.Answer)}))
}

// onlyOutcome returns the outcome of one decision.
func onlyOutcome(result protocol.DecideResult, err error) (*ruledAnswer, error) {
	if err != nil {
		return nil, err
	}
	if len(result.Decisions) != 1 {
		return nil, jig.Errorf(jig.CodeInternal, "a decision has %d outcomes", len(result.Decisions))
	}
	return &ruledAnswer{Body: result.Decisions[0]}, nil
}

type delegateRequest struct {
	One
	Body struct {
		Call   string `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		To     string `json:"to,omitempty" names:"person" maxLength:"200" doc:"The principal who decides instead"`
		Undo   bool   `json:"undo,omitempty" doc:"Takes your delegation back, without to, until the delegate has approved"`
		Digest string `json:"digest,omitempty" doc:"If given, it must match the waiting call"`
		Note   string `json:"note,omitempty" doc:"A note for the log"`
		Token  string `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"Delegate"`
}

func (a *API) delegate(ctx context.Context, in *delegateRequest) (*ruledAnswer, error) {
	tenant, who := callerOf(ctx)
	if err := a.opened(ctx, tenant, in.Session); err != nil {
		return nil, err
	}
	b := in.Body
	return onlyOutcome(a.options.Engine.Decide(ctx, tenant, in.Session, []jig.Decision{{
		Call: b.Call, By: who.ID, Answer: jig.AnswerDelegate, To: b.To, Undo: b.Undo, Digest: b.Digest, Note: b.Note, Token: b.Token,
	}}))
}

type answerRequest struct {
	One
	Body struct {
		Call  string          `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		Value json.RawMessage `json:"value" doc:"The answer, which must fit the question"`
		Note  string          `json:"note,omitempty" doc:"A note for the log"`
		Token string          `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"AnswerQuestion"`
}

func (a *API) answer(ctx context.Context, in *answerRequest) (*ruledAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	return onlyOutcome(a.options.Engine.Reply(ctx, tenant, in.Session, jig.Reply{Call: b.Call, Value: b.Value, By: who.ID, Note: b.Note, Token: b.Token}))
}

type reconcileRequest struct {
	One
	Body struct {
		Call    string               `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		Outcome jig.ReconcileOutcome `json:"outcome" enum:"happened,not_happened,give_up"`
		Attempt int                  `json:"attempt,omitempty" minimum:"0" doc:"The attempt that the person has investigated, as shown by the approval. Default: 1"`
		Result  json.RawMessage      `json:"result,omitempty" doc:"What the effect returned, if it happened"`
		Note    string               `json:"note,omitempty" doc:"A note for the log"`
		Token   string               `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"Reconcile"`
}

func (a *API) reconcile(ctx context.Context, in *reconcileRequest) (*ruledAnswer, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	return onlyOutcome(a.options.Engine.Reconcile(ctx, tenant, in.Session, jig.Reconciliation{
		Call: b.Call, Outcome: b.Outcome, Attempt: b.Attempt, Result: b.Result, By: who.ID, Note: b.Note, Token: b.Token,
	}))
}

type decideSeveralRequest struct {
	Body struct {
		Decisions []severalItem `json:"decisions" minItems:"1" maxItems:"500"`
	} `nameHint:"DecideSeveral"`
}

// severalItem is one of several decisions.
type severalItem struct {
	Judgment
	Session string     `json:"session_id" names:"session" minLength:"1" maxLength:"192" doc:"The session in which the call waits"`
	Answer  jig.Answer `json:"answer" enum:"approve,deny,delegate"`
	To      string     `json:"to,omitempty" names:"person" maxLength:"200" doc:"With delegate: the principal who decides instead"`
	Undo    bool       `json:"undo,omitempty" doc:"With delegate: takes your delegation back"`
}

// outcomeFailed is the outcome of a decision that could not be made.
const outcomeFailed = "failed"

// severalOutcome is the outcome of one of several decisions.
type severalOutcome struct {
	Session string `json:"session_id"`
	jig.Ruled
	Error *problem `json:"error,omitempty" doc:"Why the decision could not be made, if the outcome is failed"`
}

type severalAnswer struct {
	Body struct {
		Results []severalOutcome `json:"results" doc:"One outcome for each decision, in the same order"`
	} `nameHint:"Outcomes"`
}

func (a *API) decideSeveral(ctx context.Context, in *decideSeveralRequest) (*severalAnswer, error) {
	tenant, who := callerOf(ctx)
	items := in.Body.Decisions
	var answer severalAnswer
	answer.Body.Results = make([]severalOutcome, len(items))
	places := map[string][]int{}
	var sessions []string
	for i, item := range items {
		if places[item.Session] == nil {
			sessions = append(sessions, item.Session)
		}
		places[item.Session] = append(places[item.Session], i)
		answer.Body.Results[i] = severalOutcome{Session: jig.SessionID(tenant, item.Session), Ruled: jig.Ruled{Call: item.Call, Outcome: outcomeFailed}}
	}
	for _, session := range sessions {
		list := make([]jig.Decision, len(places[session]))
		for i, at := range places[session] {
			list[i] = items[at].decision(who.ID, items[at].Answer)
			list[i].To, list[i].Undo = items[at].To, items[at].Undo
		}
		result, err := a.decideIn(ctx, tenant, session, list)
		for i, at := range places[session] {
			switch {
			case i < len(result.Decisions):
				answer.Body.Results[at].Ruled = result.Decisions[i]
			case err != nil:
				answer.Body.Results[at].Error = a.problemOf(ctx, err)
			}
		}
	}
	return &answer, nil
}

// decideIn makes decisions in one session.
func (a *API) decideIn(ctx context.Context, tenant, session string, list []jig.Decision) (protocol.DecideResult, error) {
	if err := a.opened(ctx, tenant, session); err != nil {
		return protocol.DecideResult{}, err
	}
	return a.options.Engine.Decide(ctx, tenant, session, list)
}

// opened returns NOT_FOUND for a session that no worker has opened: a decision would wait for it in its workflow.
func (a *API) opened(ctx context.Context, tenant, session string) error {
	_, err := a.options.Log.Session(ctx, tenant, jig.SessionID(tenant, session))
	if jig.CodeOf(err) == jig.CodeNotFound {
		return jig.Errorf(jig.CodeNotFound, "there is no such session, or nothing in it waits yet").WithField("session")
	}
	return err
}
