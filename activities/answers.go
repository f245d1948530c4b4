package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/tenancy"
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
	request.Unentitled = request.Refusal == "" && s.refusal != ""
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
	request.Unentitled = request.Refusal == "" && s.refusal != ""
	request.Refusal = cmp.Or(request.Refusal, s.refusal)
	ruled, err := a.Store.Reconcile(ctx, request)
	if err != nil {
		return Handled{}, err
	}
	var handled Handled
	err = a.follow(ctx, ruled, &handled)
	return handled, err
}

// sender holds what is known about the sender of a signal.
type sender struct {
	signal   Signal
	settings tenancy.Settings
	// by and token come from the signal. call is the call that the signal is about.
	by, token, call string
	// statement is a server's statement about the sender; nil without one.
	statement *protocol.Statement
	// answers reports that the signal answers a question, which pending must then hold.
	answers bool

	principal jig.Principal
	evidence  *identity.Evidence
	// pending is the call's open approval or question. It is nil if the call does not wait for a person, and it is read only for a token or
	// an answer.
	pending *jig.Pending
	// refusal says why the sender may not decide.
	refusal string
}

// identify finds out who sent a signal: the person whom its token identifies or, if the tenant trusts the claims of signals, the person
// whom the signal names. prove checks the token against the digest of what the person was shown.
func (a *Activities) identify(ctx context.Context, s *sender, prove func(digest string) (string, identity.Evidence, error)) error {
	s.principal = jig.Principal{ID: s.by, Claimed: true}
	if s.call != "" && (s.token != "" || s.answers) {
		pending, err := a.Store.Pending(ctx, s.signal.Tenant, s.signal.SessionID, s.call)
		switch {
		case err == nil:
			s.pending = &pending
		case jig.CodeOf(err) != jig.CodeNotFound:
			return err
		}
	}
	demands := approval.Demands{Proof: s.settings.Proof, NoSignals: s.settings.NoSignals}
	sent := approval.Sender{By: s.by, Token: s.token, Vouched: s.statement != nil, Call: s.call, Signal: s.signal.signal()}
	if s.refusal = demands.Refuse(sent, s.pending != nil); s.refusal != "" {
		return nil
	}
	who, evidence, proof := jig.Principal{}, &identity.Evidence{}, jig.ProofClaimed
	switch {
	case s.token != "":
		proved, proves, err := prove(s.shown())
		if err != nil {
			s.refusal = "the token was not accepted: " + explain(err)
			return nil
		}
		who, evidence, proof = s.settings.Person(proved), &proves, s.settings.ProofOf(s.settings.Key(proves.Key))
	case s.statement != nil:
		who, proof = s.settings.Person(s.statement.Principal.ID), jig.ProofVouched
		evidence = &identity.Evidence{
			Key: s.statement.Key, Token: s.statement.ID, Until: a.Now().Add(token.MaxLifetime), Maker: s.statement.Principal.Maker,
		}
	default:
		who, evidence = s.settings.Person(s.by), nil
	}
	if evidence != nil {
		evidence.Request = s.signal.SessionID + "/" + s.signal.Key
		if s.refusal = sent.RefuseProved(who.ID); s.refusal != "" {
			return nil
		}
	}
	who.Claimed, who.Proof = evidence == nil, proof
	if evidence != nil {
		who.Maker = evidence.Maker
	}
	s.principal, s.evidence = who, evidence
	if s.refusal = approval.Weak(proof, s.settings.Proof); s.refusal == "" && s.settings.IsDisabled(who.ID) {
		s.refusal = explain(disabled(who.ID))
	}
	return nil
}

// shown returns the digest of what the sender was shown.
func (s *sender) shown() string {
	if s.pending == nil {
		return ""
	}
	return s.pending.Digest
}

// signal reports whether l arrived as a Temporal signal, not as an update.
func (l Signal) signal() bool { return strings.HasPrefix(l.Key, "signal:") }

// askInput is the input of a tool that a person answers.
type askInput struct {
	Question string            `json:"question"`
	Schema   json.RawMessage   `json:"schema,omitempty"`
	Options  []json.RawMessage `json:"options,omitempty"`
	// Expires is how long the question waits, e.g. 48h or 7d. If it is empty, the policy or the agent decides.
	Expires string `json:"expires,omitempty"`
}

// asQuestion turns a pending approval into a question. The input has already been validated.
func asQuestion(p *jig.Pending, input []byte) {
	var in askInput
	if json.Unmarshal(input, &in) != nil {
		return
	}
	p.Kind = jig.PendingQuestion
	p.Question = &jig.Question{Text: in.Question, Schema: in.Schema, Options: in.Options}
	p.Summary = jig.Cut(in.Question, 200)
	if d, err := waitOf(in.Expires); err == nil && d > 0 {
		p.ExpiresAt = p.RequestedAt.Add(d)
	}
}

// maxQuestionWait is the longest time that a question may wait.
const maxQuestionWait = 365 * 24 * time.Hour

// waitOf reads how long a question waits, at most maxQuestionWait. Empty means 0.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d <= 0 || d > maxQuestionWait {
		return 0, jig.Errorf(jig.CodeInvalidInput, "expires is %q, which is not a valid time to wait", text).WithField("/expires").WithHint("write e.g. 90m, 48h or 7d, at most 365d")
	}
	return d, nil
}

// checkQuestion returns an error for a question that nobody could answer. It returns nil for calls of other tools.
func (a *Activities) checkQuestion(tool jig.Tool, input []byte) *jig.Error {
	if tool.Implementation != jig.ImplementationPerson {
		return nil
	}
	var in askInput
	if err := json.Unmarshal(input, &in); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "reading the question: %w", err)
	}
	if _, err := waitOf(in.Expires); err != nil {
		return jig.AsError(err)
	}
	if len(in.Schema) > 0 {
		if err := a.Schemas.Check(in.Schema); err != nil {
			e := jig.AsError(err)
			return jig.Errorf(jig.CodeInvalidInput, "the question's schema is not a valid JSON Schema: %s", e.Words()).WithField("/schema").
				WithHint(`give e.g. {"type": "string"}, or leave it out for plain text`)
		}
	}
	question := jig.Question{Schema: in.Schema}
	for i, option := range in.Options {
		if err := a.fits(question, option); err != nil && len(in.Schema) > 0 {
			return jig.Errorf(jig.CodeInvalidInput, "option %d does not fit the question's schema: %w", i+1, err).
				WithField("/options/" + strconv.Itoa(i))
		}
	}
	return nil
}

// fits checks an answer against its question: it must be one of the options and fit the schema. Without options and schema, it must
// be a non-empty text.
func (a *Activities) fits(q jig.Question, value json.RawMessage) error {
	if len(q.Options) > 0 {
		given, err := canonicalJSON(value)
		if err != nil {
			return err
		}
		fits := false
		for _, option := range q.Options {
			normal, err := canonicalJSON(option)
			fits = fits || err == nil && string(normal) == string(given)
		}
		if !fits {
			options, err := json.Marshal(q.Options)
			if err != nil {
				return jig.Errorf(jig.CodeInternal, "encoding the options: %w", err)
			}
			return jig.Errorf(jig.CodeInvalidInput, "%s is not one of the options %s", jig.Cut(string(value), 200), jig.Known(jig.Cut(string(options), 1000)))
		}
	}
	schema := q.Schema
	if len(schema) == 0 && len(q.Options) == 0 {
		schema = json.RawMessage(`{"type":"string","minLength":1}`)
	}
	if len(schema) == 0 {
		return nil
	}
	return a.Schemas.Validate(schema, value)
}
