package starter

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
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

// shortPreview leaves out what exceeds so many lines of the texts of a preview that have several lines. left is how many lines that are.
func shortPreview(p jig.Preview, most int) (short jig.Preview, left int) {
	fit := func(text string) string {
		lines := strings.Split(text, "\n")
		if len(lines) == 1 {
			return text
		}
		n := min(len(lines), max(most, 0)+1) // the first line is a heading
		most, left = most-n+1, left+len(lines)-n
		return strings.Join(lines[:n], "\n")
	}
	short = p
	short.Changes = make([]string, len(p.Changes))
	for i, change := range p.Changes {
		short.Changes[i] = fit(change)
	}
	short.Markdown = fit(p.Markdown)
	return short, left
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

// inputBar begins every line of a call's arguments but the first of each argument, so that no argument can pass for another one or for a line
// of the card.
const inputBar = "  " + quoteBar

// inputText formats the arguments of a call for people: one field per line, with multi-line strings as they are. Lines are broken to fit a
// terminal of the given width; 0 means that they are not.
func inputText(p jig.Pending, width int) string {
	var text string
	var lines []string
	if json.Unmarshal(p.Input, &text) == nil { // the shortened form of an input that is not an object or has very many fields
		lines = quoted(strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(text), inputBar, width)
	} else {
		lines = fieldLines(p.Input, width)
	}
	if p.Truncated {
		lines = append(lines, "    (shortened at …; the digest covers the full text, and `approvals show` prints it)")
	}
	return strings.Join(lines, "\n")
}

func fieldLines(raw json.RawMessage, width int) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return quoted(prettyJSON(raw), inputBar, width)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fieldText(fields[name])
		if strings.Contains(value, "\n") {
			lines = append(append(lines, "    "+fieldName(name)+":"), quoted(value, inputBar, width)...)
			continue
		}
		pieces := quoted(fieldName(name)+": "+value, inputBar, width)
		pieces[0] = "    " + strings.TrimPrefix(pieces[0], inputBar)
		lines = append(lines, pieces...)
	}
	return lines
}

// fieldName returns the name of a field, as JSON if it could pass for more than a name.
func fieldName(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.$", r)
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		return jsonText(name)
	}
	return name
}

// fieldText returns the value of a field: a string without quotes, unless it could pass for another value then, and anything else as JSON.
func fieldText(raw json.RawMessage) string {
	var s string
	switch {
	case json.Unmarshal(raw, &s) != nil:
		return prettyJSON(raw)
	case json.Valid([]byte(s)), strings.TrimSpace(s) != s && !strings.Contains(s, "\n"), s == "":
		return jsonText(s)
	}
	return s
}

func jsonText(s string) string {
	b, err := jsontext.Encode(s)
	if err != nil { // texts can always be encoded
		return s
	}
	return string(b)
}
