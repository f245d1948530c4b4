package composition

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan"
)

// Limits, in bytes, of the values that one evaluation reads, and the number of results that are loaded together.
const (
	maxRead = 16 << 20
	// stepBatch is the number of steps that are read together. It is small because their results can be large.
	stepBatch = 50
	maxReady  = 2 * maxRead
)

// The results that expressions read for steps whose result is not stored.
const (
	resultSkipped = `{"skipped":true}`
	resultNothing = `{"success":true,"summary":""}`
)

// found says where a result is and in what form.
type found struct {
	mark mark
	path string
}

// bind returns the variables that an expression reads. It returns a problem if the expression reads too much, and an error if reading fails.
func (r *run) bind(ctx context.Context, reads expr.Reads, at string, sc *scope) (map[string]any, *jig.Error, error) {
	vars := make(map[string]any, len(reads.Names)+len(sc.errors))
	for _, named := range sc.errors {
		e := errorValue(named.err)
		vars["error"] = e
		if named.name != "" {
			vars[named.name] = e
		}
	}
	for _, name := range reads.Names {
		var err error
		switch name {
		case "input":
			vars[name], err = r.situation(name, r.At.Input)
		case "session":
			vars[name], err = r.situation(name, r.At.Session)
		case "principal":
			vars[name], err = r.situation(name, r.At.Principal)
		case "tenant":
			vars[name] = r.At.Tenant
		case "now":
			vars[name] = r.At.Now.UTC()
		case "event":
			if r.event != nil {
				vars[name] = *r.event
			}
		case "index":
			if sc.items != nil {
				vars[name] = sc.index
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	size := 0
	for _, load := range []func(context.Context, expr.Reads, *scope, map[string]any) (int, error){r.bindItem, r.bindVars, r.bindSteps} {
		n, err := load(ctx, reads, sc, vars)
		if err != nil {
			return nil, nil, err
		}
		if size += n; size > maxRead {
			return nil, r.plan.Located(at, jig.Errorf(jig.CodeInvalidInput, "the values it reads take more than %d MiB", maxRead>>20)), nil
		}
	}
	return vars, nil, nil
}

// errorValue converts an error to the form that expressions read. Every member is present.
func errorValue(e *jig.Error) map[string]any {
	return map[string]any{
		"code": string(e.Code), "message": e.Message, "field": e.Field, "hint": e.Hint, "reason": e.Reason,
	}
}

// situation decodes a part of the situation, once.
func (r *run) situation(name string, raw json.RawMessage) (expr.Value, error) {
	key := "#" + name
	if v, ok := r.ready[key]; ok {
		return v.value, nil
	}
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	return r.prepare(key, raw)
}

// ready is a decoded value, with its size as JSON.
type ready struct {
	value expr.Value
	size  int
}

func (r *run) prepare(key string, raw json.RawMessage) (expr.Value, error) {
	v, err := expr.FromJSON(raw)
	if err != nil {
		return v, jig.Errorf(jig.CodeInternal, "%s of the composition %s: %w", key, r.plan.Name, err)
	}
	r.remember(key, ready{value: v, size: len(raw)})
	return v, nil
}

// remember caches a value for later expressions in this move. It drops the whole cache when that gets too large.
func (r *run) remember(key string, v ready) {
	if r.held += v.size; r.held > maxReady {
		clear(r.ready)
		r.held = v.size
	}
	r.ready[key] = v
}

func (r *run) bindItem(ctx context.Context, reads expr.Reads, sc *scope, vars map[string]any) (int, error) {
	if !reads.Has("item") || sc.items == nil {
		return 0, nil
	}
	key := itemPath(sc.path, sc.index) + "#item"
	if v, ok := r.ready[key]; ok {
		vars["item"] = v.value
		return v.size, nil
	}
	list, at := sc.items.List, sc.index
	if len(list) == 0 {
		chunk := chunkPath(sc.path, sc.index/chunkItems)
		if err := r.LoadValues(ctx, []string{chunk}); err != nil {
			return 0, err
		}
		list, at = r.Values[chunk], sc.index%chunkItems
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil || at >= len(items) {
		return 0, jig.Errorf(jig.CodeInternal, "item %d of %s is not stored", sc.index, sc.path)
	}
	v, err := r.prepare(key, items[at])
	vars["item"] = v
	return len(items[at]), err
}

func (r *run) bindVars(ctx context.Context, reads expr.Reads, _ *scope, vars map[string]any) (int, error) {
	if !reads.Has("vars") {
		return 0, nil
	}
	names := reads.Vars
	if reads.AllVars {
		names = slices.Sorted(maps.Keys(r.st.Vars))
	}
	var paths []string
	for _, name := range names {
		if v, ok := r.st.Vars[name]; ok && v.Inline == nil {
			paths = append(paths, varPath(name))
		}
	}
	if err := r.LoadValues(ctx, paths); err != nil {
		return 0, err
	}
	out, size := make(map[string]any, len(names)), 0
	for _, name := range names {
		v, ok := r.st.Vars[name]
		if !ok {
			continue
		}
		raw := v.Inline
		if raw == nil {
			if raw, ok = r.Values[varPath(name)]; !ok {
				return 0, jig.Errorf(jig.CodeInternal, "vars.%s is not stored", name)
			}
		}
		value, err := expr.FromJSON(raw)
		if err != nil {
			return 0, err
		}
		out[name] = value
		size += len(raw)
	}
	vars["vars"] = out
	return size, nil
}

func varPath(name string) string { return "vars." + name }

func (r *run) bindSteps(ctx context.Context, reads expr.Reads, sc *scope, vars map[string]any) (int, error) {
	if !reads.Has("steps") {
		return 0, nil
	}
	ids := reads.Steps
	if reads.AllSteps {
		ids = r.plan.ids
	}
	out, size := make(map[string]any, len(ids)), 0
	for some := range slices.Chunk(ids, stepBatch) {
		nodes := make([]*node, 0, len(some))
		for _, id := range some {
			if n := r.plan.byID[id]; n != nil {
				nodes = append(nodes, n)
			}
		}
		if err := r.foresee(ctx, nodes, sc); err != nil {
			return 0, err
		}
		for _, n := range nodes {
			m, path, ok := sc.find(n)
			if !ok {
				continue
			}
			v, err := r.result(ctx, n, found{mark: m, path: path}, maxRead-size)
			if err != nil {
				return 0, err
			}
			if out[n.id], size = v.value, size+v.size; size > maxRead {
				return size, nil
			}
		}
	}
	vars["steps"] = out
	return size, nil
}

// foresee loads the results of several steps together instead of one by one. It skips loops, because items reads their results in batches.
func (r *run) foresee(ctx context.Context, nodes []*node, sc *scope) error {
	var calls, values []string
	for _, n := range nodes {
		m, path, ok := sc.find(n)
		if _, known := r.ready[readyKey(path, m)]; !ok || known {
			continue
		}
		if attempt, called := m.attempt(); called {
			calls = append(calls, plan.AttemptPath(path, attempt))
		} else if m == markValue {
			values = append(values, path)
		}
	}
	if err := r.LoadValues(ctx, values); err != nil {
		return err
	}
	return r.LoadCalls(ctx, calls)
}

// readyKey is the key under which a result is cached for the rest of the move.
func readyKey(path string, m mark) string { return path + " " + string(m) }

// result returns the value of steps.<id>. It stops reading the results of a loop once they exceed limit bytes.
func (r *run) result(ctx context.Context, n *node, f found, limit int) (ready, error) {
	key := readyKey(f.path, f.mark)
	if v, ok := r.ready[key]; ok {
		return v, nil
	}
	if count, kept, ok := f.mark.items(); ok {
		v, err := r.items(ctx, n, f.path, count, kept, limit)
		if err == nil && v.size <= limit {
			r.remember(key, v)
		}
		return v, err
	}
	raw, err := r.resultJSON(ctx, f)
	if err != nil {
		return ready{}, err
	}
	value, err := r.prepare(key, raw)
	return ready{value: value, size: len(raw)}, err
}

// resultJSON returns the result of a step that is not a loop.
func (r *run) resultJSON(ctx context.Context, f found) (json.RawMessage, error) {
	attempt, called := f.mark.attempt()
	switch {
	case f.mark == "" || f.mark == markSkipped:
		return json.RawMessage(resultSkipped), nil
	case f.mark == markNothing:
		return json.RawMessage(resultNothing), nil
	case f.mark == markValue:
		if err := r.LoadValues(ctx, []string{f.path}); err != nil {
			return nil, err
		}
		if raw, ok := r.Values[f.path]; ok {
			return raw, nil
		}
	case called:
		path := plan.AttemptPath(f.path, attempt)
		if err := r.LoadCalls(ctx, []string{path}); err != nil {
			return nil, err
		}
		if call, ok := r.Calls[path]; ok {
			return json.Marshal(call.Outcome()) //nolint:wrapcheck // a result always marshals, or its data is not JSON
		}
	}
	return nil, jig.Errorf(jig.CodeInternal, "the result of step %s of the composition %s is gone", f.path, r.plan.Name)
}

// itemResult is kept for an item whose result is not in the place that the loop's other items use. It names the attempt whose call has the
// result.
type itemResult struct {
	Attempt int `json:"attempt,omitempty"`
}

// items reads the results of a loop, batch by batch.
func (r *run) items(ctx context.Context, n *node, path string, count int, kept bool, limit int) (ready, error) {
	list, size := make([]any, 0, count), 2
	for from := 0; from < count; from += plan.MaxBatch {
		raws, err := r.itemBatch(ctx, n, path, from, min(from+plan.MaxBatch, count), kept)
		if err != nil {
			return ready{}, err
		}
		for _, raw := range raws {
			if size += len(raw) + 1; size > limit {
				return ready{size: size}, nil
			}
			v, err := expr.FromJSON(raw)
			if err != nil {
				return ready{}, err
			}
			list = append(list, v)
		}
	}
	value, err := expr.From(list)
	return ready{value: value, size: size}, err
}

// itemBatch reads the results of the items from..to-1 of a loop.
func (r *run) itemBatch(ctx context.Context, n *node, path string, from, to int, kept bool) ([]json.RawMessage, error) {
	out, paths := make([]json.RawMessage, to-from), make([]string, 0, to-from)
	for i := from; i < to; i++ {
		paths = append(paths, itemPath(path, i))
	}
	attempts := paths
	if kept || n.action != actCall {
		values, err := r.fetchValues(ctx, paths)
		if err != nil {
			return nil, err
		}
		attempts = nil
		for i, p := range paths {
			raw, ok := values[p]
			var moved itemResult
			switch {
			case !ok && n.action != actCall: // the item has no result
				out[i] = json.RawMessage(resultNothing)
			case !ok:
				attempts = append(attempts, p)
			case json.Unmarshal(raw, &moved) == nil && moved.Attempt > 0:
				paths[i] = plan.AttemptPath(p, moved.Attempt)
				attempts = append(attempts, paths[i])
			default:
				out[i] = raw
			}
		}
	}
	if len(attempts) == 0 {
		return out, nil
	}
	calls, err := r.Facts().Calls(ctx, attempts)
	if err != nil {
		return nil, err
	}
	for i, p := range paths {
		if out[i] != nil {
			continue
		}
		call, ok := calls[p]
		if !ok {
			return nil, jig.Errorf(jig.CodeInternal, "the result of step %s of the composition %s is gone", p, r.plan.Name)
		}
		if out[i], err = json.Marshal(call.Outcome()); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "the result of step %s: %w", p, err)
		}
	}
	return out, nil
}

// fetchValues reads values without caching them, because a loop can have many. It includes values that this move keeps.
func (r *run) fetchValues(ctx context.Context, paths []string) (map[string]json.RawMessage, error) {
	values, err := r.Facts().Values(ctx, paths)
	if err != nil || len(r.Move.Values) == 0 {
		return values, err
	}
	out := make(map[string]json.RawMessage, len(paths))
	for _, p := range paths {
		if v, ok := r.Move.Values[p]; ok {
			out[p] = v
		} else if v, ok := values[p]; ok {
			out[p] = v
		}
	}
	return out, nil
}
