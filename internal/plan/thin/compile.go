package thin

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/docpreview"
	"github.com/jig-run/jig/spec"
)

// definition is a thin tool with its expressions compiled. It is safe for concurrent use.
type definition struct {
	tool jig.Tool
	thin spec.ThinTool

	entities []entityLookup
	requires []requirement
	title    *expr.Template
	key      *expr.Template
	url      *expr.Template
	// preview is nil if the document describes none.
	preview *docpreview.Program
	// fields, relations, workspaces and input are nil if the document leaves them out.
	fields, relations, workspaces, input *expr.Document
}

// entityLookup is an entity that the tool starts from.
type entityLookup struct {
	spec.ThinEntity
	id, workspace *expr.Template
	// at and workspaceAt are the fields that errors about the id and about the workspace name: a pointer into the input if the template is a
	// plain member of the input, otherwise a path in the document.
	at, workspaceAt string
}

type requirement struct {
	spec.ThinRequirement
	check   *expr.Program
	message *expr.Template
}

// compile compiles the expressions of a document. Package spec reports all mistakes in a document at once and with line numbers; these
// checks catch documents that did not go through it.
func compile(x spec.Execution) (*definition, error) {
	if x.Thin() == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%s is not a thin tool", x.Name).WithField("kind").WithHint("its kind is " + string(x.Kind))
	}
	d := &definition{tool: x.Tool, thin: *x.Thin()}
	d.tool.Timeout, d.tool.MaxAttempts = timeout, maxAttempts
	env, err := expr.ThinUse().Env()
	if err != nil {
		return nil, err
	}
	links, err := expr.ThinURLUse().Env()
	if err != nil {
		return nil, err
	}
	c := &compiler{}
	c.Compiler = expr.Compiler{Env: env, Report: c.fail}
	for i, e := range d.thin.Entities {
		at := "entities[" + strconv.Itoa(i) + "]"
		d.entities = append(d.entities, entityLookup{
			ThinEntity: e, id: c.Template(at+".id", e.ID), workspace: c.Template(at+".workspace", e.Workspace),
			at: placeOf(e.ID, "entities."+e.Name), workspaceAt: placeOf(e.Workspace, "entities."+e.Name+".workspace"),
		})
	}
	for i, r := range d.thin.Requires {
		at := "requires[" + strconv.Itoa(i) + "]"
		d.requires = append(d.requires, requirement{
			ThinRequirement: r, check: c.condition(at+".check", r.Check), message: c.Template(at+".message", r.Message),
		})
	}
	if made := d.thin.Creates; made != nil {
		d.title, d.key = c.Template("creates.title", made.Title), c.Template("creates.key", made.Key)
		d.fields = c.Document("creates.fields", made.Fields)
		d.relations = c.Document("creates.relations", made.Relations)
		d.workspaces = c.Document("creates.workspaces", made.Workspaces)
	}
	if d.thin.Starts != nil {
		d.input = c.Document("starts.input", d.thin.Starts.Input)
	}
	c.Env = links
	d.url = c.Template("url", d.thin.URL)
	if c.err == nil {
		d.preview, c.err = docpreview.Compile(x)
	}
	return d, c.err
}

// compiler keeps the first error.
type compiler struct {
	expr.Compiler
	err error
}

func (c *compiler) fail(at string, err error) {
	if c.err == nil {
		e := *jig.AsError(err)
		e.Code, e.Field = jig.CodeInvalidInput, strings.TrimSuffix(at+"."+e.Field, ".")
		c.err = &e
	}
}

func (c *compiler) condition(at, source string) *expr.Program {
	p, err := c.Env.CompileAs(source, expr.Bool)
	if err != nil {
		c.fail(at, err)
	}
	return p
}

// plainInput matches a template that is a single member of the input and nothing else.
var plainInput = regexp.MustCompile(`^\$\{\s*input\.\??([A-Za-z_][A-Za-z0-9_]*)(?:\.orValue\([^()]*\))?\s*\}$`)

func placeOf(template, otherwise string) string {
	if found := plainInput.FindStringSubmatch(strings.TrimSpace(template)); found != nil {
		return "/" + found[1]
	}
	return otherwise
}
