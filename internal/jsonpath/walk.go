package jsonpath

import "context"

// walk follows a path through a tree. Every value that it visits costs a step.
type walk struct {
	ctx  context.Context //nolint:containedctx // walk lives for one query
	root any
	left int
}

// spend takes n steps. It returns an error if not enough steps are left or the context has ended.
func (w *walk) spend(n int) error {
	before := w.left
	if w.left -= n; w.left < 0 || n < 0 {
		return exceeded("the path visits more than %d values; name members instead of .. and *, or filter less", MaxSteps)
	}
	if before>>10 != w.left>>10 && w.ctx.Err() != nil {
		return w.ctx.Err() //nolint:wrapcheck // callers need the context's error unchanged
	}
	return nil
}

// follow calls found with each value that the segments select, starting from v.
func (w *walk) follow(segments []segment, v any, found func(any) error) error {
	if err := w.spend(1); err != nil {
		return err
	}
	if len(segments) == 0 {
		return found(v)
	}
	for _, s := range segments[0].selectors {
		if err := w.choose(s, v, func(child any) error { return w.follow(segments[1:], child, found) }); err != nil {
			return err
		}
	}
	if !segments[0].descend {
		return nil
	}
	return w.children(v, func(child any) error { return w.follow(segments, child, found) })
}

// children calls next with each item of a list or each member value of an object.
func (w *walk) children(v any, next func(any) error) error {
	switch x := v.(type) {
	case []any:
		for _, child := range x {
			if err := next(child); err != nil {
				return err
			}
		}
	case *object:
		for i := range x.members {
			if err := next(x.members[i].value); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose calls next with the children of v that match a selector.
func (w *walk) choose(s selector, v any, next func(any) error) error {
	switch s := s.(type) {
	case wildcard:
		return w.children(v, next)
	case name:
		if o, ok := v.(*object); ok {
			if child, has := o.get(string(s)); has {
				return next(child)
			}
		}
	case index:
		if list, ok := v.([]any); ok {
			if at := fromEnd(int(s), len(list)); at >= 0 && at < len(list) {
				return next(list[at])
			}
		}
	case slice:
		if list, ok := v.([]any); ok {
			return w.slice(s, list, next)
		}
	case *filter:
		return w.children(v, func(child any) error {
			kept, err := w.test(s.test, child)
			if err != nil || !kept {
				return err
			}
			return next(child)
		})
	}
	return nil
}

// fromEnd converts an index that counts from the end into one that counts from the beginning.
func fromEnd(at, length int) int {
	if at < 0 {
		return at + length
	}
	return at
}

func (w *walk) slice(s slice, list []any, next func(any) error) error {
	step := orElse(s.step, 1)
	n := len(list)
	clamp := func(at *int, def, least, most int) int {
		if at == nil {
			return def
		}
		return min(max(fromEnd(*at, n), least), most)
	}
	switch {
	case step > 0:
		for i, end := clamp(s.start, 0, 0, n), clamp(s.end, n, 0, n); i < end; i += step {
			if err := next(list[i]); err != nil {
				return err
			}
		}
	case step < 0:
		for i, end := clamp(s.start, n-1, -1, n-1), clamp(s.end, -1, -1, n-1); i > end; i += step {
			if err := next(list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func orElse(n *int, def int) int {
	if n == nil {
		return def
	}
	return *n
}
