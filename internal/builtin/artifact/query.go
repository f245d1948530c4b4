package artifact

import (
	"errors"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsonpath"
)

// query returns the values at a JSONPath, one per line. A path of names, indices and wildcards is followed while the text is read; any
// other path needs the whole value in memory.
func query(r *reader, in input) (output, error) {
	path, err := jsonpath.Parse(in.JSONPath)
	if err != nil {
		return output{}, jig.Errorf(jig.CodeInvalidInput, "jsonpath cannot be used: %w", err).WithField("/jsonpath").
			WithHint("e.g. $.items[*].id or $.items[?(@.price > 5)].name")
	}
	limit := int64(MaxTree)
	if path.Streams() {
		limit = MaxScan
	}
	if err := r.within(limit); err != nil {
		return output{}, err
	}
	source := &noting{r: r}
	c := collectorFor(in)
	err = path.Select(r.ctx, source, MaxContent, func(text string) bool { return !c.add(text) })
	var exceeded *jsonpath.LimitError
	switch {
	case err == nil:
		return c.output(), nil
	case errors.As(err, &exceeded):
		e := jig.Errorf(jig.CodeInvalidInput, "%w", err).WithReason("limit_exceeded")
		if exceeded.OfDocument {
			return output{}, e.WithField("/id").WithHint("use head, tail or grep")
		}
		return output{}, e.WithField("/jsonpath").WithHint("select less: name members and indices, and use .. or * once")
	case source.failed != nil:
		return output{}, source.failed
	case r.ctx.Err() != nil:
		return output{}, fmt.Errorf("search the artifact: %w", r.ctx.Err())
	}
	return output{}, jig.Errorf(jig.CodeInvalidInput, "the artifact is not JSON: %w", err).WithField("/id").
		WithReason("not_json").WithHint("use head, tail or grep")
}
