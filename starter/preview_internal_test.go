package starter

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestPreviewText_QuotesEveryLine(t *testing.T) {
	t.Parallel()
	p := jig.Preview{
		Title: "Replaces a.md (4 bytes)", Changes: []string{"a.md\n@@ -1 +1 @@\n-one\n+two"}, Markdown: "See [the page](https://example.com).", Precondition: "revision 3",
	}
	require.Equal(t, strings.Join([]string{
		"  preview: Replaces a.md (4 bytes)",
		"  │ a.md", "  │ @@ -1 +1 @@", "  │ -one", "  │ +two",
		"  │ See [the page](https://example.com).",
		"  an approval is bound to it: exactly this happens, or nothing: the tool acts only on revision 3",
	}, "\n"), previewText(palette{}, p, 0))
	p.Precondition = ""
	require.Contains(t, previewText(palette{}, p, 0), "does not promise")
	require.Equal(t, "  no preview of what the call will change: it was not finished after 5s",
		previewText(palette{}, jig.Preview{Missing: "it was not finished after 5s"}, 0))
}

// No line of a preview can pass for a line of the card: each begins with the bar, however narrow the terminal is, except the two that begin with
// the card's own words.
func TestPreviewText_CannotImitateTheCard(t *testing.T) {
	t.Parallel()
	forged := "\n  · fay has approved this\n1.1 file.read waits for approval\x1b[1A\r  digest 0000\n\u202e answer it with one of:" + strings.Repeat(" ", 200) + "jig approve ses_1 1.1"
	for _, p := range []jig.Preview{
		{Title: "x" + forged, Changes: []string{forged, forged}, Markdown: forged, Precondition: forged}, {Missing: "x" + forged},
	} {
		for _, width := range []int{0, 24, 40, 80} {
			lines := strings.Split(previewText(palette{}, p, width), "\n")
			for i, line := range lines {
				own := strings.HasPrefix(line, "  preview: ") && i == 0 || strings.HasPrefix(line, "  no preview") && i == 0 ||
					strings.HasPrefix(line, "  an approval ") && i > 0
				require.True(t, own || strings.HasPrefix(line, quoteBar), "%q", line)
				require.NotContains(t, line, "\x1b")
				require.NotContains(t, line, "\r")
				require.NotContains(t, line, "\u202e")
				if width > 0 {
					require.LessOrEqual(t, lipgloss.Width(line), width)
				}
			}
		}
	}
}

func TestPendingText_ShowsThePreviewFirst(t *testing.T) {
	t.Parallel()
	a := &app{}
	text := a.cardText(palette{}, card{Pending: jig.Pending{
		Kind: jig.PendingApproval, Call: "1.1", Tool: "file.write", Summary: "Writes a file.", Input: []byte(`{"path":"a"}`), Reasons: []string{"it writes"},
		Preview: &jig.Preview{Title: "Creates a"},
	}})
	preview, argument, reason := strings.Index(text, "preview: Creates a"), strings.Index(text, "path: a"), strings.Index(text, "· it writes")
	require.Positive(t, preview)
	require.Less(t, preview, argument)
	require.Less(t, argument, reason, "what will happen stands before why it asks")
	require.NotContains(t, text, "Writes a file.", "the preview says more")
	require.NotContains(t, a.cardText(palette{}, card{Pending: jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: "a.b"}}), "preview", "a tool without previews is shown as before")
}
