package dataflow

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSpellings limits how many fields with punctuation are kept of trusted texts. Further fields trace nothing.
const maxSpellings = 1 << 17

// spellings holds the fields of trusted texts that have punctuation that a program may read, such as ../reports or --force. A field is a part of a
// text without white space. Quotation marks, brackets and the punctuation of sentences around a field may belong to the text or to the field,
// so it is kept with and without them.
type spellings map[string]struct{}

// add adds the fields of a text.
func (s spellings) add(text string) {
	s.fields(fold(normal(text)))
	if strings.Contains(text, `\`) {
		s.fields(fold(normal(escapes(text))))
	}
}

func (s spellings) fields(text string) {
	const before, after, most = "\"'`([{<", "\"'`)]}>.,;:!?", 3
	for field := range strings.FieldsSeq(text) {
		for range most + 1 {
			rest := field
			for range most + 1 {
				if len(s) < maxSpellings && !plainField(rest) {
					s[rest] = struct{}{}
				}
				if rest == "" || strings.IndexByte(after, rest[len(rest)-1]) < 0 {
					break
				}
				rest = rest[:len(rest)-1]
			}
			if field == "" || strings.IndexByte(before, field[0]) < 0 {
				break
			}
			field = field[1:]
		}
	}
}

// sameSpelling reports whether the punctuation of a value is that of a trusted text. It looks at values that programs read rather than people:
// destinations, single words, and values without any word. tokens are those of the value.
func (c *checker) sameSpelling(value string, tokens []token, destination bool) bool {
	value = fold(normal(strings.TrimSuffix(value, "\n")))
	fields := strings.Fields(value)
	prose := slices.ContainsFunc(tokens, func(t token) bool { return t.kind == word })
	if len(fields) > 1 && len(tokens) > 1 && prose && !destination {
		return true
	}
	if len(value) != spaced(fields) {
		return false
	}
	for i, field := range fields {
		_, known := c.trusted.spellings[field]
		whole := len(fields) == 1 && len(tokens) == 1 && tokens[0].text == field
		if !known && !whole && !plainItems(field, i+1 < len(fields)) {
			return false
		}
	}
	return true
}

// spaced returns the length of a text whose fields are separated by one character each.
func spaced(fields []string) int {
	n := max(len(fields)-1, 0)
	for _, f := range fields {
		n += len(f)
	}
	return n
}

// plainItems reports whether a field is a plain one or a list of such. more reports that another field follows, so that the list may go on.
func plainItems(field string, more bool) bool {
	if schemeAt(field) == 0 || web(field) {
		return plainField(field)
	}
	items := strings.FieldsFunc(field, func(r rune) bool { return r == ',' || r == ';' })
	length := len(items) - 1
	for _, item := range items {
		if mail := strings.TrimSuffix(strings.TrimPrefix(item, "<"), ">"); len(mail) == len(item)-2 && strings.Contains(mail, "@") {
			length, item = length+2, mail
		}
		if !plainField(item) {
			return false
		}
		length += len(item)
	}
	return length == len(field) || more && length+1 == len(field)
}

// plainField reports whether a field has no punctuation that is not compared: it is a URL, which is compared as it is, or it begins and ends with
// a letter, a digit or a symbol and has only punctuation inside that programs read as a part of a word.
func plainField(field string) bool {
	if schemeAt(field) == 0 || web(field) {
		return !strings.ContainsFunc(field, func(r rune) bool { return separates(r) && !symbol(r) || r == '\\' })
	}
	last, _ := utf8.DecodeLastRuneInString(field)
	first := true
	for _, r := range field {
		if first && !lettered(r) || !lettered(r) && !strings.ContainsRune("-_.'@+&:,", r) && r < utf8.RuneSelf {
			return false
		}
		first = false
	}
	return lettered(last) && !strings.Contains(field, "..")
}

// lettered reports whether a token may begin or end with r.
func lettered(r rune) bool {
	return symbol(r) || invisible(r) || unicode.In(r, unicode.L, unicode.M, unicode.N)
}
