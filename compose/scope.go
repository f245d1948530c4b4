package compose

import (
	"slices"
	"strconv"

	"github.com/jig-run/jig"
)

// scope is what the expressions of a step can see: the steps of the run, of the items around it, and errors being handled.
type scope struct {
	// up is the scope around the loop; nil for the run's own.
	up *scope
	// loop is the loop whose item this is; nil for the run's own.
	loop *node
	// done are the steps of this scope that ended; prefix begins the paths of its steps.
	done   marks
	prefix string
	// items and index say which item it is; items is nil where there is none.
	items *loopState
	path  string
	index int
	// errors that are being handled, the innermost last.
	errors []namedError
	// own are results of items whose loops are not over, for their own undo and catch.
	own []ownResult
	// ends is the earliest deadline around, in milliseconds; 0 for none.
	ends int64
}

type namedError struct {
	name string
	err  *jig.Error
}

// ownResult is where an item finds its own result under the loop's id.
type ownResult struct {
	id   string
	path string
	mark mark
}

func (p *Plan) scope(st *state) *scope { return &scope{done: st.Done} }

// item is the scope of an item of a loop at path.
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

// bounded is the scope of what runs under a deadline.
func (s *scope) bounded(ends int64) *scope {
	if ends == 0 || s.ends != 0 && s.ends <= ends {
		return s
	}
	inner := *s
	inner.ends = ends
	return &inner
}

// handling is the scope of a catch, or of a condition over an error.
func (s *scope) handling(err *jig.Error, as string) *scope {
	inner := *s
	inner.errors = append(slices.Clip(s.errors), namedError{name: as, err: err})
	return &inner
}

// withOwn is the scope in which an item reads its own result.
func (s *scope) withOwn(n *node, path string, m mark) *scope {
	if n.each == nil {
		return s
	}
	inner := *s
	inner.own = append(slices.Clip(s.own), ownResult{id: n.id, path: path, mark: m})
	return &inner
}

// find tells how a step ended and where it stands; ok is false for a step that cannot be seen from here.
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
