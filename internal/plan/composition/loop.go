package composition

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

const (
	// maxItems is the maximum number of items of a loop.
	maxItems = 100_000
	// chunkItems is the number of items kept in one value. With chunks, starting an item does not have to read the whole list.
	chunkItems = 32
)

func chunkPath(path string, chunk int) string { return path + "#" + strconv.Itoa(chunk) }

// beginLoop evaluates the list of a loop and keeps it.
func (r *run) beginLoop(ctx context.Context, n *node, st *stepState, sc *scope, path string) (*jig.Error, error) {
	v, problem, err := r.value(ctx, n.each, sc)
	if problem != nil || err != nil {
		return problem, err
	}
	list, ok := v.([]any)
	if !ok { // unreachable, because the expression was compiled to return a list
		return r.plan.Located(n.each.at, jig.Errorf(jig.CodeInvalidInput, "this does not evaluate to a list")), nil
	}
	if len(list) > maxItems {
		return r.plan.Located(n.each.at, jig.Errorf(jig.CodeInvalidInput, "the list has %d items; at most %d are allowed", len(list), maxItems)), nil
	}
	st.Loop = &loopState{Count: len(list)}
	if len(list) <= chunkItems {
		raw, err := jsontext.Encode(list)
		if err != nil {
			return nil, err
		}
		if len(raw) <= 4*inlineBytes {
			st.Loop.List = raw
			return nil, nil // no problem
		}
	}
	chunk := 0
	for part := range slices.Chunk(list, chunkItems) {
		raw, err := jsontext.Encode(part)
		if err != nil {
			return nil, err
		}
		r.Keep(chunkPath(path, chunk), raw)
		chunk++
	}
	return nil, nil // no problem
}

// loop advances the open items as far as possible and then begins others, in order.
func (r *run) loop(ctx context.Context, n *node, st *stepState, sc *scope, path string) (outcome, error) {
	l := st.Loop
	open := l.Open[:0]
	for i := range l.Open {
		item := l.Open[i]
		over, err := r.loopItem(ctx, n, l, &item, sc, path)
		if err != nil {
			return outcome{}, err
		}
		if !over {
			open = append(open, item)
		}
	}
	for l.Failure == nil && l.Next < l.Count && len(open) < n.parallel && r.mayBegin(sc) {
		item := itemState{Index: l.Next, Step: &stepState{}}
		r.deadline(n, item.Step)
		l.Next++
		over, err := r.loopItem(ctx, n, l, &item, sc, path)
		if err != nil {
			return outcome{}, err
		}
		if !over {
			open = append(open, item)
		}
	}
	l.Open = open
	switch {
	case len(open) > 0:
		return outcome{}, nil
	case l.Failure != nil:
		return outcome{over: true, mark: loopMark(l.Next, l.Kept), fail: l.Failure}, nil
	case l.Next < l.Count:
		return outcome{}, ctx.Err() //nolint:wrapcheck // the error of the caller's context
	}
	return outcome{over: true, mark: loopMark(l.Count, l.Kept)}, nil
}

// loopItem advances one item as far as possible and keeps its result when it ends.
func (r *run) loopItem(ctx context.Context, n *node, l *loopState, item *itemState, sc *scope, loopPath string) (over bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err //nolint:wrapcheck // the error of the caller's context
	}
	path := itemPath(loopPath, item.Index)
	out, err := r.item(ctx, n, item.Step, sc.item(n, loopPath, l, item), path)
	if err != nil || !out.over {
		return false, err
	}
	if out.fail != nil && (l.Failure == nil || item.Index < l.FailedAt) {
		l.Failure, l.FailedAt = out.fail, item.Index
	}
	return true, r.keepItem(n, l, path, out.mark)
}

// keepItem records where an item's result is, if it is not in the place that the loop's other items use.
func (r *run) keepItem(n *node, l *loopState, path string, m mark) error {
	attempt, called := m.attempt()
	switch {
	case !n.observed:
		return nil
	case m == markSkipped: // a switch in which no case holds
		r.Keep(path, json.RawMessage(resultSkipped))
	case called && attempt > 1:
		raw, err := jsontext.Encode(itemResult{Attempt: attempt})
		if err != nil {
			return err
		}
		r.Keep(path, raw)
		l.Kept = true
	case m == markValue && n.action == actCall:
		l.Kept = true
	}
	return nil
}
