package starter

import (
	"os"
	"strings"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"github.com/jig-run/jig"
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
		for line := range strings.SplitSeq(text, "\n") {
			for _, piece := range quoted(line, "", width-lipgloss.Width(quoteBar)) {
				lines = append(lines, quoteBar+colored(c, piece, line))
			}
		}
	}
	return strings.Join(append(lines, sentence("an approval is bound to it: "+p.Binding(), c.dim, width)), "\n")
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
