// Package preview bounds the previews that tools compute, makes their texts harmless to show, and writes diffs for them. It must not know
// how previews are computed or where they are shown.
package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/clip"
	"github.com/jig-run/jig/internal/visible"
)

// The bounds of a preview, in bytes or entries. A longer text is cut and its size and hash are added, so that an approval is bound to the
// whole text.
const (
	MaxTitle        = 200
	MaxPrecondition = 200
	MaxChanges      = 200
	MaxChange       = 16 << 10
	MaxMarkdown     = 8 << 10
	// MaxBytes bounds all texts of a preview together.
	MaxBytes = 32 << 10
)

// Missing returns the preview of a call that has none, with the reason.
func Missing(why string) jig.Preview { return jig.Preview{Missing: clip.Line(plain(why), MaxTitle)} }

// Clean cuts a preview to the bounds and makes its texts safe to show: it replaces control characters, invisible characters and characters
// that change the direction of writing, and escapes images and HTML in the Markdown. It returns INVALID_OUTPUT if the title or the
// precondition cannot be used.
func Clean(p jig.Preview) (jig.Preview, error) {
	out := jig.Preview{Title: line(p.Title, MaxTitle), Precondition: line(p.Precondition, MaxPrecondition)}
	if p.Missing != "" {
		return Missing(p.Missing), nil
	}
	if out.Title == "" {
		return out, jig.Errorf(jig.CodeInvalidOutput, "its title is empty").WithField("title").WithHint("say in one line what will happen")
	}
	if len(p.Precondition) > MaxPrecondition || out.Precondition != p.Precondition {
		return out, jig.Errorf(jig.CodeInvalidOutput, "its precondition is not one line of at most %d bytes of visible text", MaxPrecondition).
			WithField("precondition").WithHint("name a version, an etag or a hash")
	}
	out.Markdown = cut(defuse(text(p.Markdown)), MaxMarkdown)
	room := MaxBytes - len(out.Title) - len(out.Precondition) - len(out.Markdown)
	for i, change := range p.Changes {
		shown := cut(text(change), MaxChange)
		if i == MaxChanges || len(shown) > room-reserve {
			out.Changes = append(out.Changes, rest(p.Changes[i:]))
			break
		}
		if shown != "" {
			out.Changes = append(out.Changes, shown)
			room -= len(shown)
		}
	}
	return out, nil
}

// reserve is the room, in bytes, for a note about text or changes that do not fit.
const reserve = 200

// Fit returns a preview for a place with less room: its changes and its Markdown take at most n bytes together. cut reports that something
// was left out.
func Fit(p jig.Preview, n int) (fit jig.Preview, cut bool) {
	fit = p
	fit.Changes, fit.Markdown = nil, ""
	for i, change := range p.Changes {
		if len(change) > n {
			if begin := clip.Bytes(change, max(n-len(ellipsis), 0)); begin != "" {
				fit.Changes = append(fit.Changes, begin+ellipsis)
			}
			if left := len(p.Changes) - i - 1; left > 0 {
				fit.Changes = append(fit.Changes, fmt.Sprintf("… and %d more", left))
			}
			return fit, true
		}
		fit.Changes = append(fit.Changes, change)
		n -= len(change)
	}
	if len(p.Markdown) > n {
		fit.Markdown = clip.Bytes(p.Markdown, max(n-len(ellipsis), 0))
		if fit.Markdown != "" {
			fit.Markdown += ellipsis
		}
		return fit, true
	}
	fit.Markdown = p.Markdown
	return fit, false
}

const ellipsis = "…"

// rest returns an entry with the number and the hash of changes that do not fit.
func rest(changes []string) string {
	h := sha256.New()
	for _, c := range changes {
		_, _ = fmt.Fprintf(h, "%d:%s", len(c), c) // writing to a hash cannot fail
	}
	return fmt.Sprintf("… and %d more, which do not fit here (SHA-256 %s)", len(changes), hex.EncodeToString(h.Sum(nil)))
}

// cut shortens a text to at most n bytes. A note at its end gives the size of the rest and the hash of the whole text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	begin := clip.Bytes(s, n-reserve)
	return fmt.Sprintf("%s\n… %d more bytes, which do not fit here (SHA-256 of all %s)", begin, len(s)-len(begin), hex.EncodeToString(sum[:]))
}

// line returns s as one line of at most n bytes.
func line(s string, n int) string {
	return clip.Bytes(strings.Join(strings.Fields(plain(s)), " "), n)
}

// text replaces unsafe characters and tabs in s, and removes white space at the ends of its lines and empty lines around it.
func text(s string) string {
	lines := strings.Split(strings.ReplaceAll(plain(s), "\t", "    "), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// plain replaces control characters, except line breaks and tabs, and characters that are invisible or change the direction of writing. The
// separators of lines and paragraphs are replaced, too: in a diff, what follows them would stand on a line without a sign.
func plain(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), string(unicode.ReplacementChar))
	return visible.Map(s, func(r rune, hidden bool) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case hidden || unicode.IsControl(r):
			return unicode.ReplacementChar
		case unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	})
}

// defuse escapes images and HTML in Markdown, for programs that render it.
func defuse(markdown string) string {
	return strings.NewReplacer("![", `!\[`, "<", `\<`).Replace(markdown)
}

// maxDiff is the size of the largest text that is compared line by line, and maxLines the number of its lines.
const (
	maxDiff  = 1 << 20
	maxLines = 20_000
)

// Diff compares two versions of a text. It returns the name as a heading with a unified diff below it, or "" if the versions are equal. For texts
// that are too large to compare, it returns their sizes and hashes.
func Diff(name, before, after string) string {
	if before == after {
		return ""
	}
	name = heading(name)
	if large(before) || large(after) {
		return name + " changes from " + size(before) + " to " + size(after)
	}
	diff := udiff.Unified("before", "after", ended(before), ended(after))
	if diff == "" { // only the line break at the end changes
		return name + " changes only in its last line break"
	}
	_, diff, _ = strings.Cut(diff, "\n") // --- before
	_, diff, _ = strings.Cut(diff, "\n") // +++ after
	return name + "\n" + strings.TrimSuffix(diff, "\n")
}

// All returns a diff in which every line of text has the same sign: + if the text is new, - if it is removed. The name is its heading.
func All(name, sign, text string) string {
	name = heading(name)
	if text == "" {
		return name + " (empty)"
	}
	return name + "\n" + sign + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+sign)
}

// heading returns a name on one line, so that the rest of it cannot pass for a part of the diff.
func heading(name string) string {
	return strings.ReplaceAll(name, "\n", string(unicode.ReplacementChar))
}

// Code returns an expression on one line. It shows where its lines end, because that is where a comment ends.
func Code(expression string) string {
	return strings.ReplaceAll(strings.TrimSpace(expression), "\n", " ⏎ ")
}

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func large(s string) bool { return len(s) > maxDiff || strings.Count(s, "\n") > maxLines }

// size returns the size and the hash of a text.
func size(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%d bytes (SHA-256 %s)", len(s), hex.EncodeToString(sum[:]))
}
