package preview_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/preview"
)

func TestClean_KeepsWhatIsHarmless(t *testing.T) {
	t.Parallel()
	p := jig.Preview{
		Title: "Publishes “Team” · 👩‍💻", Changes: []string{"title: a → b", "body\n@@ -1 +1 @@\n-x\n+y"}, Markdown: "# Team\n\n- [link](https://example.com)",
		Precondition: "revision 3",
	}
	got, err := preview.Clean(p)
	require.NoError(t, err)
	require.Equal(t, p, got)
	again, err := preview.Clean(got)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

func TestClean_RemovesWhatPeopleCannotSee(t *testing.T) {
	t.Parallel()
	got, err := preview.Clean(jig.Preview{
		Title: "Pays\x1b[2J\nana\u202eevil \u200bnow\x00", Changes: []string{"a\rb\r\nc\td\u2028e\u0085f", "", "\u2066x\xff"},
		Markdown: "![pixel](https://evil.example/x.png) <img src=x> ![a][b]\n\n[b]: https://evil.example",
	})
	require.NoError(t, err)
	require.Equal(t, "Pays\ufffd[2J ana\ufffdevil \ufffdnow\ufffd", got.Title)
	require.Equal(t, []string{"a\ufffdb\nc    d\ufffde\ufffdf", "\ufffdx\ufffd"}, got.Changes)
	require.Equal(t, "!\\[pixel](https://evil.example/x.png) \\<img src=x> !\\[a][b]\n\n[b]: https://evil.example", got.Markdown)
}

func TestClean_Bounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<20)
	p := jig.Preview{Title: long, Markdown: long, Changes: slices.Repeat([]string{long[:1<<16], "short"}, 200)}
	got, err := preview.Clean(p)
	require.NoError(t, err)
	require.Less(t, len(got.Title)+len(got.Markdown)+len(strings.Join(got.Changes, "")), preview.MaxBytes)
	require.Contains(t, got.Changes[len(got.Changes)-1], "SHA-256")
	other := p
	other.Changes = slices.Clone(p.Changes)
	other.Changes[len(other.Changes)-1] = "something else"
	differs, err := preview.Clean(other)
	require.NoError(t, err)
	require.NotEqual(t, got, differs, "what does not fit is bound too")
	other.Changes, other.Markdown = p.Changes, long+"x"
	differs, err = preview.Clean(other)
	require.NoError(t, err)
	require.NotEqual(t, got.Markdown, differs.Markdown)
	many, err := preview.Clean(jig.Preview{Title: "x", Changes: slices.Repeat([]string{"y"}, 10_000)})
	require.NoError(t, err)
	require.Len(t, many.Changes, preview.MaxChanges+1)
}

func TestClean_Refuses(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]jig.Preview{
		"no title":                   {Changes: []string{"x"}},
		"a title of white space":     {Title: " \n\t"},
		"a precondition of lines":    {Title: "x", Precondition: "a\nb"},
		"a precondition that is cut": {Title: "x", Precondition: strings.Repeat("a", preview.MaxPrecondition+1)},
		"an invisible precondition":  {Title: "x", Precondition: "a\u200b"},
	} {
		_, err := preview.Clean(p)
		require.Equal(t, jig.CodeInvalidOutput, jig.CodeOf(err), name)
	}
	got, err := preview.Clean(jig.Preview{Title: "x", Missing: "no\x07 database"})
	require.NoError(t, err)
	require.Equal(t, jig.Preview{Missing: "no\ufffd database"}, got)
}

func FuzzClean(f *testing.F) {
	f.Add("title", "a\nb", "![x](y)")
	f.Add("\x1b[0m", "\u202e", "<b>")
	f.Fuzz(func(t *testing.T, title, change, markdown string) {
		p, err := preview.Clean(jig.Preview{Title: title, Changes: []string{change}, Markdown: markdown})
		if err != nil {
			return
		}
		all := p.Title + strings.Join(p.Changes, "") + p.Markdown
		require.LessOrEqual(t, len(all), preview.MaxBytes)
		require.NotContains(t, p.Title, "\n")
		for _, r := range all {
			require.True(t, r == '\n' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r), "%q", r)
		}
		require.NotContains(t, p.Markdown, "![")
		encoded, err := json.Marshal(p)
		require.NoError(t, err)
		var decoded jig.Preview
		require.NoError(t, json.Unmarshal(encoded, &decoded))
		require.Equal(t, p, decoded, "it is stored as JSON and compared")
	})
}

func TestFit_StaysWithinTheBounds(t *testing.T) {
	t.Parallel()
	p := jig.Preview{Title: "x", Changes: []string{"12345", "67890", "more"}, Markdown: "words"}
	for n, want := range map[int]jig.Preview{
		100: p,
		16:  {Title: "x", Changes: p.Changes, Markdown: ""},
		8:   {Title: "x", Changes: []string{"12345", "… and 1 more"}},
		0:   {Title: "x", Changes: []string{"… and 2 more"}},
	} {
		got, cut := preview.Fit(p, n)
		require.Equal(t, want, got, n)
		require.Equal(t, n != 100, cut)
	}
}

func TestDiff_ShowsWhatChanges(t *testing.T) {
	t.Parallel()
	require.Empty(t, preview.Diff("a", "x\n", "x\n"))
	require.Equal(t, "a.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three", preview.Diff("a.md", "one\ntwo\nthree\n", "one\n2\nthree\n"))
	require.Equal(t, "a\n@@ -0,0 +1 @@\n+x", preview.Diff("a", "", "x"))
	require.Contains(t, preview.Diff("a", "x", "x\n"), "last line break")
	large := strings.Repeat("x\n", 600_000)
	require.Contains(t, preview.Diff("a", large, large+"y"), "bytes (SHA-256")
	require.Less(t, len(preview.Diff("a", large, "")), 300)
	require.Equal(t, "a\n+x\n+y", preview.All("a", "+", "x\ny\n"))
	require.Equal(t, "a (empty)", preview.All("a", "+", ""))
	require.Equal(t, "a\ufffd-x\n+y", preview.All("a\n-x", "+", "y"), "a name is one line")
	require.Equal(t, "a\ufffd-x\n@@ -0,0 +1 @@\n+y", preview.Diff("a\n-x", "", "y"))
}
