package jsonpath

import "context"

// walk follows a path through a tree. Every value that it visits costs a step. It keeps the first error; from then on it visits nothing else,
// and what its methods return has no meaning.
type walk struct {
	ctx  context.Context //nolint:containedctx // walk lives for one query
	root any
	left int
	err  error
}

// spend takes n steps, and reports whether the walk goes on: enough steps are left and the context has not ended.
func (w *walk) spend(n int) bool {
	before := w.left
	switch w.left -= n; {
	case w.err != nil:
	case w.left < 0 || n < 0:
		w.err = exceeded("the path visits more than %d values; name members instead of .. and *, or filter less", MaxSteps)
	case before>>10 != w.left>>10:
		w.err = w.ctx.Err()
	}
	return w.err == nil
}

// follow calls found with each value that the segments select, starting from v, until found returns false. It reports whether it never did.
func (w *walk) follow(segments []segment, v any, found func(any) bool) bool {
	if !w.spend(1) {
		return false
	}
	if len(segments) == 0 {
		return found(v)
	}
	for _, s := range segments[0].selectors {
		if !w.choose(s, v, func(child any) bool { return w.follow(segments[1:], child, found) }) {
			return false
		}
	}
	return !segments[0].descend || w.children(v, func(child any) bool { return w.follow(segments, child, found) })
}

// children calls next with each item of a list or each member value of an object, until next returns false.
func (w *walk) children(v any, next func(any) bool) bool {
	switch x := v.(type) {
	case []any:
		for _, child := range x {
			if !next(child) {
				return false
			}
		}
	case *object:
		for i := range x.members {
			if !next(x.members[i].value) {
				return false
			}
		}
	}
	return true
}

// choose calls next with the children of v that match a selector, until next returns false.
func (w *walk) choose(s selector, v any, next func(any) bool) bool {
	object, _ := v.(*object) //nolint:errcheck // nil has no members
	list, _ := v.([]any)     //nolint:errcheck // nil has no items
	switch s := s.(type) {
	case wildcard:
		return w.children(v, next)
	case name:
		if object != nil {
			if child, has := object.get(string(s)); has {
				return next(child)
			}
		}
	case index:
		if at := fromEnd(int(s), len(list)); at >= 0 && at < len(list) {
			return next(list[at])
		}
	case slice:
		return s.items(list, next)
	case *filter:
		return w.children(v, func(child any) bool {
			kept := w.test(s.test, child)
			return w.err == nil && (!kept || next(child))
		})
	}
	return true
}

// fromEnd converts an index that counts from the end into one that counts from the beginning.
func fromEnd(at, length int) int {
	if at < 0 {
		return at + length
	}
	return at
}

// items calls next with the items of a list that the slice selects, until next returns false.
func (s slice) items(list []any, next func(any) bool) bool {
	n, step := len(list), orElse(s.step, 1)
	clamp := func(at *int, otherwise, least, most int) int {
		if at == nil {
			return otherwise
		}
		return min(max(fromEnd(*at, n), least), most)
	}
	start, end := clamp(s.start, 0, 0, n), clamp(s.end, n, 0, n)
	if step < 0 {
		start, end = clamp(s.start, n-1, -1, n-1), clamp(s.end, -1, -1, n-1)
	}
	for i := start; step > 0 && i < end || step < 0 && i > end; i += step {
		if !next(list[i]) {
			return false
		}
	}
	return true
}

func orElse(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}
