package jsonpath

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// nothing is the result of a query that finds no value; it equals only itself.
type nothing struct{}

// test reports whether a filter keeps a value.
func (w *walk) test(e expression, current any) bool {
	if !w.spend(1) {
		return false
	}
	switch e := e.(type) {
	case either:
		return slices.ContainsFunc(e, func(one expression) bool { return w.test(one, current) })
	case both:
		return !slices.ContainsFunc(e, func(one expression) bool { return !w.test(one, current) })
	case not:
		return !w.test(e.of, current)
	case exists:
		_, n := w.ask(e.query, current, 1)
		return n > 0
	case comparison:
		return w.compare(e.operator, w.value(e.left, current), w.value(e.right, current))
	case matching:
		return w.match(e, current)
	case membership:
		v := w.value(e.value, current)
		return slices.ContainsFunc(e.list, func(item any) bool { return w.equal(v, item) })
	}
	return false
}

// ask returns the last value that a query finds and the number of values found. It stops after most values; 0 means no limit.
func (w *walk) ask(q *query, current any, most int) (last any, n int) {
	if q.root {
		current = w.root
	}
	last = nothing{}
	w.follow(q.segments, current, func(v any) bool {
		last = v
		n++
		return n != most
	})
	return last, n
}

// value returns the value of an operand.
func (w *walk) value(o operand, current any) any {
	switch o := o.(type) {
	case literal:
		return o.value
	case *query:
		v, _ := w.ask(o, current, 1)
		return v
	case count:
		_, n := w.ask(o.of, current, 0)
		return number(n)
	case valueOf:
		if v, n := w.ask(o.of, current, 2); n == 1 {
			return v
		}
	case length:
		switch x := w.value(o.of, current).(type) {
		case string:
			w.spend(len(x) / 64)
			return number(utf8.RuneCountInString(x))
		case []any:
			return number(len(x))
		case *object:
			return number(len(x.members))
		}
	}
	return nothing{}
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func (w *walk) match(m matching, current any) bool {
	text, ok := w.value(m.text, current).(string)
	if !ok || !w.spend(int(m.pattern.Steps(len(text))/64)) {
		return false
	}
	matches, err := m.pattern.Match(w.ctx, []byte(text))
	w.err = err
	return matches
}

func (w *walk) compare(operator string, left, right any) bool {
	switch operator {
	case "==":
		return w.equal(left, right)
	case "!=":
		return !w.equal(left, right)
	case "<":
		return w.less(left, right)
	case ">":
		return w.less(right, left)
	case "<=":
		return w.equal(left, right) || w.less(left, right)
	}
	return w.equal(left, right) || w.less(right, left)
}

// less compares numbers and texts; other values have no order.
func (w *walk) less(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && w.spend((len(x)+len(y))/64) && order(x, y) < 0
	case string:
		y, ok := b.(string)
		return ok && w.spend(min(len(x), len(y))/64) && x < y
	}
	return false
}

// order compares numbers: integers exactly, others as floats.
func order(a, b json.Number) int {
	m, err1 := a.Int64()
	n, err2 := b.Int64()
	if err1 == nil && err2 == nil {
		return cmp.Compare(m, n)
	}
	x, _ := a.Float64() //nolint:errcheck // an out-of-range number becomes infinite
	y, _ := b.Float64() //nolint:errcheck // an out-of-range number becomes infinite
	return cmp.Compare(x, y)
}

// equal compares values deeply.
func (w *walk) equal(a, b any) bool {
	if !w.spend(1) {
		return false
	}
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && w.spend((len(x)+len(y))/64) && (x == y || order(x, y) == 0)
	case string:
		y, ok := b.(string)
		return ok && w.spend(len(x)/64) && x == y
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, w.equal)
	case *object:
		y, ok := b.(*object)
		return ok && len(x.members) == len(y.members) && !slices.ContainsFunc(x.members, func(m member) bool {
			other, has := y.get(m.name)
			return !has || !w.equal(m.value, other)
		})
	}
	switch b.(type) {
	case []any, *object:
		return false
	}
	return a == b
}
