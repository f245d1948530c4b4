package extract

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/expr"
)

// given is the input of an extraction, read; it is not changed.
type given struct {
	Input
	raw json.RawMessage
	// content and members are those of the entity's content and of the input, ready for expressions and as JSON.
	content, members part
	// whole is the input when it is no object.
	whole *expr.Value
	// asked says which tasks are to have an end, by number.
	asked []bool
}

// part is an object, member by member.
type part struct {
	values map[string]expr.Value
	raw    map[string]json.RawMessage
	order  []string
}

// given reads the input. The error is what is wrong with it.
func (p *Plan) given(raw json.RawMessage) (*given, *jig.Error) {
	if last := p.last.Load(); last != nil && bytes.Equal(last.raw, raw) {
		return last, nil
	}
	g := &given{raw: bytes.Clone(raw)}
	if err := json.Unmarshal(raw, &g.Input); err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction cannot be read: %w", err)
	}
	switch g.Mode {
	case "":
		g.Mode = ModeRun
	case ModeRun, ModeRetry, ModeRefresh:
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%q is not a mode", cut(string(g.Mode), 100)).WithField("/mode").WithHint("run, retry or refresh")
	}
	var problem *jig.Error
	if g.content, problem = readPart(g.Entity.Content); problem != nil {
		return nil, problem.WithField("/entity/content")
	}
	if object := bytes.TrimSpace(g.Input.Input); len(object) == 0 || object[0] == '{' {
		if g.members, problem = readPart(object); problem != nil {
			return nil, problem.WithField("/input")
		}
	} else {
		v, err := expr.FromJSON(object)
		if err != nil {
			return nil, jig.AsError(err).WithField("/input")
		}
		g.whole = &v
	}
	if g.asked, problem = p.askedFor(g.Fields); problem != nil {
		return nil, problem
	}
	p.last.Store(g)
	return g, nil
}

func readPart(raw json.RawMessage) (part, *jig.Error) {
	out := part{values: map[string]expr.Value{}}
	if len(bytes.TrimSpace(raw)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out.raw); err != nil {
		return out, jig.Errorf(jig.CodeInvalidInput, "this is not an object: %w", err)
	}
	for name, member := range out.raw {
		v, err := expr.FromJSON(member)
		if err != nil {
			return out, jig.AsError(err)
		}
		out.values[name] = v
		out.order = append(out.order, name)
	}
	slices.Sort(out.order)
	return out, nil
}

// askedFor says which tasks the fields need; all of them when no field is named.
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
			return nil, jig.Errorf(jig.CodeInvalidInput, word, p.name, cut(name, 100)).WithField("/fields")
		}
		asked[n] = true
		for i := range asked {
			asked[i] = asked[i] || p.tasks[n].ancestors.has(i)
		}
	}
	return asked, nil
}
