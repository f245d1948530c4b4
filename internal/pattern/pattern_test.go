package pattern_test

import (
	"context"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/costtest"
	"github.com/jig-run/jig/internal/pattern"
)

// mostMemory is the maximum that compiling one expression may allocate.
const mostMemory = 32 << 20

// attacks returns expressions that would take seconds or many megabytes to compile or to match.
func attacks() map[string]string {
	return map[string]string{
		"repeated optionals":     strings.Repeat("(a?){1000}", 90) + "z",
		"repeated letters":       strings.Repeat("x{1000}", 140),
		"repeated classes":       strings.Repeat(`\pL{1000}`, 110),
		"repeats of repeats":     "((((x{9}){9}){9}){9})",
		"nested groups":          strings.Repeat("(", 400) + strings.Repeat("){2}", 9) + strings.Repeat(")", 391),
		"ranges without case":    "(?i)" + strings.Repeat("[b-𞥂]", 120),
		"escaped without case":   "(?i)" + strings.Repeat(`[b-\x{1e942}]`, 70),
		"one class without case": "(?mi)[" + strings.Repeat("b-𞥂", 150) + "]",
		"late flag":              "(?s)(?:a(?i:" + strings.Repeat("[b-𞥂]", 100) + "))",
		"too long":               strings.Repeat("a", 1_001),
	}
}

func TestCompile_RefusesExpensiveExpressions(t *testing.T) { //nolint:paralleltest // it measures memory
	for name, source := range attacks() {
		costtest.AtMost(t, 4<<20, func() {
			_, err := pattern.Compile(source)
			require.Error(t, err, name)
			require.Less(t, len(err.Error()), 1_500, name)
		})
	}
}

func TestCompile_AcceptsOrdinaryExpressions(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"", "a", `^\d{4}-\d{2}-\d{2}$`, "^.{1,1000}$", `^[\p{L}\p{N} _-]+$`, "(?i)error|warning|[a-z]+", "(?i)[а-яё]+", "(?i)[一-龥]",
		`(?P<flags>i)`, "a{1000}", "(?i-s:a-b-c)", `\x{1F600}-x`, "x*", "[^a]|b+?",
	} {
		p, err := pattern.Compile(source)
		require.NoError(t, err, source)
		require.Equal(t, source, p.String())
	}
	_, err := pattern.Compile("(")
	require.ErrorContains(t, err, "not a regular expression")
}

// The size bounds the engine's work for each byte, so it must never be smaller than the compiled program.
func TestSize_IsNeverLessThanTheProgram(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"", "abc", "a|b|c", "a*", "(a*)*", "(|a)*", "(a{2,5}b?){3,}", "x{0}", "x{0,0}y", "(a)(b)(c)", "(?i)straße", "[a-z]{0,40}", "a{3,}", "(a?){100}", "^$", `\b\B`,
	} {
		requireSize(t, source)
	}
}

func requireSize(t *testing.T, source string) {
	t.Helper()
	p, err := pattern.Compile(source)
	require.NoError(t, err, source)
	parsed, err := syntax.Parse(source, syntax.Perl)
	require.NoError(t, err)
	program, err := syntax.Compile(parsed.Simplify())
	require.NoError(t, err)
	require.GreaterOrEqual(t, p.Size(), len(program.Inst), source)
}

func TestMatch_FindsTheText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		source, text string
		want         bool
	}{
		{"b", "abc", true}, {"^b", "abc", false}, {"^a+$", long, true}, {"^a+b", long, false}, {"(a|b)*c$", long + "c", true}, {"é$", long + "é", true},
	} {
		p, err := pattern.Compile(c.source)
		require.NoError(t, err)
		got, err := p.Match(t.Context(), []byte(c.text))
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.source)
		require.Equal(t, c.want, p.MatchString(c.text), c.source)
	}
}

// ending is a context that ends after its error was checked a given number of times.
type ending struct {
	context.Context //nolint:containedctx // it is a context itself
	looks, most     int
}

func (e *ending) Err() error {
	if e.looks++; e.looks > e.most {
		return context.DeadlineExceeded
	}
	return nil
}

func TestMatch_StopsAtTheDeadline(t *testing.T) {
	t.Parallel()
	p, err := pattern.Compile("(a?){500}z")
	require.NoError(t, err)
	ctx := &ending{Context: t.Context(), most: 3}
	_, err = p.Match(ctx, []byte(strings.Repeat("a", 64<<10)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.LessOrEqual(t, ctx.looks, 5, "it must stop")
	_, err = p.Match(&ending{Context: t.Context()}, []byte("a"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// One expression is cheap enough; hundreds of them in one document are not.
func TestSet_BoundsTheExpressionsOfADocumentTogether(t *testing.T) { //nolint:paralleltest // it measures memory
	for name, source := range map[string]string{
		"large":               "(x{400}){6}",
		"ranges without case": "(?i)[b-𞥂]",
		"classes":             strings.Repeat(`\pL`, 300),
		"wrong":               strings.Repeat("a", 990) + "(",
		"small":               "a",
	} {
		var err error
		n := 0
		costtest.AtMost(t, 128<<20, func() {
			for set := (&pattern.Set{}); n < 100_000; n++ {
				if _, err = set.Compile(source); err != nil && strings.Contains(err.Error(), "together") {
					break
				}
			}
		})
		require.ErrorContains(t, err, "too large together", name)
		require.Greater(t, n, 0, name) //nolint:testifylint // only the code matters
	}
}

func FuzzCompile(f *testing.F) {
	for _, source := range attacks() {
		f.Add(source, "aaa")
	}
	f.Add("(a|b)*[^c]{2,3}", "abab")
	f.Fuzz(func(t *testing.T, source, text string) {
		costtest.AtMost(t, mostMemory, func() {
			p, err := pattern.Compile(source)
			if err != nil {
				return
			}
			requireSize(t, source)
			plain := regexp.MustCompile(source)
			found, err := p.Match(t.Context(), []byte(text))
			require.NoError(t, err)
			require.Equal(t, plain.MatchString(text), found)
		})
	})
}

func TestGlob_MatchesWholePaths(t *testing.T) {
	t.Parallel()
	for glob, paths := range map[string]struct{ yes, no string }{
		"*.go":         {"a.go .go", "a/b.go a.god"},
		"**":           {"a a/b a/b/c", ""},
		"**/*.go":      {"a.go a/b.go a/b/c.go", "a.md"},
		"a/**":         {"a a/b a/b/c", "b ab"},
		"a/**/b":       {"a/b a/x/b a/x/y/b", "a/bb ab"},
		"a**b":         {"ab axb", "a/b"},
		"?":            {"a é", "ab /"},
		"[a-c]x":       {"ax cx", "dx x"},
		"[^a-c]x":      {"dx", "ax /x"},
		"[!a]":         {"b", "a"},
		"[]":           {"", ""},
		`[\]]`:         {"]", "a"},
		"{a,b/c}.go":   {"a.go b/c.go", "b.go"},
		"{a,{b,c}d}":   {"a bd cd", "b"},
		"{a,}b":        {"ab b", "a"},
		"a,b":          {"a,b", "a"},
		`\*`:           {"*", "a"},
		"a.b+c":        {"a.b+c", "aXbbc"},
		"}":            {"}", ""},
		"{":            {"", ""},
		"[a":           {"", ""},
		`a\`:           {"", ""},
		"[a-]":         {"a -", "b"},
		"src/**/t/*.x": {"src/t/a.x src/a/b/t/c.x", "src/a.x"},
	} {
		p, err := pattern.Glob(glob)
		if paths.yes == "" && paths.no == "" {
			require.Error(t, err, glob)
			continue
		}
		require.NoError(t, err, glob)
		for _, path := range strings.Fields(paths.yes) {
			require.True(t, matches(t, p, path), "%s %s", glob, path)
		}
		for _, path := range strings.Fields(paths.no) {
			require.False(t, matches(t, p, path), "%s %s", glob, path)
		}
	}
}

func matches(t *testing.T, p *pattern.Pattern, path string) bool {
	t.Helper()
	found, err := p.Match(t.Context(), []byte(path))
	require.NoError(t, err)
	return found
}

// Trying the alternatives of this glob one after another would take 2^100 tries.
func TestGlob_AlternativesAreMatchedTogether(t *testing.T) { //nolint:paralleltest // it measures memory
	p, err := pattern.Glob(strings.Repeat("{a,a}", 100) + "b")
	require.NoError(t, err)
	costtest.AtMost(t, 1<<20, func() { require.False(t, matches(t, p, strings.Repeat("a", 200))) })
	_, err = pattern.Glob(strings.Repeat("{[a-z],*}", 111))
	require.NoError(t, err)
	_, err = pattern.Glob(strings.Repeat("a", 1_001))
	require.ErrorContains(t, err, "at most 1000")
}

func FuzzGlob(f *testing.F) {
	f.Add(strings.Repeat("{a,a}", 100)+"b", strings.Repeat("a", 200))
	f.Add("**/{*,**/}*{a,{b,c}}[!x-z]", "a/b/c")
	f.Add(`[\]-a]\`, "]")
	f.Fuzz(func(t *testing.T, glob, path string) {
		costtest.AtMost(t, mostMemory, func() {
			p, err := pattern.Glob(glob)
			if err != nil {
				return
			}
			matches(t, p, path)
		})
	})
}
