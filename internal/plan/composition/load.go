package composition

import (
	"context"
	"encoding/json"
)

// loadValues reads the values that this move has not read yet.
func (r *run) loadValues(ctx context.Context, paths []string) error {
	var missing []string
	for _, p := range paths {
		if _, ok := r.values[p]; !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	values, err := r.facts.Values(ctx, missing)
	for p, v := range values {
		r.values[p] = v
	}
	return err
}

// loadCalls reads the calls that this move has not read yet.
func (r *run) loadCalls(ctx context.Context, paths []string) error {
	var missing []string
	for _, p := range paths {
		if _, ok := r.calls[p]; !ok {
			missing = append(missing, p)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), maxBatch)
		calls, err := r.facts.Calls(ctx, missing[:n])
		if err != nil {
			return err
		}
		for p, c := range calls {
			r.calls[p] = c
		}
		missing = missing[n:]
	}
	return nil
}

// fetchValues reads values without caching them, because a loop can have many. It includes values that this move keeps.
func (r *run) fetchValues(ctx context.Context, paths []string) (map[string]json.RawMessage, error) {
	values, err := r.facts.Values(ctx, paths)
	if err != nil || len(r.move.Values) == 0 {
		return values, err
	}
	out := make(map[string]json.RawMessage, len(paths))
	for _, p := range paths {
		if v, ok := r.move.Values[p]; ok {
			out[p] = v
		} else if v, ok := values[p]; ok {
			out[p] = v
		}
	}
	return out, nil
}

func (r *run) fetchCalls(ctx context.Context, paths []string) (map[string]Call, error) {
	return r.facts.Calls(ctx, paths)
}
