package activities

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

// pauseRetry is how long a call that is held back waits before it is tried again.
const pauseRetry = 5 * time.Second

// pausedError returns an error that makes Temporal retry an activity that is held back. The retries add nothing to the history or the
// worker's log. held is the reason; empty means a pause. again is when to try the next time.
func pausedError(what, held string, again time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(what+" is held back: "+cmp.Or(held, "it is paused"), "PAUSED", temporal.ApplicationErrorOptions{
		NextRetryDelay: again, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// Pause holds back calls that have not begun.
func (a *Activities) Pause(ctx context.Context, in protocol.PauseRequest) (protocol.PauseResult, error) {
	return a.pausing(ctx, in, "pause", a.Store.Pause)
}

// Resume lifts a pause.
func (a *Activities) Resume(ctx context.Context, in protocol.PauseRequest) (protocol.PauseResult, error) {
	return a.pausing(ctx, in, "resume", a.Store.Resume)
}

// ListPauses lists the pauses of a tenant. It uses only the Tenant of the request.
func (a *Activities) ListPauses(ctx context.Context, in protocol.PausesRequest) (protocol.PauseList, error) {
	list, err := a.Store.Pauses(ctx, in.Tenant)
	return protocol.PauseList{Pauses: list}, temporalError(err)
}

func (a *Activities) pausing(
	ctx context.Context, in protocol.PauseRequest, action string, apply func(context.Context, string, jig.Pause, *identity.Evidence) (bool, error),
) (protocol.PauseResult, error) {
	if err := a.checkPause(ctx, in); err != nil {
		return protocol.PauseResult{}, temporalError(err)
	}
	who, evidence, err := a.operator(ctx, in.Tenant, in.By, in.Token, action, in.Subject(), in.Reason)
	if err != nil {
		return protocol.PauseResult{}, temporalError(err)
	}
	if action == token.ActionResume {
		if err := a.mayResume(ctx, in, who); err != nil {
			return protocol.PauseResult{}, temporalError(err)
		}
	}
	p := jig.Pause{Scope: in.Scope, Target: in.Target, By: who.ID, Claimed: who.Claimed, Reason: in.Reason, At: a.Now().UTC()}
	changed, err := apply(ctx, in.Tenant, p, evidence)
	if err != nil {
		return protocol.PauseResult{}, temporalError(err)
	}
	list, err := a.Store.Pauses(ctx, in.Tenant)
	return protocol.PauseResult{Changed: changed, Pauses: list}, temporalError(err)
}

// Installation returns the id of the installation, which tokens about pauses, grants and keys bind.
func (a *Activities) Installation(context.Context, protocol.InstallationRequest) (string, error) {
	return a.Store.Installation(), nil
}

// mayResume returns an error unless somebody may end a pause. A request that no server makes is as good as its claim, or its token.
func (a *Activities) mayResume(ctx context.Context, in protocol.PauseRequest, who jig.Principal) error {
	list, err := a.Store.Pauses(ctx, in.Tenant)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(p jig.Pause) bool { return p.Scope == in.Scope && p.Target == in.Target })
	if at < 0 || list[at].By == budget.Actor { // anybody who may resume a session may let it exceed a budget
		return nil
	}
	var paused jig.Session
	if in.Scope == jig.PauseSession {
		if paused, err = a.Store.Session(ctx, in.Tenant, in.Target); err != nil {
			return err
		}
	}
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return err
	}
	return settings.MayResume(list[at], who.ID, paused.Principal.ID, in.Decides == nil || *in.Decides)
}

func (a *Activities) checkPause(ctx context.Context, in protocol.PauseRequest) error {
	if err := jig.CheckTenant(in.Tenant); err != nil {
		return err
	}
	switch in.Scope {
	case jig.PauseTenant:
		if in.Target != "" {
			return jig.Errorf(jig.CodeInvalidInput, "a pause of the whole tenant has no target").WithField("target").WithHint("leave it out")
		}
		return nil
	case jig.PauseTool:
		return jig.CheckToolName(in.Target)
	case jig.PauseSession:
		_, err := a.Store.Session(ctx, in.Tenant, in.Target)
		return err
	}
	return jig.Errorf(jig.CodeInvalidInput, "%q is not a scope", in.Scope).WithField("scope").WithHint("use tenant, tool or session")
}

// operator identifies the person who makes a request that concerns no call.
func (a *Activities) operator(ctx context.Context, tenant, by, proof, action, subject, reason string) (jig.Principal, *identity.Evidence, error) {
	settings, err := a.Tenants.Settings(ctx, tenant)
	if err != nil {
		return jig.Principal{}, nil, err
	}
	if proof == "" {
		statement := statedIn(ctx)
		switch {
		case statement != nil && jig.ProofVouched.AtLeast(settings.Proof) && (by == "" || by == statement.Principal.ID):
			who := settings.Person(statement.Principal.ID)
			who.Proof = jig.ProofVouched
			return who, &identity.Evidence{Key: statement.Key, Token: statement.ID, Until: a.Now().Add(token.MaxLifetime), Request: requestOf(ctx)}, nil
		case settings.ProofWanted():
			return jig.Principal{}, nil, jig.Errorf(jig.CodeNotPermitted, "this tenant accepts only signed requests").WithField("token").
				WithHint("give `jig` a signing key (JIG_SIGNING_KEY)")
		case by == "":
			return jig.Principal{}, nil, jig.Errorf(jig.CodeMissingParam, "the requester is missing").WithField("by")
		}
		if settings.IsDisabled(by) {
			return jig.Principal{}, nil, disabled(by)
		}
		who := settings.Person(by)
		who.Claimed = true
		return who, nil, nil
	}
	proved, evidence, err := token.VerifySubject(settings.Keys, proof, a.Store.Installation(), tenant, action, subject, reason, a.Now())
	if err != nil {
		return jig.Principal{}, nil, err
	}
	if by != "" && by != proved {
		return jig.Principal{}, nil, jig.Errorf(jig.CodeNotPermitted, "the token belongs to %s, not to %s", proved, by).WithField("by")
	}
	if settings.IsDisabled(proved) {
		return jig.Principal{}, nil, disabled(proved)
	}
	evidence.Request = requestOf(ctx)
	who := settings.Person(proved)
	who.Maker = evidence.Maker
	who.Proof = settings.ProofOf(settings.Key(evidence.Key))
	if why := approval.Weak(who.Proof, settings.Proof); why != "" {
		return jig.Principal{}, nil, jig.Errorf(jig.CodeNotPermitted, "%s", why).WithField("token")
	}
	return who, &evidence, nil
}

// requestOf returns an id for the request that an activity handles. It is the same in each attempt. Outside of an activity it is "".
func requestOf(ctx context.Context) string {
	if !activity.IsActivity(ctx) {
		return ""
	}
	info := activity.GetInfo(ctx)
	return strings.Join([]string{info.WorkflowExecution.RunID, info.ActivityRunID, info.ActivityID}, "/")
}

// ListGrants returns a page of grants, or revokes one.
func (a *Activities) ListGrants(ctx context.Context, in protocol.GrantsRequest) (protocol.GrantsPage, error) {
	if in.Revoke == "" {
		list, next, err := a.Store.Grants(ctx, in.Tenant, in.Cursor, 100, in.All, a.Now())
		if err == nil {
			err = a.markEnded(ctx, in.Tenant, list)
		}
		return protocol.GrantsPage{Grants: list, Next: next}, temporalError(err)
	}
	who, evidence, err := a.operator(ctx, in.Tenant, in.By, in.Token, "revoke", in.Revoke, "")
	if err != nil {
		return protocol.GrantsPage{}, temporalError(err)
	}
	g, err := a.Store.RevokeGrant(ctx, in.Tenant, in.Revoke, who, evidence, a.Now().UTC())
	if err != nil {
		return protocol.GrantsPage{}, temporalError(err)
	}
	return protocol.GrantsPage{Grants: []jig.Grant{g}}, nil
}

// markEnded marks the live grants that ended because the contract of their tool has changed. A tool that this worker does not know
// ends no grant.
func (a *Activities) markEnded(ctx context.Context, tenant string, list []jig.Grant) error {
	now := a.Now()
	if !slices.ContainsFunc(list, func(g jig.Grant) bool { return g.Live(now) }) {
		return nil
	}
	tools, err := a.tools(ctx, tenant)
	if err != nil {
		return err
	}
	for i, g := range list {
		changed := func(tool jig.Tool) bool { return tool.Name == g.Tool && tool.Meaning != g.Meaning }
		if g.Live(now) && slices.ContainsFunc(tools, changed) {
			list[i].Ended = jig.GrantContractChanged
		}
	}
	return nil
}
