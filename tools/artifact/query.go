package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"

	"github.com/jig-run/jig"
)

var errEnough = errors.New("enough")

// query returns the values at a JSONPath, one a line. A path of names, indices and wildcards is matched while the text
// streams by; any other needs the whole value.
func query(r *reader, in input) (output, error) {
	path, err := jp.ParseString(in.JSONPath)
	if err != nil {
		return output{}, jig.Errorf(jig.CodeInvalidInput, "jsonpath cannot be read: %w", err).WithField("/jsonpath").
			WithHint("e.g. $.items[*].id or $.items[?(@.price > 5)].name")
	}
	q := &querying{collector: collectorFor(in), guard: &guard{r: r}}
	if streamable(path) {
		err = r.within(MaxScan)
		if err == nil {
			err = oj.MatchLoad(q.guard, func(_ jp.Expr, v any) { q.take(v) }, path)
		}
	} else {
		err = r.within(MaxTree)
		if err == nil {
			err = q.whole(path)
		}
	}
	return q.result(err)
}

// streamable reports whether a path can be matched without looking back or ahead.
func streamable(path jp.Expr) bool {
	steps := 0
	for _, fragment := range path {
		switch fragment := fragment.(type) {
		case jp.Root, jp.Bracket:
		case jp.Child, jp.Wildcard:
			steps++
		case jp.Nth:
			if fragment < 0 {
				return false
			}
			steps++
		default:
			return false
		}
	}
	return steps > 0
}

type querying struct {
	*collector
	guard  *guard
	failed error
}

func (q *querying) whole(path jp.Expr) error {
	v, err := oj.Load(q.guard)
	if err != nil {
		return err //nolint:wrapcheck // worded in result
	}
	for _, found := range path.Get(v) {
		if q.take(found); q.guard.stop {
			break
		}
	}
	return nil
}

// take adds a value; when there is enough, the guard ends the reading.
func (q *querying) take(v any) {
	if q.guard.stop {
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		q.failed, q.guard.stop = err, true
		return
	}
	q.guard.stop = q.add(string(b))
}

// result words what went wrong, unless there was enough.
func (q *querying) result(err error) (output, error) {
	var known *jig.Error
	switch {
	case q.failed != nil:
		return output{}, fmt.Errorf("write value: %w", q.failed)
	case !q.guard.stop && err == nil && (q.guard.depth != 0 || q.guard.inString):
		err = io.ErrUnexpectedEOF // the matcher does not mind an end in the middle
	case q.guard.stop, err == nil:
		return q.output(), nil
	case errors.As(err, &known):
		return output{}, known
	case q.guard.failed != nil:
		return output{}, q.guard.failed
	}
	return output{}, jig.Errorf(jig.CodeInvalidInput, "the artifact is not JSON: %w", err).WithField("/id").
		WithReason("not_json").WithHint("use head, tail or grep")
}

// guard is a reader of JSON that ends when it is told to and refuses nesting so deep that a parser would run out of stack.
type guard struct {
	r                *reader
	stop             bool
	failed           error
	depth            int
	inString, escape bool
}

// Read implements io.Reader.
func (g *guard) Read(p []byte) (int, error) {
	if g.stop {
		return 0, errEnough
	}
	n, err := g.r.Read(p)
	for _, c := range p[:n] {
		switch {
		case g.escape:
			g.escape = false
		case g.inString:
			g.escape = c == '\\'
			g.inString = c != '"'
		case c == '"':
			g.inString = true
		case c == '{' || c == '[':
			g.depth++
		case c == '}' || c == ']':
			g.depth--
		}
		if g.depth > maxDepth {
			g.failed = jig.Errorf(jig.CodeInvalidInput, "the artifact is nested more than %d levels deep", maxDepth).WithField("/id")
			return 0, g.failed
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		g.failed = err
	}
	return n, err
}
