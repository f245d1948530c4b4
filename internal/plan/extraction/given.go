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
	// asked says, by index, which tasks the extraction must complete.
	asked []bool
}

// given reads the input. The error says what is wrong with it.
func (p *Plan) given(raw json.RawMessage) (*given, *jig.Error) {
	if last := p.last.Load(); last != nil && bytes.Equal(last.raw.all, raw) {
		return last, nil
	}
	g := &given{content: map[string]expr.Value{}}
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
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a mode", jig.Cut(string(g.Mode), 100)).WithField("/mode").WithHint("run, retry or refresh")
	}
	if err := g.readContent(); err != nil {
		return nil, jig.AsError(err).WithField("/entity/content")
	}
	var err error
	if g.input, err = expr.FromJSON(g.Input.Input); err != nil {
		return nil, jig.AsError(err).WithField("/input")
	}
	var problem *jig.Error
	if g.asked, problem = p.askedFor(g.Fields); problem != nil {
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
			return nil, jig.Errorf(jig.CodeInvalidInput, word, p.name, jig.Cut(name, 100)).WithField("/fields")
		}
		asked[n] = true
		for i := range asked {
			asked[i] = asked[i] || p.tasks[n].ancestors.has(i)
		}
	}
	return asked, nil
}
