package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/dataflow"
	"github.com/jig-run/jig/internal/ledger"
)

// origins traces the arguments of a session's calls. It reads the texts that they are compared with when the first call needs them.
type origins struct {
	*Activities
	tracer *dataflow.Tracer
	tools  map[string]string
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
	if err := o.load(ctx, session); err != nil {
		return err
	}
	found := o.tracer.Trace(call.Input, tool.InputSchema)
	for _, argument := range found.Untrusted {
		call.Flow.UntrustedArguments = append(call.Flow.UntrustedArguments, argument.Path)
		if len(call.Flow.Notes) < maxNotes {
			call.Flow.Notes = append(call.Flow.Notes, o.note(argument))
		}
	}
	for _, argument := range found.UnknownDestinations {
		call.Flow.UnknownDestinations = append(call.Flow.UnknownDestinations, argument.Path)
	}
	for _, argument := range found.Computed {
		call.Flow.ComputedArguments = append(call.Flow.ComputedArguments, argument.Path)
	}
	return nil
}

// maxNotes is how many untrusted arguments are described to people.
const maxNotes = 10

// load reads the texts that the arguments are compared with.
func (o *origins) load(ctx context.Context, session jig.Session) error {
	if o.tracer != nil {
		return nil
	}
	texts, err := o.store.Origins(ctx, session.Tenant, session.ID)
	if err != nil {
		return err
	}
	calls := make([]dataflow.Call, len(texts.Calls))
	o.tools = make(map[string]string, len(texts.Calls))
	for i, c := range texts.Calls {
		o.tools[c.ID] = c.Tool
		tool, _, err := o.tool(ctx, session.Tenant, c.Tool, c.Version)
		if err != nil && jig.CodeOf(err) != jig.CodeInvalidInput { // a document in an older version of the language
			return err
		}
		calls[i] = dataflow.Call{
			Result: dataflow.Result{Call: c.ID, Tool: c.Tool, Text: originText(c.Result)}, Untrusted: c.Untrusted, Tainted: c.Tainted,
			Input: c.Input, Schema: tool.InputSchema,
		}
	}
	known := dataflow.NewKnowledge(texts.Typed(), calls)
	known.Incomplete = texts.More
	o.tracer = dataflow.NewTracer(known)
	return nil
}

// originText returns everything that a model may have seen of a result.
func originText(r jig.ToolResult) string {
	parts := []string{string(r.Data), r.Markdown, r.Summary}
	if r.Error != nil {
		parts = append(parts, r.Error.Message, r.Error.Hint)
	}
	return strings.Join(parts, "\n")
}

// note describes an untrusted argument to people.
func (o *origins) note(a dataflow.Argument) string {
	if len(a.Calls) == 0 {
		return fmt.Sprintf("%s (%q) is in no text that the session has seen", a.Path, a.Value)
	}
	from := make([]string, len(a.Calls))
	for i, id := range a.Calls {
		from[i] = fmt.Sprintf("%s (%s)", id, o.tools[id])
	}
	return fmt.Sprintf("%s (%q) comes from the result of %s", a.Path, a.Value, strings.Join(from, ", "))
}

// TextStore reads the texts that arguments can come from.
type TextStore interface {
	// Origins returns what the principal typed, and the results of the latest 500 calls of a session and of the sessions above it.
	Origins(ctx context.Context, tenant, id string) (ledger.Origins, error)
	// MarkUntrusted records that a call, and with it its session, has read untrusted data.
	MarkUntrusted(ctx context.Context, tenant, id, callID string) error
}
