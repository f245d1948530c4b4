package thin

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// These limit texts of the new entity, in characters.
const maxTitle, maxKey, maxWorkspace = 500, 500, 128

// made is the entity that a call created or found under its key.
type made struct {
	entity.Entity
	// own reports whether this call created the entity, in this attempt or an earlier one.
	own bool
}

// session returns the id of the session that the call's extraction runs in. It is empty if the tool starts no extraction.
func (r *run) session() string {
	if r.def.thin.Starts == nil {
		return ""
	}
	return jig.ChildSessionID(r.inv.SessionID, r.inv.CallID)
}

// keyed returns the key that makes the creation idempotent within the tenant: the call's own key or, if shared, the key from the document.
func (r *run) keyed(ctx context.Context) (key string, shared bool, err error) {
	text, err := r.text(ctx, r.def.key, "creates.key")
	if err != nil || text == "" {
		return r.inv.IdempotencyKey, false, err
	}
	if n := utf8.RuneCountInString(text); n > maxKey {
		return "", false, tooLong("creates.key", n, maxKey)
	}
	return r.def.tool.Name + ": " + text, true, nil // session ids contain no space, so this cannot be the key of a call
}

func tooLong(at string, n, limit int) *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, "it has %d characters, at most %d are allowed", n, limit).WithField(at).
		WithHint("give a shorter text")
}

// madeBefore returns the entity that an earlier attempt of the call created, or nil if there is none. If there is one, the tool's
// requirements are not checked again, because the data now contains the entity.
func (r *run) madeBefore(ctx context.Context) (*made, error) {
	if r.def.thin.Creates == nil || r.inv.Attempt <= 1 {
		return nil, nil // nothing was made
	}
	key, shared, err := r.keyed(ctx)
	if err != nil {
		return nil, err
	}
	e, found, err := r.records.Made(ctx, r.inv.Tenant, key)
	if err != nil || !found || shared && (r.session() == "" || e.SessionID != r.session()) {
		return nil, err
	}
	return &made{Entity: e, own: true}, nil
}

// create creates the entity. It returns nil if the tool creates no entity.
func (r *run) create(ctx context.Context) (*made, error) {
	t := r.def.thin
	if t.Creates == nil {
		return nil, nil // there is nothing to create
	}
	if t.Starts != nil && r.inv.Depth >= protocol.MaxDepth {
		return nil, noEffect(jig.Errorf(jig.CodeBudgetExhausted, "sessions may start sessions at most %d levels deep", protocol.MaxDepth).WithField("starts").
			WithHint("do not let the tasks of an extraction start extractions of the same kind"))
	}
	c, err := r.creation(ctx)
	if err != nil {
		return nil, noEffect(err)
	}
	e, created, missing, err := r.records.Create(ctx, r.inv, c)
	if err != nil {
		return nil, blamed(err)
	}
	if len(missing) > 0 {
		return nil, r.notFound(ctx, "creates.relations", "entity", missing...)
	}
	return &made{Entity: e, own: created || !c.Shared || c.SessionID != "" && e.SessionID == c.SessionID}, nil
}

// creation renders the entity to create.
func (r *run) creation(ctx context.Context) (c Creation, err error) {
	c = Creation{Type: r.def.thin.Creates.Type, Bundle: r.def.thin.Bundle, SessionID: r.session()}
	if c.SessionID != "" {
		c.Call = jig.CallID(1, 1)
	}
	if c.Key, c.Shared, err = r.keyed(ctx); err != nil {
		return c, err
	}
	if c.Title, err = r.text(ctx, r.def.title, "creates.title"); err != nil {
		return c, err
	}
	if n := utf8.RuneCountInString(c.Title); n > maxTitle {
		return c, tooLong("creates.title", n, maxTitle)
	}
	if err := r.document(ctx, r.def.fields, "creates.fields", &c.Content); err != nil {
		return c, err
	}
	for name, v := range c.Content {
		if string(v) == "null" {
			delete(c.Content, name)
		}
	}
	var relations map[string][]*string
	if err := r.document(ctx, r.def.relations, "creates.relations", &relations); err != nil {
		return c, err
	}
	for name, ids := range relations {
		if given := present(ids); len(given) > 0 {
			if c.Relations == nil {
				c.Relations = map[string][]string{}
			}
			c.Relations[name] = given
		}
	}
	var workspaces []*string
	if err := r.document(ctx, r.def.workspaces, "creates.workspaces", &workspaces); err != nil {
		return c, err
	}
	c.Workspaces = present(workspaces)
	for _, w := range c.Workspaces {
		if n := utf8.RuneCountInString(w); n > maxWorkspace {
			return c, tooLong("creates.workspaces", n, maxWorkspace)
		}
	}
	return c, nil
}

// present leaves out null and empty texts, which optional inputs produce.
func present(list []*string) []string {
	var out []string
	for _, s := range list {
		if s != nil && *s != "" {
			out = append(out, *s)
		}
	}
	return out
}

// document renders a document of templates into v. A document that was left out changes nothing.
func (r *run) document(ctx context.Context, d *expr.Document, at string, v any) error {
	if d == nil {
		return nil
	}
	raw, err := d.Render(ctx, r.vars)
	if err != nil {
		return fault(at, err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fault(at, jig.Errorf(jig.CodeInvalidInput, "the result has the wrong form: %w", err))
	}
	return nil
}

// foresee evaluates the expressions that are needed after the creation, so that their errors fail the call before anything has been created.
func (r *run) foresee(ctx context.Context) error {
	if r.def.input != nil {
		var given map[string]json.RawMessage
		if err := r.document(ctx, r.def.input, "starts.input", &given); err != nil {
			return err
		}
		if err := write(given, &r.given); err != nil {
			return err
		}
	}
	if r.def.thin.Creates == nil {
		return nil
	}
	_, err := r.link(ctx, spec.ThinResult{EntityID: jig.NewEntityID(""), SessionID: r.session()})
	return err
}

// start starts the extraction of the created entity, or returns the session that an earlier call started. If that call failed before it could
// start the session, start does so now.
func (r *run) start(ctx context.Context, m made) (spec.ThinResult, error) {
	out := spec.ThinResult{EntityID: m.ID, SessionID: m.SessionID, Created: m.own}
	starts := r.def.thin.Starts
	if starts == nil {
		return out, nil
	}
	if m.own || m.SessionID == "" {
		out.SessionID = r.session()
	} else if begun, err := r.starter.Begun(ctx, r.inv.Tenant, m.SessionID); begun || err != nil {
		return out, err
	}
	input := struct {
		ID     string          `json:"id"`
		Fields []string        `json:"fields,omitempty"`
		Input  json.RawMessage `json:"input,omitempty"`
	}{m.ID, starts.Fields, r.given}
	var raw json.RawMessage
	if err := write(input, &raw); err != nil {
		return out, err
	}
	return out, r.starter.Start(ctx, r.inv, out.SessionID, raw)
}

func write(v any, to *json.RawMessage) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "writing JSON: %w", err)
	}
	*to = raw
	return nil
}

// link returns the URL at which the entity can be viewed. It is empty if there is no entity.
func (r *run) link(ctx context.Context, out spec.ThinResult) (string, error) {
	if out.EntityID == "" {
		return "", nil
	}
	if r.def.url != nil {
		r.vars["entity"] = map[string]any{"id": out.EntityID}
		r.vars["session"] = map[string]any{"id": out.SessionID}
		return r.text(ctx, r.def.url, "url")
	}
	return strings.NewReplacer(
		"{tenant}", url.PathEscape(r.inv.Tenant), "{entity_id}", url.PathEscape(out.EntityID), "{session_id}", url.PathEscape(out.SessionID),
	).Replace(r.url), nil
}

// result makes the result of the call, with a one-line summary.
func (r *run) result(out spec.ThinResult) jig.ToolResult {
	var data json.RawMessage
	if err := write(out, &data); err != nil {
		return jig.Failure(err)
	}
	summary := "everything that " + r.def.tool.Name + " requires holds"
	if c := r.def.thin.Creates; c != nil {
		summary = "created " + c.Type + " " + out.EntityID
		if !out.Created {
			summary = c.Type + " " + out.EntityID + " existed already"
		}
		if out.SessionID != "" {
			summary += "; its fields fill in session " + out.SessionID
		}
	}
	return jig.ToolResult{Success: true, Data: data, Summary: summary}
}

// Starter starts extractions.
type Starter interface {
	// Start begins a session for a call of entities.extract with this input, on behalf of the invocation's principal, and returns at once.
	// If the session already exists, Start does nothing, even if the session has ended.
	Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error
	// Begun reports whether a session exists. The session that a call was meant to begin does not exist if that call failed first.
	Begun(ctx context.Context, tenant, session string) (bool, error)
}

// Sessions is the database access that [StartChild] and [NewStarter] need.
type Sessions interface {
	// NameChild records which session a running call starts, with the hash of what it asks of it. It returns CONFLICT if the call has started
	// another session.
	NameChild(ctx context.Context, tenant, id, callID, child, request string) error
	// PutArtifact stores a value and returns its id.
	PutArtifact(ctx context.Context, tenant, sessionID, mediaType string, value []byte) (string, error)
	// Session returns a session, or NOT_FOUND if the tenant has no session with that id.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
}

// Client starts workflows.
type Client interface {
	// StartChild starts the session that answers a call of another session. If it already exists, it is left alone.
	StartChild(ctx context.Context, input protocol.CallInput, session string) error
}

// starter starts extractions as children of the calling session.
type starter struct {
	sessions Sessions
	client   Client
}

// NewStarter returns a Starter that starts extractions with client, as children of the calling sessions.
func NewStarter(db Sessions, client Client) Starter { return starter{sessions: db, client: client} }

func (s starter) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error {
	return StartChild(ctx, s.sessions, s.client, session, protocol.CallInput{
		Tenant: inv.Tenant, Tool: toolname.EntitiesExtract, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	})
}

// StartChild starts the session of a call that another call makes. An input that is too large for a message is passed as an artifact, and so
// is the document of a call that names no tool.
func StartChild(ctx context.Context, db Sessions, client Client, session string, call protocol.CallInput) (err error) {
	request := jig.SessionRequest{Tool: call.Tool, Document: call.Document, Input: call.Input}.Digest()
	if err := db.NameChild(ctx, call.Tenant, call.Parent, call.ParentCall, session, request); err != nil {
		return err
	}
	if call.Document != "" {
		if call.DocumentArtifact, err = db.PutArtifact(ctx, call.Tenant, call.Parent, "text/plain", []byte(call.Document)); err != nil {
			return err
		}
		call.Document = ""
	}
	if len(call.Input) > protocol.MaxChildInput {
		if call.InputArtifact, err = db.PutArtifact(ctx, call.Tenant, call.Parent, "application/json", call.Input); err != nil {
			return err
		}
		call.Input = nil
	}
	return client.StartChild(ctx, call, session)
}

func (s starter) Begun(ctx context.Context, tenant, session string) (bool, error) {
	_, err := s.sessions.Session(ctx, tenant, session)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
