// Package thin turns the documents of thin tools into tools. Such a document says which entities a call starts from, which conditions must
// hold, which one entity is created, and which extraction of that entity is started. A call does this and returns at once, while a separate
// session fills the entity's fields. Running a call again is safe: there is one entity and one extraction, however often an attempt is
// interrupted.
//
// A thin tool runs like every other tool, through [tools.Registry]. The package must not know how entities are stored, how sessions are
// started, or Temporal. It accesses them through the interfaces [Store] and [Sessions].
package thin

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/docpreview"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// timeout limits one attempt, and maxAttempts the number of attempts of a call. Running a call again is safe.
const (
	timeout     = 30 * time.Second
	maxAttempts = 10
)

// Options configures an [Engine]. Records, Starter and Tools are required.
type Options struct {
	Records Records
	Starter Starter
	// Tools runs the calls.
	Tools *tools.Registry
	// URL is the link for tools that define no URL. It may contain {tenant}, {entity_id} and {session_id}. The default is
	// /entities/{entity_id}.
	URL string
	// Now is the clock. The default is [time.Now].
	Now func() time.Time
}

// Engine compiles the documents of thin tools to tools. It is safe for concurrent use.
type Engine struct {
	records  Records
	starter  Starter
	tools    *tools.Registry
	url      string
	now      func() time.Time
	compiled cache.Texts[tools.Tool]
}

// NewEngine returns an Engine with these options.
func NewEngine(o Options) *Engine {
	if o.URL == "" {
		o.URL = "/entities/{entity_id}"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{records: o.Records, starter: o.Starter, tools: o.Tools, url: o.URL, now: o.Now, compiled: cache.NewTexts[tools.Tool]()}
}

// Load reads the document of a thin tool. Calls of the tool run as an activity. document is the file name for error messages. The error is a
// [spec.Problems] if the document is not valid.
func (e *Engine) Load(document string, body []byte) (plan.Tool, error) {
	tool, err := e.tool(document, body)
	if err != nil {
		return plan.Tool{}, err
	}
	run := func(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult {
		tool, err := e.tool(document, body) // from the cache, which bounds the memory that compiled tools take
		if err != nil {
			return jig.Failure(noEffect(err))
		}
		return e.tools.RunDocument(ctx, tool, input, inv)
	}
	loaded := plan.Tool{Contract: tool.Contract(), Run: run}
	if loaded.Contract.Previews {
		loaded.Preview = func(ctx context.Context, input []byte, inv jig.Invocation, read plan.Read) (jig.Preview, error) {
			tool, err := e.tool(document, body)
			if err != nil {
				return jig.Preview{}, err
			}
			return e.tools.PreviewDocument(withRead(ctx, read), tool, input, inv)
		}
	}
	return loaded, nil
}

// tool compiles a document to a tool.
func (e *Engine) tool(document string, body []byte) (tools.Tool, error) {
	return e.compiled.Get(body, func() (tools.Tool, error) {
		x, err := spec.LoadExecution(document, body)
		if err != nil {
			return tools.Tool{}, err
		}
		def, err := compile(x)
		if err != nil {
			return tools.Tool{}, err
		}
		tool := tools.OfDocument(def.tool, e.handler(def))
		if def.tool.Previews {
			tool = tool.Previewed(e.previewer(def))
		}
		return tool, nil
	})
}

// handler returns the function that runs an attempt of a call.
func (e *Engine) handler(def *definition) tools.Handler {
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) jig.ToolResult {
		r := &run{Engine: e, def: def, inv: inv, entities: map[string]any{}, input: input}
		out, err := r.do(ctx)
		if err != nil {
			return jig.Failure(err)
		}
		return r.result(out)
	}
}

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
			ThinRequirement: r, check: c.condition(at+".check", string(r.Check)), message: c.Template(at+".message", r.Message),
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
