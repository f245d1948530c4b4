package spec

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
)

// Kind is the kind of thing that a document describes, e.g. an agent or a policy.
type Kind string

// The kinds of documents. Each has a row in kindRows.
const (
	KindAgent       Kind = "agent"
	KindComposition Kind = "composition"
	KindPrompt      Kind = "prompt"
	KindTask        Kind = "task"
	KindSkill       Kind = "skill"
	KindPolicy      Kind = "policy"
	KindTenant      Kind = "tenant"
	KindBudget      Kind = "budget"
	KindRateLimit   Kind = "rate_limit"
	KindEntityType  Kind = "entity_type"
	KindThinTool    Kind = jig.ImplementationThin
	KindBundle      Kind = "bundle"
)

// kindRows is the table of kinds. A new kind is a row here, and files of its own.
func kindRows() []kindRow {
	return []kindRow{
		{
			kind: KindAgent, title: "jig agent (front matter)", markdown: func(string) bool { return true }, reader: reads((*decoder).agent),
			declare: (*checker).addAgent, check: (*checker).checkWhitelist, node: (*graph).addAgent, advise: (*advisor).agent, explain: explainAgent,
		},
		executionRow(KindComposition, "jig composition", func(h compositionHead) Execution {
			return Execution{Steps: h.Steps, Output: h.Output}
		}, executionKind{}),
		executionRow(KindPrompt, "jig prompt", func(h promptHead) Execution {
			return oneStep(Step{ID: answerStep, Prompt: &h.promptBody})
		}, executionKind{singleStep: true, output: promptOutput}),
		executionRow(KindTask, "jig task", func(h taskHead) Execution {
			return oneStep(Step{ID: answerStep, Task: &h.TaskCall})
		}, executionKind{singleStep: true}),
		{
			kind: KindSkill, title: "jig skill (front matter of SKILL.md)", markdown: isSkillFile, home: "write a skill as " + skillFile + " in a folder of its own",
			reader: reader{reflect.TypeFor[skillHead](), readSkill}, declare: (*checker).addSkill, advise: (*advisor).skill, explain: explainSkill,
		},
		{kind: KindPolicy, title: "jig policy", plural: "policies", reader: reads((*decoder).policy), advise: (*advisor).policy},
		{
			kind: KindTenant, title: "jig tenant", limits: limits{bytes: MaxTenantBytes, values: maxTenantValues}, reader: reads((*decoder).tenant),
			unbundled: unbundled{"a bundle cannot change a tenant's settings", "register it for the tenant by itself: jig catalog add %[1]s"},
		},
		{kind: KindBudget, title: "jig budget", reader: reads((*decoder).budget), explain: explainBudget},
		{kind: KindRateLimit, title: "jig rate limit", reader: reads((*decoder).rateLimit), explain: explainRateLimit},
		{
			kind: KindEntityType, title: "jig entity type", reader: reads((*decoder).entityType), declare: (*checker).addType,
			check: (*checker).checkEntityType, node: (*graph).addType, advise: (*advisor).entityType, explain: explainEntityType,
		},
		executionRow(KindThinTool, "jig thin tool", func(h thinToolHead) Execution { return Execution{Definition: h.thin()} }, thinKind()),
		{
			kind: KindBundle, title: "jig bundle (bundle.yaml)", reader: reads((*decoder).bundle), manifest: true, advise: (*advisor).bundle, explain: explainBundle,
			unbundled: unbundled{"a bundle cannot contain another bundle", "remove it, and list that bundle under requires of %[2]s"},
		},
	}
}

// kindRow says everything that is particular to a kind of document. Nothing else asks which kind a document has. Functions that are nil do
// nothing.
type kindRow struct {
	kind Kind
	// title heads the published JSON Schema, which is made from the type of the reader.
	title string
	reader
	// markdown reports whether a Markdown file can hold a document of the kind. If it is nil, documents are YAML or JSON. home is the hint for
	// a document in a file of another kind.
	markdown func(file string) bool
	home     string
	// limits bound the text. The zero value is the limit of most documents.
	limits limits
	// stored is the kind under which the store keeps the documents; by default the kind itself.
	stored string
	// plural is the word for several documents; by default the kind with an s.
	plural string
	// unbundled is set if bundles cannot contain documents of the kind.
	unbundled unbundled
	// manifest is set for documents that are installed together with others, and never by themselves.
	manifest bool
	// execution is set if the documents can be called like tools.
	execution *executionKind

	// declare makes the names in a document known to the documents that are checked with it.
	declare func(k *checker, doc *Document)
	// check checks a document against everything that is known.
	check func(k *checker, doc *Document)
	// node adds a document to the graph of calls.
	node func(g *graph, k *checker, doc *Document)
	// advise adds warnings about what a document says.
	advise func(a *advisor, doc *Document)
	// explain describes a document to people; diagram is empty if the kind has none.
	explain func(doc Document, beside []Document, tools []jig.Tool) (text, diagram string)
}

// unbundled says why a bundle cannot contain a document, and what to do instead. The hint has the paths of the document and of the manifest.
type unbundled struct{ why, hint string }

// reader reads a document into the type of its kind. The tags of the type are the keys of documents: the schemas that editors use and the
// tests of the reference follow from it.
type reader struct {
	head reflect.Type
	// read sets the document's Value and Name.
	read func(d *decoder, row kindRow, doc *Document)
}

// source is what a document contains in addition to its keys.
type source struct {
	version string
	// text is what follows the front matter of a Markdown file.
	text string
}

// reads returns a reader of documents whose keys are those of H. finish checks what the tags of H cannot say, and makes the value.
func reads[H, V any](finish func(d *decoder, h H, s source) V) reader {
	return reader{reflect.TypeFor[H](), func(d *decoder, row kindRow, doc *Document) {
		var h H
		var value V
		head := reflect.ValueOf(&h).Elem()
		if s, ok := d.open(row, doc, head); ok {
			value = finish(d, h, s)
		}
		doc.Value, doc.Name = &value, head.FieldByName("Name").String()
	}}
}

// open reads the keys of a document into the type of its kind. It returns false if the document has none.
func (d *decoder) open(row kindRow, doc *Document, into reflect.Value) (s source, ok bool) {
	keys := plainJSON(doc.Body)
	if row.markdown != nil {
		if keys, s.text, ok = d.frontMatter(doc.Body); !ok {
			return s, false
		}
	}
	tree := d.parseWithin(row.limits, keys)
	if tree == nil {
		return s, false
	}
	d.places[""] = tree
	if !d.is(tree, "", kindMap) {
		return s, false
	}
	doc.Version = versionOf(row.kind, doc.Body)
	s.version = doc.Version
	d.into(tree, "", into)
	if n := tree.get("kind"); n != nil && n.kind == kindString && n.text != "" && n.text != string(row.kind) {
		hint := "write kind: " + string(row.kind)
		if row.markdown != nil {
			hint = "remove the key"
		}
		d.at("kind", ProblemUnknownKind, hint, "this is read as a document of kind %s, not %q", jig.Known(row.kind), n.text)
	}
	return s, true
}

// row returns the row of the kind. For a kind that does not exist, all it has is the kind.
func (k Kind) row() kindRow {
	for _, row := range kindRows() {
		if row.kind == k {
			return row
		}
	}
	return kindRow{kind: k}
}

// Kinds lists the kinds that this version reads.
func Kinds() []Kind {
	rows := kindRows()
	kinds := make([]Kind, len(rows))
	for i := range rows {
		kinds[i] = rows[i].kind
	}
	return kinds
}

func kindNames(which func(kindRow) bool) []string {
	var names []string
	for _, row := range kindRows() {
		if which(row) {
			names = append(names, string(row.kind))
		}
	}
	return names
}

// IsExecution reports whether documents of the kind are execution specs, which can be called like tools.
func (k Kind) IsExecution() bool { return k.row().execution != nil }

// HasBackend reports whether a backend of its own runs the calls of an execution spec. The others run step by step.
func (k Kind) HasBackend() bool { return k.execution().backend }

// RunsSteps reports whether calls of an execution spec run step by step, as workflows. The others have a backend.
func (k Kind) RunsSteps() bool { return k.IsExecution() && !k.HasBackend() }

// SingleStep reports whether the keys of an execution spec are those of its only step.
func (k Kind) SingleStep() bool { return k.execution().singleStep }

// Stored returns the kind under which the store keeps documents of the kind.
func (k Kind) Stored() string {
	if stored := k.row().stored; stored != "" {
		return stored
	}
	return string(k)
}

// IsManifest reports whether documents of the kind are manifests, which are installed together with their documents and never by themselves.
func (k Kind) IsManifest() bool { return k.row().manifest }

// Words returns the kind as people write it.
func (k Kind) Words() string { return strings.ReplaceAll(string(k), "_", " ") }

// executionRow returns the row of a kind whose documents can be called like tools. of makes the execution from the document's keys.
func executionRow[H toolDocument](kind Kind, title string, of func(h H) Execution, x executionKind) kindRow {
	x.parse = func(d *decoder, tree *node) (Execution, toolHead) {
		var h H
		d.into(tree, "", reflect.ValueOf(&h).Elem())
		return of(h), h.tool()
	}
	return kindRow{
		kind: kind, title: title, reader: reader{reflect.TypeFor[H](), readExecution}, stored: bundle.KindSpec, execution: &x, declare: (*checker).addExecution,
		check: (*checker).checkExecution, node: (*graph).addExecution, advise: (*advisor).execution, explain: explainExecution,
	}
}

// executionKind says what is particular to a kind of execution spec. Functions that are nil do nothing.
type executionKind struct {
	// parse reads the document. [executionRow] sets it.
	parse func(d *decoder, tree *node) (Execution, toolHead)
	// singleStep is set if the document's own keys are those of its only step.
	singleStep bool
	// backend is set if the calls do not run step by step, but by the backend that package worker has for the kind.
	backend bool
	// output returns the schema of the result of a document that has none.
	output func(x Execution) json.RawMessage
	// previews reports whether people see what a call will change even if the document does not say.
	previews func(x Execution) bool
	// bundle names the bundle that a document belongs to.
	bundle func(x Execution) string

	// The following are for kinds with a backend: the checks when a document is read, its checks against what is known, its edges in the graph
	// of calls, and its explanation.
	check   func(d *decoder, x Execution)
	names   func(k *checker, doc *Document)
	connect func(g *graph, k *checker, from int, x *Execution)
	outline func(o *outline, x Execution)
	draw    func(d *drawing, x Execution, in []exit) []exit
}

// execution returns what is particular to an execution spec of the kind.
func (k Kind) execution() executionKind {
	if x := k.row().execution; x != nil {
		return *x
	}
	return executionKind{}
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind:[ \t]*["']?([a-z_]+)["']?[ \t]*(?:#.*)?\r?$`)
	kindFlow = regexp.MustCompile(`[{,]\s*["']?kind["']?\s*:\s*["']?([a-z_]+)["']?\s*[,}]`)
	kindWord = regexp.MustCompile(`^[a-z_]+$`)
)

// KindOf returns a document's kind: the value of its `kind:` key. Without that key, a file SKILL.md is a skill, and any other Markdown file
// with front matter is an agent. KindOf returns an empty kind for a file that is not a document.
func KindOf(document string, body []byte) Kind {
	markdown := isMarkdown(document)
	head := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	switch {
	case isSkillFile(document):
		return KindSkill
	case markdown && !isFence(head):
		return ""
	case markdown:
		d := newDecoder(document)
		head, _, _ = d.frontMatter(body)
	case bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")):
		return flowKind(head)
	}
	if m := kindLine.FindSubmatch(head); m != nil {
		return Kind(m[1])
	}
	if markdown {
		return KindAgent
	}
	return ""
}

func isMarkdown(file string) bool { return strings.EqualFold(path.Ext(file), ".md") }

// flowKind returns the kind of a document in braces: JSON, or YAML's flow style.
func flowKind(body []byte) Kind {
	var head struct {
		Kind any `json:"kind"`
	}
	if json.Unmarshal(body, &head) == nil {
		if kind, ok := head.Kind.(string); ok && kindWord.MatchString(kind) {
			return Kind(kind)
		}
		return ""
	}
	if m := kindFlow.FindSubmatch(body); m != nil {
		return Kind(m[1])
	}
	return ""
}
