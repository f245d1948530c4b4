package extraction

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// given is the decoded input of an extraction. It is not modified.
type given struct {
	Input
	raw struct {
		// all is the original input. content holds the members of the entity's content.
		all     json.RawMessage
		content map[string]json.RawMessage
	}
	// content and input are decoded for expressions. order has the names of the content's members, sorted.
	content map[string]expr.Value
	order   []string
	input   expr.Value
	// asked says, by index, which tasks the extraction must complete. single is the index of the only task to run, or -1.
	asked  []bool
	single int
}

// given reads the input. The error says what is wrong with it.
func (p *Plan) given(raw json.RawMessage) (*given, *jig.Error) {
	if last := p.last.Load(); last != nil && bytes.Equal(last.raw.all, raw) {
		return last, nil
	}
	g := &given{content: map[string]expr.Value{}, single: -1}
	g.raw.all = bytes.Clone(raw)
	if err := json.Unmarshal(raw, &g.Input); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction cannot be read: %w", err)
	}
	if _, err := digest(raw); err != nil { // input hashes need a canonical form
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction: %w", err)
	}
	switch g.Mode {
	case "":
		g.Mode = ModeRun
	case ModeRun, ModeRetry, ModeRefresh:
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a mode", jig.Cut(string(g.Mode), 100)).WithField("/mode").WithHint("use run, retry or refresh")
	}
	if err := g.readContent(); err != nil {
		return nil, jig.AsError(err).WithField("/entity/content")
	}
	var err error
	if g.input, err = expr.FromJSON(g.Input.Input); err != nil {
		return nil, jig.AsError(err).WithField("/input")
	}
	var problem *jig.Error
	if g.asked, problem = p.askedFor(g.Fields); problem == nil && g.Task != "" {
		g.Mode = ModeRetry // for the tasks that it depends on
		g.asked, g.single, problem = p.askedForTask(g.Task)
	}
	if problem != nil {
		return nil, problem
	}
	p.last.Store(g)
	return g, nil
}

func (g *given) readContent() error {
	if len(bytes.TrimSpace(g.Entity.Content)) == 0 {
		return nil
	}
	if err := json.Unmarshal(g.Entity.Content, &g.raw.content); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "this is not an object: %w", err)
	}
	g.order = slices.Sorted(maps.Keys(g.raw.content))
	for name, raw := range g.raw.content {
		v, err := expr.FromJSON(raw)
		if err != nil {
			return err
		}
		g.content[name] = v
	}
	return nil
}

// askedFor returns which tasks the fields need, or all tasks if no field is named.
func (p *Plan) askedFor(fields []string) ([]bool, *jig.Error) {
	asked := make([]bool, len(p.tasks))
	for i := range asked {
		asked[i] = len(fields) == 0
	}
	for _, name := range fields {
		n, ok := p.filler[name]
		if !ok {
			word := "%s has no field %q"
			if p.fields[name] {
				word = "%s: no task fills the field %q"
			}
			return nil, jig.Errorf(jig.CodeInvalidInput, word, p.Name, jig.Cut(name, 100)).WithField("/fields")
		}
		asked[n] = true
		for i := range asked {
			asked[i] = asked[i] || p.tasks[n].ancestors.has(i)
		}
	}
	return asked, nil
}

// askedForTask returns which tasks one task needs, and the index of that task.
func (p *Plan) askedForTask(id string) ([]bool, int, *jig.Error) {
	n := slices.IndexFunc(p.tasks, func(t *task) bool { return t.ID == id })
	if n < 0 {
		return nil, -1, jig.Errorf(jig.CodeInvalidInput, "%s has no task %q", p.Name, jig.Cut(id, 100)).WithField("/task")
	}
	asked := make([]bool, len(p.tasks))
	for i := range asked {
		asked[i] = i == n || p.tasks[n].ancestors.has(i)
	}
	return asked, n, nil
}
