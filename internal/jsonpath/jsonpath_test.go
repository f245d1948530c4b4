package jsonpath_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/jsonpath"
)

const store = `{"store": {"book": [
  {"category": "reference", "author": "Nigel Rees", "title": "Sayings", "price": 8.95},
  {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword", "price": 12.99, "tags": ["a", "b"]},
  {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553", "price": 8.99},
  {"category": "fiction", "author": "J. R. R. Tolkien", "title": "Rings", "isbn": "0-395", "price": 22.990, "tags": []}],
 "bicycle": {"colour <red>": "rot", "price": 399}}, "limit": 10, "odd\"key": null, "é": true}`

// selected runs a path over JSON and joins the results with spaces.
func selected(t testing.TB, path, document string) string {
	t.Helper()
	found, err := tried(t.Context(), path, document)
	require.NoError(t, err, path)
	return strings.Join(found, " ")
}

func tried(ctx context.Context, path, document string) ([]string, error) {
	p, err := jsonpath.Parse(path)
	if err != nil {
		return nil, err
	}
	var found []string
	err = p.Select(ctx, strings.NewReader(document), 1_000, func(text string) bool {
		found = append(found, text)
		return len(found) < 1_000
	})
	return found, err
}

func TestSelect_FindsTheValues(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"$.limit", "10"},
		{"limit", "10"},
		{"['limit']", "10"},
		{".limit", "10"},
		{`$["odd\"key"]`, "null"},
		{"$.é", "true"},
		{`$['\u00e9']`, "true"},
		{"$.store.book[0].author", `"Nigel Rees"`},
		{"store.book[*].price", "8.95 12.99 8.99 22.990"},
		{"$.store.bicycle.*", `"rot" 399`},
		{"$.store.book[-1].title", `"Rings"`},
		{"$.store.book[9]", ""},
		{"$.store.book.x", ""},
		{"$.limit[0]", ""},
		{"$.limit.*", ""},
		{"$.store.bicycle", `{"colour <red>":"rot","price":399}`},
		{"$.store.book[1].tags", `["a","b"]`},
		{"$..price", "8.95 12.99 8.99 22.990 399"},
		{"$..book[2].title", `"Moby Dick"`},
		{"$.store..tags[0]", `"a"`},
		{"$..['isbn','limit']", `10 "0-553" "0-395"`},
		{"$.store.book[0:2].title", `"Sayings" "Sword"`},
		{"$.store.book[::-2].title", `"Rings" "Sword"`},
		{"$.store.book[1,0].title", `"Sword" "Sayings"`},
		{"$.store.book[-2:].title", `"Moby Dick" "Rings"`},
		{"$.store.book[3:1:-1].title", `"Rings" "Moby Dick"`},
		{"$.store.book[::0].title", ""},
		{"$.store.book[?(@.isbn)].title", `"Moby Dick" "Rings"`},
		{"$.store.book[?!@.isbn].title", `"Sayings" "Sword"`},
		{"$.store.book[?(@.price < 10)].title", `"Sayings" "Moby Dick"`},
		{"$.store.book[?(@.price >= $.limit && @.isbn)].title", `"Rings"`},
		{"$..book[?(@.price == 22.99 || @.title == 'Sword')].title", `"Sword" "Rings"`},
		{"$..book[?(@.price != 22.99 && !(@.price < 10))].title", `"Sword"`},
		{"$..book[?(@.author =~ /^.*el/)].title", `"Sayings" "Sword" "Moby Dick"`},
		{"$..book[?search(@.author, 'R\\\\. R')].title", `"Rings"`},
		{"$..book[?match(@.author, 'R. R')].title", ""},
		{"$..book[?(@.title in ['Sword', \"Rings\"])].price", "12.99 22.990"},
		{"$..book[?length(@.title) == 5].title", `"Sword" "Rings"`},
		{"$..book[?count(@.*) > 4].title", `"Sword" "Moby Dick" "Rings"`},
		{"$..book[?value(@..tags[0]) == 'a'].title", `"Sword"`},
		{"$..book[?length(@.tags) == 0].title", `"Rings"`},
		{"$..book[?@.tags == @.tags].title", `"Sayings" "Sword" "Moby Dick" "Rings"`},
		{"$..book[?@.category > 'fiction'].title", `"Sayings"`},
		{"$..book[?@.nothing == null].title", ""},
		{"$[?@ == null]", "null"},
		{"$[?@ == true]", "true"},
		{"$[?@ <= 10]", "10"},
	} {
		require.Equal(t, c[1], selected(t, c[0], store), c[0])
	}
	require.Equal(t, "7", selected(t, "$[17]", "["+numbers(17)+",7]"))
	require.Equal(t, "2", selected(t, "$[?(@.a == 9007199254740993)].b", `[{"a":9007199254740992,"b":1},{"a":9007199254740993,"b":2}]`), "large integers are told apart")
	require.Equal(t, "2", selected(t, "$..a", `[{"a":1,"a":2}]`), "the last of two members with the same name counts")
	require.Equal(t, "19", selected(t, "$[?@ == 19]", `{`+members(20)+`}`), "large objects")
	require.Equal(t, "19", selected(t, "$[?@.m19].m19", `[{`+members(20)+`}]`))
}

func numbers(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }

func members(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"m%d":%d`, i, i)
	}
	return strings.Join(list, ",")
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": "ends where a name", "$.": "ends where a name", "$..": "ends where a name", "$[": "ends within [", "$[1": `where "]" is wanted`, "$['a": "does not end", "$.a b": `unexpected ' '`,
		"$[a]": "want a name in quotes", "$[1.5]": `want "]"`, "$[99999999999999999999]": "not an integer", "$[?]": "want @", "$[?@.a ==]": "want @", "$[?@..a == 1]": "a single value", "$[?@.a =~ b]": "regular expression",
		"$[?@.a =~ /(/]": "not a regular expression", "$[?@.a =~ /a": "no closing /", "$[?1]": "want one of ==", "$[?(@.a]": `want ")"`, `$['\x']`: "an escape that JSON does not know", `$['\"']`: "not an escape", `$['\ud800']`: "surrogate", `$['\u12']`: "an escape that JSON does not know",
		"@.a": "want a name", "$[?!@.a == 1]": "parentheses", "$[?count(1) > 2]": "want a path", "$[?@.a in 1]": `want "["`, "$[?@.a == 1.]": "not a number", "$[?tru]": "want @", "(": "want a name",
		"$[?match(@.a, 'x{1000}{1000}')]": "regular expression", "$[?search(@.a, '(a{30}){30}(a{30}){33}(a{30}){33}')]": "too large",
	} {
		_, err := jsonpath.Parse(path)
		require.ErrorContains(t, err, want, path)
	}
}

// deep returns nested lists.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// attacks are queries that take unbounded memory or time if the results of each step are collected.
func attacks() map[string][2]string {
	wide := "[" + strings.TrimSuffix(strings.Repeat("[1,2,3,4,5,6,7,8,9],", 200), ",") + "]"
	return map[string][2]string{
		"descents and stars":        {"$..*..*..*..*..*..*", deep(60)},
		"four descents, deeper":     {"$..*..*..*..*", deep(400)},
		"only descents":             {"$" + strings.Repeat("..[*]", 12), deep(80)},
		"many selectors":            {"$" + strings.Repeat("[*,*,*,*,*,*,*,*]", 40), deep(60)},
		"descents in a filter":      {"$..[?count(@..*..*..*) > 3]", deep(100)},
		"filters in filters":        {"$..[?@..[?@..[?@..[?@..[?@..x]]]]]", deep(60)},
		"the root from everywhere":  {"$..[?count($..*..*) == 1]", wide},
		"deep values compared":      {"$..[?$ == @]", wide},
		"deep values written":       {"$..*", deep(400)},
		"regular expression":        {"$..[?@ =~ /(a?){400}z/]", `["` + strings.Repeat("a", 200_000) + `"]`},
		"long numbers":              {"$..[?@ == 1" + strings.Repeat("0", 2_000) + "]", "[" + strings.TrimSuffix(strings.Repeat(strings.Repeat("9", 5_000)+",", 100), ",") + "]"},
		"alternatives, never ended": {"$" + strings.Repeat("..[?@ || @]", 10), deep(100)},
	}
}

// Walking an attack costs steps, but no memory that grows with the number of results.
func TestSelect_IsBoundedUnderAttack(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	for name, c := range attacks() {
		costtest.AtMost(t, 64<<20, func() {
			p, err := jsonpath.Parse(c[0])
			require.NoError(t, err, name)
			n := 0
			err = p.Select(t.Context(), strings.NewReader(c[1]), 1_000, func(string) bool { n++; return true })
			var limit *jsonpath.LimitError
			if err != nil {
				require.ErrorAs(t, err, &limit, name)
				require.False(t, limit.OfDocument, name)
			}
			require.LessOrEqual(t, n, jsonpath.MaxSteps)
		})
	}
}

func TestSelect_CountsTheValuesItVisits(t *testing.T) {
	t.Parallel()
	_, err := tried(t.Context(), "$..*..*..*..*..x", deep(200))
	var limit *jsonpath.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "visits more than 5000000 values")
}

func TestSelect_BoundsTheDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"deep, read as it streams": {"$[0]", strings.Repeat("[", 100_000)},
		"deep, held":               {"$..a", strings.Repeat("[", 100_000)},
		"many values":              {"$..a", "[" + numbers(jsonpath.MaxValues) + "]"},
	} {
		_, err := tried(t.Context(), c[0], c[1])
		var limit *jsonpath.LimitError
		require.ErrorAs(t, err, &limit, name)
		require.True(t, limit.OfDocument, name)
	}
	require.Equal(t, "1", selected(t, "$[1000000]", "["+numbers(jsonpath.MaxValues+1)+"]"), "streamed values are not kept")
	_, err := jsonpath.Parse(strings.Repeat("[0]", 2_000))
	require.ErrorContains(t, err, "at most 4000")
	_, err = jsonpath.Parse("$[?" + strings.Repeat("(", 100))
	require.ErrorContains(t, err, "more than 20 levels")
	_, err = jsonpath.Parse("$[?" + strings.Repeat("!", 1_000))
	require.ErrorContains(t, err, "more than 20 levels")
	_, err = jsonpath.Parse(strings.Repeat("$[?@", 1_000))
	require.Error(t, err)
	_, err = jsonpath.Parse("$[?" + strings.Repeat("length(", 500))
	require.ErrorContains(t, err, "more than 20 levels")
}

// ending is a context that ends after it has been checked a number of times.
type ending struct {
	context.Context //nolint:containedctx // this type is itself a context
	looks, most     int
}

func (e *ending) Err() error {
	if e.looks++; e.looks > e.most {
		return context.DeadlineExceeded
	}
	return nil
}

func TestSelect_StopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"$..*..*..*..x", deep(400)},
		{"$[*].x", "[" + numbers(100_000) + "]"},
		{"$..x", "[" + numbers(100_000) + "]"},
		{"$[?@ =~ /(a?){400}z/]", `["` + strings.Repeat("a", 100_000) + `"]`},
	} {
		ctx := &ending{Context: t.Context(), most: 2}
		_, err := tried(ctx, c[0], c[1])
		require.ErrorIs(t, err, context.DeadlineExceeded, c[0])
		require.LessOrEqual(t, ctx.looks, 10, "%s: it must stop", c[0])
	}
}

func TestSelect_CutsLongValues(t *testing.T) { //nolint:paralleltest // parallel tests would distort the measurement
	long := `[["` + strings.Repeat("é", 100_000) + `", 1]]`
	for _, path := range []string{"$[0][0]", "$[0]", "$..*", "$[0:1]"} {
		for _, text := range strings.Split(selected(t, path, long), " ") {
			require.LessOrEqual(t, len(text), 1_000, path)
		}
	}
	nested := strings.Repeat("[", 500) + numbers(100_000) + strings.Repeat("]", 500)
	costtest.AtMost(t, 64<<20, func() { selected(t, "$..[0]", nested) })
}

func TestSelect_RefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"", "plain", `{"a":`, `[1,2`, `[1] [2]`, `{"a":1}x`} {
		for _, path := range []string{"$.a", "$..a", "$[9]"} {
			_, err := tried(t.Context(), path, document)
			require.Error(t, err, "%s of %s", path, document)
			require.False(t, errors.As(err, new(*jsonpath.LimitError))) //nolint:testifylint // any other error is right
		}
	}
}

// For any path and any document, a query stays within its limits, and the values that it finds are JSON.
func FuzzSelect(f *testing.F) {
	for _, c := range attacks() {
		f.Add(c[0], c[1])
	}
	f.Add("$..book[?(@.price < 10 && @.title =~ /a+/)]['title', 0, 1:2]", store)
	f.Add("store.book[*].tags", store)
	f.Fuzz(func(t *testing.T, path, document string) {
		costtest.AtMost(t, 128<<20, func() {
			p, err := jsonpath.Parse(path)
			if err != nil {
				return
			}
			n := 0
			_ = p.Select(t.Context(), strings.NewReader(document), 1<<20, func(text string) bool { //nolint:errcheck // an error is allowed here
				require.True(t, json.Valid([]byte(text)) || len(text) == 1<<20, text)
				n++
				return n < 10_000
			})
		})
	})
}
