package jsonpath

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// nothing is the result of a query that finds no value; it equals only itself.
type nothing struct{}

// test reports whether a filter keeps a value.
func (w *walk) test(e expression, current any) (bool, error) {
	if err := w.spend(1); err != nil {
		return false, err
	}
	switch e := e.(type) {
	case either:
		return w.until(e, current, true)
	case both:
		return w.until(e, current, false)
	case not:
		ok, err := w.test(e.of, current)
		return !ok, err
	case exists:
		_, n, err := w.ask(e.query, current, 1)
		return n > 0, err
	case comparison:
		return w.compare(e, current)
	case matching:
		return w.match(e, current)
	case membership:
		v, err := w.value(e.value, current)
		if err != nil {
			return false, err
		}
		for _, item := range e.list {
			if same, err := w.equal(v, item); same || err != nil {
				return same, err
			}
		}
	}
	return false, nil
}

// until evaluates expressions until one has the wanted result.
func (w *walk) until(list []expression, current any, wanted bool) (bool, error) {
	for _, e := range list {
		ok, err := w.test(e, current)
		if err != nil || ok == wanted {
			return ok, err
		}
	}
	return !wanted, nil
}

// ask returns the last value that a query finds and the number of values found. It stops after most values; 0 means no limit.
func (w *walk) ask(q *query, current any, most int) (any, int, error) {
	from, n := current, 0
	if q.root {
		from = w.root
	}
	var last any = nothing{}
	err := w.follow(q.segments, from, func(v any) error {
		last = v
		if n++; n == most {
			return errEnough
		}
		return nil
	})
	if err == errEnough { //nolint:errorlint // follow returns errEnough unwrapped
		err = nil
	}
	return last, n, err
}

// value returns the value of an operand.
func (w *walk) value(o operand, current any) (any, error) {
	switch o := o.(type) {
	case literal:
		return o.value, nil
	case *query:
		v, _, err := w.ask(o, current, 1)
		return v, err
	case count:
		_, n, err := w.ask(o.of, current, 0)
		return number(n), err
	case valueOf:
		v, n, err := w.ask(o.of, current, 2)
		if n != 1 {
			return nothing{}, err
		}
		return v, err
	case length:
		v, err := w.value(o.of, current)
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case string:
			return number(utf8.RuneCountInString(x)), w.spend(len(x) / 64)
		case []any:
			return number(len(x)), nil
		case *object:
			return number(len(x.members)), nil
		}
	}
	return nothing{}, nil
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func (w *walk) match(m matching, current any) (bool, error) {
	v, err := w.value(m.text, current)
	text, ok := v.(string)
	if err != nil || !ok {
		return false, err
	}
	if err := w.spend(int(m.pattern.Steps(len(text)) / 64)); err != nil {
		return false, err
	}
	return m.pattern.Match(w.ctx, []byte(text))
}

func (w *walk) compare(c comparison, current any) (bool, error) {
	left, err := w.value(c.left, current)
	if err != nil {
		return false, err
	}
	right, err := w.value(c.right, current)
	if err != nil {
		return false, err
	}
	switch c.operator {
	case "==":
		return w.equal(left, right)
	case "!=":
		same, err := w.equal(left, right)
		return !same, err
	case "<":
		return w.less(left, right)
	case ">":
		return w.less(right, left)
	}
	same, err := w.equal(left, right)
	if same || err != nil {
		return same, err
	}
	if c.operator == "<=" {
		return w.less(left, right)
	}
	return w.less(right, left)
}

// less compares numbers and texts; other values have no order.
func (w *walk) less(a, b any) (bool, error) {
	switch x := a.(type) {
	case json.Number:
		if y, ok := b.(json.Number); ok {
			return order(x, y) < 0, w.spend((len(x) + len(y)) / 64)
		}
	case string:
		if y, ok := b.(string); ok {
			return x < y, w.spend(min(len(x), len(y)) / 64)
		}
	}
	return false, nil
}

// order compares numbers: integers exactly, others as floats.
func order(a, b json.Number) int {
	m, err1 := a.Int64()
	n, err2 := b.Int64()
	if err1 == nil && err2 == nil {
		return compareTwo(m, n)
	}
	x, _ := a.Float64() //nolint:errcheck // an out-of-range number becomes infinite
	y, _ := b.Float64() //nolint:errcheck // an out-of-range number becomes infinite
	return compareTwo(x, y)
}

func compareTwo[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// equal compares values deeply.
func (w *walk) equal(a, b any) (bool, error) {
	if err := w.spend(1); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || order(x, y) == 0), w.spend((len(x) + len(y)) / 64)
	case string:
		y, ok := b.(string)
		return ok && x == y, w.spend(len(x) / 64)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if same, err := w.equal(x[i], y[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *object:
		y, ok := b.(*object)
		if !ok || len(x.members) != len(y.members) {
			return false, nil
		}
		for _, m := range x.members {
			other, has := y.get(m.name)
			if !has {
				return false, nil
			}
			if same, err := w.equal(m.value, other); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	switch b.(type) {
	case []any, *object:
		return false, nil
	}
	return a == b, nil
}
