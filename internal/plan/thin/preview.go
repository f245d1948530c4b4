package thin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

type readKey struct{}

// withRead returns a context with the function that makes the call of a document's own preview.
func withRead(ctx context.Context, read plan.Read) context.Context {
	return context.WithValue(ctx, readKey{}, read)
}

// previewer returns the function that describes what a call of the tool will change: the preview of its document or, if it has none, the entity
// that the call would create.
func (e *Engine) previewer(def *definition) func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (jig.Preview, error) {
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (jig.Preview, error) {
		if def.preview != nil {
			read, ok := ctx.Value(readKey{}).(plan.Read)
			if !ok {
				return jig.Preview{}, jig.Errorf(jig.CodeInternal, "the preview of %s cannot read", def.tool.Name)
			}
			return def.preview.Preview(ctx, inv, input, read)
		}
		r := &run{Engine: e, def: def, inv: inv, entities: map[string]any{}, input: input, previews: true}
		return r.preview(ctx)
	}
}

// preview makes the checks of a call, and shows the entity that it would create.
func (r *run) preview(ctx context.Context) (jig.Preview, error) {
	if _, err := r.check(ctx); err != nil {
		return jig.Preview{}, err
	}
	c, err := r.creation(ctx)
	if err != nil {
		return jig.Preview{}, err
	}
	known, err := r.existing(ctx, c)
	if err != nil || known.Title != "" {
		return known, err
	}
	if err := r.withoutTime(ctx, &c); err != nil {
		return jig.Preview{}, err
	}
	p := jig.Preview{Title: "Creates " + c.Type}
	if c.Title != "" {
		p.Title += " " + strconv.Quote(c.Title)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Content)) {
		p.Changes = append(p.Changes, "+ "+name+": "+string(c.Content[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Relations)) {
		p.Changes = append(p.Changes, "+ relation "+name+": "+strings.Join(c.Relations[name], ", "))
	}
	if len(c.Workspaces) > 0 {
		p.Changes = append(p.Changes, "+ workspaces: "+strings.Join(c.Workspaces, ", "))
	}
	if c.Shared {
		p.Changes = append(p.Changes, "unless the key exists already: "+c.Key)
	}
	if r.def.thin.Starts != nil {
		p.Changes = append(p.Changes, "then its tasks fill its fields, in a session of their own")
	}
	return p, nil
}

// existing returns the preview of a call whose entity exists already and may be read by the caller; otherwise the zero Preview.
func (r *run) existing(ctx context.Context, c Creation) (jig.Preview, error) {
	if !c.Shared {
		return jig.Preview{}, nil
	}
	e, found, err := r.records.Made(ctx, r.inv.Tenant, c.Key)
	if err != nil || !found {
		return jig.Preview{}, err
	}
	if _, readable, err := r.records.Readable(ctx, r.inv, e.ID); err != nil || !readable {
		return jig.Preview{}, err
	}
	return jig.Preview{Title: "Changes nothing: this " + c.Type + " exists already", Changes: []string{e.ID + " " + strconv.Quote(e.Title)}}, nil
}

// later is added to the time to find the values that depend on it. It changes the date, the day of the week and each part of the time of day.
const later = 401*24*time.Hour + 7*time.Hour + 13*time.Minute + 17*time.Second + 123*time.Millisecond

// atRuntime replaces a value that depends on the time.
const atRuntime = "(depends on the time at which the call runs)"

// withoutTime replaces the values that depend on the time, because two previews of the same state must be equal.
func (r *run) withoutTime(ctx context.Context, c *Creation) error {
	r.vars["now"] = r.now().UTC().Add(later)
	other, err := r.creation(ctx)
	if err != nil {
		return err
	}
	if other.Title != c.Title {
		c.Title = ""
	}
	if other.Key != c.Key {
		c.Key = atRuntime
	}
	for name, value := range c.Content {
		if string(other.Content[name]) != string(value) {
			c.Content[name] = json.RawMessage(atRuntime)
		}
	}
	for name, ids := range c.Relations {
		if !slices.Equal(other.Relations[name], ids) {
			c.Relations[name] = []string{atRuntime}
		}
	}
	if !slices.Equal(other.Workspaces, c.Workspaces) {
		c.Workspaces = []string{atRuntime}
	}
	return nil
}
