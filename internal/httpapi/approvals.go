package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// serveApprovals serves the operations on calls that wait or waited for people.
func (a *API) serveApprovals() {
	serve(a, api.ListApprovals, a.listApprovals)
	serve(a, api.GetApproval, a.getApproval)
	serve(a, api.ReviewApprovals, a.reviewApprovals)
	serve(a, api.Decide, a.decide)
	serve(a, api.DecideSeveral, a.decideSeveral)
	serve(a, api.Delegate, a.delegate)
	serve(a, api.Answer, a.answer)
	serve(a, api.Reconcile, a.reconcile)
}

func (a *API) listApprovals(ctx context.Context, in *api.ListApprovalsRequest) (protocol.ApprovalList, error) {
	if in.History() {
		return a.listDecisions(ctx, in)
	}
	tenant, who := callerOf(ctx)
	filter := jig.PendingFilter{
		Tool: in.Tool, Kind: jig.PendingKind(in.Kind), SessionID: in.Session, Agent: in.Agent, RequestedBy: in.RequestedBy, Before: in.Before, After: in.After,
	}
	if in.CanDecide {
		filter.For = who.ID
	}
	same := filter
	same.Before, same.After = time.Time{}, time.Time{} // they may differ from page to page, because people write them as ages
	mark, from, err := continued(in.Cursor, same)
	if err != nil {
		return protocol.ApprovalList{}, err
	}
	found, err := a.options.Engine.Pending(ctx, tenant, filter, from, in.Limit)
	if found.Next != "" {
		found.Next = mark + found.Next
	}
	return found, err
}

// listDecisions lists decisions about calls.
func (a *API) listDecisions(ctx context.Context, in *api.ListApprovalsRequest) (found protocol.ApprovalList, err error) {
	if in.CanDecide || in.Kind != "" || in.RequestedBy != "" || !in.Before.IsZero() || !in.After.IsZero() {
		return found, invalid("can_decide, kind, requested_by, before and after filter calls that wait, not decisions").WithField("decided").
			WithHint("use by, outcome, tool, agent, session, since and until")
	}
	tenant, who := callerOf(ctx)
	if in.By == "me" {
		in.By = who.ID
	}
	filter := protocol.AuditFilter{By: in.By, Tool: in.Tool, Agent: in.Agent, Outcome: in.Outcome, Since: in.Since, Until: in.Until}
	if in.Session != "" {
		filter.SessionID = jig.SessionID(tenant, in.Session)
	}
	request := protocol.DecisionsRequest{Tenant: tenant, Filter: filter, Cursor: in.Cursor, Limit: in.Limit}
	err = a.options.Engine.Ask(ctx, string(protocol.ReadDecisions), request, &found)
	return found, err
}

// continued returns the text with which all cursors of a filter begin, and what follows it in a cursor. It refuses a cursor of another filter.
func continued(cursor string, filter any) (mark, from string, err error) {
	text, err := json.Marshal(filter)
	if err != nil {
		return "", "", jig.Errorf(jig.CodeInternal, "encoding a filter: %w", err)
	}
	sum := sha256.Sum256(text)
	mark = hex.EncodeToString(sum[:8]) + "."
	from, belongs := strings.CutPrefix(cursor, mark)
	if cursor != "" && !belongs {
		return "", "", invalid("the cursor belongs to a list with another filter").WithField("cursor").WithHint("repeat the filter of the first page")
	}
	return mark, from, nil
}

func (a *API) getApproval(ctx context.Context, in *api.CallPath) (protocol.ShownCall, error) {
	tenant, who := callerOf(ctx)
	shown, err := a.options.Engine.Show(ctx, tenant, in.Session, in.Call)
	shown.Pending.SessionID = cmp.Or(shown.Pending.SessionID, jig.SessionID(tenant, in.Session))
	return shown.By(who.ID), err
}

func (a *API) reviewApprovals(ctx context.Context, in *api.ReviewApprovalsRequest) (protocol.ReviewList, error) {
	tenant, who := callerOf(ctx)
	calls := make([]protocol.WaitingCall, len(in.Body.Calls))
	for i, c := range in.Body.Calls {
		calls[i] = protocol.WaitingCall{SessionID: jig.SessionID(tenant, c.Session), Call: c.Call}
	}
	found, err := a.options.Engine.Review(ctx, tenant, who.ID, in.Body.Signs, calls)
	return protocol.ReviewList{Reviews: found}, err
}

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
	if only := result.Decisions[0]; only.Outcome == jig.DecisionRefused {
		return jig.Ruled{}, refusedDecision(only)
	}
	return result.Decisions[0], nil
}

// refusedDecision returns the problem for a decision that was refused.
func refusedDecision(r jig.Ruled) *problem {
	code := cmp.Or(r.Code, jig.CodeConflict)
	why := cmp.Or(r.Template, r.Reason)
	if r.Code == "" { // it was not weighed: nobody has told the values in the reason apart
		why = jig.Templatef("%s", r.Reason)
	}
	p := failed(statusOf(code), jig.Errorf(code, "%s", jig.Words(why)).WithField("call"))
	p.Reason, p.Outcome, p.CallStatus = why, r.Outcome, r.Status
	return p
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
				if r := result.Decisions[i]; r.Outcome == jig.DecisionRefused {
					p := a.problemOf(ctx, refusedDecision(r))
					results[at].Error, results[at].Reason, results[at].Template = p, p.Reason, ""
				}
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
