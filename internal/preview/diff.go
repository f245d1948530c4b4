package preview

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

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
