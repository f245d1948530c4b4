package starter

import (
	"os"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// quoteBar begins every line of text on a card that a tool, a model or a document wrote, so that no line can pass for one of the card's own.
const quoteBar = "  │ "

// width returns the width of the terminal that people read, or 0 if there is none.
func (a *app) width() int {
	for _, stream := range []any{a.stderr, a.stdout} {
		if f, ok := stream.(*os.File); ok {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil {
				return width
			}
		}
	}
	return 0
}

// previewText formats what a call will change. Lines that are longer than a terminal of the given width are broken, because their continuation
// would stand without the bar; 0 means that lines are not broken.
func previewText(c palette, p jig.Preview, width int) string {
	if p.Missing != "" {
		return sentence("no preview of what the call will change: "+p.Missing, c.yellow, width)
	}
	lines := []string{sentence("preview: "+p.Title, c.bold, width)}
	for _, text := range append(append([]string{}, p.Changes...), p.Markdown) {
		if text == "" {
			continue
		}
		lines = append(lines, diffLines(c, text, width)...)
	}
	return strings.Join(append(lines, sentence("an approval is bound to it: "+p.Binding(), c.dim, width)), "\n")
}

// comparisonText says whether a call that waits is still what its card shows, and what follows if it is not. voted reports that an approval
// counts already.
func comparisonText(c palette, found protocol.Comparison, voted bool, width int) string {
	switch found.Status {
	case protocol.ComparisonSame:
		return sentence("compared at "+found.At.Local().Format(time.DateTime)+": nothing has changed since this was shown", c.dim, width)
	case protocol.ComparisonUnknown:
		return sentence("not compared with what the call would do now: "+found.Detail, c.yellow, width)
	case protocol.ComparisonContract, protocol.ComparisonPreview:
	}
	what, difference, differs := strings.Cut(found.Detail, "\n")
	lines := []string{sentence(what, c.yellow, width)}
	if differs {
		lines = append(lines, diffLines(c, difference, width)...)
	}
	next := "the first approval will not be taken; the call then asks with what it is now"
	if voted {
		next = "the approvals will be withdrawn when the call is about to run; it then asks with what it is now"
	}
	return strings.Join(append(lines, sentence(next, c.yellow, width)), "\n")
}

// sentence formats a line of the card that contains somebody's text. If it must be broken, its other lines begin with the bar. paint colors it, unless it is nil.
func sentence(text string, paint func(string) string, width int) string {
	if paint == nil {
		paint = func(s string) string { return s }
	}
	pieces := broken(oneLine(text, 0), width-lipgloss.Width(quoteBar))
	for i, piece := range pieces {
		if pieces[i] = quoteBar + paint(piece); i == 0 {
			pieces[i] = "  " + paint(piece)
		}
	}
	return strings.Join(pieces, "\n")
}

// quoted returns the lines of somebody's text, each after a bar and, if width is not 0, at most width wide.
func quoted(text, bar string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(safeText(text), "\t", "    "), "\n") {
		for _, piece := range broken(line, width-lipgloss.Width(bar)) {
			lines = append(lines, bar+piece)
		}
	}
	return lines
}

// diffLines formats a text that may contain a diff, each line behind the bar.
func diffLines(c palette, text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for _, piece := range quoted(line, "", width-lipgloss.Width(quoteBar)) {
			lines = append(lines, quoteBar+colored(c, piece, line))
		}
	}
	return lines
}

// colored colors a piece of a line of a diff.
func colored(c palette, piece, line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return c.green(piece)
	case strings.HasPrefix(line, "-"):
		return c.red(piece)
	}
	return piece
}

// broken breaks a line into pieces that are at most width wide.
func broken(line string, width int) []string {
	if width < 1 || lipgloss.Width(line) <= width {
		return []string{line}
	}
	var pieces []string
	begin, used := 0, 0
	for i, r := range line {
		wide := lipgloss.Width(string(r))
		if used+wide > width {
			pieces, begin, used = append(pieces, line[begin:i]), i, 0
		}
		used += wide
	}
	return append(pieces, line[begin:])
}
