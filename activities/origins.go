package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/dataflow"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/toolname"
)

// origins traces the arguments of a session's calls. It reads the texts that they are compared with when the first call needs them, and later only
// the results of calls that have ended since.
type origins struct {
	*Activities
	// known and calls are the session's texts. stale reports that calls may have ended since they were read. tools holds the tool of each call.
	known dataflow.Knowledge
	calls []ledger.OriginCall
	stale bool
	tools map[string]string
	// tracers holds a tracer for each composition whose calls were traced, by the id of its call; "" is for the session's own calls.
	tracers map[string]*sessionTracer
	// rendered holds the texts in the next call's input that templates of a composition's document gave, with the values in them.
	rendered map[string][]string
	// earlier is the trace of the same input from an earlier call or admission. It is kept because a later one cannot see which parts of a text a
	// template filled in.
	earlier *jig.DataFlow
}

// sessionTracer is a tracer that has the first calls of origins.calls.
type sessionTracer struct {
	*dataflow.Tracer

	calls int
	// document reports that the text of the composition's document is trusted. programs reports that the arguments are made by a program, which
	// reads complete results although only their beginning is stored with the call.
	document, programs bool
}

// trace sets call.Flow. It does nothing in a session that has read neither private nor untrusted data. In a session that has read untrusted data, it
// compares the arguments of calls that write or send. Of other calls it finds out only whether their results can be trusted.
func (o *origins) trace(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call) error {
	rendered := o.rendered
	earlier := o.earlier
	o.rendered, o.earlier, call.Flow = nil, nil, nil
	if !session.ReadPrivate && !session.ReadUntrusted {
		return nil
	}
	call.Flow = &jig.DataFlow{ReadPrivate: session.ReadPrivate, ReadUntrusted: session.ReadUntrusted}
	if earlier != nil && earlier.ReadUntrusted {
		*call.Flow = *earlier
		return nil
	}
	guarded := tool.Permission.Writes() || tool.Sends()
	if !session.ReadUntrusted || !guarded && tool.Reads(jig.ReadsUntrusted) {
		return nil
	}
	tracer, err := o.tracerOf(ctx, session, call.Frame)
	if err != nil {
		return err
	}
	if !tracer.document {
		rendered = nil
	}
	found := tracer.Trace(call.Input, tool.InputSchema, rendered)
	call.Flow.Traced = len(found.Untrusted) == 0 && len(found.Computed) == 0
	if !guarded {
		return nil
	}
	call.Flow.Notes, call.Flow.Marked = o.notes(tracer, call, found)
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

// tracerOf returns the tracer of a session's own calls or, if frame names the call of a composition, of that composition's calls.
func (o *origins) tracerOf(ctx context.Context, session jig.Session, frame string) (*sessionTracer, error) {
	if err := o.load(ctx, session); err != nil {
		return nil, err
	}
	t, ok := o.tracers[frame]
	if !ok {
		known := o.known
		known.Untrusted = slices.Clone(known.Untrusted)
		t = &sessionTracer{programs: frame != "" || scripted(session.Agent.Model)}
		document, err := o.documentOf(ctx, session, frame)
		if err != nil {
			return nil, err
		}
		if t.document = document.trusted; t.document {
			known.Typed = append(slices.Clone(known.Typed), document.text)
		} else if document.text != "" {
			known.Untrusted = append(known.Untrusted, dataflow.Result{Call: "the document of " + document.name, Text: document.text})
		}
		t.Tracer = dataflow.NewTracer(known)
		o.tracers[frame] = t
	}
	for _, c := range o.calls[t.calls:] {
		result := dataflow.Result{Call: c.ID, Tool: c.Tool, Text: originText(c.Result)}
		if c.Untrusted {
			t.Distrust(result, c.Cut && t.programs)
		} else {
			t.Trust(result)
		}
	}
	t.calls = len(o.calls)
	return t, nil
}

// documentText is the text of a document, and whether it is trusted.
type documentText struct {
	name, text string
	trusted    bool
}

// documentOf returns the text of the document whose calls are traced: that of a composition, a task or an entity type or, for a session's own calls, the
// instructions of its agent. The text of a registered version is trusted unless the call that registered it may have repeated an outsider's. The text of
// a document that was not registered is trusted if the principal has typed it.
func (o *origins) documentOf(ctx context.Context, session jig.Session, frame string) (documentText, error) {
	typed := session.ParentID == "" && ledger.Typed(session.Source)
	agent := session.Agent
	if frame == "" {
		found := documentText{name: agent.Name, text: agent.Instructions, trusted: typed}
		if !agent.Registered || agent.Name == jig.CallAgent {
			return found, nil
		}
		var err error
		found.trusted, err = o.Store.DocumentTrusted(ctx, session.Tenant, documentAgent, agent.Name, agent.Version)
		return found, err
	}
	runs, err := o.Store.Frame(ctx, session.Tenant, session.ID, frame)
	if err != nil {
		return documentText{}, err
	}
	found := documentText{name: runs.Name, trusted: typed}
	if draft := agent.Name == jig.CallAgent && !agent.Registered && runs.Version == agent.Version; !draft {
		if found.trusted, err = o.Store.DocumentTrusted(ctx, session.Tenant, runs.Kind, runs.Name, runs.Version); err != nil {
			return documentText{}, err
		}
	}
	body, err := o.Store.DocumentAt(ctx, session.Tenant, runs.Kind, runs.Name, runs.Version)
	if jig.CodeOf(err) == jig.CodeNotFound { // an extraction of many entities runs no document
		return documentText{}, nil
	}
	found.text = string(body)
	return found, err
}

// sessionKey names a session.
type sessionKey struct{ tenant, session string }

// maxSeen is the number of sessions whose results a worker keeps, to compare arguments with them.
const maxSeen = 16

// load reads the texts that the arguments are compared with, or what has been added to them. A worker keeps the results of calls that have ended, so that
// each is read once, whatever the number of admissions.
func (o *origins) load(ctx context.Context, session jig.Session) error {
	if o.tools != nil && !o.stale {
		return nil
	}
	key, first := sessionKey{session.Tenant, session.ID}, o.tools == nil
	if first {
		seen, err := o.seen.Get(key, func([]ledger.OriginCall, bool) ([]ledger.OriginCall, error) { return nil, nil })
		if err != nil {
			return err
		}
		o.calls, o.tools, o.tracers = seen, map[string]string{}, map[string]*sessionTracer{}
		o.noteTools(seen)
	}
	texts, err := o.Store.Origins(ctx, session.Tenant, session.ID, slices.Collect(maps.Keys(o.tools)))
	if err != nil {
		return err
	}
	if len(o.tools) > 0 && texts.More && !o.known.Incomplete { // older texts are no longer compared
		o.seen.Forget(key)
		*o = origins{Activities: o.Activities}
		return o.load(ctx, session)
	}
	if first {
		o.known = dataflow.Knowledge{Typed: texts.Typed(), Incomplete: texts.More}
		for _, t := range texts.Told() {
			o.known.Untrusted = append(o.known.Untrusted, dataflow.Result{Call: t.What, Text: t.Text})
		}
	}
	o.noteTools(texts.Calls)
	o.calls, o.stale = append(slices.Clip(o.calls), texts.Calls...), false
	o.seen.Put(key, o.calls)
	return nil
}

// noteTools records the tools of calls.
func (o *origins) noteTools(calls []ledger.OriginCall) {
	for _, c := range calls {
		o.tools[c.ID] = c.Tool
	}
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

const (
	// maxNotes is how many untrusted arguments are described to people.
	maxNotes = 10
	// maxMarks is how many untrusted parts of documents are shown to people. The text of documents with more of them cannot become trusted.
	maxMarks = 40
)

// notes describes the untrusted arguments of a call to people. In the documents that a call registers, it marks the parts that cannot be traced. marked
// reports that nothing is missing, so that the text of the documents is trusted once somebody has approved the call.
func (o *origins) notes(tracer *sessionTracer, call *jig.Call, found dataflow.Findings) (notes []string, marked bool) {
	documents := registered(*call)
	marked = len(documents) > 0 && len(found.Computed) == 0 && !found.Cut
	var others, marks int
	for _, argument := range found.Untrusted {
		body, ok := documents[argument.Path]
		switch {
		case ok:
			more, whole := o.marks(tracer, argument.Path, body, maxMarks-marks)
			notes, marks, marked = append(notes, more...), marks+len(more), marked && whole
		case others < maxNotes:
			notes, others = append(notes, o.note(argument)), others+1
		default:
			marked = false
		}
	}
	if marked && marks > 0 {
		notes = append(notes, "the text of these documents is trusted once somebody has approved the call")
	}
	return notes, marked
}

// registered returns the documents that a call registers, by their place in its input.
func registered(call jig.Call) map[string]string {
	type file struct{ Body string }
	var in struct{ Documents, Files []file }
	if call.Tool != toolname.CatalogPut && call.Tool != toolname.BundleInstall || json.Unmarshal(call.Input, &in) != nil {
		return nil
	}
	documents := map[string]string{}
	for name, files := range map[string][]file{"documents": in.Documents, "files": in.Files} {
		for i, f := range files {
			documents["/"+name+"/"+strconv.Itoa(i)+"/body"] = f.Body
		}
	}
	return documents
}

// marks describes the parts of a document that cannot be traced: one by one if they contain something of an untrusted result, and the others by their
// lines. whole is false if there are more than limit.
func (o *origins) marks(tracer *sessionTracer, path, body string, limit int) (marks []string, whole bool) {
	parts, whole := tracer.Parts(body)
	var unknown []int
	for _, part := range parts {
		if len(part.Calls) == 0 {
			unknown = append(unknown, part.Line)
			continue
		}
		place := fmt.Sprintf("%s line %d", path, part.Line)
		if part.Column > 1 {
			place += fmt.Sprintf(", column %d", part.Column)
		}
		marks = append(marks, o.note(dataflow.Argument{Path: place, Value: part.Text, Calls: part.Calls}))
	}
	if lines := ranges(unknown); len(lines) > 0 {
		marks = append(marks, fmt.Sprintf("%s, in no text that the session has seen: lines %s", path, strings.Join(lines, ", ")))
		limit -= len(lines) - 1
	}
	if !whole || len(marks) > limit {
		return []string{path + " has too many parts that cannot be traced to show them, so its text stays untrusted"}, false
	}
	return marks, true
}

// ranges writes ascending numbers with dashes for those in a row, e.g. 1-3, 7.
func ranges(numbers []int) []string {
	numbers = slices.Compact(numbers)
	var list []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		text := strconv.Itoa(numbers[i])
		if end > i {
			text += "-" + strconv.Itoa(numbers[end])
		}
		list, i = append(list, text), end+1
	}
	return list
}
