package jig

import "unicode/utf8"

// Cut returns the first n bytes of a text, back to the edge of a character, and "…", which shows that there was more. A text of at
// most n bytes stays as it is.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
