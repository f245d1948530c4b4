package dataflow

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind says what a token is.
type kind uint8

const (
	// word is a word of a language: letters only.
	word kind = iota
	// number is a decimal number in normal form.
	number
	// opaque is anything else that has a meaning only as a whole: an id, a file name, a code.
	opaque
	// address is a URL, a host or an e-mail address.
	address
	// day is a date, with or without a year.
	day
	// clock is a time of day.
	clock
	// span is a duration.
	span
)

// token is the smallest part of a text that is compared. Equal tokens have equal text.
type token struct {
	text string
	kind kind
	// item says that the token only numbers an item of a list. It is not compared.
	item bool
}

// scanner splits a text into tokens.
type scanner struct {
	tokens []token
	// exact says that the text is a value and not prose: nothing is missing or left over in it.
	exact bool
	// item is the number of the latest item of a list.
	item int
}

// scan returns the tokens of a text, with dates, times and durations in one token each.
func scan(text string) []token { return scanner{}.scan(text) }

// scanValue returns the tokens of an argument, which programs read to the letter.
func scanValue(value string) []token { return scanner{exact: true}.scan(value) }

func (s scanner) scan(text string) []token {
	s.text(normal(text))
	return quantities(s.tokens)
}

// text splits at white space and at characters that never belong to a token.
func (s *scanner) text(text string) {
	start := -1
	begins := true // a list item may begin here
	for i, r := range text {
		if !separates(r) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			begins = s.piece(text[start:i], begins)
			start = -1
		}
		if symbol(r) {
			s.tokens = append(s.tokens, token{text: string(r)})
		}
		if r == '\n' {
			begins = true
		}
	}
	if start >= 0 {
		s.piece(text[start:], begins)
	}
}

// separates reports whether r never belongs to a token.
func separates(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f || strings.IndexByte("\"`()[]{}<>|*^", byte(r)) >= 0
	}
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Sc)
}

// symbol reports whether r means something by itself: an emoji, an arrow, a letter in Braille. Punctuation does not.
func symbol(r rune) bool {
	return r >= utf8.RuneSelf && separates(r) && !unicode.In(r, unicode.P, unicode.Z, unicode.C)
}

// piece adds the tokens of a text without separators. It returns whether a sentence, and so perhaps the item of a list, begins after it.
func (s *scanner) piece(piece string, begins bool) bool {
	ends := strings.IndexByte(".:!?", piece[len(piece)-1]) >= 0
	if piece = escapes(piece); strings.Contains(piece, " ") {
		for part := range strings.FieldsSeq(piece) {
			s.part(part)
		}
		return ends
	}
	if item := strings.TrimRight(piece, "."); begins && item != piece && len(item) <= 2 && digits(item) && (item == "1" || item == strconv.Itoa(s.item+1)) {
		s.item = atoi(item)
		s.tokens = append(s.tokens, token{text: item, kind: number, item: true})
		return true
	}
	s.part(piece)
	return ends
}

// escapes replaces the escape sequences of a quoted string by spaces. Results often show strings as a program would write them.
func escapes(piece string) string {
	if !strings.Contains(piece, `\`) {
		return piece
	}
	return strings.NewReplacer(`\\n`, " ", `\\t`, " ", `\n`, " ", `\t`, " ", `\r`, " ", `\`, " ").Replace(piece)
}

// part adds the tokens of a text without separators or escape sequences.
func (s *scanner) part(part string) {
	if plainWord(part) {
		s.words(strings.ToLower(part))
		return
	}
	if at := strings.Index(part, "://"); at > 0 {
		begin := at
		for begin > 0 && letter(part[begin-1]) {
			begin--
		}
		if begin < at {
			s.pieces(part[:begin])
			s.address(part[begin:])
			return
		}
	}
	part = strings.TrimLeft(part, edges)
	if host, _, _ := strings.Cut(part, "/"); strings.HasPrefix(fold(part), "www.") || host != part && !strings.ContainsAny(host, ",:=@") && hostlike(host) {
		s.address(part)
		return
	}
	s.pieces(part)
}

// plainWord reports whether a text has only ASCII letters, as most do.
func plainWord(text string) bool {
	for i := range len(text) {
		if b := text[i] | 0x20; b < 'a' || b > 'z' {
			return false
		}
	}
	return true
}

// edges are the characters that do not belong to a token at its begin or end.
const edges = ".,;:!?'-_#~&+=/%@$€£¥"

// address adds a URL. Its host is compared without upper and lower case, its path exactly.
func (s *scanner) address(url string) {
	url = strings.TrimRight(url, ".,;:!?'/")
	if !s.exact {
		url = sentence(url)
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "", url
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	text := lower(host) + rest[len(host):]
	// A URL without a scheme is the same as one with the usual scheme.
	if scheme = fold(scheme); scheme != "" && scheme != "https" {
		text = scheme + "://" + text
	}
	if host != "" {
		s.tokens = append(s.tokens, token{text: text, kind: address})
	}
}

// sentence removes the first word of the next sentence from a host, where the space between them is missing: example.com.They
func sentence(url string) string {
	if i := strings.LastIndexByte(url, '.'); i > 0 && i+1 < len(url) && url[i+1] >= 'A' && url[i+1] <= 'Z' && !strings.Contains(url[i:], "/") &&
		strings.ToLower(url[:i]) == url[:i] && hostlike(url[:i]) && !strings.Contains(url, "/") {
		return url[:i]
	}
	return url
}

// pieces splits at punctuation inside a text.
func (s *scanner) pieces(part string) {
	start := 0
	for i, r := range part {
		if inner(part, i, r) {
			continue
		}
		s.single(part[start:i])
		start = i + utf8.RuneLen(r)
	}
	s.single(part[start:])
}

// inner reports whether the character r at position i belongs to a token.
func inner(part string, i int, r rune) bool {
	switch r {
	case ',', ':':
		return i > 0 && i+1 < len(part) && digit(part[i-1]) && digit(part[i+1])
	case ';', '=', '!', '?':
		return false
	case '.':
		return i > 0 && i+1 < len(part) && part[i-1] != '.' && part[i+1] != '.'
	}
	return true
}

// single adds a text that has no punctuation but inside.
func (s *scanner) single(text string) {
	negative := strings.HasPrefix(text, "-") && len(text) > 1 && digit(text[1])
	text = strings.TrimRight(strings.TrimLeft(text, edges), edges)
	if text == "" {
		return
	}
	if n, ok := decimal(text); ok {
		if negative {
			n = "-" + n
		}
		s.tokens = append(s.tokens, token{text: n, kind: number})
		return
	}
	host := strings.TrimSuffix(lower(text), "'s")
	text = strings.TrimSuffix(fold(text), "'s")
	switch {
	case strings.Contains(host, "@") || hostlike(host):
		s.tokens = append(s.tokens, token{text: host, kind: address})
	case strings.ContainsAny(text, "-/") && wordy(text):
		for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '-' || r == '/' }) {
			s.single(w)
		}
	default:
		s.words(text)
	}
}

// words adds a text as one token, or every character as a token of its own if the script has no spaces between words.
func (s *scanner) words(text string) {
	if !ascii(text) && strings.ContainsFunc(text, unspaced) {
		rest := 0
		for i, r := range text {
			if unspaced(r) {
				s.words(text[rest:i])
				rest = i + utf8.RuneLen(r)
				s.tokens = append(s.tokens, token{text: text[i:rest]})
			}
		}
		text = text[rest:]
	}
	if text == "" {
		return
	}
	k := word
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\'' && !unicode.In(r, unicode.L, unicode.M) }) {
		k = opaque
	}
	s.tokens = append(s.tokens, token{text: text, kind: k})
}

// unspaced reports whether r belongs to a script that writes no spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// wordy reports whether a compound consists of words, or of a small number and a word, as in "one-hour" and "1-hour".
func wordy(text string) bool {
	words := false
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '/' }) {
		letters := !strings.ContainsFunc(part, func(r rune) bool { return r != '\'' && !unicode.In(r, unicode.L, unicode.M) })
		if !letters && (i > 0 || len(part) > 3 || !digits(part)) {
			return false
		}
		words = words || letters
	}
	return words
}

// hostlike reports whether a text looks like the name of a host or a file: labels separated by dots, the last of at least two letters.
func hostlike(text string) bool {
	i := strings.LastIndexByte(text, '.')
	if i <= 0 || len(text)-i < 3 || strings.Contains(text, "..") || strings.ContainsRune(text, '\'') {
		return false
	}
	for _, r := range text[i+1:] {
		if !unicode.IsLetter(r) {
			return false
		}
	}
	return true
}

// decimal returns a number in normal form: digits, with a point if it is not whole. Text with leading zeros is a code, not a number.
func decimal(text string) (string, bool) {
	if text == "" || !digit(text[0]) {
		return "", false
	}
	whole, fraction, point := strings.Cut(text, ".")
	if strings.Contains(whole, ",") {
		groups := strings.Split(whole, ",")
		for i, g := range groups {
			if len(g) > 3 || i > 0 && len(g) != 3 {
				return "", false
			}
		}
		whole = strings.Join(groups, "")
	}
	if !digits(whole) || len(whole) > 1 && whole[0] == '0' || point && !digits(fraction) {
		return "", false
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	return whole, true
}

// digits reports whether a text consists of at least one ASCII digit and nothing else.
func digits(text string) bool {
	for i := range len(text) {
		if !digit(text[i]) {
			return false
		}
	}
	return text != ""
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '+' }
