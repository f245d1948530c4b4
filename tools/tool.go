package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/seal"
)

// Tool is a contract with the Go function behind it; [New], [Raw] and [OfDocument] create one. Errors in its definition are reported when
// it is registered, so lists of tools need no error handling of their own.
type Tool struct {
	contract jig.Tool
	handler  Handler
	// fill completes an input before anybody decides on the call; nil when there is nothing to complete.
	fill func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error)
	// preview describes what a call will change; nil when the tool has no previews.
	preview previewer
	// err is the error of deriving the contract; sealing is the reason why the contract has no version. Both are reported when the tool is
	// registered.
	err, sealing error
	// document is set for a tool that a document defines. It is run with [Registry.RunDocument] and cannot be registered.
	document bool
}

// Contract returns the sealed contract. Its schemas must not be modified.
func (t Tool) Contract() jig.Tool { return t.contract }

// Handler runs a tool on an input that fits its input schema. It must honor ctx, which ends when the tool's timeout expires: an attempt is
// over only when its handler has returned.
type Handler func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult

// Summarizer is an output that describes in one line what was done. Its summary replaces the default one.
type Summarizer interface{ Summary() string }

// Markdowner is an output with its own Markdown form for the next prompt.
type Markdowner interface{ Markdown() string }

// Artifacter is an output that names artifacts in which the tool stored large values.
type Artifacter interface{ Artifacts() []string }

// Option changes what [New] derives.
type Option func(*derivation)

type derivation struct {
	adjustInput, adjustOutput func(*jsonschema.Schema)
	fill                      func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error)
	preview                   previewer
	defaults                  []byte
}

// previewer describes what a call with an input that fits the input schema will change.
type previewer = func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (jig.Preview, error)

// WithPreview lets people see what a call will change before they approve it. It is called when the call needs an approval, and again
// before the call runs: if the preview has changed by then, people are asked again. It runs with the caller's rights, may take a few
// seconds, and may only read. If it returns an error, people see that there is no preview and why.
//
// A preview with a Precondition promises that exactly what is shown happens, or nothing. The function that runs the call gets it as
// [jig.Invocation.Precondition]; it must check it together with the effect, in one transaction for example, and return CONFLICT if it does
// not hold. The precondition is empty if nobody was asked.
func WithPreview[In any](preview func(ctx context.Context, inv jig.Invocation, in In) (jig.Preview, error)) Option {
	return func(d *derivation) {
		d.preview = func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (jig.Preview, error) {
			in, err := decode[In](input, d.defaults)
			if err != nil {
				return jig.Preview{}, err
			}
			return preview(ctx, inv, in)
		}
	}
}

// Fill completes an input when the call is admitted, before policy and people see it. It adds facts that the arguments only refer to but
// that policy and people need for their decision, and replaces any values that the caller gave for them. The approval is bound to the
// completed input, so the handler must check that the facts have not changed since. fill may only read, and should take well under a
// second.
func Fill[In any](fill func(ctx context.Context, inv jig.Invocation, in *In) error) Option {
	return func(d *derivation) {
		d.fill = func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error) {
			in, err := decode[In](input, nil)
			if err != nil {
				return nil, err
			}
			if err := fill(ctx, inv, &in); err != nil {
				return nil, err
			}
			filled, err := json.Marshal(in)
			if err != nil {
				return nil, jig.Errorf(jig.CodeInternal, "encoding the completed input: %w", err)
			}
			return filled, nil
		}
	}
}

// AdjustInput changes the derived input schema, for constraints that tags cannot express.
func AdjustInput(adjust func(*jsonschema.Schema)) Option {
	return func(d *derivation) { d.adjustInput = adjust }
}

// AdjustOutput changes the derived output schema.
func AdjustOutput(adjust func(*jsonschema.Schema)) Option {
	return func(d *derivation) { d.adjustOutput = adjust }
}

// New makes a tool from a typed function. The input and output schemas are derived from In and Out, which must be structs (or maps with
// string keys), unless spec gives them. A field is required unless its json tag says omitempty or omitzero, and members other than the
// fields are not allowed. Other tags add constraints:
//
//	jsonschema:"…"                description, for the model
//	enum:"a,b,c"                  the allowed values
//	minimum, maximum              of a number
//	minLength, maxLength, pattern, format   of a string
//	minItems, maxItems            of a slice; the tags above then go to its items
//	destination:"true"            data is sent to this address, account or person (x-destination)
//	quantity:"true"               an integer that is an amount and not an id (x-quantity)
//	path:"true", url:"true"       a relative path or a URL, which the handler gets in canonical form (x-path, x-url)
//	default:"…"                   decoded into the field when the input lacks it (only for fields of In itself)
//
// A spec with Confirm adds the boolean member confirmed to the derived input schema, unless In has that field.
//
// Slices and pointers are not nullable: a nil slice or map in Out is written as [] or {}, and a pointer field of Out needs omitempty.
//
// An InputSchema in spec must close all of its objects (additionalProperties: false), because encoding/json would otherwise fill a field
// from a member whose name differs from it only by case. A call with such a member is always refused.
//
// The function's error becomes the error of the result: a *jig.Error unchanged, any other error as INTERNAL. Out may implement Summarizer,
// Markdowner and Artifacter.
//
// For a tool that writes, the error also says whether the effect may have happened. Return a *jig.Error with NotExecuted set, or with a
// code that promises that nothing happened (INVALID_INPUT, NOT_FOUND, CONFLICT, NOT_PERMITTED, RATE_LIMITED), only when that is certain;
// the call then fails. After any other error, a panic or a timeout, the call becomes unknown and waits for a person, unless the tool is
// idempotent and another attempt succeeds. A tool that changed something before it failed returns [jig.Error.AfterEffect].
func New[In, Out any](spec jig.Tool, fn func(ctx context.Context, inv jig.Invocation, in In) (Out, error), options ...Option) Tool {
	var d derivation
	for _, option := range options {
		option(&d)
	}
	t := Tool{contract: spec}
	var err error
	if d.defaults, err = t.derive(reflect.TypeFor[In](), reflect.TypeFor[Out](), d); err != nil {
		t.err = err
		return t
	}
	t.handler, t.fill, t.preview = typed(fn, d.defaults), d.fill, d.preview
	if spec.Confirm && d.fill != nil {
		t.fill = keepConfirmed(d.fill)
	}
	t.contract.Previews = d.preview != nil
	t.contract, t.sealing = seal.Tool(t.contract)
	return t
}

// Raw makes a tool from a function that works on JSON. spec must contain both schemas.
func Raw(spec jig.Tool, fn Handler) Tool {
	t := Tool{handler: fn}
	t.contract, t.sealing = seal.Tool(spec)
	return t
}

// Previewed returns a tool made by [Raw] or [OfDocument] with previews; see [WithPreview]. preview must honor ctx, and may only read: jig refuses
// writes and, for a tool that sends, connections through its own adapters, but it cannot stop other code.
func (t Tool) Previewed(preview func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (jig.Preview, error)) Tool {
	t.preview = preview
	if !t.document {
		t.contract.Previews = true
		t.contract, t.sealing = seal.Tool(t.contract)
	}
	return t
}

// OfDocument makes the tool that a document defines. Unlike [Raw], it leaves the contract as it is: its version is that of the document. The
// tool is not registered, because every version of a document is a tool of its own; [Registry.RunDocument] runs it.
func OfDocument(contract jig.Tool, fn Handler) Tool {
	return Tool{contract: contract, handler: fn, document: true}
}

// derive fills in the schemas that spec lacks and returns the defaults of the input's fields as a JSON object.
func (t *Tool) derive(in, out reflect.Type, d derivation) ([]byte, error) {
	if t.contract.Confirm && in.Kind() == reflect.Struct {
		d.adjustInput = withConfirmed(d.adjustInput)
	}
	defaults, derived, err := schemaOf(in, d.adjustInput)
	if err != nil {
		return nil, fmt.Errorf("input type %s: %w", in, err)
	}
	if t.contract.InputSchema == nil {
		t.contract.InputSchema = derived
	} else if err := checkClosed(in, t.contract.InputSchema, ""); err != nil {
		return nil, err
	}
	if t.contract.OutputSchema != nil {
		return defaults, nil
	}
	if field := nullable(out, nil); field != "" {
		return nil, fmt.Errorf("output type %s: the pointer %s needs omitempty, because nil would be written as null", out, field)
	}
	if _, t.contract.OutputSchema, err = schemaOf(out, d.adjustOutput); err != nil {
		return nil, fmt.Errorf("output type %s: %w", out, err)
	}
	return defaults, nil
}

// typed wraps a typed function as a Handler.
func typed[In, Out any](fn func(context.Context, jig.Invocation, In) (Out, error), defaults []byte) Handler {
	fill := hasNil(reflect.TypeFor[Out](), nil)
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		in, err := decode[In](input, defaults)
		if err != nil {
			return failure(err)
		}
		out, err := fn(ctx, inv, in)
		if e := jig.AsError(err); e != nil { // an error may hold a nil *jig.Error, which is no failure
			return jig.Failure(e)
		}
		return success(out, fill)
	}
}

func decode[In any](input, defaults []byte) (In, error) {
	var in In
	if err := checkFolding(reflect.TypeFor[In](), input); err != nil {
		e := jig.AsError(err)
		e.NotExecuted = true
		return in, e
	}
	if defaults != nil {
		if err := json.Unmarshal(defaults, &in); err != nil {
			return in, fmt.Errorf("defaults: %w", err)
		}
	}
	err := json.Unmarshal(input, &in)
	if err == nil {
		return in, nil
	}
	// The schema accepts 1.0 and 1e3 as integers; encoding/json does not.
	if whole, again := schema.RewriteIntegers(input); again == nil {
		err = json.Unmarshal(whole, &in)
	}
	if err != nil {
		e := jig.Errorf(jig.CodeInvalidInput, "the input does not fit the tool: %w", err)
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			at := "/" + strings.ReplaceAll(wrong.Field, ".", "/")
			e = jig.Errorf(jig.CodeInvalidInput, "%s does not take %s", at, wrong.Value).WithField(at)
			if strings.HasPrefix(wrong.Value, "number") {
				e = e.WithHint("give a smaller number")
			}
		}
		e.NotExecuted = true
		return in, e
	}
	return in, nil
}

func success[Out any](out Out, fill bool) jig.ToolResult {
	if fill {
		fillNil(reflect.ValueOf(&out).Elem())
	}
	data, err := json.Marshal(out)
	if err != nil {
		// The function itself succeeded; checkOutput decides what an unusable output means.
		return jig.ToolResult{Success: true, Warnings: []string{"the output cannot be written as JSON: " + err.Error()}}
	}
	r := jig.ToolResult{Success: true, Data: data}
	for _, v := range []any{out, &out} { // methods may have value or pointer receivers
		if s, ok := v.(Summarizer); ok {
			r.Summary = s.Summary()
		}
		if m, ok := v.(Markdowner); ok {
			r.Markdown = m.Markdown()
		}
		if a, ok := v.(Artifacter); ok {
			r.Artifacts = a.Artifacts()
		}
	}
	return r
}

// failure is like [jig.Failure], but guards against typed nil errors.
func failure(err error) jig.ToolResult {
	e := jig.AsError(err)
	if e == nil {
		e = &jig.Error{Code: jig.CodeInternal, Message: "the tool failed without an error message"}
	}
	return jig.Failure(e)
}

// confirmedMember is the member of an input with which a person's confirmation is passed on; see [jig.Tool.Unconfirmed].
const confirmedMember = "confirmed"

// withConfirmed adds the confirmation flag to an input schema that lacks it.
func withConfirmed(adjust func(*jsonschema.Schema)) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		if s.Properties == nil {
			s.Properties = map[string]*jsonschema.Schema{}
		}
		if s.Properties[confirmedMember] == nil {
			s.Properties[confirmedMember] = &jsonschema.Schema{
				Type: "boolean", Description: "true once the person has said that this is what they want; without it nothing is done",
			}
		}
		if adjust != nil {
			adjust(s)
		}
	}
}

// filler completes an input; see [Fill].
type filler func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error)

// keepConfirmed returns a filler whose completed inputs keep the confirmation flag, for which the tool's input type may have no field.
func keepConfirmed(fill filler) filler {
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error) {
		filled, err := fill(ctx, inv, input)
		if err != nil {
			return nil, err
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(input, &before) != nil || json.Unmarshal(filled, &after) != nil || before[confirmedMember] == nil {
			return filled, nil //nolint:nilerr // an input that is no object has no flag, and is refused later
		}
		after[confirmedMember] = before[confirmedMember]
		if filled, err = json.Marshal(after); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "encoding the completed input: %w", err)
		}
		return filled, nil
	}
}
