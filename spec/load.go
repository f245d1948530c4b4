package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Document is a document as it is kept: its kind, its name, its content and the content's hash.
type Document struct {
	Kind Kind
	Name string
	// Version is the first 16 hex digits of the body's SHA-256.
	Version string
	// Path is the file it was read from, with slashes.
	Path string
	Body []byte
	// Agent is the document as read, when Kind is KindAgent.
	Agent *jig.Agent

	places map[string]*node
}

// Position is the line and column, from 1, of the value at a path such as tools[2], for problems that others find; zeros
// when the document has no such value.
func (d Document) Position(path string) (line, column int) {
	if n, ok := d.places[path]; ok {
		return n.line, n.column
	}
	return 0, 0
}

// Load reads one document of any kind. The document is of use only when no problem is an error.
func Load(file string, body []byte) (Document, Problems) {
	sum := sha256.Sum256(body)
	doc := Document{Kind: KindOf(file, body), Path: file, Body: body, Version: hex.EncodeToString(sum[:8])}
	d := newDecoder(file)
	switch doc.Kind {
	case KindAgent:
		agent := d.agent(body)
		doc.Agent, doc.Name = &agent, agent.Name
	case "":
		d.add(Problem{
			Line: 1, Column: 1, Code: ProblemUnknownKind, Message: "the file does not say what it describes",
			Hint: "an agent is a Markdown file that begins with front matter between --- lines",
		})
	default:
		d.add(Problem{
			Path: "kind", Line: 1, Column: 1, Code: ProblemUnknownKind, Message: fmt.Sprintf("%q is not a kind of document", doc.Kind),
			Hint: Suggest(string(doc.Kind), kindNames()),
		})
	}
	d.problems.Sort()
	doc.places = d.places
	return doc, d.problems
}

// LoadFS reads the documents below a folder of a file system ("." for all of it), in the order of their paths. Files that
// are no documents (README.md, code, data) are passed over; two documents of one kind and name are a problem.
func LoadFS(fsys fs.FS, root string) ([]Document, Problems) {
	var docs []Document
	var problems Problems
	seen := map[string]string{}
	err := fs.WalkDir(fsys, root, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains([]string{".md", ".yaml", ".yml", ".json"}, path.Ext(file)) {
			return err
		}
		body, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err //nolint:wrapcheck // becomes a problem below
		}
		if KindOf(file, body) == "" {
			return nil
		}
		doc, found := Load(file, body)
		problems = append(problems, found...)
		id := string(doc.Kind) + " " + doc.Name
		if first, again := seen[id]; again && len(found.Errors()) == 0 {
			problems = append(problems, Problem{
				Document: file, Path: "name", Line: 1, Column: 1, Code: ProblemDuplicateKey, Severity: SeverityError,
				Message: fmt.Sprintf("the %s is in %s already", id, first), Hint: "give one of them another name",
			})
		}
		seen[id] = file
		docs = append(docs, doc)
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
