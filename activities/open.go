package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// maxDocument is the maximum size, in bytes, of an uploaded agent document or input.
const maxDocument = 16 << 20

// OpenInput asks to open a session: a new one if Start is set, otherwise one that has ended.
type OpenInput struct {
	protocol.SessionRef
	Start *protocol.StartSession `json:"start,omitempty"`
	// Woken is the message that wakes a session which has ended; nil if the request names none.
	Woken *protocol.Woken `json:"woken,omitempty"`
	// Began is when Temporal recorded the start. It is zero in a check before the start.
	Began time.Time `json:"began,omitzero"`
}

// Opened is the part of a session that its workflow keeps.
type Opened struct {
	Agent  string     `json:"agent"`
	Limits jig.Limits `json:"limits"`
	// Quick reports that the agent's model is known to answer quickly.
	Quick bool `json:"quick,omitempty"`
	// Pass is the number of the first pass to run.
	Pass int `json:"pass"`
	// Wait is how long a rate limit holds the session back before AwaitStart should ask again; 0 if the session may begin.
	Wait     time.Duration `json:"wait,omitempty"`
	Deadline time.Time     `json:"deadline,omitzero"`
}

// Open stores a new session and pins everything that must not change while it runs, or it loads a session that has ended. It is
// idempotent: an existing session is used unchanged.
func (a *Activities) Open(ctx context.Context, in OpenInput) (Opened, error) {
	session, err := a.open(ctx, in)
	if err != nil {
		return Opened{}, temporalError(a.refuseStart(ctx, in.SessionRef, claimedBy(in.Start), err))
	}
	limits := session.Agent.Limits.WithDefaults()
	a.Tracing.SessionStarted(ctx, session, in.Began)
	opened := Opened{
		Agent: session.Agent.Name, Limits: limits, Pass: session.Pass + 1, Quick: a.pace.quick(session.Agent.Model),
	}
	if in.Start != nil {
		opened.Pass = 1
		answer, err := a.mayStart(ctx, session)
		if err != nil {
			return Opened{}, temporalError(err)
		}
		opened.Wait = answer.Wait
	}
	if limits.Deadline > 0 {
		opened.Deadline = session.CreatedAt.Add(limits.Deadline)
	}
	return opened, nil
}

func (a *Activities) open(ctx context.Context, in OpenInput) (jig.Session, error) {
	if err := jig.CheckTenant(in.Tenant); err != nil {
		return jig.Session{}, err
	}
	if err := jig.CheckOwner(in.Tenant, in.SessionID); err != nil {
		return jig.Session{}, err
	}
	if in.Start == nil {
		return a.reopen(ctx, in)
	}
	session, err := a.draft(ctx, in)
	if err != nil {
		return jig.Session{}, err
	}
	return a.Store.CreateSession(ctx, session)
}

// draft returns the session that a start describes, with everything that must not change while it runs, without storing it.
func (a *Activities) draft(ctx context.Context, in OpenInput) (jig.Session, error) {
	digest, err := a.requestOf(ctx, in.Tenant, *in.Start)
	if err != nil {
		return jig.Session{}, err
	}
	from := origin{
		parent: in.Start.ParentID, principal: in.Start.Principal, source: in.Start.Source, proof: in.Start.Proof, request: digest, began: in.Began,
		mandate: in.Start.Mandate, triggered: in.Start.Triggered,
	}
	who, source, err := a.starter(ctx, in.SessionRef, from)
	if err != nil {
		return jig.Session{}, err
	}
	by, err := a.triggeredBy(ctx, in.SessionRef, from)
	if err != nil {
		return jig.Session{}, err
	}
	taint := &entity.Taint{}
	agent, err := a.agentOf(entity.WithTaint(ctx, taint), in.Tenant, *in.Start)
	if err != nil {
		return jig.Session{}, err
	}
	input, err := a.inputOf(ctx, in.Tenant, *in.Start, agent)
	if err != nil {
		return jig.Session{}, err
	}
	session := jig.Session{
		Tenant: in.Tenant, ID: in.SessionID, Agent: agent, Principal: who, Source: source, Input: input, Task: in.Start.Task,
		Status: jig.StatusWorking, RequestDigest: digest, TriggeredBy: by,
	}
	if _, by, err := a.place(ctx, in.Start.ParentID, in.Start.ParentCall, in.Began, &session); err != nil {
		return jig.Session{}, err
	} else if err := startsAs(by, *in.Start); err != nil {
		return jig.Session{}, err
	}
	session.ReadUntrusted = session.ReadUntrusted || taint.Read() // outsiders may have written the agent's document
	session.Catalog, err = a.pin(ctx, session)
	return session, err
}

// agentOf returns the agent that a session is started with: a registered one, or the document in the request.
func (a *Activities) agentOf(ctx context.Context, tenant string, start protocol.StartSession) (jig.Agent, error) {
	name, body := start.DocumentName, []byte(start.Document)
	var err error
	switch {
	case start.DocumentArtifact != "":
		body, err = a.readWhole(ctx, tenant, start.DocumentArtifact)
	case start.Document == "" && start.Agent == "":
		err = jig.Errorf(jig.CodeInvalidInput, "no agent given").WithField("agent").WithHint("give an agent's name or its document")
	case start.Document == "":
		name = start.Agent
		if body, err = a.Store.Document(ctx, tenant, documentAgent, start.Agent); jig.CodeOf(err) == jig.CodeNotFound {
			err = jig.AsError(err).WithField("agent")
		}
	}
	if err != nil {
		return jig.Agent{}, err
	}
	agent, err := a.ParseAgent(name, body)
	if err != nil {
		return jig.Agent{}, err
	}
	if err := a.registration(ctx, tenant, &agent, body); err != nil {
		return jig.Agent{}, err
	}
	if start.Model != "" && start.ParentID != "" {
		if err := mayChoose(agent, start.Model); err != nil {
			return jig.Agent{}, err
		}
	}
	agent.Model = cmp.Or(start.Model, agent.Model)
	return agent, a.Model.Check(agent.Model)
}

func (a *Activities) inputOf(ctx context.Context, tenant string, start protocol.StartSession, agent jig.Agent) (json.RawMessage, error) {
	input := start.Input
	if start.InputArtifact != "" {
		whole, err := a.readWhole(ctx, tenant, start.InputArtifact)
		if err != nil {
			return nil, err
		}
		input = whole
	}
	return a.checkedInput(agent.InputSchema, input, start.Pairs)
}

// checkedInput merges pairs into an input, fills in defaults and validates the result.
func (a *Activities) checkedInput(schema, input json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage(`{}`)
	}
	if len(pairs) > 0 {
		converted, err := a.Schemas.FromPairs(schema, pairs)
		if err != nil {
			return nil, err
		}
		if input, err = overlay(input, converted); err != nil {
			return nil, err
		}
	}
	input = withDefaults(schema, input)
	if len(schema) == 0 {
		return input, nil
	}
	input, err := argument.Canonical(schema, input)
	if err != nil {
		return nil, err
	}
	return input, a.Schemas.Validate(schema, input)
}

// overlay merges the members of top into base. Both are JSON objects, and top wins.
func overlay(base, top json.RawMessage) (json.RawMessage, error) {
	var under, over map[string]json.RawMessage
	if err := json.Unmarshal(base, &under); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input is not a JSON object: %w", err).WithField("input")
	}
	if err := json.Unmarshal(top, &over); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input is not a JSON object: %w", err).WithField("input")
	}
	if under == nil {
		under = map[string]json.RawMessage{}
	}
	for k, v := range over {
		under[k] = v
	}
	out, err := json.Marshal(under)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "encoding the input: %w", err)
	}
	return out, nil
}

// pin returns the tools that the session may use, with their versions.
func (a *Activities) pin(ctx context.Context, s jig.Session) (map[string]string, error) {
	if err := a.acting(ctx, &s); err != nil {
		return nil, err
	}
	tools, err := a.tools(ctx, s.Tenant)
	if err != nil {
		return nil, err
	}
	pinned := map[string]string{}
	for _, tool := range tools {
		if allowed(tool, s) == nil {
			pinned[tool.Name] = tool.Version
		}
	}
	return pinned, nil
}

// allowed returns an error if a session may not use a tool, and nil otherwise. A tool that is not allowed is missing from the menu, and
// calls to it are refused.
func allowed(tool jig.Tool, s jig.Session) *jig.Error {
	switch {
	case len(tool.Tenants) > 0 && !slices.Contains(tool.Tenants, s.Tenant):
		// Answer as if the tool did not exist: a tenant must not learn of tools of other tenants.
		return jig.Errorf(jig.CodeToolNotFound, "there is no tool %s", tool.Name).WithField("name")
	case !toolname.Listed(s.Agent.Tools, tool.Name):
		return jig.Errorf(jig.CodeNotPermitted, "agent %s may not use %s", s.Agent.Name, tool.Name).
			WithHint("use one of the tools offered, or add the tool to the agent's `tools`")
	case !s.Principal.Holds(tool.RequiredPermission):
		return jig.Errorf(jig.CodeNotPermitted, "%s needs the permission %s, which %s does not have", tool.Name, jig.Known(tool.RequiredPermission), jig.Known(s.Principal.ID)).
			WithHint("ask somebody who has it to start the session")
	}
	return nil
}

// readWhole reads a complete artifact of at most maxDocument bytes.
func (a *Activities) readWhole(ctx context.Context, tenant, id string) ([]byte, error) {
	return readArtifact(ctx, a.Store, tenant, id, maxDocument)
}

func readArtifact(ctx context.Context, store artifactStore, tenant, id string, limit int64) ([]byte, error) {
	const step = 1 << 20
	var whole []byte
	for {
		chunk, size, err := store.ReadArtifact(ctx, tenant, id, int64(len(whole)), step)
		if err != nil {
			return nil, err
		}
		if size > limit {
			return nil, jig.Errorf(jig.CodeInvalidInput, "artifact %s has %d bytes; at most %d are allowed here", id, size, limit)
		}
		whole = append(whole, chunk...)
		if int64(len(whole)) >= size || len(chunk) == 0 {
			return whole, nil
		}
	}
}

// requestOf returns the digest of a request to start a session. It is empty if a call of another session starts it, because then
// the session's id identifies that call.
func (a *Activities) requestOf(ctx context.Context, tenant string, start protocol.StartSession) (string, error) {
	if start.ParentID != "" {
		return "", nil
	}
	r := jig.SessionRequest{
		Agent: start.Agent, Document: start.Document, Task: start.Task, Input: start.Input, Pairs: start.Pairs, Model: start.Model,
		Principal: start.Principal.ID,
	}
	return a.requestDigest(ctx, tenant, r, start.DocumentArtifact, start.InputArtifact)
}

// callRequestOf returns the digest of a request to make a single call. A request with a parent names no principal.
func (a *Activities) callRequestOf(ctx context.Context, in OpenCallInput) (string, error) {
	r := jig.SessionRequest{Tool: in.Call.Tool, Document: in.Call.Document, Input: in.Call.Input, Pairs: in.Call.Pairs, Principal: in.Call.Principal.ID}
	if in.Call.Parent != "" {
		r.Principal = ""
	}
	return a.requestDigest(ctx, in.Tenant, r, in.Call.DocumentArtifact, in.Call.InputArtifact)
}

// requestDigest returns the digest of a request. It includes the contents of uploads, not their ids, because the same request may be
// uploaded twice.
func (a *Activities) requestDigest(ctx context.Context, tenant string, r jig.SessionRequest, document, input string) (string, error) {
	if document != "" {
		body, err := a.readWhole(ctx, tenant, document)
		if err != nil {
			return "", err
		}
		r.Document = string(body)
	}
	if input != "" {
		body, err := a.readWhole(ctx, tenant, input)
		if err != nil {
			return "", err
		}
		r.Input = body
	}
	return r.Digest(), nil
}

// CheckStart returns the error with which a session or a single call would fail to start: an unknown agent or tool, input that does not
// fit, a missing permission, a model without a key. It stores nothing.
func (a *Activities) CheckStart(ctx context.Context, in protocol.CheckRequest) (err error) {
	defer asTemporal(&err)
	ref := protocol.SessionRef{Tenant: in.Tenant, SessionID: in.SessionID}
	switch {
	case in.Start != nil && in.Call == nil:
		if err := jig.CheckTenant(in.Tenant); err != nil {
			return err
		}
		if err := jig.CheckOwner(in.Tenant, in.SessionID); err != nil {
			return err
		}
		_, err := a.draft(ctx, OpenInput{SessionRef: ref, Start: in.Start})
		return err
	case in.Call != nil && in.Start == nil:
		_, _, err := a.draftCall(ctx, OpenCallInput{SessionRef: ref, Call: *in.Call})
		return err
	}
	return jig.Errorf(jig.CodeInvalidInput, "give either a session or a call to check").WithField("start")
}
