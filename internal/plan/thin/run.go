package thin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/spec"
)

// run is one attempt of a call.
type run struct {
	*Engine
	def   *definition
	inv   jig.Invocation
	input json.RawMessage
	// given is the input of the extraction. It is nil if the document defines no input.
	given json.RawMessage
	// previews means that the run only describes what a call would do.
	previews bool
	// entities holds the entities looked up so far, in the form that expressions read.
	entities map[string]any
	vars     map[string]any
}

// do checks the requirements, creates the entity and starts its extraction. Its errors say whether the attempt may have created anything.
func (r *run) do(ctx context.Context) (spec.ThinResult, error) {
	made, err := r.check(ctx)
	if err != nil {
		return spec.ThinResult{}, noEffect(err)
	}
	if made == nil {
		if made, err = r.create(ctx); err != nil {
			return spec.ThinResult{}, err
		}
	}
	out := spec.ThinResult{}
	if made != nil {
		if out, err = r.start(ctx, *made); err != nil {
			return spec.ThinResult{}, jig.AsError(err).AfterEffect()
		}
	}
	out.URL, err = r.link(ctx, out)
	return out, err
}

// check does everything that comes before the creation. It returns the entity that an earlier attempt created, if there is one.
func (r *run) check(ctx context.Context) (*made, error) {
	if err := r.bundle(ctx); err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	for i := range r.def.entities {
		if err := r.lookUp(ctx, &r.def.entities[i]); err != nil {
			return nil, err
		}
	}
	made, err := r.madeBefore(ctx)
	if err != nil {
		return nil, err
	}
	if made == nil {
		if err := r.require(ctx); err != nil {
			return nil, err
		}
	}
	return made, r.foresee(ctx)
}

// noEffect marks the error of an attempt that changed nothing. The ledger knows whether an earlier attempt did.
func noEffect(err error) error {
	e := *jig.AsError(err)
	e.NotExecuted = true
	return &e
}

func (r *run) bundle(ctx context.Context) error {
	name := r.def.thin.Bundle
	if name == "" {
		return nil
	}
	has, err := r.records.HasBundle(ctx, r.inv.Tenant, name)
	if err != nil || has {
		return err
	}
	return reject(jig.ReasonBundleNotInstalled, "bundle", "ask an operator to install it: jig bundle install FOLDER",
		"%s belongs to the bundle %s, which is not installed", r.def.tool.Name, name)
}

// begin sets the variables. Apart from entities, they stay the same during an attempt.
func (r *run) begin() error {
	input, err := expr.FromJSON(r.input)
	if err != nil {
		return fault("input", err)
	}
	who := r.inv.Principal
	r.vars = map[string]any{
		"input": input, "tenant": r.inv.Tenant, "now": r.now().UTC(),
		"principal": map[string]any{"id": who.ID, "groups": anyList(who.Groups), "permissions": anyList(who.Permissions)},
	}
	return r.seen()
}

// seen makes the entities looked up so far visible to expressions.
func (r *run) seen() error {
	ready, err := expr.From(r.entities)
	r.vars["entities"] = ready
	return err
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, t := range texts {
		list[i] = t
	}
	return list
}

// lookUp finds one of the entities that the tool starts from.
func (r *run) lookUp(ctx context.Context, e *entityLookup) error {
	id, err := r.text(ctx, e.id, "entities."+e.Name+".id")
	if err != nil {
		return err
	}
	if id == "" && e.Optional {
		r.entities[e.Name] = nil
		return r.seen()
	}
	found, ok, err := r.records.Readable(ctx, r.inv, id)
	if err != nil {
		return err
	}
	if !ok || found.Type != e.Type {
		return r.notFound(ctx, e.at, e.Type, id)
	}
	if err := r.inWorkspace(ctx, e, id); err != nil {
		return err
	}
	connected, err := r.connected(ctx, e, found)
	if err != nil {
		return err
	}
	content := found.Content
	if len(content) == 0 {
		content = json.RawMessage(`{}`)
	}
	r.entities[e.Name] = map[string]any{
		"id": found.ID, "type": found.Type, "title": found.Title, "content": content, "connected": connected,
	}
	return r.seen()
}

func (r *run) inWorkspace(ctx context.Context, e *entityLookup, id string) error {
	if e.workspace == nil {
		return nil
	}
	workspace, err := r.text(ctx, e.workspace, "entities."+e.Name+".workspace")
	if err != nil || workspace == "" {
		return err
	}
	in, err := r.records.InWorkspace(ctx, r.inv.Tenant, workspace, id)
	if err != nil || in {
		return err
	}
	return reject(jig.ReasonWorkspaceViolation, e.workspaceAt, "name a workspace that it is in, or another "+e.Type,
		"the %s %q is not in the workspace %q", e.Type, id, jig.Cut(workspace, 80))
}

func (r *run) connected(ctx context.Context, e *entityLookup, found entity.Entity) ([]any, error) {
	if e.Connected == nil {
		return []any{}, nil
	}
	which := *e.Connected
	if which.Depth == 0 {
		which.Depth = 1
	}
	all, err := r.records.Connected(ctx, r.inv, found.ID, which)
	if err != nil {
		return nil, err
	}
	if len(all) < which.AtLeast {
		what := "entities"
		if len(which.Types) > 0 {
			what = "entities of type " + strings.Join(which.Types, " or ")
		}
		return nil, reject(jig.ReasonInsufficientGraph, e.at, "relate more of them to it with entities.createRelation or a field of type relation",
			"%d %s are connected with the %s %q, but at least %d must be", len(all), what, e.Type, found.ID, which.AtLeast)
	}
	list := make([]any, len(all))
	for i, c := range all {
		list[i] = map[string]any{"id": c.ID, "type": c.Type, "title": c.Title}
	}
	return list, nil
}

// require checks the tool's requirements. A requirement that cannot be evaluated does not hold.
func (r *run) require(ctx context.Context) error {
	for i, q := range r.def.requires {
		at := fmt.Sprintf("requires[%d]", i)
		holds, err := q.check.EvalBool(ctx, r.vars)
		if err != nil {
			return fault(at+".check", err)
		}
		if holds {
			continue
		}
		message := "this does not hold: " + string(q.Check)
		if q.message != nil {
			if message, err = q.message.EvalText(ctx, r.vars); err != nil {
				return fault(at+".message", err)
			}
		}
		return reject(q.Code, at, "this must hold: "+string(q.Check), "%s", message)
	}
	return nil
}

// text renders a template that must give a text. Null counts as the empty text.
func (r *run) text(ctx context.Context, t *expr.Template, at string) (string, error) {
	if t == nil {
		return "", nil
	}
	v, err := t.Eval(ctx, r.vars)
	if err != nil {
		return "", fault(at, err)
	}
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	}
	return "", jig.Errorf(jig.CodeInvalidInput, "it gives %T, but must give a text", v).WithField(at).
		WithHint("give a text, or null for no text")
}

// codeOf returns the code for a reason. Other reasons, which the tool's author defines, get INVALID_INPUT.
func codeOf(reason string) jig.Code {
	switch reason {
	case jig.ReasonBundleNotInstalled, jig.ReasonWorkspaceViolation:
		return jig.CodeNotPermitted
	case jig.ReasonEntityNotFound:
		return jig.CodeNotFound
	case jig.ReasonInsufficientGraph:
		return jig.CodeConflict
	}
	return jig.CodeInvalidInput
}

// reject returns a rejection with a reason. Rejected calls have no effect.
func reject(reason, at, hint, format string, args ...any) *jig.Error {
	if reason == jig.ReasonIDORViolation { // the audit records it, but callers must not learn of it
		reason = jig.ReasonEntityNotFound
	}
	return jig.Errorf(codeOf(reason), format, args...).WithReason(reason).WithField(at).WithHint(hint)
}

// unfound is the minimum time before a call answers that an id was not found. It exceeds the time that the lookup and the audit row for an
// id of another tenant take, so that the response time does not reveal whether the id exists there.
const unfound = 50 * time.Millisecond

// notFound returns the same error for ids that do not exist, that belong to another tenant, that have another type, or that may not be read.
// The message names only the first id.
func (r *run) notFound(ctx context.Context, at, kind string, ids ...string) error {
	over := time.NewTimer(unfound)
	defer over.Stop()
	if !r.previews { // the attempt itself records it
		if err := r.records.Trespassed(ctx, r.inv, ids); err != nil {
			return err
		}
	}
	select {
	case <-over.C:
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the path that runs every tool turns it into a time-out or a cancellation
	}
	return reject(jig.ReasonEntityNotFound, at, "give the id of one that you may read; entities.search and entities.filter find them",
		"there is no %s %q", kind, jig.Cut(ids[0], 80))
}

// fault returns the error of an expression that could not be evaluated for this call.
func fault(at string, err error) error {
	e := *jig.AsError(err)
	if e.Code == jig.CodeTimeout || e.Code == jig.CodeCanceled || e.Code == jig.CodeUnavailable {
		return &e
	}
	if e.Field != "" {
		at += "." + e.Field
	}
	e.Code, e.Field = jig.CodeInvalidInput, at
	if e.Hint == "" {
		e.Hint = "the tool computes it from the input and the entities that the input names: check these, and " + at + " in the tool's document"
	}
	return &e
}

// blamed adds the place in the document, and a hint about what to do, to an error about the entity to create.
func blamed(err error) error {
	e := *jig.AsError(err)
	if e.Code != jig.CodeInvalidInput {
		return err
	}
	e.Field = strings.ReplaceAll(e.Field, "/", ".")
	if e.Hint == "" {
		e.Hint = "the tool computes it from the input: check the input, and " + e.Field + " in the tool's document"
	}
	return &e
}
