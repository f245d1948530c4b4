package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

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
	return loadAs[Execution](KindComposition, document, body) // the document says which kind of execution spec it is
}

// CheckExecution reads an execution spec and also returns warnings. The spec is usable only if no problem is an error.
func CheckExecution(document string, body []byte) (Execution, Problems) {
	doc, problems := KindComposition.row().load(document, body)
	return *doc.Execution(), problems
}

// readExecution reads an execution spec of any kind.
func readExecution(d *decoder, _ kindRow, doc *Document) {
	x := d.execution(doc.Body)
	if doc.Value, doc.Name = &x, x.Name; x.Kind != "" {
		doc.Kind, doc.Version = x.Kind, x.Version
	}
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
	kind := Kind("")
	if n := tree.get("kind"); n != nil {
		kind = Kind(n.text)
	}
	of := kind.execution()
	if of.parse == nil {
		d.noExecution(kind, tree)
		return Execution{}
	}
	x, head := of.parse(d, tree)
	x.Kind, x.Name, x.Description, x.Version, x.Preview = kind, head.Name, head.Description, versionOf(kind, body), head.Preview
	d.checkToolHead(head)
	x.Tool = d.contract(x, head, tree)
	d.checkExecution(x)
	return x
}

// noExecution reports a document that is not of a kind that can be called.
func (d *decoder) noExecution(kind Kind, tree *node) {
	kinds := kindNames(func(row kindRow) bool { return row.execution != nil })
	if kind == "" {
		d.at("kind", ProblemMissingKey, "add kind: "+orList(kinds), `the key "kind" is missing`)
		return
	}
	d.places["kind"] = tree.get("kind")
	d.at("kind", ProblemUnknownKind, suggest.OrKnown(string(kind), kinds), "%q is not a kind of composition", kind)
}

func oneStep(step Step) Execution {
	return Execution{Steps: []Step{step}, Output: json.RawMessage(`"${steps.` + answerStep + `.data}"`)}
}

// checkToolHead checks rules that involve more than one key of the head.
func (d *decoder) checkToolHead(h toolHead) {
	if d.has("input_schema") {
		d.checkSchema("input_schema", h.InputSchema)
	}
	if d.has("output_schema") {
		d.checkSchema("output_schema", h.OutputSchema)
	}
	shapes := expr.Shapes{}
	if len(h.InputSchema) > 0 {
		shapes["input"] = h.InputSchema
	}
	d.checkExpression("concurrency_key", h.ConcurrencyKey, expr.ConcurrencyKeyUse(), shapes)
	if len(h.OutputSchema) > 0 {
		shapes["result"] = h.OutputSchema
	}
	d.checkExpression("undo_input", h.UndoInput, expr.UndoInputUse(), shapes)
	if h.UndoInput != "" && h.Undo == "" {
		d.at("undo_input", ProblemMissingKey, "add undo: the tool that undoes the effect", "there is no tool that gets this input")
	}
}

// checkExpression checks the expression of a key, which may be empty.
func (d *decoder) checkExpression(key string, source Expression, use expr.Use, shapes expr.Shapes) {
	if source == "" {
		return
	}
	env, err := use.Env()
	if err != nil {
		d.at(key, ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	if err := env.Check(string(source), expr.Any, shapes); err != nil {
		compiler{decoder: d, env: env}.report(key, err)
	}
}

// contract returns the tool contract under which the spec is called. Its version and meaning are derived from the document, so that an
// approval is valid only for the document that was approved.
func (d *decoder) contract(x Execution, h toolHead, tree *node) jig.Tool {
	tool := jig.Tool{
		Name: h.Name, Description: h.Description, Permission: jig.Permission(h.Permission), Risk: jig.Risk(h.Risk),
		Approval: jig.ApprovalPolicy(h.Approval), Idempotent: true, InputSchema: h.InputSchema, OutputSchema: h.OutputSchema,
		Tags: h.Tags, Icon: h.Icon, RequiredPermission: h.RequiredPermission, ConcurrencyKey: string(h.ConcurrencyKey), Undo: h.Undo, UndoInput: string(h.UndoInput), Implementation: string(x.Kind),
		Labels: h.Labels.contract(), Previews: x.previewed(),
	}
	if tool.Permission == "" {
		tool.Permission = jig.PermissionDraft
	}
	if len(tool.InputSchema) == 0 {
		tool.InputSchema = json.RawMessage(anyObject)
	}
	if output := x.Kind.execution().output; output != nil && len(tool.OutputSchema) == 0 {
		tool.OutputSchema = output(x)
	}
	tool = tool.WithDefaults()
	tool.Version, tool.Meaning = x.Version, meaningOf(x.Version, tree)
	return tool
}

// previewed reports whether people see what a call will change.
func (x Execution) previewed() bool {
	previews := x.Kind.execution().previews
	return x.Preview != nil || previews != nil && previews(x)
}

// promptOutput returns the JSON Schema of the result of a prompt without one.
func promptOutput(x Execution) json.RawMessage { return x.Steps[0].Prompt.shape() }

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

// compileScript compiles every expression and template of a script and reports those that do not compile, each at its place.
func (d *decoder) compileScript(s script) {
	env, err := expr.ScriptUse().Env()
	if err != nil {
		d.at("script", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c := expr.Compiler{Env: env, Report: compiler{decoder: d, env: env}.report}
	for i, rule := range s.Rules {
		path := indexPath("script.rules", i)
		c.Program(path+".when", string(rule.When), expr.Bool)
		for j, let := range rule.Let {
			c.Program(indexPath(path+".let", j)+".value", string(let.Value), expr.Any)
		}
		c.Program(path+".for_each", string(rule.ForEach), expr.List)
		c.Template(path+".say", rule.Say)
		c.Template(path+".answer", rule.Answer)
		for j, call := range rule.Calls {
			at := indexPath(path+".calls", j)
			c.Program(at+".for_each", string(call.ForEach), expr.List)
			c.Template(at+".tool", call.Tool)
			c.Document(at+".input", call.Input)
		}
	}
}

// compiler checks the expressions of a document in one environment.
type compiler struct {
	*decoder
	env *expr.Env
}

// report reports an error in the expression at a path. The message includes the position in the expression, because YAML folds
// block text, so that positions in the document cannot be computed from it.
func (c compiler) report(path string, err error) {
	if slices.ContainsFunc(c.problems, func(p Problem) bool { return p.Path == path && p.Severity == SeverityError }) {
		return // reported before: the text has the wrong form
	}
	c.at(path, ProblemBadCEL, jig.AsError(err).Hint, "%s", expressionMessage(err))
}

// expressionMessage returns what is wrong with an expression, on one line.
func expressionMessage(err error) any {
	var issue *expr.IssueError
	if errors.As(err, &issue) {
		line, column := issue.Position()
		return jig.Words(jig.Templatef("%s (line %d, column %d of the expression)", issue, line, column))
	}
	return jig.AsError(err).Words()
}

// schemaURL is the URL under which a document's own schema is compiled. Nothing is ever loaded from it.
const schemaURL = "jig:schema"

// noLoader refuses every reference that leaves the document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("references to other documents are not followed: " + url)
}

// checkSchema checks that the value at a path is a JSON Schema (2020-12) with an object at the top.
func (d *decoder) checkSchema(path string, raw json.RawMessage) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		d.at(path, ProblemBadSchema, "", "not JSON: %v", err)
		return
	}
	top, ok := value.(map[string]any)
	if !ok {
		d.at(path, ProblemBadSchema, "write a mapping with type: object", "the schema must be a mapping")
		return
	}
	if kind, given := top["type"]; !given || kind != "object" {
		d.at(keyPath(path, "type"), ProblemBadSchema, "add type: object", "the schema must describe an object")
	}
	d.compileSchema(path, value)
	if err := jig.CheckMarks(raw); err != nil {
		e := jig.AsError(err)
		d.at(path, ProblemBadSchema, e.Hint, "%s", e.Words())
	}
}

// checkAnySchema checks that the value at a path is a JSON Schema (2020-12) for any type of value.
func (d *decoder) checkAnySchema(path string, raw json.RawMessage) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		d.at(path, ProblemBadSchema, "", "not JSON: %v", err)
		return
	}
	d.compileSchema(path, value)
}

func (d *decoder) compileSchema(path string, value any) {
	compiler := jsonschema.NewCompiler()
	compiler.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) { return d.patterns.Compile(source) })
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, value); err != nil {
		d.at(path, ProblemBadSchema, "", "%v", err)
		return
	}
	d.schemas = append(d.schemas, placedSchema{path, value})
	_, err := compiler.Compile(schemaURL)
	var invalid *jsonschema.SchemaValidationError
	var violations *jsonschema.ValidationError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && errors.As(invalid.Err, &violations):
		d.schemaViolations(path, violations)
	default:
		d.at(path, ProblemBadSchema, "copy what it refers to into its own $defs", "%s", strings.ReplaceAll(err.Error(), schemaURL+"#", ""))
	}
}

// schemaViolations reports the innermost causes, one per place, because further causes at a place are branches of the same choice.
func (d *decoder) schemaViolations(path string, v *jsonschema.ValidationError) {
	if len(v.Causes) > 0 {
		for _, cause := range v.Causes {
			d.schemaViolations(path, cause)
		}
		return
	}
	at := path
	for _, step := range v.InstanceLocation {
		if i, err := strconv.Atoi(step); err == nil && d.places[indexPath(at, i)] != nil {
			at = indexPath(at, i)
			continue
		}
		at = keyPath(at, step)
	}
	if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Path == at && p.Severity == SeverityError }) {
		return
	}
	d.at(at, ProblemBadSchema, "see JSON Schema 2020-12", "not a valid schema: %s", jig.Words(expr.Quoted(v.ErrorKind.LocalizedString(message.NewPrinter(language.English)))))
}
