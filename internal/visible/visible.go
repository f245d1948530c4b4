// Package visible finds characters that people cannot see, or that change the order in which they read a text, so that two different texts do
// not look the same. It must not know where texts come from or where they are shown.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Map replaces the characters of s as of says. hidden reports that a character leaves no mark on the screen, or changes the direction of
// writing; control characters are not hidden. Invalid UTF-8 becomes U+FFFD.
func Map(s string, of func(r rune, hidden bool) rune) string {
	var before rune
	return strings.Map(func(r rune) rune {
		h := hidden(before, r)
		if !h {
			before = r
		}
		return of(r, h)
	}, s)
}

// JSON replaces hidden characters in JSON with escapes, which have the same meaning.
func JSON(s string) string {
	var b strings.Builder
	var before rune
	for _, r := range s {
		if hidden(before, r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				_, _ = fmt.Fprintf(&b, `\u%04x`, unit) // writing to a builder cannot fail
			}
			continue
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// The characters with which the letters of some scripts and emoji are built. After other characters they leave no mark.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// hidden reports whether r leaves no mark after another character, or changes the direction of writing.
func hidden(before, r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r == joiner || r == nonJoiner:
		return alone(before)
	case unicode.Is(unicode.Variation_Selector, r):
		return alone(before) || unicode.Is(unicode.Variation_Selector, before)
	}
	return unicode.In(r, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Zl, unicode.Zp) ||
		unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// alone reports whether nothing can be joined to a character.
func alone(r rune) bool {
	return r < 0x80 || r == joiner || r == nonJoiner || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}
