package spec

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/seal"
	"github.com/jig-run/jig/internal/suggest"
)

// Document is a document as the store keeps it: its kind, name, content and the hash of the content.
type Document struct {
	Kind Kind
	Name string
	// Version is the hash of the document, computed by versionOf.
	Version string
	// Path is the file that the document was read from, with slashes.
	Path string
	Body []byte
	// Agent is the parsed document if Kind is [KindAgent].
	Agent *jig.Agent
	// Execution is the parsed document if [Kind.IsExecution].
	Execution *Execution
	// Skill is the parsed document if Kind is [KindSkill]. Its Body is JSON that includes the skill's files.
	Skill *Skill
	// Policy is the parsed document if Kind is [KindPolicy].
	Policy *Policy
	// Tenant is the parsed document if Kind is [KindTenant].
	Tenant *Tenant
	// Budget is the parsed document if Kind is [KindBudget].
	Budget *Budget
	// RateLimit is the parsed document if Kind is [KindRateLimit].
	RateLimit *RateLimit
	// EntityType is the parsed document if Kind is [KindEntityType].
	EntityType *entity.Type
	// Bundle is the parsed document if Kind is [KindBundle].
	Bundle *bundle.Manifest

	places map[string]*node
	// broken is set if one of the problems is an error.
	broken bool
}

// Position returns the line and column, both from 1, of the value at a path such as tools[2]. Callers use it for problems that they find
// after Load. It returns zeros if the document has no such value.
func (d Document) Position(path string) (line, column int) {
	if n, ok := d.places[path]; ok {
		return n.line, n.column
	}
	return 0, 0
}

// Load reads one document of any kind. The document is usable only if no problem is an error.
func Load(file string, body []byte) (Document, Problems) {
	doc := Document{Kind: KindOf(file, body), Path: file, Body: body}
	doc.Version = versionOf(doc.Kind, body)
	d := newDecoder(file)
	markdown := strings.EqualFold(path.Ext(file), ".md")
	switch kind := doc.Kind; {
	case kind == KindAgent:
		agent := d.agent(body)
		doc.Agent, doc.Name = &agent, agent.Name
	case kind == KindSkill && (!markdown || path.Base(file) == skillFile):
		skill := d.skill(file, body)
		if markdown {
			doc.keepSkill(skill)
		}
		doc.Skill, doc.Name = &skill, skill.Name
	case kind.IsExecution() && !markdown:
		x := d.execution(body)
		doc.Execution, doc.Name = &x, x.Name
	case kind == KindPolicy && !markdown:
		p := d.policy(body)
		doc.Policy, doc.Name = &p, p.Name
	case kind == KindTenant && !markdown:
		t := d.tenant(body)
		doc.Tenant, doc.Name = &t, t.Name
	case kind == KindBudget && !markdown:
		b := d.budget(body)
		doc.Budget, doc.Name = &b, b.Name
	case kind == KindRateLimit && !markdown:
		r := d.rateLimit(body)
		doc.RateLimit, doc.Name = &r, r.Name
	case kind == KindEntityType && !markdown:
		t := d.entityType(body)
		doc.EntityType, doc.Name = &t, t.Name
	case kind == KindBundle && !markdown:
		m := d.bundle(body)
		doc.Bundle, doc.Name = &m, m.Name
	case slices.Contains(Kinds(), kind):
		d.add(Problem{
			Path: "kind", Line: 1, Column: 1, Code: ProblemUnknownKind,
			Message: fmt.Sprintf("a %s cannot be written in this kind of file", kind), Hint: kind.home(),
		})
	case kind == "":
		d.add(Problem{
			Line: 1, Column: 1, Code: ProblemUnknownKind, Message: "the file does not say what it describes",
			Hint: "an agent is a Markdown file that begins with front matter between --- lines; a YAML or JSON file says kind: composition, prompt, task, thin_tool, entity_type, policy, tenant, budget, rate_limit or bundle",
		})
	default:
		d.add(Problem{
			Path: "kind", Line: 1, Column: 1, Code: ProblemUnknownKind, Message: fmt.Sprintf("%q is not a kind of document", doc.Kind),
			Hint: suggest.OrKnown(string(doc.Kind), kindNames()),
		})
	}
	d.problems.Sort()
	doc.places, doc.broken = d.places, len(d.problems.Errors()) > 0
	return doc, d.problems
}

// home describes the file in which documents of a kind are written.
func (k Kind) home() string {
	switch k {
	case KindSkill:
		return "write a skill as " + skillFile + " in a folder of its own"
	case KindAgent, KindComposition, KindPrompt, KindTask, KindPolicy, KindTenant, KindBudget, KindRateLimit, KindEntityType, KindThinTool, KindBundle:
	}
	return "write it in a .yaml or .json file"
}

// versionOf returns the version of a document: the SHA-256 of the RFC 8785 JSON of {"body": its text, "kind": its kind}. Two texts that are
// not UTF-8 can have the same version, but documents with such text are refused.
func versionOf(kind Kind, body []byte) string {
	version, err := canonical.Hash(map[string]string{"body": string(body), "kind": string(kind)})
	if err != nil {
		panic("spec: cannot put a document's text into canonical form: " + err.Error()) // cannot happen with two strings
	}
	return version
}

// meaningOf returns the meaning of the tool that an execution spec defines: the hash of the document's data without description, title and
// icon. Comments and layout do not count. Data without a canonical form has the version as its meaning.
func meaningOf(version string, tree *node) string {
	members := make(map[string]json.RawMessage, len(tree.entries))
	for _, e := range tree.entries {
		members[e.key] = e.value.json()
	}
	meaning, err := seal.Meaning(members)
	if err != nil {
		return version
	}
	return meaning
}

// id returns the text that identifies a document. No two documents may have the same id.
func (d Document) id() string {
	if d.Kind.IsExecution() {
		return "execution spec " + d.Name // calls name an execution spec without its kind
	}
	return string(d.Kind) + " " + d.Name
}

// LoadFS reads the documents below a folder of a file system, in the order of their paths. A root of "." means the whole file system. A
// folder with a SKILL.md is one document of kind skill that includes all its files. Files that are not documents (README.md, code, data) are
// skipped. Two documents with the same kind and name are a problem.
func LoadFS(fsys fs.FS, root string) ([]Document, Problems) {
	var docs []Document
	var problems Problems
	seen := map[string]string{}
	add := func(doc Document, found Problems) {
		problems = append(problems, found...)
		first, again := seen[doc.id()]
		if again && len(found.Errors()) == 0 {
			problems = append(problems, Problem{
				Document: doc.Path, Path: "name", Line: 1, Column: 1, Code: ProblemDuplicateKey, Severity: SeverityError,
				Message: fmt.Sprintf("the %s is already in %s", doc.id(), first), Hint: "give one of them another name",
			})
		}
		seen[doc.id()] = doc.Path
		docs = append(docs, doc)
	}
	err := fs.WalkDir(fsys, root, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if _, err := fs.Stat(fsys, path.Join(file, skillFile)); err == nil {
				add(loadSkill(fsys, file))
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".md", ".yaml", ".yml", ".json"}, path.Ext(file)) {
			return nil
		}
		body, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err //nolint:wrapcheck // becomes a problem below
		}
		if KindOf(file, body) != "" {
			add(Load(file, body))
		}
		return nil
	})
	if err != nil {
		problems = append(problems, Problem{
			Document: root, Code: ProblemUnreadable, Severity: SeverityError, Message: strings.TrimPrefix(err.Error(), "open "),
		})
	}
	return docs, problems
}

func kindNames() []string {
	names := make([]string, 0, len(Kinds()))
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}
	return names
}
