package dataflow

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// normal returns the text in the form in which texts are compared, except for upper and lower case: Unicode NFKC, with plain dashes and
// quotes and without invisible characters. Letters that only look alike stay different.
func normal(text string) string {
	if ascii(text) {
		return text
	}
	text = dots(norm.NFKC.String(strings.ToValidUTF8(text, " ")))
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case r >= '\u2010' && r <= '\u2015' || r == '\u2212':
			return '-'
		case r == '\u2018' || r == '\u2019':
			return '\''
		case invisible(r):
			return -1
		}
		return r
	}, text)
}

// invisible reports whether r is a character that nobody sees.
func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

// maxInvisible is how many invisible characters may follow each other in ordinary text, as in an emoji of several parts.
const maxInvisible = 3

// hidesText reports whether a text may carry another one that programs see and people do not: in a row of invisible characters, in characters that
// encode letters or bytes, or in unassigned ones.
func hidesText(text string) bool {
	row := 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Co, unicode.Cn):
			return true
		case !invisible(r):
			row = 0
			continue
		}
		if row++; row > maxInvisible || r >= 0xE0000 {
			return true
		}
	}
	return false
}

// hasJoiners reports whether a text has invisible characters that join letters or keep them apart. Hosts of some scripts differ only in them.
func hasJoiners(text string) bool { return strings.ContainsAny(text, "\u200c\u200d") }

// dots replaces an ideographic full stop between ASCII letters or digits by a dot. In the name of a host it is one.
func dots(text string) string {
	const stop = "\u3002"
	parts := strings.Split(text, stop)
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i+1 == len(parts) {
			break
		}
		if next := parts[i+1]; part != "" && next != "" && alphanumeric(part[len(part)-1]) && alphanumeric(next[0]) {
			b.WriteByte('.')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// alphanumeric reports whether b is an ASCII letter or digit.
func alphanumeric(b byte) bool {
	return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'z'
}

// fold removes the difference between upper and lower case.
func fold(text string) string {
	if ascii(text) {
		return strings.ToLower(text)
	}
	// Folding may undo the normal form.
	return norm.NFKC.String(cases.Fold().String(text))
}

// lower removes the difference between upper and lower case from a host or an address. Unlike [fold], it keeps ß apart from ss and ς apart from σ,
// because they are different letters in hosts. Programs disagree about the capital ẞ, so it is kept apart from both.
func lower(text string) string {
	if ascii(text) {
		return strings.ToLower(text)
	}
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		if r == 'ẞ' {
			return r
		}
		return unicode.ToLower(r)
	}, text))
}

// ascii reports whether the text has only ASCII characters.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// function reports whether a word is an English function word, which carries no data: an article, a preposition, a conjunction, a pronoun or an
// auxiliary verb.
func function(text string) bool {
	return strings.Contains(functionWords, " "+text+" ")
}

const functionWords = " a an the this that these those and or but nor so if then than as of at by for from in into on onto to with without " +
	"about over under between after before until till during through i me my mine you your yours he him his she her hers it its we us our ours " +
	"they them their theirs who which what there here is are was were be been being am do does did have has had will would can could shall " +
	"should may might must not no yes also just too very "
