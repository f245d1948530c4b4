package store_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store/storetest"
)

// everything returns an entity type with fields of all storage types.
func everything() entity.Type {
	return entity.Type{Name: "everything", Fields: []entity.Field{
		{Name: "name", Type: entity.FieldText},
		{Name: "amount", Type: entity.FieldNumber},
		{Name: "open", Type: entity.FieldBoolean},
		{Name: "due", Type: entity.FieldDate, Time: true},
		{Name: "stage", Type: entity.FieldEnum, Options: []string{"draft", "review", "done"}},
		{Name: "site", Type: entity.FieldURL},
		{Name: "mail", Type: entity.FieldEmail},
		{Name: "phone", Type: entity.FieldPhone},
		{Name: "file", Type: entity.FieldMedia},
		{Name: "parent", Type: entity.FieldRelation},
		{Name: "friends", Type: entity.FieldRelation, Many: true},
		{Name: "address", Type: entity.FieldObject, Fields: []entity.Field{{Name: "city", Type: entity.FieldText}, {Name: "number", Type: entity.FieldNumber}}},
		{Name: "tags", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldText}},
		{Name: "scores", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldNumber}},
		{Name: "parts", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldObject, Fields: []entity.Field{{Name: "n", Type: entity.FieldNumber}}}},
	}}
}

// domain holds a few JSON values for each field, so that random conditions match now and then.
var domain = map[string][]string{
	"name":   {`""`, `"a"`, `"B"`, `"ab"`, `"Ab"`, `"ä"`, `"a b"`, `"%"`, `"10"`, `"9"`, `"\ud83d\ude00"`, `"\uffff"`},
	"amount": {"0", "-0", "1", "1.0", "1e0", "10", "9", "-3.5", "0.1", "0.10000000000000000001", "9007199254740993", "9007199254740992", "1e300"},
	"open":   {"true", "false"},
	"due": {
		`"2026-01-31"`, `"2026-01-31T00:00:00Z"`, `"2026-01-31T01:00:00+01:00"`, `"2026-01-30T23:30:00-00:30"`, `"2024-02-29"`,
		`"0001-01-01"`, `"0001-01-01T00:00:00+23:59"`, `"9999-12-31T23:59:59.999999999-23:59"`, `"2026-01-31T00:00:00.000001Z"`,
		`"2026-01-31T00:00:00.0000019Z"`, `"1969-12-31T23:59:59.9999999Z"`,
	},
	"stage":          {`"draft"`, `"review"`, `"done"`},
	"site":           {`"https://a.example/x"`, `"https://b.example"`},
	"mail":           {`"a@example.com"`, `"b@example.com"`},
	"phone":          {`"+4912345"`, `"+4954321"`},
	"file":           {`"art_00000000000000000000000000"`, `"https://a.example/f"`},
	"parent":         {`"ent_a"`, `"ent_b"`},
	"friends":        {`["ent_a"]`, `["ent_a","ent_b"]`, `[]`},
	"address":        {`{"city":"x","number":1}`, `{"city":"y"}`, `{}`, `{"number":2,"city":null}`},
	"tags":           {`["a","b"]`, `["b"]`, `[]`},
	"scores":         {`[1,2]`, `[2.0]`, `[]`},
	"parts":          {`[{"n":1},{"n":2}]`, `[{"n":2.0,"x":1}]`},
	"address.city":   {`"x"`, `"y"`},
	"address.number": {"1", "2"},
	"$title":         {`"T1"`, `"t2"`},
}

// odd holds values that fit only some field types.
var odd = []string{
	"null", `"2026-02-30"`, `"2025-02-29"`, `"1900-02-29"`, `"0000-01-01"`, `"2026-01-01T24:00:00Z"`, `"2026-01-01t00:00:00z"`, "1", `"x"`, "[1]", `{"city":[]}`, "true",
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomContent(r *rand.Rand, t entity.Type) json.RawMessage {
	content := map[string]json.RawMessage{}
	for _, f := range t.Fields {
		switch n := r.IntN(10); {
		case n < 7:
			content[f.Name] = json.RawMessage(pick(r, domain[f.Name]))
		case n < 9:
			content[f.Name] = json.RawMessage(pick(r, odd))
		}
	}
	b, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return b
}

func opsOf(field string) []entity.FilterOp {
	equal := []entity.FilterOp{"eq", "neq", "in"}
	ordered := slices.Concat(equal, []entity.FilterOp{"gt", "lt", "gte", "lte"})
	switch field {
	case "open", "stage", "parent":
		return equal
	case "amount", "due", "address.number":
		return ordered
	case "friends", "tags", "scores", "parts", "address":
		return []entity.FilterOp{"contains", "eq", "neq"}
	}
	return append(ordered, "contains")
}

var items = map[string][]string{
	"friends": {`"ent_a"`, `"ent_b"`, `"ent_c"`}, "tags": {`"a"`, `"b"`, `"c"`}, "scores": {"1", "2", "2.00", "3"},
	"parts": {`{"n":1}`, `{"n":2,"x":1}`, `{}`}, "address": {`{"city":"x"}`, `{"number":1.0}`, `{}`, `{"city":null}`},
}

func randomCondition(r *rand.Rand, fields []string) entity.FilterCondition {
	c := entity.FilterCondition{Field: pick(r, fields)}
	c.Op = pick(r, opsOf(c.Field))
	values, list := items[c.Field], items[c.Field] != nil
	switch {
	case list && c.Op == entity.FilterContains:
		c.Value = json.RawMessage(pick(r, values))
	case list || r.IntN(8) == 0 && (c.Op == entity.FilterEq || c.Op == entity.FilterNeq):
		c.Value = json.RawMessage("null")
	case c.Op == entity.FilterIn:
		var some []string
		for range r.IntN(4) {
			some = append(some, pick(r, append(slices.Clone(domain[c.Field]), "null")))
		}
		c.Value = json.RawMessage("[" + strings.Join(some, ",") + "]")
	default:
		c.Value = json.RawMessage(pick(r, domain[c.Field]))
	}
	return c
}

func randomFilter(r *rand.Rand, fields, sortable []string) entity.Filter {
	f := entity.Filter{Limit: 1 + r.IntN(30), Match: pick(r, []entity.FilterMatch{"", entity.MatchAll, entity.MatchAny})}
	for range r.IntN(4) {
		var group []entity.FilterCondition
		for range 1 + r.IntN(3) {
			group = append(group, randomCondition(r, fields))
		}
		switch c := group[0]; r.IntN(3) {
		case 0:
			f.Where = append(f.Where, entity.FilterClause{Field: c.Field, Op: c.Op, Value: c.Value})
		case 1:
			f.Where = append(f.Where, entity.FilterClause{Any: group})
		default:
			f.Where = append(f.Where, entity.FilterClause{All: group})
		}
	}
	for range r.IntN(4) {
		f.Sort = append(f.Sort, entity.FilterSort{Field: pick(r, sortable), Desc: r.IntN(2) == 0})
	}
	return f
}

// The SQL filter finds the same entities as a filter written in Go, in the same order, over all pages.
func TestFilter_MatchesTheGoModel(t *testing.T) {
	t.Parallel()
	w := world{DB: storetest.New(t), tenant: storetest.Tenant(t)}
	r := rand.New(rand.NewPCG(10, 11))
	kind := everything()
	var all []model
	for i := range 150 {
		n := entity.NewEntity{Entity: entity.Entity{Tenant: w.tenant, Type: kind.Name, Content: randomContent(r, kind), Title: pick(r, []string{"T1", "t2", ""})}}
		e, created, err := w.CreateEntity(t.Context(), n)
		require.NoError(t, err)
		require.True(t, created)
		if i%10 == 0 {
			require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 0))
			continue
		}
		all = append(all, modelOf(t, e))
	}
	fields := []string{"address.city", "address.number", "$title"}
	for _, f := range kind.Fields {
		fields = append(fields, f.Name)
	}
	sortable := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return items[f] != nil })
	sortable = append(sortable, "$created_at", "$updated_at", "$id")
	hits := 0
	for range 200 {
		f := randomFilter(r, fields, sortable)
		shown, err := json.Marshal(f)
		require.NoError(t, err)
		want := expected(all, f)
		got := []string{}
		for page := 0; ; page++ {
			found, err := w.FilterEntities(t.Context(), w.tenant, kind, f)
			require.NoError(t, err, string(shown))
			for _, e := range found.Entities {
				got = append(got, e.ID)
			}
			require.LessOrEqual(t, len(found.Entities), f.Limit)
			if f.Cursor = found.Next; f.Cursor == "" {
				break
			}
			require.Less(t, page, len(all), string(shown))
		}
		require.Equal(t, want, got, string(shown))
		hits += len(want)
	}
	require.Greater(t, hits, 500, "the filters find too little")
}

func TestFilter_RefusesWhatDoesNotFitTheType(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	where := func(field, op, value string) entity.Filter {
		return entity.Filter{Where: []entity.FilterClause{{Field: field, Op: entity.FilterOp(op), Value: json.RawMessage(value)}}}
	}
	many := entity.Filter{}
	for range entity.MaxFilterConditions + 1 {
		many.Where = append(many.Where, entity.FilterClause{Field: "name", Op: "eq", Value: []byte(`"x"`)})
	}
	page := entity.Filter{Limit: 1}
	w.record(t, `{"name":"x"}`, nil)
	w.record(t, `{"name":"x"}`, nil)
	first, err := w.FilterEntities(t.Context(), w.tenant, everything(), page)
	require.NoError(t, err)
	stranger := where("name", "eq", `"x"`)
	stranger.Cursor = first.Next
	for _, c := range []struct {
		filter    entity.Filter
		at, wants string
	}{
		{where("amount", "gt", `"5"`), "/where/0/value", "amount gt: want a number, not a text"},
		{where("amount", "eq", `1e999`), "/where/0/value", "amount eq: the number is out of range"},
		{where("amount", "contains", `1`), "/where/0/op", "amount cannot be compared by contains"},
		{where("amount", "gt", `null`), "/where/0/value", "amount gt: null"},
		{where("amount", "in", `1`), "/where/0/value", "amount in: want an array"},
		{where("amount", "in", `[1,"x"]`), "/where/0/value", "amount in: value 1: want a number"},
		{where("name", "eq", `1`), "/where/0/value", "name eq: want a text, not a number"},
		{where("name", "eq", ``), "/where/0/value", "name eq: there is no value"},
		{where("name", "eq", `"\u0000"`), "/where/0/value", "NUL"},
		{where("open", "gt", `true`), "/where/0/op", "open cannot be compared by gt"},
		{where("open", "eq", `"true"`), "/where/0/value", "open eq: want true or false"},
		{where("due", "lt", `"2026-02-30"`), "/where/0/value", "due lt: want a date"},
		{where("due", "lt", `"tomorrow"`), "/where/0/value", `(RFC 3339), not "tomorrow"`},
		{where("stage", "eq", `"gone"`), "/where/0/value", "not one of the options draft, review, done"},
		{where("parent", "gt", `"ent_a"`), "/where/0/op", "parent cannot be compared by gt"},
		{where("friends", "eq", `["ent_a"]`), "/where/0/op", "friends cannot be compared by eq"},
		{where("friends", "contains", `["ent_a"]`), "/where/0/value", "friends contains: want a text"},
		{where("scores", "contains", `"1"`), "/where/0/value", "scores contains: want a number"},
		{where("address", "contains", `"x"`), "/where/0/value", "address contains: want an object"},
		{where("nope", "eq", `1`), "/where/0/field", `no field "nope"`},
		{where("address.nope", "eq", `1`), "/where/0/field", `no field "address.nope"`},
		{where("parts.n", "eq", `1`), "/where/0/field", `no field "parts.n"`},
		{where("name.x", "eq", `1`), "/where/0/field", `no field "name.x"`},
		{where("name", "like", `"x"`), "/where/0/op", `"like" is not an operator`},
		{where("name", "", `"x"`), "/where/0/op", "is not an operator"},
		{entity.Filter{Where: []entity.FilterClause{{}}}, "/where/0", "a clause has"},
		{entity.Filter{Where: []entity.FilterClause{{Field: "name", Any: []entity.FilterCondition{{Field: "name"}}}}}, "/where/0", "a clause has"},
		{entity.Filter{Where: []entity.FilterClause{{Any: []entity.FilterCondition{{Field: "x", Op: "eq"}}}}}, "/where/0/any/0/field", "no field"},
		{entity.Filter{Match: "some"}, "/match", "not a way to match"},
		{entity.Filter{Type: "other"}, "/type", "not for"},
		{entity.Filter{Sort: []entity.FilterSort{{Field: "tags"}}}, "/sort/0/field", "entities cannot be sorted by tags"},
		{entity.Filter{Sort: make([]entity.FilterSort, 6)}, "/sort", "more than 5"},
		{many, "/where", "more than 50"},
		{entity.Filter{Cursor: "!"}, "cursor", "not valid"},
		{stranger, "cursor", "not valid for this list"},
	} {
		_, err := w.FilterEntities(t.Context(), w.tenant, everything(), c.filter)
		requireCode(t, jig.CodeInvalidInput, err)
		require.Equal(t, c.at, jig.AsError(err).Field, c.wants)
		require.Contains(t, err.Error(), c.wants)
	}
	_, err = w.FilterEntities(t.Context(), w.tenant, everything(), entity.Filter{Workspace: "nowhere"})
	requireCode(t, jig.CodeNotFound, err)
}

// Any filter is either refused or answered, and has no other effect.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"name", "' or 1=1 --", `"; drop table entities; --`, "name') or true --", "$1", "address.city", "a\x00b", "\xff", "{a}", "%s"} {
		for _, v := range []string{`"x' or '1'='1"`, `"); drop table entities; --"`, "1", "null", `[null,1,"x"]`, `{"a":{"b":[]}}`, `"\u0000"`, "{", "1e99999", `"\ud800"`, ""} {
			f.Add(s, "eq", v, "")
			f.Add("name", s, v, s)
			f.Add("tags", "contains", v, "")
			f.Add("amount", "in", v, "")
		}
	}
	db, tenant := storetest.New(f), storetest.Tenant(f)
	n := entity.NewEntity{Entity: entity.Entity{Tenant: tenant, Type: "everything", Content: []byte(`{"name":"only"}`)}}
	_, _, err := db.CreateEntity(f.Context(), n)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, field, op, value, cursor string) {
		kind := everything()
		kind.Fields = append(kind.Fields, entity.Field{Name: "evil'\"$1;--", Type: entity.FieldText}, entity.Field{Name: field, Type: entity.FieldText})
		filter := entity.Filter{
			Where: []entity.FilterClause{{Field: field, Op: entity.FilterOp(op), Value: json.RawMessage(value)}}, Cursor: cursor,
			Sort: []entity.FilterSort{{Field: field}, {Field: "evil'\"$1;--", Desc: true}},
		}
		found, err := db.FilterEntities(t.Context(), tenant, kind, filter)
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), "%v", err)
			require.NotContains(t, err.Error(), "the database says 42", "%v", err)
		}
		require.LessOrEqual(t, len(found.Entities), 1)
		left, err := db.FilterEntities(t.Context(), tenant, kind, entity.Filter{})
		require.NoError(t, err)
		require.Len(t, left.Entities, 1)
	})
}
