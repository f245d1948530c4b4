// Package clip shortens texts without splitting a character. It must not know what the texts mean. [jig.Cut] is a public function for the
// same purpose.
package clip

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bytes returns the longest beginning of s that takes at most n bytes and ends with a whole character.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Whole drops an incomplete character at the end of b, which was cut anywhere.
func Whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// Runes shortens s to at most n characters; n must be positive. If it cuts s, the last character is "…".
func Runes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// Line returns s on one line of at most n characters: white space and characters that cannot be printed become single spaces.
func Line(s string, n int) string {
	return Runes(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " "), n)
}
