package starter

import (
	"context"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

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
		seen[doc.Name] = doc.Execution != nil // the document replaces the registered spec with the same name
	}
	for _, doc := range docs {
		if doc.Execution != nil {
			eachCall(doc.Execution.Steps, call)
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
		if slices.ContainsFunc(docs, func(doc spec.Document) bool { return doc.Kind == spec.KindEntityType && doc.Name == name }) {
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
