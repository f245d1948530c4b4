package thin

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/spec"
)

// plan is a thin tool with its expressions compiled. It is safe for concurrent use.
type plan struct {
	tool jig.Tool
	thin spec.ThinTool

	entities []entityPlan
	requires []requirement
	title    *expr.Template
	key      *expr.Template
	url      *expr.Template
	// fields, relations, workspaces and input are nil if the document leaves them out.
	fields, relations, workspaces, input *expr.Document
}

type entityPlan struct {
	spec.ThinEntity
	id, workspace *expr.Template
	// at and workspaceAt are the places that errors about the id and the workspace name: a pointer into the input if the template is a
	// plain member of the input, otherwise a path in the document.
	at, workspaceAt string
}

type requirement struct {
	spec.ThinRequirement
	check   *expr.Program
	message *expr.Template
}

// compile makes a plan. Package spec reports all mistakes in a document at once and with line numbers; these checks catch documents that did
// not go through it.
func compile(x spec.Execution) (*plan, error) {
	if x.Thin == nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "%s is no thin tool", x.Name).WithField("kind").WithHint("its kind is " + string(x.Kind))
	}
	p := &plan{tool: x.Tool, thin: *x.Thin}
	p.tool.Timeout, p.tool.MaxAttempts = timeout, maxAttempts
	env, err := expr.ThinEnv()
	if err != nil {
		return nil, err
	}
	links, err := expr.ThinURLEnv()
	if err != nil {
		return nil, err
	}
	c := &compiler{env: env}
	for i, e := range p.thin.Entities {
		at := "entities[" + strconv.Itoa(i) + "]"
		p.entities = append(p.entities, entityPlan{
			ThinEntity: e, id: c.template(at+".id", e.ID), workspace: c.template(at+".workspace", e.Workspace),
			at: placeOf(e.ID, "entities."+e.Name), workspaceAt: placeOf(e.Workspace, "entities."+e.Name+".workspace"),
		})
	}
	for i, r := range p.thin.Requires {
		at := "requires[" + strconv.Itoa(i) + "]"
		p.requires = append(p.requires, requirement{
			ThinRequirement: r, check: c.condition(at+".check", r.Check), message: c.template(at+".message", r.Message),
		})
	}
	if made := p.thin.Creates; made != nil {
		p.title, p.key = c.template("creates.title", made.Title), c.template("creates.key", made.Key)
		p.fields = c.document("creates.fields", made.Fields)
		p.relations = c.document("creates.relations", made.Relations)
		p.workspaces = c.document("creates.workspaces", made.Workspaces)
	}
	if p.thin.Starts != nil {
		p.input = c.document("starts.input", p.thin.Starts.Input)
	}
	c.env = links
	p.url = c.template("url", p.thin.URL)
	return p, c.err
}

// compiler keeps the first error.
type compiler struct {
	env *expr.Env
	err error
}

func (c *compiler) fail(at string, err error) {
	if c.err == nil {
		e := *jig.AsError(err)
		e.Code, e.Field = jig.CodeInvalidInput, strings.TrimSuffix(at+"."+e.Field, ".")
		c.err = &e
	}
}

// template compiles a template. It returns nil if there is none.
func (c *compiler) template(at, source string) *expr.Template {
	if source == "" {
		return nil
	}
	t, err := c.env.Template(source)
	if err != nil {
		c.fail(at, err)
	}
	return t
}

func (c *compiler) condition(at, source string) *expr.Program {
	p, err := c.env.CompileAs(source, expr.Bool)
	if err != nil {
		c.fail(at, err)
	}
	return p
}

func (c *compiler) document(at string, raw json.RawMessage) *expr.Document {
	if len(raw) == 0 {
		return nil
	}
	d, problems := c.env.Document(raw)
	if len(problems) > 0 {
		c.fail(strings.TrimSuffix(at+"."+problems[0].Path, "."), problems[0].Err)
	}
	return d
}

// plainInput matches a template that is a single member of the input and nothing else.
var plainInput = regexp.MustCompile(`^\$\{\s*input\.\??([A-Za-z_][A-Za-z0-9_]*)(?:\.orValue\([^()]*\))?\s*\}$`)

func placeOf(template, otherwise string) string {
	if found := plainInput.FindStringSubmatch(strings.TrimSpace(template)); found != nil {
		return "/" + found[1]
	}
	return otherwise
}
