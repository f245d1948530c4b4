package store_test

import (
	"encoding/json"
	"fmt"
	bigmath "math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/entity"
)

// model is an entity as the filter implemented in Go sees it.
type model struct {
	e       entity.Entity
	content map[string]any
}

func modelOf(t *testing.T, e entity.Entity) model {
	t.Helper()
	m := model{e: e}
	m.content = as[map[string]any](parsed(string(e.Content)))
	require.NotNil(t, m.content)
	return m
}

func parsed(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// value returns what a field holds, in a form that compare accepts; nil when it has no value.
func (m model) value(field string) any {
	switch field {
	case "$id":
		return m.e.ID
	case "$title":
		return m.e.Title
	case "$created_at":
		return m.e.CreatedAt
	case "$updated_at":
		return m.e.UpdatedAt
	}
	var v any = m.content
	for part := range strings.SplitSeq(field, ".") {
		v = as[map[string]any](v)[part]
	}
	return asField(field, v)
}

// as returns v as a T, or T's zero value.
func as[T any](v any) T {
	t, _ := v.(T) //nolint:errcheck // a missing value counts as the zero value
	return t
}

func asField(field string, v any) any {
	switch field {
	case "amount", "address.number":
		if n, ok := v.(json.Number); ok {
			rat, ok := new(bigmath.Rat).SetString(n.String())
			if !ok {
				panic(n)
			}
			return rat
		}
		return nil
	case "open":
		if b, ok := v.(bool); ok {
			return b
		}
		return nil
	case "due":
		s := as[string](v)
		for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05Z07:00"} {
			if at, err := time.Parse(layout, s); err == nil && strings.ToUpper(s) == s && at.Year() > 0 {
				return at.UTC().Truncate(time.Microsecond)
			}
		}
		return nil
	case "friends", "tags", "scores", "parts":
		if list, ok := v.([]any); ok {
			return list
		}
		return nil
	case "address":
		if object, ok := v.(map[string]any); ok {
			return object
		}
		return nil
	}
	if s, ok := v.(string); ok {
		return s
	}
	return nil
}

func compare(a, b any) int {
	switch a := a.(type) {
	case *bigmath.Rat:
		return a.Cmp(as[*bigmath.Rat](b))
	case time.Time:
		return a.Compare(as[time.Time](b))
	case bool:
		n := map[bool]int{true: 1}
		return n[a] - n[as[bool](b)]
	case string:
		return strings.Compare(a, as[string](b))
	}
	panic(fmt.Sprintf("%T", a))
}

func holdsPart(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		object, ok := whole.(map[string]any)
		for name, v := range part {
			have, there := object[name]
			ok = ok && there && holdsPart(have, v)
		}
		return ok
	case json.Number:
		n, ok := whole.(json.Number)
		return ok && compare(asField("amount", n), asField("amount", part)) == 0
	}
	switch whole.(type) {
	case map[string]any, []any:
		return false
	}
	return whole == part
}

func (m model) holds(c entity.FilterCondition) bool {
	have, want := m.value(c.Field), parsed(string(c.Value))
	equal := func(v any) bool {
		v = asField(c.Field, v)
		if have == nil || v == nil {
			return have == nil && v == nil
		}
		return compare(have, v) == 0
	}
	switch c.Op {
	case entity.FilterEq:
		return equal(want)
	case entity.FilterNeq:
		if want == nil {
			return have != nil
		}
		return !equal(want)
	case entity.FilterIn:
		return slices.ContainsFunc(as[[]any](want), equal)
	case entity.FilterContains, entity.FilterGt, entity.FilterLt, entity.FilterGte, entity.FilterLte:
	}
	if have == nil {
		return false
	}
	if c.Op == entity.FilterContains {
		switch have := have.(type) {
		case []any:
			return slices.ContainsFunc(have, func(item any) bool { return holdsPart(item, want) })
		case map[string]any:
			return holdsPart(have, want)
		case string:
			return strings.Contains(asciiLower(have), asciiLower(as[string](want)))
		}
	}
	n := compare(have, asField(c.Field, want))
	return c.Op == entity.FilterGt && n > 0 || c.Op == entity.FilterLt && n < 0 || c.Op == entity.FilterGte && n >= 0 || c.Op == entity.FilterLte && n <= 0
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func (m model) passes(f entity.Filter) bool {
	if len(f.Where) == 0 {
		return true
	}
	clause := func(c entity.FilterClause) bool {
		switch {
		case len(c.Any) > 0:
			return slices.ContainsFunc(c.Any, m.holds)
		case len(c.All) > 0:
			return !slices.ContainsFunc(c.All, func(c entity.FilterCondition) bool { return !m.holds(c) })
		}
		return m.holds(entity.FilterCondition{Field: c.Field, Op: c.Op, Value: c.Value})
	}
	if f.Match == entity.MatchAny {
		return slices.ContainsFunc(f.Where, clause)
	}
	return !slices.ContainsFunc(f.Where, func(c entity.FilterClause) bool { return !clause(c) })
}

func expected(all []model, f entity.Filter) []string {
	var found []model
	for _, m := range all {
		if m.passes(f) {
			found = append(found, m)
		}
	}
	keys := f.Sort
	if len(keys) == 0 {
		keys = []entity.FilterSort{{Field: "$created_at"}}
	}
	slices.SortFunc(found, func(a, b model) int {
		for _, key := range keys {
			x, y := a.value(key.Field), b.value(key.Field)
			switch {
			case x == nil && y == nil:
				continue
			case x == nil:
				return 1
			case y == nil:
				return -1
			}
			if n := compare(x, y); n != 0 && key.Desc {
				return -n
			} else if n != 0 {
				return n
			}
		}
		return strings.Compare(a.e.ID, b.e.ID)
	})
	ids := make([]string, len(found))
	for i, m := range found {
		ids[i] = m.e.ID
	}
	return ids
}
