package spec

import (
	"bytes"
	"cmp"
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
	// Value is the parsed document: a pointer to the type of its kind, e.g. a *[Policy]. It is nil if the file cannot hold such a document.
	// [Document.Policy] and its neighbors return it.
	Value any

	places map[string]*node
	// schemas are the JSON Schemas in the document.
	schemas []placedSchema
	// broken is set if one of the problems is an error.
	broken bool
}

// valueOf returns the parsed document if it is of a type, and nil otherwise.
func valueOf[V any](d Document) *V {
	value, _ := d.Value.(*V) //nolint:errcheck // nil if it is of another type
	return value
}

// row returns the row of the document's kind, with nothing but the kind if the document could not be read as one.
func (d Document) row() kindRow {
	if d.Value == nil {
		return kindRow{kind: d.Kind}
	}
	return d.Kind.row()
}

// Agent returns the parsed document if it is an agent, and nil otherwise.
func (d Document) Agent() *jig.Agent { return valueOf[jig.Agent](d) }

// Execution returns the parsed document if it is an execution spec, and nil otherwise.
func (d Document) Execution() *Execution { return valueOf[Execution](d) }

// Skill returns the parsed document if it is a skill, and nil otherwise. The Body of the document is JSON that includes the skill's files.
func (d Document) Skill() *Skill { return valueOf[Skill](d) }

// Policy returns the parsed document if it is a policy, and nil otherwise.
func (d Document) Policy() *Policy { return valueOf[Policy](d) }

// Tenant returns the parsed document if it is that of a tenant, and nil otherwise.
func (d Document) Tenant() *Tenant { return valueOf[Tenant](d) }

// Budget returns the parsed document if it is a budget, and nil otherwise.
func (d Document) Budget() *Budget { return valueOf[Budget](d) }

// RateLimit returns the parsed document if it is of kind rate_limit, and nil otherwise.
func (d Document) RateLimit() *RateLimit { return valueOf[RateLimit](d) }

// EntityType returns the parsed document if it is an entity type, and nil otherwise.
func (d Document) EntityType() *entity.Type { return valueOf[entity.Type](d) }

// Bundle returns the parsed document if it is the manifest of a bundle, and nil otherwise.
func (d Document) Bundle() *bundle.Manifest { return valueOf[bundle.Manifest](d) }

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
	kind := KindOf(file, body)
	refused := func(path, hint, format string, args ...any) (Document, Problems) {
		return Document{Kind: kind, Version: versionOf(kind, body), Path: file, Body: body, broken: true}, Problems{{
			Document: file, Path: path, Line: 1, Column: 1, Code: ProblemUnknownKind, Severity: SeverityError, Message: fmt.Sprintf(format, args...), Hint: hint,
		}}
	}
	if p := notUTF8(body); p != nil && encodingOf(body) != "" {
		p.Document = file
		return Document{Kind: kind, Version: versionOf(kind, body), Path: file, Body: body, broken: true}, Problems{*p}
	}
	switch row := kind.row(); {
	case kind == "":
		data := kindNames(func(row kindRow) bool { return row.markdown == nil })
		return refused("", "an agent is a Markdown file that begins with front matter between --- lines; a YAML or JSON file says kind: "+orList(data),
			"the file does not say what it describes")
	case row.read == nil:
		return refused("kind", suggest.OrKnown(string(kind), kindNames(func(kindRow) bool { return true })), "%q is not a kind of document", kind)
	case isMarkdown(file) && (row.markdown == nil || !row.markdown(file)):
		return refused("kind", cmp.Or(row.home, "write it in a .yaml or .json file"), "a %s cannot be written in this kind of file", kind)
	default:
		doc, problems := row.load(file, body)
		if doc.Version == "" {
			doc.Version = versionOf(kind, body)
		}
		return doc, problems
	}
}

// LoadStored reads a document from its stored form, given the kind under which it is stored.
func LoadStored(stored, name string, body []byte) (Document, Problems) {
	return Load(StoredFile(stored, name, body), body)
}

// StoredFile returns the name of a file that can hold a document in its stored form.
func StoredFile(stored, name string, body []byte) string {
	if Kind(stored).row().markdown != nil && isFence(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) {
		return name + ".md"
	}
	return name + ".yaml"
}

// load reads a document of the kind. If nothing can be read from the text, the document has no version.
func (row kindRow) load(file string, body []byte) (Document, Problems) {
	doc := Document{Kind: row.kind, Path: file, Body: body}
	d := newDecoder(file)
	row.read(d, row, &doc)
	d.problems.Sort()
	doc.places, doc.schemas, doc.broken = d.places, d.schemas, len(d.problems.Errors()) > 0
	return doc, d.problems
}

// loadAs reads a document of a kind. The error is a [Problems] with everything that is wrong.
func loadAs[V any](kind Kind, file string, body []byte) (V, error) {
	doc, problems := kind.row().load(file, body)
	if err := problems.OrNil(); err != nil {
		var none V
		return none, err
	}
	return *valueOf[V](doc), nil
}

// orList writes a list as "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
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
		return "composition " + d.Name // calls name it without its kind
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
		if KindOf(file, body) != "" || encodingOf(body) != "" && KindOf(file, asASCII(body)) != "" {
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
