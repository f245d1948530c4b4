package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// skillFile is the file that makes a folder a skill.
const skillFile = "SKILL.md"

// loadAll reads the documents in several files and folders. A file that several paths lead to is read once. Two documents with the same
// name are a problem.
func loadAll(paths []string) ([]spec.Document, spec.Problems, error) {
	var docs []spec.Document
	problems := spec.Problems{}
	seen, named := map[string]bool{}, map[string]string{}
	for _, p := range paths {
		found, wrong, err := load(p)
		if err != nil {
			return nil, nil, err
		}
		again := func(file string) bool { return seen[absolute(file)] }
		found = slices.DeleteFunc(found, func(doc spec.Document) bool { return again(doc.Path) })
		wrong = slices.DeleteFunc(wrong, func(p spec.Problem) bool { return again(p.Document) })
		for _, doc := range found {
			if first, taken := named[sharedName(doc)]; taken {
				wrong = append(wrong, spec.Problem{
					Document: doc.Path, Path: "name", Line: 1, Column: 1, Code: spec.ProblemDuplicateKey, Severity: spec.SeverityError,
					Message: fmt.Sprintf("the %s %s is already in %s", doc.Kind, doc.Name, first), Hint: "give one of them another name",
				})
			}
		}
		for _, doc := range found { // reading a path has already reported duplicates within it
			seen[absolute(doc.Path)] = true
			if doc.Name != "" {
				named[sharedName(doc)] = doc.Path
			}
		}
		for _, p := range wrong {
			seen[absolute(p.Document)] = true
		}
		docs, problems = append(docs, found...), append(problems, wrong...)
	}
	problems.Sort()
	return docs, problems, nil
}

// sharedName returns a key that must be unique among documents. All execution specs share one namespace.
func sharedName(doc spec.Document) string {
	if doc.Kind.IsExecution() {
		return "spec " + doc.Name
	}
	return string(doc.Kind) + " " + doc.Name
}

// absolute returns a file's absolute path, which shows whether two paths mean the same file. If the path cannot be made absolute, it
// returns the path unchanged.
func absolute(file string) string {
	if whole, err := filepath.Abs(filepath.FromSlash(file)); err == nil {
		return whole
	}
	return file
}

// load reads a file, or all documents in a folder. Document paths begin with the name that the user gave. A SKILL.md is read together with
// its folder.
func load(name string) ([]spec.Document, spec.Problems, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, usage(err)
	}
	if !info.IsDir() && filepath.Base(name) != skillFile {
		body, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, nil, usage(err)
		}
		doc, problems := spec.Load(name, body)
		return []spec.Document{doc}, problems, nil
	}
	if !info.IsDir() {
		name = filepath.Dir(name)
	}
	docs, problems := spec.LoadFS(os.DirFS(name), ".")
	if _, err := os.Stat(filepath.Join(name, spec.BundleFile)); err == nil { // a bundle is checked as a whole
		_, found := spec.BundleOf(docs)
		problems = append(problems, found...)
	}
	for i := range docs {
		docs[i].Path = path.Join(filepath.ToSlash(name), docs[i].Path)
	}
	for i := range problems {
		problems[i].Document = path.Join(filepath.ToSlash(name), problems[i].Document)
	}
	return docs, problems, nil
}

// catalogFlags select the catalog that documents are checked against.
type catalogFlags struct {
	file    string
	offline bool
}

func (f *catalogFlags) add(cmd *cobra.Command, offline string) {
	cmd.Flags().StringVar(&f.file, "catalog", "", "`FILE` written by \"catalog export\", to use instead of the worker's catalog")
	cmd.Flags().BoolVar(&f.offline, "offline", false, offline)
	_ = cmd.MarkFlagFilename("catalog", "json") //nolint:errcheck // fails only for an unknown flag
}

func (f *catalogFlags) check() error {
	if f.offline && f.file != "" {
		return usagef("--offline and --catalog cannot be combined")
	}
	return nil
}

// catalog reads the catalog from its file, or from a worker. It returns nil with --offline.
func (a *app) catalog(ctx context.Context, f catalogFlags) (*client.Catalog, error) {
	c, _, err := a.catalogFor(ctx, f, nil)
	return c, err
}

// catalogFor is like catalog, and also returns the catalog in the form that documents are checked against.
func (a *app) catalogFor(ctx context.Context, f catalogFlags, docs []spec.Document) (c *client.Catalog, known spec.Catalog, err error) {
	switch {
	case f.offline:
		return nil, known, nil
	case f.file != "":
		if c, err = a.readCatalog(f.file); err != nil {
			return nil, known, err
		}
		return c, catalogOf(c), nil
	}
	err = a.with(ctx, func(e engine) error {
		answer, err := e.Catalog(ctx, a.flags.tenant)
		if err != nil {
			return err
		}
		c, known = &answer, catalogOf(&answer)
		return a.readCalled(ctx, e, docs, &known)
	})
	return c, known, err
}

func (a *app) readCatalog(file string) (*client.Catalog, error) {
	content, err := a.readFile(file)
	if err != nil {
		return nil, usage(err)
	}
	var c client.Catalog
	if err := strictjson.Unmarshal(content, &c); err != nil {
		return nil, unreadable(file+" is not a catalog", err)
	}
	if c.Tools == nil {
		return nil, usagef("%s is not a catalog: it has no tools; `%s` writes one", file, a.command("catalog", "export", file))
	}
	return &c, nil
}

// catalogOf converts a catalog to the form that documents are checked against. For entity types, and for execution specs that are
// not tools, it has only the names.
func catalogOf(c *client.Catalog) spec.Catalog {
	known := spec.Catalog{Tools: c.Tools, Agents: c.Agents, Skills: c.Skills}
	if known.Tools == nil {
		known.Tools = []jig.Tool{}
	}
	if c.EntityTypes != nil {
		known.EntityTypes = make([]entity.Type, len(c.EntityTypes))
	}
	for i, name := range c.EntityTypes {
		known.EntityTypes[i].Name = name
	}
	if c.Compositions == nil {
		return known
	}
	known.Specs = []spec.Execution{}
	for _, t := range c.Tools {
		if kind := spec.Kind(t.Implementation); kind.IsExecution() {
			known.Specs = append(known.Specs, spec.Execution{Kind: kind, Name: t.Name, Description: t.Description, Version: t.Version, Tool: t})
		}
	}
	for _, name := range c.Compositions {
		known.Specs = append(known.Specs, spec.Execution{Kind: spec.KindComposition, Name: name, Tool: jig.Tool{Name: name}})
	}
	return known
}

// check adds two kinds of problems: conflicts between the documents and the catalog, and advice on the documents that could be read.
func check(docs []spec.Document, problems spec.Problems, known spec.Catalog) spec.Problems {
	broken := map[string]bool{}
	for _, p := range problems.Errors() {
		broken[p.Document] = true
	}
	var named, sound []spec.Document
	for _, doc := range docs {
		if doc.Name == "" {
			continue
		}
		named = append(named, doc)
		if !broken[doc.Path] {
			sound = append(sound, doc)
		}
	}
	problems = append(problems, spec.Check(named, known)...)
	problems = append(problems, spec.Advise(sound, known)...)
	problems.Sort()
	return problems
}

// noEngine reports whether an error means that there was no Temporal server or no worker to ask.
func noEngine(err error) bool {
	reason := jig.AsError(err).Reason
	return reason == client.ReasonNoTemporal || reason == client.ReasonTemporalRefused || reason == client.ReasonNoWorker || reason == remote.ReasonNoServer
}

// alsoTry adds an alternative to the hint of an UNAVAILABLE error.
func alsoTry(err error, hint string) error {
	var e *jig.Error
	if !errors.As(err, &e) || e.Code != jig.CodeUnavailable {
		return err
	}
	if e.Hint != "" {
		hint = strings.TrimSuffix(e.Hint, ".") + "; or " + hint
	}
	return e.WithHint(hint)
}

// maxCalled bounds how many registered execution specs, and how many entity types, are read to check documents against them.
const maxCalled = 100

// readCalled completes the catalog with the registered execution specs that the documents call, directly or indirectly. Their steps reveal
// cycles, and their contracts reveal inputs that do not fit. If a step runs a task of an entity, readCalled also reads the entity types. If
// a document cannot be read, the catalog has only its name.
func (a *app) readCalled(ctx context.Context, e engine, docs []spec.Document, known *spec.Catalog) error {
	registered := map[string]int{}
	for i, x := range known.Specs {
		registered[x.Name] = i
	}
	var waiting []string
	seen := map[string]bool{}
	runsTasks := false
	call := func(name string) {
		runsTasks = runsTasks || name == toolname.TasksRun || name == toolname.TasksStart
		if _, ok := registered[name]; ok && !seen[name] {
			seen[name] = true
			waiting = append(waiting, name)
		}
	}
	for _, doc := range docs {
		seen[doc.Name] = doc.Execution() != nil // the document replaces the registered spec with the same name
	}
	for _, doc := range docs {
		if doc.Execution() != nil {
			eachCall(doc.Execution().Steps, call)
		}
	}
	for n := 0; n < len(waiting) && n < maxCalled; n++ {
		name := waiting[n]
		body, err := e.Document(ctx, a.flags.tenant, documentSpec, name)
		if err != nil {
			if jig.CodeOf(err) == jig.CodeNotFound { // it was removed meanwhile
				continue
			}
			return err
		}
		x, err := spec.LoadExecution(name, body)
		if err != nil { // written in an older version of the language
			continue
		}
		known.Specs[registered[name]] = x
		eachCall(x.Steps, call)
	}
	if !runsTasks {
		return nil
	}
	return a.readTypes(ctx, e, docs, known)
}

// readTypes completes the catalog with the registered entity types, so that the tasks of entities are known. It leaves out types that one of
// the documents replaces.
func (a *app) readTypes(ctx context.Context, e engine, docs []spec.Document, known *spec.Catalog) error {
	for i := range min(len(known.EntityTypes), maxCalled) {
		name := known.EntityTypes[i].Name
		if slices.ContainsFunc(docs, func(doc spec.Document) bool { return doc.EntityType() != nil && doc.Name == name }) {
			continue
		}
		body, err := e.Document(ctx, a.flags.tenant, string(spec.KindEntityType), name)
		if err != nil {
			if jig.CodeOf(err) == jig.CodeNotFound { // it was removed meanwhile
				continue
			}
			return err
		}
		if t, err := spec.LoadEntityType(name, body); err == nil { // otherwise it is written in an older version of the language
			known.EntityTypes[i] = t
		}
	}
	return nil
}

// eachCall calls visit with the names of all tools and compositions that the steps call, including nested steps and undo.
func eachCall(steps []spec.Step, visit func(name string)) {
	for i := range steps {
		s := &steps[i]
		visit(s.Tool)
		visit(s.Composition)
		if s.Task != nil {
			visit(s.Task.Tool())
		}
		if s.Undo != nil {
			visit(s.Undo.Tool)
		}
		eachCall(s.Steps, visit)
		eachCall(s.Parallel, visit)
		for j := range s.Switch {
			eachCall(s.Switch[j].Steps, visit)
		}
		if s.OnError != nil {
			eachCall(s.OnError.Catch, visit)
		}
	}
}
