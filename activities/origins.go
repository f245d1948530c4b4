package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/dataflow"
	"github.com/jig-run/jig/internal/ledger"
)

// origins traces the arguments of a session's calls. It reads the texts that they are compared with when the first call needs them.
type origins struct {
	*Activities
	// known and calls are the session's texts; loaded reports that they have been read. cut reports that a part of an untrusted result is
	// missing, which only programs have read: compositions and scripts.
	known  dataflow.Knowledge
	calls  []dataflow.Call
	cut    bool
	loaded bool
	tools  map[string]string
	// tracers holds a tracer for each composition whose calls were traced, by the id of its call; "" is for the session's own calls.
	tracers map[string]*dataflow.Tracer
}

// trace sets call.Flow. It does nothing in a session that has read neither private nor untrusted data, and compares the arguments only of
// calls that write or send in a session that has read untrusted data.
func (o *origins) trace(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call) error {
	call.Flow = nil
	if !session.ReadPrivate && !session.ReadUntrusted {
		return nil
	}
	call.Flow = &jig.DataFlow{ReadPrivate: session.ReadPrivate, ReadUntrusted: session.ReadUntrusted}
	if !session.ReadUntrusted || !tool.Permission.Writes() && !tool.Sends() {
		return nil
	}
	tracer, err := o.tracerOf(ctx, session, call.Frame)
	if err != nil {
		return err
	}
	found := tracer.Trace(call.Input, tool.InputSchema)
	for _, argument := range found.Untrusted[:min(len(found.Untrusted), maxNotes)] {
		call.Flow.Notes = append(call.Flow.Notes, o.note(argument))
	}
	call.Flow.UntrustedArguments, call.Flow.UnknownDestinations = paths(found.Untrusted), paths(found.UnknownDestinations)
	call.Flow.ComputedArguments, call.Flow.Cut = paths(found.Computed), found.Cut
	return nil
}

// paths returns the paths of arguments. The name of a property and its value have the same one.
func paths(arguments []dataflow.Argument) []string {
	var paths []string
	for _, a := range arguments {
		if !slices.Contains(paths, a.Path) {
			paths = append(paths, a.Path)
		}
	}
	return paths
}

// maxNotes is how many untrusted arguments are described to people.
const maxNotes = 10

// tracerOf returns the tracer of a session's own calls or, if frame names the call of a composition, of that composition's calls.
func (o *origins) tracerOf(ctx context.Context, session jig.Session, frame string) (*dataflow.Tracer, error) {
	if t, ok := o.tracers[frame]; ok {
		return t, nil
	}
	if err := o.load(ctx, session); err != nil {
		return nil, err
	}
	known := o.known
	known.Untrusted = slices.Clone(known.Untrusted)
	if frame != "" {
		document, err := o.documentOf(ctx, session, frame)
		if err != nil {
			return nil, err
		}
		known.Typed = append(slices.Clone(known.Typed), document)
	}
	known.Incomplete = known.Incomplete || o.cut && (frame != "" || scripted(session.Agent.Model))
	tracer := dataflow.NewTracer(known)
	tracer.Read(o.calls...)
	if o.tracers == nil {
		o.tracers = map[string]*dataflow.Tracer{}
	}
	o.tracers[frame] = tracer
	return tracer, nil
}

// documentOf returns the document of a composition. What its author wrote into the inputs of its steps is trusted, because a person has
// registered the document. It returns "" for a document that was not registered, unless the principal has started it.
func (o *origins) documentOf(ctx context.Context, session jig.Session, frame string) (string, error) {
	root, err := o.store.Call(ctx, session.Tenant, session.ID, frame)
	if err != nil {
		return "", err
	}
	draft := session.Agent.Name == jig.CallAgent && !session.Agent.Registered && root.Version == session.Agent.Version
	if draft && (session.ParentID != "" || !ledger.Typed(session.Source)) {
		return "", nil
	}
	found, _, err := o.find(ctx, session.Tenant, root.Tool, root.Version)
	if jig.CodeOf(err) == jig.CodeInvalidInput { // a document in an older version of the language
		return "", nil
	}
	return string(found.body), err
}

// load reads the texts that the arguments are compared with.
func (o *origins) load(ctx context.Context, session jig.Session) error {
	if o.loaded {
		return nil
	}
	texts, err := o.store.Origins(ctx, session.Tenant, session.ID)
	if err != nil {
		return err
	}
	o.known = dataflow.Knowledge{Typed: texts.Typed(), Incomplete: texts.More}
	for _, t := range texts.Told() {
		o.known.Untrusted = append(o.known.Untrusted, dataflow.Result{Call: t.What, Text: t.Text})
	}
	o.calls = make([]dataflow.Call, len(texts.Calls))
	o.tools = make(map[string]string, len(texts.Calls))
	for i, c := range texts.Calls {
		o.tools[c.ID], o.cut = c.Tool, o.cut || c.Cut && (c.Untrusted || c.Tainted)
		tool, _, err := o.tool(ctx, session.Tenant, c.Tool, c.Version)
		if err != nil && jig.CodeOf(err) != jig.CodeInvalidInput { // a document in an older version of the language
			return err
		}
		o.calls[i] = dataflow.Call{
			Result: dataflow.Result{Call: c.ID, Tool: c.Tool, Text: originText(c.Result)}, Untrusted: c.Untrusted, Tainted: c.Tainted,
			Input: c.Input, Schema: tool.InputSchema,
		}
	}
	o.loaded = true
	return nil
}

// originText returns everything that a model may have seen of a result.
func originText(r jig.ToolResult) string {
	parts := append([]string{string(r.Data), r.Markdown, r.Summary}, r.Warnings...)
	if e := r.Error; e != nil {
		parts = append(parts, e.Message, e.Hint, e.Field, e.Reason)
		for _, v := range e.Violations {
			parts = append(parts, v.Pointer, v.Message)
		}
	}
	return strings.Join(parts, "\n")
}

// note describes an untrusted argument to people.
func (o *origins) note(a dataflow.Argument) string {
	if len(a.Calls) == 0 {
		return fmt.Sprintf("%s (%q) is in no text that the session has seen", a.Path, a.Value)
	}
	var results, from []string
	for _, id := range a.Calls {
		if tool, ok := o.tools[id]; ok {
			results = append(results, fmt.Sprintf("%s (%s)", id, tool))
		} else {
			from = append(from, id)
		}
	}
	if len(results) > 0 {
		from = append(from, "the result of "+strings.Join(results, ", "))
	}
	return fmt.Sprintf("%s (%q) comes from %s", a.Path, a.Value, strings.Join(from, ", "))
}
