package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// place sets a session's place in the tree of sessions: below the call that started it or, without a parent, at the root of a tree
// of its own. A root that was started with something that its principal did not type begins with untrusted data. A child session acts for
// the principal of its parent, whatever its start says. The parent's call must record that it started this session, so that nobody can choose
// a place because its rules or its principal suit them. began is when Temporal recorded the start; see [OpenInput]. place returns the parent
// and its call, if there are any.
func (a *Activities) place(
	ctx context.Context, parent, call string, began time.Time, session *jig.Session,
) (above jig.Session, by jig.Call, err error) {
	if parent == "" {
		session.RootAgent, session.ReadUntrusted = session.Agent.Name, !ledger.Typed(session.Source)
		return above, by, a.mayAct(ctx, session.Tenant, session.Principal.ID)
	}
	above, calls, err := a.Store.CallsOf(ctx, session.Tenant, parent, []string{call})
	if err != nil {
		return above, by, err
	}
	if len(calls) == 0 || calls[0].Child != session.ID {
		return above, by, jig.Errorf(jig.CodeNotPermitted, "call %q of session %s did not start session %s", call, parent, session.ID).WithField("parent_call").
			WithHint("leave out the parent")
	}
	if err := a.inTime(ctx, calls[0], *session, began); err != nil {
		return above, by, err
	}
	session.ParentID, session.ParentCall, session.ParentAgent = above.ID, call, above.Agent.Name
	session.RootAgent, session.Depth, session.Source = above.RootAgent, above.Depth+1, jig.SourceAgent
	session.Principal = above.Principal
	session.ReadPrivate, session.ReadUntrusted = above.ReadPrivate, above.ReadUntrusted
	if err := a.inherit(ctx, calls[0], session); err != nil {
		return above, by, err
	}
	return above, calls[0], a.mayAct(ctx, session.Tenant, session.Principal.ID)
}

// inherit adds to a session that repeats another one what that one has read, because its input may come from there. For the same reason, its calls
// rest on the word of those on whose word the other one's do.
func (a *Activities) inherit(ctx context.Context, by jig.Call, session *jig.Session) error {
	if by.Tool != toolname.SessionsRetry {
		return nil
	}
	var input struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal(by.Input, &input); err != nil {
		return jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", by.ID, err)
	}
	repeated, err := a.Store.Session(ctx, session.Tenant, input.SessionID)
	session.ReadPrivate = session.ReadPrivate || repeated.ReadPrivate
	session.ReadUntrusted = session.ReadUntrusted || repeated.ReadUntrusted
	if err != nil {
		return err
	}
	return a.Store.Repeats(ctx, session.Tenant, by.SessionID, input.SessionID)
}

// clocksDiffer is how much the clocks of Temporal and of the database may differ.
const clocksDiffer = 5 * time.Minute

// inTime returns an error if a new session was started after the call that names it had ended, so that nobody can start it later. A call that
// runs an agent is executing until that session has ended. Other calls only start a session and may end before it is opened. A session that
// exists is merely opened again, for example after a reset.
func (a *Activities) inTime(ctx context.Context, by jig.Call, session jig.Session, began time.Time) error {
	if began.IsZero() {
		began = a.Now()
	}
	single := session.Agent.Name == jig.CallAgent
	switch {
	case by.Status == jig.CallExecuting, single && !by.Status.Final():
		return nil
	case single && by.FinishedAt != nil && began.Before(by.FinishedAt.Add(clocksDiffer)):
		return nil
	}
	_, err := a.Store.Session(ctx, session.Tenant, session.ID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return jig.Errorf(jig.CodeNotPermitted, "call %q of session %s is %s, so it starts no session", by.ID, by.SessionID, by.Status).
			WithField("parent_call").WithHint("leave out the parent")
	}
	return err
}

// mayAct returns an error if the tenant's document has disabled a principal.
func (a *Activities) mayAct(ctx context.Context, tenant, principal string) error {
	settings, err := a.Tenants.Settings(ctx, tenant)
	if err == nil && settings.IsDisabled(principal) {
		return disabled(principal)
	}
	return err
}

func disabled(principal string) error {
	return jig.Errorf(jig.CodeNotPermitted, "the tenant's document has disabled %s", principal).WithField("principal").WithReason("disabled").
		WithHint("an owner can register a document that lists " + principal + " without `disabled`")
}

// checkSource fills in how a session without a parent was started, and refuses unknown sources.
func checkSource(source *jig.Source) error {
	switch *source {
	case "":
		*source = jig.SourceAPI
	case jig.SourceWeb, jig.SourceAPI, jig.SourceMCP, jig.SourceCLI, jig.SourceSchedule, jig.SourceTemporal:
	case jig.SourceAgent:
		return jig.Errorf(jig.CodeInvalidInput, "a session with source agent needs a parent").WithField("source").WithHint("leave out the source")
	default:
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a source", *source).WithField("source").WithHint("use web, api, mcp, cli or schedule")
	}
	return nil
}

// startsAs returns an error if the call by does not start a session in this way. The principal of a child session is that of its parent, so
// nobody else may choose what a child does.
func startsAs(by jig.Call, start protocol.StartSession) error {
	if by.ID == "" {
		return nil
	}
	var input agentInput
	if err := json.Unmarshal(by.Input, &input); err != nil {
		return jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", by.ID, err)
	}
	asked := agentInput{Agent: start.Agent, Task: start.Task, Input: start.Input, Model: start.Model}
	if start.Document != "" || start.DocumentArtifact != "" || start.InputArtifact != "" || len(start.Pairs) > 0 ||
		protocol.ContentOf(asked) != protocol.ContentOf(input) {
		return jig.Errorf(jig.CodeNotPermitted, "call %s starts another session than the request describes", by.ID).WithField("parent_call").
			WithHint("leave out the parent")
	}
	return nil
}

// claimed returns a principal in the form that sessions store, marked as one whose identity nobody has proved.
func claimed(p jig.Principal) jig.Principal {
	p.Claimed, p.Proof = true, jig.ProofClaimed
	return p
}

// acting adds the groups and permissions that the tenant's settings give a session's principal now. It is called whenever calls are
// admitted or begin, so a person who is removed from the tenant's document or disabled loses them in running sessions too.
func (a *Activities) acting(ctx context.Context, session *jig.Session) error {
	settings, err := a.Tenants.Settings(ctx, session.Tenant)
	if err != nil {
		return err
	}
	if p := &session.Principal; settings.IsDisabled(p.ID) {
		p.Groups, p.Permissions = nil, nil
	} else {
		*p = settings.Effective(*p)
	}
	return nil
}

// registration sets agent.Registered if the agent's document is the one that is registered under its name. Any other document is a draft,
// and its agent's name gets a prefix.
func (a *Activities) registration(ctx context.Context, tenant string, agent *jig.Agent, body []byte) error {
	taint := &entity.Taint{}
	registered, err := a.Store.Document(entity.WithTaint(ctx, taint), tenant, documentAgent, agent.Name)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	agent.Registered = err == nil && bytes.Equal(registered, body)
	switch {
	case !agent.Registered:
		agent.Name = jig.DraftPrefix + agent.Name
	case taint.Read():
		entity.MarkRead(ctx)
	}
	return nil
}

// mayChoose returns an error if a caller chooses a model that the agent's document does not list.
func mayChoose(agent jig.Agent, model string) error {
	matches := func(entry string) bool {
		prefix, all := strings.CutSuffix(entry, "*")
		return entry == model || all && strings.HasPrefix(model, prefix)
	}
	if model == agent.Model || slices.ContainsFunc(agent.Models, matches) {
		return nil
	}
	return jig.Errorf(jig.CodeNotPermitted, "callers may not choose the model %s for agent %s", model, agent.Name).WithField("model").
		WithHint(jig.Templatef("leave out the model, or add it to `models` in the document of agent %s", agent.Name))
}

// askersOf returns those on whose word a call of a session rests that is being admitted.
func (a *Activities) askersOf(ctx context.Context, session jig.Session, call jig.Call) ([]jig.Asker, error) {
	call.Tenant, call.SessionID = session.Tenant, session.ID
	return a.Store.Askers(ctx, call)
}

// recordAsker records that a principal puts words into a session. who is nil if the words only claim to come from by.
func (a *Activities) recordAsker(ctx context.Context, tenant, id string, who *jig.Principal, by, how string) error {
	asker := jig.Asker{Principal: by, Claimed: true, By: how}
	if who != nil {
		asker.Principal, asker.Claimed, asker.Maker = who.ID, who.Claimed, who.Maker
	}
	if asker.Principal == "" {
		return nil
	}
	return a.Store.Said(ctx, tenant, id, asker)
}
