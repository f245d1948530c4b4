package composition

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan"
)

// leaf is a running step and the scope that it runs in. inner reports whether it contains other running steps.
type leaf struct {
	n     *node
	st    *stepState
	sc    *scope
	path  string
	inner bool
}

// call returns the path of the call that the step has requested. ok is false if there is no such call, or if the run no longer waits for
// it.
func (l leaf) call() (string, bool) {
	return plan.AttemptPath(l.path, l.st.Retries+1), l.st.Asked && !l.st.Over
}

// wait returns what the step waits for, if it waits for an event or a time.
func (l leaf) wait() (jig.Wait, bool) {
	w := jig.Wait{Call: l.path}
	if l.st.Until != 0 {
		w.Until = time.UnixMilli(l.st.Until).UTC()
	}
	switch {
	case l.inner || l.st.Over:
		return w, false
	case l.n.action == actWaitFor:
		w.Event = l.n.waitFor.event
		return w, l.st.Begun
	case l.n.action == actWait || l.n.action == actWaitUntil:
		return w, l.st.Begun
	}
	w.Retries = true
	return w, l.st.Until != 0
}

// live calls f for every running step, in the order of the document and of the items.
func (r *run) live(steps []*node, st *blockState, sc *scope, f func(leaf)) {
	if st != nil && st.Step != nil {
		n := steps[st.At]
		r.liveStep(n, st.Step, sc, f)
	}
}

func (r *run) liveStep(n *node, st *stepState, sc *scope, f func(leaf)) {
	path := sc.prefix + n.name
	if n.each == nil {
		r.liveItem(n, st, sc, path, f)
		return
	}
	if st.Caught != nil {
		r.liveItem(n, st, r.outside(n, st, sc), path, f)
		return
	}
	f(leaf{n: n, st: st, sc: sc, path: path, inner: true})
	for i := range st.Loop.Open {
		item := &st.Loop.Open[i]
		r.liveItem(n, item.Step, sc.item(n, path, st.Loop, item), itemPath(path, item.Index), f)
	}
}

func (r *run) liveItem(n *node, st *stepState, sc *scope, path string, f func(leaf)) {
	l := leaf{n: n, st: st, sc: sc, path: path}
	switch {
	case st.Caught != nil:
		l.inner = true
		f(l)
		r.live(n.onError.catch, st.Block, sc.handling(st.Caught.Error, n.onError.as).withOwn(n, path, st.Mark), f)
	case n.action == actBlock:
		l.inner = true
		f(l)
		r.live(n.steps, st.Block, sc, f)
	case n.action == actSwitch:
		l.inner = true
		f(l)
		if st.Case > 0 {
			r.live(n.cases[st.Case-1].steps, st.Block, sc, f)
		}
	case n.action == actParallel:
		l.inner = true
		f(l)
		for i, b := range st.Branches {
			if b.Step != nil {
				r.liveStep(n.branches[i], b.Step, sc, f)
			}
		}
	default:
		f(l)
	}
}
