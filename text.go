package jig

import "unicode/utf8"

// Cut shortens a text to at most n bytes, at a character boundary, and appends "…" (which is not counted). A text of at most n bytes is
// returned unchanged.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
