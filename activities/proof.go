package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// noServers is for processes that know no root key. It refuses all statements: one that nobody has checked must be neither accepted nor
// dropped silently.
type noServers struct{}

func (noServers) Verify(context.Context, string, protocol.Statement, time.Time) (protocol.Statement, error) {
	return protocol.Statement{}, jig.Errorf(jig.CodeNotPermitted, "this worker cannot check the proof of the request").WithField("proof").
		WithHint("leave `proof` out, or give the worker the root key: see docs/proof.md")
}

// reasonUnvouched is the reason of errors about requests whose principal no server vouches for.
const reasonUnvouched = "unvouched"

// stated returns a server's statement about a request, or nil for a request without a statement. A tenant can refuse such requests.
func (a *Activities) stated(ctx context.Context, proof string, want protocol.Statement, at time.Time) (*protocol.Statement, error) {
	if proof != "" {
		st, err := a.Servers.Verify(ctx, proof, want, at)
		if err != nil {
			e := *jig.AsError(err)
			if e.Code == jig.CodeNotPermitted {
				e.Reason = reasonUnvouched
			}
			return nil, &e
		}
		return &st, nil
	}
	settings, err := a.Tenants.Settings(ctx, want.Tenant)
	if err == nil && settings.Vouched() {
		err = jig.Errorf(jig.CodeNotPermitted, "tenant %s accepts only requests that come through its server", jig.Known(want.Tenant)).WithField("proof").
			WithReason(reasonUnvouched).WithHint("send the request to the server")
	}
	return nil, err
}

// origin says who starts a session, as the request does.
type origin struct {
	// parent is the session whose call starts it, if there is one.
	parent    string
	principal jig.Principal
	source    jig.Source
	proof     string
	// mandate and triggered are those of a schedule's session.
	mandate   *protocol.Mandate
	triggered *protocol.Triggered
	// request is the digest of the request.
	request string
	// began is when Temporal recorded the start; zero if nothing has been started yet.
	began time.Time
}

// starter returns the principal for whom a new session acts, and how the session was started. The principal of a session with a parent is
// found with the parent.
func (a *Activities) starter(ctx context.Context, ref protocol.SessionRef, o origin) (jig.Principal, jig.Source, error) {
	if o.parent != "" {
		return claimed(o.principal), jig.SourceAgent, nil
	}
	if err := checkSource(&o.source); err != nil {
		return jig.Principal{}, "", err
	}
	want := protocol.Statement{Kind: protocol.StateStart, Tenant: ref.Tenant, Session: ref.SessionID, Content: o.request}
	if o.source == jig.SourceSchedule {
		want.Kind = protocol.StateSchedule
	}
	if o.began.IsZero() {
		o.began = a.Now()
	}
	st, err := a.stated(ctx, o.proof, want, o.began)
	switch {
	case err != nil:
		return jig.Principal{}, "", err
	case st != nil && o.principal.ID != "" && o.principal.ID != st.Principal.ID:
		return jig.Principal{}, "", jig.Errorf(jig.CodeNotPermitted, "the request names another principal than the server's statement").WithField("principal").
			WithReason(reasonUnvouched)
	case st != nil && st.Source != o.source:
		return jig.Principal{}, "", jig.Errorf(jig.CodeNotPermitted, "the request names another source than the server's statement").WithField("source").
			WithReason(reasonUnvouched)
	case st != nil && st.Kind == protocol.StateSchedule:
		return st.Principal, st.Source, a.mandated(ctx, ref.Tenant, st.Principal, st.Mandate)
	case st != nil:
		return st.Principal, st.Source, nil
	case o.mandate != nil:
		return claimed(o.principal), jig.SourceTemporal, a.mandated(ctx, ref.Tenant, o.principal, *o.mandate)
	case o.source == jig.SourceWeb || o.source == jig.SourceMCP: // they only claim less: what such a session is asked counts as untrusted
		return claimed(o.principal), o.source, nil
	}
	return claimed(o.principal), jig.SourceTemporal, nil
}

// reopen loads a session that has ended and that a message wakes.
func (a *Activities) reopen(ctx context.Context, in OpenInput) (jig.Session, error) {
	session, err := a.Store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return session, err
	}
	var woken protocol.Woken
	if in.Woken != nil {
		woken = *in.Woken
	}
	if _, err := a.messageSender(ctx, in.SessionRef, woken, in.Began); err != nil {
		return session, err
	}
	if !session.Status.Final() {
		return session, a.recordUnnoticed(ctx, in, session)
	}
	proved := woken.Proof != "" || woken.Parent != ""
	if !proved && woken.ID == "" {
		return session, nil
	}
	read, err := a.Store.MessageRead(ctx, in.Tenant, in.SessionID, woken.ID) // a worker that died may have stored it just now
	const why = "the message that wakes the session has been read already"
	switch {
	case err == nil && read && proved:
		err = jig.Errorf(jig.CodeNotPermitted, why).WithField("proof").WithReason(reasonUnvouched)
	case err == nil && read:
		err = jig.Errorf(jig.CodeConflict, why).WithField("id")
	}
	return session, err
}

// messageSender returns the principal who sends a message, if that is known: the principal for whom a server vouches, or that of the session whose call
// sends the message. It returns nil if the message only claims who sends it.
func (a *Activities) messageSender(ctx context.Context, ref protocol.SessionRef, m protocol.Woken, at time.Time) (*jig.Principal, error) {
	if m.Parent != "" {
		session, calls, err := a.Store.CallsOf(ctx, ref.Tenant, m.Parent, []string{m.ParentCall})
		if err != nil {
			return nil, err
		}
		request, err := a.Store.Request(ctx, ref.Tenant, m.Parent, m.ParentCall)
		if err == nil && (len(calls) == 0 || request != m.Request(ref.SessionID)) {
			err = jig.Errorf(jig.CodeNotPermitted, "call %q of session %s does not send this message", m.ParentCall, m.Parent).WithField("parent_call").
				WithReason(reasonUnvouched).WithHint("leave out the parent")
		}
		return &session.Principal, err
	}
	if at.IsZero() {
		at = a.Now()
	}
	want := protocol.Statement{Kind: protocol.StateMessage, Tenant: ref.Tenant, Session: ref.SessionID, Content: m.Content, ID: m.ID}
	return a.vouchedFor(ctx, m.Proof, want, at)
}

// vouchedFor returns the principal who says something to a session, or nil if no server vouches for them.
func (a *Activities) vouchedFor(ctx context.Context, proof string, want protocol.Statement, at time.Time) (*jig.Principal, error) {
	st, err := a.stated(ctx, proof, want, at)
	if st == nil || err != nil {
		return nil, err
	}
	return &st.Principal, a.mayAct(ctx, want.Tenant, st.Principal.ID) // the server may have signed some time ago
}

// eventSender returns the principal who sends an event: the one for whom a server vouches, or the one that the event claims.
func (a *Activities) eventSender(ctx context.Context, ref protocol.SessionRef, e protocol.Event, at time.Time) (jig.Principal, error) {
	want := protocol.Statement{Kind: protocol.StateEvent, Tenant: ref.Tenant, Session: ref.SessionID, Content: e.Content(), ID: e.ID}
	who, err := a.vouchedFor(ctx, e.Proof, want, at)
	switch {
	case err != nil:
		return jig.Principal{}, err
	case who != nil:
		return *who, nil
	}
	return jig.Principal{ID: e.By, Claimed: true}, a.mayAct(ctx, ref.Tenant, e.By)
}

// refuseStart records in the audit that a session was not opened because of its proof, and returns the error. If the worker dies in between, the
// audit may have the refusal twice.
func (a *Activities) refuseStart(ctx context.Context, ref protocol.SessionRef, by jig.Principal, cause error) error {
	refused := jig.AsError(cause)
	if refused.Reason != reasonUnvouched && refused.Reason != reasonEnded {
		return cause
	}
	return errors.Join(a.Store.RecordAudit(ctx, ref.Tenant, audit.Entry{
		Kind: audit.AuditRefused, By: by.ID, Claimed: true, SessionID: ref.SessionID, Subject: "start", Reason: refused.Message,
	}), cause)
}

// claimedBy returns the principal that a start claims.
func claimedBy(start *protocol.StartSession) jig.Principal {
	if start == nil {
		return jig.Principal{}
	}
	return start.Principal
}

// OperateSchedule records in the audit that somebody operates a schedule, and says how the client does it. The error is NOT_PERMITTED if they may
// not, and then the refusal is recorded.
func (a *Activities) OperateSchedule(ctx context.Context, in protocol.OperateRequest) (protocol.OperateAnswer, error) {
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return protocol.OperateAnswer{}, temporalError(err)
	}
	who, evidence, err := asks(ctx, settings, in.By)
	if err != nil {
		return protocol.OperateAnswer{}, temporalError(err)
	}
	operates, manages := settings.Allows(in.Operates, who, tenancy.PermissionOperate), settings.Allows(in.Manages, who, tenancy.PermissionManage)
	answer, err := tenancy.Operate(in, operates, manages)
	entry := audit.By(who, evidence, in.Note)
	entry.Kind, entry.Subject, entry.Reason = audit.AuditSchedule, "schedule:"+in.Schedule, string(in.Action)
	if in.Credential != "" {
		entry.Reason += " with " + in.Credential
	}
	switch {
	case err != nil:
		entry.Kind, entry.Reason = audit.AuditRefused, entry.Reason+": "+jig.AsError(err).Message
	case answer.Own:
		entry.Reason += ", in their own name"
	}
	if recorded := a.Store.RecordAudit(ctx, in.Tenant, entry); recorded != nil {
		return protocol.OperateAnswer{}, temporalError(recorded)
	}
	return answer, temporalError(err)
}

// asks returns who makes a request: the principal for whom a server vouches, or the one whom the request names.
func asks(ctx context.Context, settings tenancy.Settings, by string) (jig.Principal, *identity.Evidence, error) {
	who, evidence := jig.Principal{ID: by, Claimed: true}, (*identity.Evidence)(nil)
	if statement := statedIn(ctx); statement != nil {
		who, evidence = statement.Principal, &identity.Evidence{Key: statement.Key, Token: statement.ID, Maker: statement.Principal.Maker}
		if by != "" && by != who.ID {
			return who, nil, jig.Errorf(jig.CodeNotPermitted, "the request names another principal than the server's statement").WithField("by")
		}
	}
	switch {
	case who.ID == "":
		return who, nil, jig.Errorf(jig.CodeMissingParam, "the requester is missing").WithField("by")
	case settings.IsDisabled(who.ID):
		return who, nil, disabled(who.ID)
	}
	return who, evidence, nil
}

// reasonEnded is the reason of errors about schedules whose credential has ended.
const reasonEnded = "credential_ended"

// mandated returns an error if the credential with which a schedule was created counts no longer, or if people in its lineage have left. It is asked
// each time that the schedule starts something.
func (a *Activities) mandated(ctx context.Context, tenant string, who jig.Principal, m protocol.Mandate) error {
	line := identity.Lineage{{Principal: who.ID, Maker: who.Maker, Persons: m.Persons}}
	ended := func(why string) error {
		return jig.Errorf(jig.CodeNotPermitted, "the schedule's mandate has ended: %s", why).WithField("schedule").WithReason(reasonEnded).
			WithHint("create the schedule again, with a credential that is valid")
	}
	if key, ok := strings.CutPrefix(m.Credential, protocol.MandateKey); ok {
		above, err := a.Store.KeyLineage(ctx, tenant, key)
		if jig.CodeOf(err) == jig.CodeNotFound {
			return ended(jig.AsError(err).Message)
		}
		if err != nil {
			return err
		}
		line = append(line, above...)
	}
	settings, err := a.Tenants.Settings(ctx, tenant)
	if err != nil {
		return err
	}
	switch why := settings.Ended(line); why {
	case "":
		return nil
	case tenancy.EndedDisabled:
		return ended("its principal, or somebody who made its credential, is disabled")
	case tenancy.EndedRemoved:
		return ended("its principal, or somebody who made its credential, left the tenant's document")
	default:
		return ended("somebody else made it for its principal, who is a person of the tenant by now")
	}
}

// triggeredBy returns who started a session of a schedule outside of its times, or nil.
func (a *Activities) triggeredBy(ctx context.Context, ref protocol.SessionRef, o origin) (*jig.Asker, error) {
	t := o.triggered
	if t == nil {
		return nil, nil
	}
	want := protocol.Statement{Kind: protocol.StateTrigger, Tenant: ref.Tenant, Session: ref.SessionID, Content: o.request}
	st, err := a.stated(ctx, t.Proof, want, o.began)
	switch {
	case err != nil:
		return nil, err
	case st == nil:
		return &jig.Asker{Principal: t.By.ID, Claimed: true, By: jig.AskedTriggered, Maker: t.By.Maker}, nil
	case t.By.ID != st.Principal.ID:
		return nil, jig.Errorf(jig.CodeNotPermitted, "the trigger names another principal than the server's statement").WithField("triggered").WithReason(reasonUnvouched)
	}
	return &jig.Asker{Principal: st.Principal.ID, By: jig.AskedTriggered, Maker: st.Principal.Maker}, a.mayAct(ctx, ref.Tenant, st.Principal.ID)
}
