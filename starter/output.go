package starter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/visible"
)

// write writes text to stdout. After the first error it writes nothing; the program ends with that error.
func (a *app) write(text string) {
	if a.failed != nil {
		return
	}
	if _, err := io.WriteString(a.stdout, text); err != nil {
		a.failed = fmt.Errorf("write output: %w", err)
	}
}

// line writes a line of data to stdout.
func (a *app) line(format string, args ...any) { a.write(fmt.Sprintf(format+"\n", args...)) }

// table writes rows in aligned columns to stdout.
func (a *app) table(rows [][]string) { a.write(tableText(rows)) }

// print is like line, and returns the first error of writing to stdout.
func (a *app) print(format string, args ...any) error {
	a.line(format, args...)
	return a.failed
}

// printTable is like table, and returns the first error of writing to stdout.
func (a *app) printTable(rows [][]string) error {
	a.table(rows)
	return a.failed
}

// printJSON writes v to stdout as JSON on one line.
func (a *app) printJSON(v any) error {
	b, err := jsontext.Encode(v)
	if err != nil {
		return err
	}
	return a.print("%s", b)
}

// exitJSON writes v to stdout as JSON and ends the program with an exit code.
func (a *app) exitJSON(v any, code int) error {
	if err := a.printJSON(v); err != nil {
		return err
	}
	return silent(code)
}

// output writes v as JSON for programs, and calls text for people.
func (a *app) output(v any, text func() error) error {
	if a.json() {
		return a.printJSON(v)
	}
	return text()
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// palette colors text for a terminal and leaves it unchanged elsewhere.
type palette struct{ on bool }

func (p palette) paint(color, s string) string {
	if !p.on {
		return s
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(s)
}

func (p palette) red(s string) string    { return p.paint("1", s) }
func (p palette) green(s string) string  { return p.paint("2", s) }
func (p palette) yellow(s string) string { return p.paint("3", s) }
func (p palette) cyan(s string) string   { return p.paint("6", s) }
func (p palette) dim(s string) string    { return p.paint("8", s) }

func (p palette) bold(s string) string {
	if !p.on {
		return s
	}
	return lipgloss.NewStyle().Bold(true).Render(s)
}

// oneLine puts a text on one line without control characters, so that tool output cannot move the cursor. It cuts the text after limit
// characters; 0 means no limit.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(visible.Map(s, printable)), " ")
	if limit > 0 {
		return clip.Runes(s, limit)
	}
	return s
}

// printable replaces control characters with spaces. It replaces hidden characters with U+FFFD: people must read a text in its real order, and
// two different texts must not look the same.
func printable(r rune, hidden bool) rune {
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return ' '
	case hidden:
		return unicode.ReplacementChar
	}
	return r
}

// safeText removes control characters except line breaks and tabs; see printable.
func safeText(s string) string {
	return visible.Map(s, func(r rune, hidden bool) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r, hidden)
	})
}

// shortDuration formats a duration with about three digits.
func shortDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// indent puts a prefix before each line.
func indent(s, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+prefix)
}

// prettyJSON indents a JSON value. It returns anything else unchanged.
func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return escapedForHTML.Replace(b.String())
}

// escapedForHTML undoes the escapes of &, < and > in JSON, which encoding/json writes for HTML. It skips pairs of backslashes, because what
// follows an escaped backslash is no escape.
var escapedForHTML = strings.NewReplacer(`\\`, `\\`, `\u0026`, "&", `\u003c`, "<", `\u003e`, ">")

// tableText formats rows in aligned columns. The last column is not padded.
func tableText(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// when formats a point in time, with its distance from now: "in 7d (2026-11-29 03:14:47 UTC)".
func when(t, now time.Time) string { return fmt.Sprintf("%s (%s)", fromNow(t, now), moment(t)) }

// fromNow formats the distance of a time from now, rounded, in one unit: "in 7d", "3h ago".
func fromNow(t, now time.Time) string {
	d := t.Sub(now)
	if d < 0 {
		return roughly(-d) + " ago"
	}
	return "in " + roughly(d)
}

// roughly formats a duration in the largest unit of which there are at least one and a half.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", day}, {"h", time.Hour}, {"m", time.Minute}} {
		if 2*d >= 3*unit.length {
			return fmt.Sprintf("%d%s", d.Round(unit.length)/unit.length, unit.name)
		}
	}
	return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
}

// clock formats a point in time briefly: the time alone if it is on the same day as now.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}
