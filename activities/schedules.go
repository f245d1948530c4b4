package activities

import (
	"context"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

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
	if word := statedIn(ctx); word != nil {
		who, evidence = word.Principal, &identity.Evidence{Key: word.Key, Token: word.ID, Maker: word.Principal.Maker}
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
