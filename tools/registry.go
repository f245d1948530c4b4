package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/suggest"
)

// Limits on the input and output of a tool.
const (
	// MaxInputBytes is the largest input of a tool. It has room for 10 MiB of text in its worst escaping.
	MaxInputBytes = 64 << 20
	// MaxOutputBytes is the largest output of a tool.
	MaxOutputBytes = 64 << 20
)

// Registry is a set of tools by name. Its zero value is not usable; use [NewRegistry]. It is safe for concurrent use.
type Registry struct {
	inputs, outputs *schema.Compiler

	mu    sync.RWMutex
	tools map[string]*registered
}

// registered is a tool with its compiled schemas.
type registered struct {
	Tool
	input, output *schema.Schema
}

// NewRegistry returns a registry that contains the given tools.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{
		inputs:  schema.NewCompiler(schema.Options{MaxInstanceBytes: MaxInputBytes, ExactNumbers: true}),
		outputs: schema.NewCompiler(schema.Options{MaxInstanceBytes: MaxOutputBytes}),
		tools:   map[string]*registered{},
	}
	if err := r.Register(tools...); err != nil {
		return nil, err
	}
	return r, nil
}

// Register adds all of the tools or none. The error joins one *jig.Error for each tool that cannot be registered: CONFLICT for a name that
// is taken, INVALID_INPUT for anything else, with the field at fault.
func (r *Registry) Register(tools ...Tool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := map[string]*registered{}
	var problems []error
	for _, t := range tools {
		name := t.contract.Name
		_, taken := r.tools[name]
		if _, twice := added[name]; taken || twice {
			problems = append(problems, jig.Errorf(jig.CodeConflict, "tool %s is already registered", name).WithField("name"))
			continue
		}
		ready, err := r.prepare(t)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		added[name] = ready
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	maps.Copy(r.tools, added)
	return nil
}

// prepare checks a tool and compiles its schemas.
func (r *Registry) prepare(t Tool) (*registered, error) {
	c := t.contract
	if err := jig.CheckToolName(c.Name); err != nil {
		return nil, err
	}
	if t.err != nil {
		return nil, unfit(c, "", jig.Errorf(jig.CodeInvalidInput, "%w", t.err))
	}
	if err := checkContract(t); err != nil {
		return nil, err
	}
	ready, err := r.compile(t)
	if err != nil {
		return nil, err
	}
	if t.sealing != nil {
		return nil, unfit(c, "", jig.Errorf(jig.CodeInvalidInput, "%w", t.sealing))
	}
	return ready, nil
}

// compile compiles a tool's schemas. The compilers cache them.
func (r *Registry) compile(t Tool) (*registered, error) {
	input, err := compile(r.inputs, t.contract, "input_schema", t.contract.InputSchema)
	if err != nil {
		return nil, err
	}
	output, err := compile(r.outputs, t.contract, "output_schema", t.contract.OutputSchema)
	if err != nil {
		return nil, err
	}
	return &registered{Tool: t, input: input, output: output}, nil
}

func compile(compiler *schema.Compiler, c jig.Tool, field string, raw json.RawMessage) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, unfit(c, field, jig.Errorf(jig.CodeInvalidInput, "there is no %s", field))
	}
	s, err := compiler.Compile(raw)
	if err != nil {
		return nil, unfit(c, field, jig.AsError(err))
	}
	if !s.Object() {
		return nil, unfit(c, field, jig.Errorf(jig.CodeInvalidInput, "the top level is not an object").
			WithHint(`write "type": "object" at the top level of the schema`))
	}
	return s, nil
}

// unfit returns an error that names the tool and the field of its contract that is wrong.
func unfit(c jig.Tool, field string, e *jig.Error) error {
	out := e.Reworded("%s: %s", jig.Known(strings.TrimSuffix("tool "+c.Name+", "+field, ", ")), e.Words())
	out.Code, out.Field = jig.CodeInvalidInput, field+e.Field
	return out
}

// Tool returns the sealed contract of a tool; false if there is no tool with that name.
func (r *Registry) Tool(name string) (jig.Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	if !ok {
		return jig.Tool{}, false
	}
	return t.contract, true
}

// Tools returns all contracts, sorted by name.
func (r *Registry) Tools() []jig.Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]jig.Tool, 0, len(r.tools))
	for _, t := range r.tools {
		list = append(list, t.contract)
	}
	slices.SortFunc(list, func(a, b jig.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// notFound returns the error for an unknown tool. The caller holds at least the read lock.
func (r *Registry) notFound(name string) *jig.Error {
	known := slices.Sorted(maps.Keys(r.tools))
	e := jig.Errorf(jig.CodeToolNotFound, "there is no tool %q", cut(name, 80)).
		WithHint(suggest.Hint(name, known, "see the catalog for the available tools"))
	e.NotExecuted = true
	return e
}

// find returns a tool, or the error that says that it does not exist.
func (r *Registry) find(name string) (*registered, *jig.Error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if t, ok := r.tools[name]; ok {
		return t, nil
	}
	return nil, r.notFound(name)
}

// checkContract refuses a contract that contradicts itself or lacks what a caller needs.
func checkContract(t Tool) error {
	c := t.contract
	bad := func(field, format string, args ...any) error {
		return unfit(c, field, jig.Errorf(jig.CodeInvalidInput, format, args...))
	}
	switch {
	case t.document:
		return bad("implementation", "a document defines it; only tools in code are registered")
	case t.handler == nil:
		return bad("implementation", "it has no function")
	case c.Previews && t.preview == nil:
		return bad("previews", "it has no function for previews; pass tools.WithPreview, or call Previewed")
	case strings.TrimSpace(c.Description) == "":
		return bad("description", "say when to use the tool and what it returns")
	case !slices.Contains([]jig.Permission{jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}, c.Permission):
		return bad("permission", "%q is not one of read, draft, write, destructive", c.Permission)
	case !slices.Contains([]jig.Risk{jig.RiskSafe, jig.RiskModerate, jig.RiskHigh}, c.Risk):
		return bad("risk", "%q is not one of safe, moderate, high", c.Risk)
	case !slices.Contains([]jig.ApprovalPolicy{jig.ApprovalAuto, jig.ApprovalAlwaysAsk}, c.Approval):
		return bad("approval", "%q is not one of auto, always_ask", c.Approval)
	case !slices.Contains([]jig.Execution{jig.ExecutionActivity, jig.ExecutionLocal}, c.Execution):
		return bad("execution", "%q is not one of activity, local", c.Execution)
	case c.Execution == jig.ExecutionLocal && (c.Permission != jig.PermissionRead || !c.Idempotent):
		return bad("execution", "local is for tools that only read and are idempotent")
	case c.Timeout < 0:
		return bad("timeout", "it is negative")
	case c.MaxAttempts < 0:
		return bad("max_attempts", "it is negative")
	case c.RetryFor < 0:
		return bad("retry_for", "it is negative")
	case c.OutputSections != nil && !json.Valid(c.OutputSections):
		return bad("output_sections", "it is not JSON")
	}
	if err := c.Labels.Check(); err != nil {
		return unfit(c, "", jig.AsError(err))
	}
	if err := jig.CheckMarks(c.InputSchema); err != nil {
		return unfit(c, "input_schema", jig.AsError(err))
	}
	return nil
}

// encoding/json also fills a field from a member whose name equals the field's only under case folding, such as "Amount" for amount, or
// "tas\u212a" for task. Policies and people would then see one value and the tool another. So typed tools refuse such members, and their
// schemas must not allow them.

// checkFolding refuses an input with a member that matches a field of t only by case folding.
func checkFolding(t reflect.Type, input []byte) error {
	var value any
	if json.Unmarshal(input, &value) != nil {
		return nil //nolint:nilerr // what does not decode is reported elsewhere
	}
	folded := strictjson.FindFolded(value, t)
	if folded == nil {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%q is not the field %s, but could be read as it", folded.Pointer, folded.Field).
		WithField(folded.Pointer).WithHint("write it as " + folded.Field + ", and only once")
}

// checkClosed refuses the input schema of a typed tool if it lets an object have members other than the fields of its struct. It follows
// properties and items; schemas behind a reference are not checked, but decoding a call still refuses such members.
func checkClosed(t reflect.Type, schema json.RawMessage, at string) error {
	t = pointee(t)
	var s struct {
		Properties  map[string]json.RawMessage `json:"properties"`
		Items       json.RawMessage            `json:"items"`
		Additional  json.RawMessage            `json:"additionalProperties"`  //nolint:tagliatelle // JSON Schema defines the name
		Unevaluated json.RawMessage            `json:"unevaluatedProperties"` //nolint:tagliatelle // JSON Schema defines the name
		Ref         string                     `json:"$ref"`
	}
	if decodesItself(t) || json.Unmarshal(schema, &s) != nil {
		return nil //nolint:nilerr // what does not decode is reported elsewhere
	}
	switch t.Kind() { //nolint:exhaustive // other kinds have no members
	case reflect.Slice, reflect.Array:
		if len(s.Items) > 0 {
			return checkClosed(t.Elem(), s.Items, at+"/items")
		}
	case reflect.Struct:
		closed := string(s.Additional) == "false" || string(s.Unevaluated) == "false" || s.Ref != ""
		fields := strictjson.FieldsOf(t)
		if !closed && len(fields) > 0 {
			return fmt.Errorf("input_schema%s is open: a member whose name differs from a field only in case could silently replace it; add \"additionalProperties\": false", at)
		}
		for name, member := range s.Properties {
			if field, ok := fields[name]; ok {
				if err := checkClosed(field, member, at+"/properties/"+name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func pointee(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decodesItself reports whether a type decodes its own JSON.
func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}
