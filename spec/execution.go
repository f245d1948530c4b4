package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/suggest"
)

// anyObject is the input schema of a document that has none.
const anyObject = `{"type":"object"}`

// answerStep is the id of the only step of a prompt or a task.
const answerStep = "answer"

// LoadExecution reads a document of kind composition, prompt, task or thin_tool, in YAML or JSON. document is the file name for error
// messages. The error is a [Problems] with everything that is wrong.
func LoadExecution(document string, body []byte) (Execution, error) {
	x, problems := CheckExecution(document, body)
	if err := problems.OrNil(); err != nil {
		return Execution{}, err
	}
	return x, nil
}

// CheckExecution reads an execution spec and also returns warnings. The spec is usable only if no problem is an error.
func CheckExecution(document string, body []byte) (Execution, Problems) {
	d := newDecoder(document)
	x := d.execution(body)
	d.problems.Sort()
	return x, d.problems
}

func (d *decoder) execution(body []byte) Execution {
	tree := d.parseTree(plainJSON(body))
	if tree == nil {
		return Execution{}
	}
	d.places[""] = tree
	if !d.is(tree, "", kindMap) {
		return Execution{}
	}
	x, head, ok := d.executionHead(tree)
	if !ok {
		return Execution{}
	}
	x.Name, x.Description, x.Version, x.Preview = head.Name, head.Description, versionOf(x.Kind, body), head.Preview
	d.checkToolHead(head)
	x.Tool = d.contract(x, head, tree)
	d.checkExecution(x)
	return x
}

// executionHead reads the document according to its kind.
func (d *decoder) executionHead(tree *node) (Execution, toolHead, bool) {
	kind := Kind("")
	if n := tree.get("kind"); n != nil {
		kind = Kind(n.text)
	}
	switch kind { //nolint:exhaustive // the kinds that can be executed
	case KindComposition:
		var h compositionHead
		d.into(tree, "", reflect.ValueOf(&h).Elem())
		return Execution{Kind: kind, Steps: h.Steps, Output: h.Output}, h.toolHead, true
	case KindPrompt:
		var h promptHead
		d.into(tree, "", reflect.ValueOf(&h).Elem())
		return oneStep(kind, Step{ID: answerStep, Prompt: &h.promptBody}), h.toolHead, true
	case KindTask:
		var h taskHead
		d.into(tree, "", reflect.ValueOf(&h).Elem())
		return oneStep(kind, Step{ID: answerStep, Task: &h.TaskCall}), h.toolHead, true
	case KindThinTool:
		var h thinToolHead
		d.into(tree, "", reflect.ValueOf(&h).Elem())
		return Execution{Kind: kind, Thin: h.thin()}, h.toolHead, true
	case "":
		d.at("kind", ProblemMissingKey, "add kind: composition (or prompt, task or thin_tool)", `the key "kind" is missing`)
	default:
		d.places["kind"] = tree.get("kind")
		d.at("kind", ProblemUnknownKind, suggest.OrKnown(string(kind), executionKinds()), "%q is not a kind of execution spec", kind)
	}
	return Execution{}, toolHead{}, false
}

func executionKinds() []string {
	return []string{string(KindComposition), string(KindPrompt), string(KindTask), string(KindThinTool)}
}

func oneStep(kind Kind, step Step) Execution {
	return Execution{Kind: kind, Steps: []Step{step}, Output: json.RawMessage(`"${steps.` + answerStep + `.data}"`)}
}

// checkToolHead checks rules that involve more than one key of the head.
func (d *decoder) checkToolHead(h toolHead) {
	if d.has("input_schema") {
		d.checkSchema("input_schema", h.InputSchema)
	}
	if d.has("output_schema") {
		d.checkSchema("output_schema", h.OutputSchema)
	}
	d.checkConcurrencyKey(h)
}

// checkConcurrencyKey checks that the key is an expression over the input.
func (d *decoder) checkConcurrencyKey(h toolHead) {
	if h.ConcurrencyKey == "" {
		return
	}
	env, err := expr.ConcurrencyKeyUse().Env()
	if err != nil {
		d.at("concurrency_key", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	shapes := expr.Shapes{}
	if len(h.InputSchema) > 0 {
		shapes["input"] = h.InputSchema
	}
	if err := env.Check(string(h.ConcurrencyKey), expr.Any, shapes); err != nil {
		compiler{decoder: d, env: env}.report("concurrency_key", err)
	}
}

// contract returns the tool contract under which the spec is called. Its version and meaning are derived from the document, so that an
// approval is valid only for the document that was approved.
func (d *decoder) contract(x Execution, h toolHead, tree *node) jig.Tool {
	tool := jig.Tool{
		Name: h.Name, Description: h.Description, Permission: jig.Permission(h.Permission), Risk: jig.Risk(h.Risk),
		Approval: jig.ApprovalPolicy(h.Approval), Idempotent: true, InputSchema: h.InputSchema, OutputSchema: h.OutputSchema,
		Tags: h.Tags, Icon: h.Icon, RequiredPermission: h.RequiredPermission, ConcurrencyKey: string(h.ConcurrencyKey), Undo: h.Undo, Implementation: string(x.Kind),
		Labels: h.Labels.contract(), Previews: x.previewed(),
	}
	if tool.Permission == "" {
		tool.Permission = jig.PermissionDraft
	}
	if len(tool.InputSchema) == 0 {
		tool.InputSchema = json.RawMessage(anyObject)
	}
	if x.Kind == KindPrompt && len(tool.OutputSchema) == 0 {
		tool.OutputSchema = x.Steps[0].Prompt.shape()
	}
	if x.Kind == KindThinTool && len(tool.OutputSchema) == 0 {
		tool.OutputSchema = json.RawMessage(thinResult)
	}
	tool = tool.WithDefaults()
	tool.Version, tool.Meaning = x.Version, meaningOf(x.Version, tree)
	return tool
}

// previewed reports whether people see what a call will change. A thin tool shows the entity that it creates, unless its document says otherwise.
func (x Execution) previewed() bool {
	return x.Preview != nil || x.Thin != nil && x.Thin.Creates != nil
}

// shape returns the JSON Schema of a prompt's result. Package toolname describes the results of the tools that answer prompts.
func (p Prompt) shape() json.RawMessage {
	answer := p.Schema
	if len(answer) == 0 {
		answer = json.RawMessage(`{"type":"string"}`)
	} else {
		answer = withID(answer)
	}
	switch {
	case p.Mode == promptAgent:
		return json.RawMessage(`{"type":"object","properties":{"session_id":{"type":"string"},"answer":` + string(answer) + `}}`)
	case len(p.Schema) > 0:
		return json.RawMessage(`{"type":"object","properties":{"output":` + string(answer) + `}}`)
	}
	return json.RawMessage(`{"type":"object","properties":{"text":` + string(answer) + `}}`)
}

// withID gives a schema its own $id, so that its references still resolve within it when it is embedded in another schema.
func withID(schema json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(schema, &fields) != nil {
		return json.RawMessage(`{}`)
	}
	if _, has := fields["$id"]; !has {
		fields["$id"] = json.RawMessage(`"answer"`)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// The modes of a prompt.
const (
	promptDirect = "direct"
	promptSkill  = "skill"
	promptAgent  = "agent"
)

var surrogatePair = regexp.MustCompile(`\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// plainJSON replaces the surrogate pairs of escapes in a JSON text with the characters that they stand for, because YAML does not know
// them. It leaves everything else unchanged.
func plainJSON(body []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) || len(body) > MaxTenantBytes || !json.Valid(body) {
		return body
	}
	return surrogatePair.ReplaceAllFunc(body, func(pair []byte) []byte {
		var text string
		if len(pair) != 12 || json.Unmarshal([]byte(`"`+string(pair)+`"`), &text) != nil {
			return pair
		}
		return []byte(text)
	})
}
