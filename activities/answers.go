package activities

import (
	"cmp"
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

// reply applies a person's answer to a question.
func (a *Activities) reply(ctx context.Context, in Signal) (Handled, error) {
	var payload protocol.Answered
	if err := strictjson.UnmarshalKnown(in.Payload, &payload); err != nil {
		return a.unreadable(ctx, in, err)
	}
	r := payload.Reply
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Handled{}, err
	}
	statement, err := a.decisionStatement(ctx, in, payload.Proof, payload.Content())
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if err != nil {
		return Handled{}, err
	}
	request := approval.ReplyRequest{Tenant: in.Tenant, SessionID: in.SessionID, Key: protocol.DecisionKey(in.Key, 0), Reply: r, Now: a.Now(), Voters: settings.Voters()}
	request.Refusal = approval.CheckReply(r)
	s := sender{signal: in, settings: settings, by: r.By, token: r.Token, statement: statement, call: r.Call, answers: true}
	err = a.identify(ctx, &s, func(digest string) (string, identity.Evidence, error) {
		return token.VerifyReply(settings.Keys, in.Tenant, in.SessionID, r, digest, request.Now)
	})
	if err != nil {
		return Handled{}, err
	}
	request.Principal, request.Evidence, request.Reply.Token = s.principal, s.evidence, ""
	if request.Refusal = cmp.Or(request.Refusal, s.refusal); request.Refusal == "" && s.pending != nil && s.pending.Question != nil {
		request.Digest = s.pending.Digest
		if err := a.fits(*s.pending.Question, r.Value); err != nil {
			request.Refusal = "the answer does not fit the question: " + explain(err)
		}
	}
	ruled, err := a.Store.Reply(ctx, request)
	if err != nil {
		return Handled{}, err
	}
	var handled Handled
	err = a.follow(ctx, ruled, &handled)
	return handled, err
}

func (a *Activities) reconcile(ctx context.Context, in Signal) (Handled, error) {
	var payload protocol.Reconciled
	if err := strictjson.UnmarshalKnown(in.Payload, &payload); err != nil {
		return a.unreadable(ctx, in, err)
	}
	r := payload.Reconciliation
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Handled{}, err
	}
	statement, err := a.decisionStatement(ctx, in, payload.Proof, payload.Content())
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if err != nil {
		return Handled{}, err
	}
	request := approval.ReconcileRequest{
		Tenant: in.Tenant, SessionID: in.SessionID, Key: protocol.DecisionKey(in.Key, 0), Reconciliation: r, Reconcilers: settings.Reconcilers, Now: a.Now(),
		Voters: settings.Voters(), Refusal: approval.CheckReconciliation(r),
	}
	s := sender{signal: in, settings: settings, by: r.By, token: r.Token, statement: statement, call: r.Call}
	err = a.identify(ctx, &s, func(digest string) (string, identity.Evidence, error) {
		return token.VerifyReconciliation(settings.Keys, in.Tenant, in.SessionID, r, digest, request.Now)
	})
	if err != nil {
		return Handled{}, err
	}
	request.Principal, request.Evidence, request.Reconciliation.Token = s.principal, s.evidence, ""
	request.Refusal = cmp.Or(request.Refusal, s.refusal)
	ruled, err := a.Store.Reconcile(ctx, request)
	if err != nil {
		return Handled{}, err
	}
	var handled Handled
	err = a.follow(ctx, ruled, &handled)
	return handled, err
}
