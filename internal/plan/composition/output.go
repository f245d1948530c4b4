package composition

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
)

// outputOf returns the data of a run that succeeded: the spec's output, or the data of the last top-level step that ran.
func (r *run) outputOf(ctx context.Context, sc *scope) (json.RawMessage, *jig.Error, error) {
	if r.plan.output != nil {
		return r.render(ctx, r.plan.output, sc)
	}
	if r.st.Last == 0 {
		return nil, nil, nil
	}
	n := r.plan.steps[r.st.Last-1]
	if n.id == "" {
		return nil, nil, nil
	}
	m, path, ok := sc.find(n)
	if !ok {
		return nil, nil, nil
	}
	count, kept, isLoop := m.items()
	if !isLoop {
		raw, err := r.resultJSON(ctx, found{mark: m, path: path})
		if err != nil {
			return nil, nil, err
		}
		return dataOf(raw), nil, nil
	}
	list, size := make([]json.RawMessage, 0, count), 0
	for from := 0; from < count; from += plan.MaxBatch {
		raws, err := r.itemBatch(ctx, n, path, from, min(from+plan.MaxBatch, count), kept)
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range raws {
			data := plan.OrNull(dataOf(raw))
			if size += len(data); size > maxRead {
				return nil, r.plan.Located(n.at, jig.Errorf(jig.CodeInvalidInput, "the results take more than %d MiB", maxRead>>20).
					WithHint("give the composition an output")), nil
			}
			list = append(list, data)
		}
	}
	raw, err := jsontext.Encode(list)
	return raw, nil, err
}

// dataOf returns the data of a result, as JSON. It is empty if there is no data or it is null.
func dataOf(result json.RawMessage) json.RawMessage {
	var r struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(result, &r) != nil || string(r.Data) == "null" {
		return nil
	}
	return r.Data
}
