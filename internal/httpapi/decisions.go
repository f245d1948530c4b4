package httpapi

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

func (a *API) decide(ctx context.Context, in *api.DecideRequest) (jig.Ruled, error) {
	tenant, who := callerOf(ctx)
	if err := a.opened(ctx, tenant, in.Session); err != nil {
		return jig.Ruled{}, err
	}
	return onlyOutcome(a.options.Engine.Decide(ctx, tenant, in.Session, []jig.Decision{in.Body.By(who.ID, in.Body.Answer)}))
}

// onlyOutcome returns the outcome of one decision.
func onlyOutcome(result protocol.DecideResult, err error) (jig.Ruled, error) {
	if err != nil {
		return jig.Ruled{}, err
	}
	if len(result.Decisions) != 1 {
		return jig.Ruled{}, jig.Errorf(jig.CodeInternal, "a decision has %d outcomes", len(result.Decisions))
	}
	return result.Decisions[0], nil
}

func (a *API) delegate(ctx context.Context, in *api.DelegateRequest) (jig.Ruled, error) {
	tenant, who := callerOf(ctx)
	if err := a.opened(ctx, tenant, in.Session); err != nil {
		return jig.Ruled{}, err
	}
	b := in.Body
	return onlyOutcome(a.options.Engine.Decide(ctx, tenant, in.Session, []jig.Decision{{
		Call: b.Call, By: who.ID, Answer: jig.AnswerDelegate, To: b.To, Undo: b.Undo, Digest: b.Digest, Note: b.Note, Token: b.Token,
	}}))
}

func (a *API) answer(ctx context.Context, in *api.AnswerRequest) (jig.Ruled, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	return onlyOutcome(a.options.Engine.Reply(ctx, tenant, in.Session, jig.Reply{Call: b.Call, Value: b.Value, By: who.ID, Note: b.Note, Token: b.Token}))
}

func (a *API) reconcile(ctx context.Context, in *api.ReconcileRequest) (jig.Ruled, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	return onlyOutcome(a.options.Engine.Reconcile(ctx, tenant, in.Session, jig.Reconciliation{
		Call: b.Call, Outcome: b.Outcome, Attempt: b.Attempt, Result: b.Result, By: who.ID, Note: b.Note, Token: b.Token,
	}))
}

func (a *API) decideSeveral(ctx context.Context, in *api.DecideSeveralRequest) (api.Outcomes, error) {
	tenant, who := callerOf(ctx)
	items := in.Body.Decisions
	results := make([]api.SeveralOutcome, len(items))
	places := map[string][]int{}
	var sessions []string
	for i, item := range items {
		if places[item.Session] == nil {
			sessions = append(sessions, item.Session)
		}
		places[item.Session] = append(places[item.Session], i)
		results[i] = api.SeveralOutcome{Session: jig.SessionID(tenant, item.Session), Ruled: jig.Ruled{Call: item.Call, Outcome: api.OutcomeFailed}}
	}
	for _, session := range sessions {
		list := make([]jig.Decision, len(places[session]))
		for i, at := range places[session] {
			list[i] = items[at].By(who.ID, items[at].Answer)
			list[i].To, list[i].Undo = items[at].To, items[at].Undo
		}
		result, err := a.decideIn(ctx, tenant, session, list)
		for i, at := range places[session] {
			switch {
			case i < len(result.Decisions):
				results[at].Ruled = result.Decisions[i]
			case err != nil:
				results[at].Error = a.problemOf(ctx, err)
			}
		}
	}
	return api.Outcomes{Results: results}, nil
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
