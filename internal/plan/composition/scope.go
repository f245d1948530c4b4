package composition

import (
	"slices"
	"strconv"

	"github.com/jig-run/jig"
)

// scope holds the names that the expressions of a step can read: the steps of the run and of the enclosing items, and the errors being handled.
type scope struct {
	// up is the scope around the loop; nil in the run's own scope.
	up *scope
	// loop is the loop that the item belongs to; nil in the run's own scope.
	loop *node
	// done holds the marks of the steps in this scope that have ended. prefix is the beginning of the paths of its steps.
	done   marks
	prefix string
	// items, path and index identify the item. items is nil outside of an item.
	items *loopState
	path  string
	index int
	// errors are the errors being handled, the innermost last.
	errors []namedError
	// own holds results of items whose loops have not ended, for the items' own undo and catch.
	own []ownResult
	// ends is the earliest enclosing deadline, in milliseconds since 1970; 0 if there is no deadline.
	ends int64
}

type namedError struct {
	name string
	err  *jig.Error
}

// ownResult says where the result of an item is. The item's undo and catch read it under the loop's id.
type ownResult struct {
	id   string
	path string
	mark mark
}

func (p *Plan) scope(st *state) *scope { return &scope{done: st.Done} }

// item returns the scope of an item of the loop at path.
func (s *scope) item(loop *node, path string, items *loopState, item *itemState) *scope {
	if item.Done == nil {
		item.Done = marks{}
	}
	inner := *s
	inner.up, inner.loop, inner.done, inner.items, inner.path, inner.index = s, loop, item.Done, items, path, item.Index
	inner.prefix = itemPath(path, item.Index) + "/"
	return &inner
}

func itemPath(loop string, index int) string { return loop + "[" + strconv.Itoa(index) + "]" }

// bounded returns the scope for steps that run under a deadline.
func (s *scope) bounded(ends int64) *scope {
	if ends == 0 || s.ends != 0 && s.ends <= ends {
		return s
	}
	inner := *s
	inner.ends = ends
	return &inner
}

// handling returns the scope of a catch, or of a condition on an error.
func (s *scope) handling(err *jig.Error, as string) *scope {
	inner := *s
	inner.errors = append(slices.Clip(s.errors), namedError{name: as, err: err})
	return &inner
}

// withOwn returns the scope in which an item can read its own result.
func (s *scope) withOwn(n *node, path string, m mark) *scope {
	if n.each == nil {
		return s
	}
	inner := *s
	inner.own = append(slices.Clip(s.own), ownResult{id: n.id, path: path, mark: m})
	return &inner
}

// find returns how a step ended and the path of its result. ok is false if the step is not visible from this scope.
func (s *scope) find(n *node) (m mark, path string, ok bool) {
	for _, own := range slices.Backward(s.own) {
		if own.id == n.id {
			return own.mark, own.path, true
		}
	}
	for at := s; at != nil; at = at.up {
		if at.loop == n.loop {
			return at.done[n.id], at.prefix + n.name, true
		}
	}
	return "", "", false
}
