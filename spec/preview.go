package spec

import (
	"encoding/json"
	"strings"

	"github.com/jig-run/jig/internal/expr"
)

// maxPreviewChanges bounds the list of changes in a document.
const maxPreviewChanges = 100

// toolPreview describes, in the document of a tool, what a call will change. Its texts are templates over input, tenant, principal and, if Read is
// set, the output of that call as read.data.
type toolPreview struct {
	// Read is a call that is made before the texts are rendered; nil for none.
	Read  *previewRead `json:"read,omitempty" jsonschema:"A call of a tool that only reads; the texts use its output as read.data."`
	Title string       `json:"title" spec:"required,min=1,max=4096" hint:"add e.g. title: Publishes ${input.id}" jsonschema:"What will happen, in one line; a template."`
	// Changes is a list of templates, or one template that gives a list of texts.
	Changes  json.RawMessage `json:"changes,omitempty" spec:"form=list" jsonschema:"What will change: a list of templates, or one expression that evaluates to a list of texts."`
	Markdown string          `json:"markdown,omitempty" spec:"max=4096" jsonschema:"More about it, in Markdown; a template."`
}

// previewRead is the call whose output a preview uses.
type previewRead struct {
	Tool  string          `json:"tool" spec:"required,max=64,form=tool_name" hint:"add e.g. tool: entities.get" jsonschema:"A tool that only reads and sends nothing away."`
	Input json.RawMessage `json:"input,omitempty" spec:"form=mapping" jsonschema:"Its input; texts in it are templates."`
}

// checkPreview checks the preview of a document: its shape and its expressions.
func (d *decoder) checkPreview(x Execution) {
	if x.Preview == nil {
		return
	}
	if n := d.places["preview.changes"]; n != nil && len(n.items) > maxPreviewChanges {
		d.at("preview.changes", ProblemTooMany, "use one expression that gives a list", "there are %d changes, at most %d are allowed", len(n.items), maxPreviewChanges)
		return
	}
	d.checkList("preview.changes")
	if x.Preview.Read != nil {
		d.checkInput("preview.read.input")
	}
	d.previewExpressions(x, nil)
}

// previewExpressions checks the expressions of a preview. output is the schema of the data that it reads; nil if it is not known.
func (d *decoder) previewExpressions(x Execution, output json.RawMessage) {
	env, err := expr.PreviewUse().Env()
	if err != nil {
		d.at("preview", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	text := jsonObject{{"type", "string"}}
	texts := jsonObject{{"type", "array"}, {"items", text}}
	shapes := func(read jsonObject) expr.Shapes {
		all := expr.Shapes{
			"principal": writeJSON(closedObject(jsonObject{{"id", text}, {"groups", texts}, {"permissions", texts}})),
			"read":      writeJSON(closedObject(read)),
		}
		if len(x.Tool.InputSchema) > 0 {
			all["input"] = x.Tool.InputSchema
		}
		return all
	}
	s := &thinSites{compiler: compiler{decoder: d, env: env}, before: len(d.problems), shapes: shapes(jsonObject{})}
	s.document("preview.read.input", "object")
	if x.Preview.Read != nil {
		s.shapes = shapes(jsonObject{{"data", jsonObject{}}})
		if len(output) > 0 {
			s.shapes["read.data"] = output
		}
	}
	s.text("preview.title", false)
	s.list("preview.changes")
	s.text("preview.markdown", false)
}

// checkPreviewRead checks the call of a preview against the tool: it must only read, and the expressions use what it returns.
func (k *checker) checkPreviewRead(doc *Document) {
	x := doc.Execution()
	if doc.broken || x.Preview == nil || x.Preview.Read == nil {
		return
	}
	at, read := (*place)(nil).key("preview").key("read"), x.Preview.Read
	if k.tools.missing(read.Tool) {
		k.report(doc, at.key("tool"), ProblemUnknownTool, k.suggest("tool", read.Tool, k.tools.sorted), "there is no tool %q", read.Tool)
		return
	}
	tool := k.contracts[read.Tool]
	switch {
	case k.specs.all[read.Tool] != nil:
		k.report(doc, at.key("tool"), ProblemBadValue, "call a tool such as entities.get", "%s is a document; a preview can only call a tool in code", read.Tool)
		return
	case tool == nil:
		return // nothing is known about the tools
	case !tool.OnlyReads():
		k.report(doc, at.key("tool"), ProblemBadValue, "call a tool such as entities.get", "a preview only reads, and %s does more than that or sends data away", read.Tool)
		return
	}
	k.checkInput(doc, k.tools.all[read.Tool], call{kind: callTool, name: read.Tool, within: at, key: "tool", input: read.Input, inputKey: "input"})
	d := newDecoder(doc.Path)
	d.places = doc.places
	d.previewExpressions(*x, tool.OutputSchema)
	k.problems = append(k.problems, d.problems...)
}

// preview writes what people see of a call before they approve it.
func (o *outline) preview(p *toolPreview) {
	if p == nil {
		return
	}
	o.line(0, "people who approve it see: %s", p.Title)
	if p.Read != nil {
		o.line(1, "after a call of %s %s", p.Read.Tool, strings.TrimSpace(string(p.Read.Input)))
	}
	if len(p.Changes) > 0 {
		o.line(1, "changes %s", p.Changes)
	}
}
