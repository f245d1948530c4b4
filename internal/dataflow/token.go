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
	// opaque is any other text that means something only as a whole: an id, a version, a code.
	opaque
	// name is a word with a dot, such as report.txt or example.com. It may be a file or a host.
	name
	// address is a URL, or a host that is written as one, or an e-mail address. The text of a URL always has a scheme, so that no name, version or
	// word equals it.
	address
	// day is a date, with or without a year.
	day
	// clock is a time of day.
	clock
	// span is a duration.
	span
)

// token is the smallest part of a text that is compared. Tokens with the same text are equal.
type token struct {
	text string
	kind kind
	// item reports that the token only numbers an item of a list. Such tokens are not compared.
	item bool
}

// scanner splits a text into tokens.
type scanner struct {
	tokens []token
	// exact reports that a program reads the text as it is, so that punctuation at the end of a URL belongs to the URL. prose allows one such
	// character, because a sentence may end with a URL.
	exact, prose bool
	// item is the number of the latest item of a list.
	item int
}

// scan returns the tokens of a text. Each date, time and duration is one token.
func scan(text string) []token { return scanner{}.scan(text) }

// scanValue returns the tokens of an argument.
func scanValue(value string) []token { return scanner{exact: true}.scan(value) }

// scanProse returns the tokens of an argument that consists of sentences.
func scanProse(value string) []token { return scanner{exact: true, prose: true}.scan(value) }

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

// symbol reports whether r has a meaning of its own, such as an emoji, an arrow or a letter in Braille. Punctuation has none.
func symbol(r rune) bool {
	return r >= utf8.RuneSelf && separates(r) && !unicode.In(r, unicode.P, unicode.Z, unicode.C)
}

// piece adds the tokens of a text without separators. It reports whether a sentence, and so perhaps the item of a list, begins after it.
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
	if begin := schemeAt(part); begin >= 0 {
		s.pieces(part[:begin])
		s.address(part[begin:])
		return
	}
	if rest := strings.TrimLeft(part, edges); web(rest) {
		s.address(rest)
		return
	}
	s.pieces(part)
}

// schemeAt returns where a URL with a scheme begins in a text, or -1.
func schemeAt(part string) int {
	at := strings.Index(part, "://")
	begin := at
	for begin > 0 && letter(part[begin-1]) {
		begin--
	}
	if begin == at {
		return -1
	}
	return begin
}

// web reports whether a text is a URL without a scheme: a host that begins with www. or is followed by a path.
func web(part string) bool {
	host, _, path := strings.Cut(part, "/")
	return strings.HasPrefix(fold(part), "www.") || path && !strings.ContainsAny(host, ",:=@") && hostlike(host)
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

// edges are the characters that do not belong to a token at its beginning or end.
const edges = ".,;:!?'-_#~&+=/%@$€£¥"

// https begins the text of a URL that is written without a scheme.
const https = "https://"

// address adds a URL. Scheme and host are compared without upper and lower case. Everything after them must be equal, except for one slash at the end.
// Punctuation at the end of a URL belongs to the text around it, but to the URL in a value.
func (s *scanner) address(url string) {
	const marks = ".,;:!?'"
	switch {
	case !s.exact:
		url = sentence(strings.TrimRight(url, marks))
	case s.prose && strings.IndexByte(marks, url[len(url)-1]) >= 0:
		url = url[:len(url)-1]
	}
	url = strings.TrimSuffix(url, "/")
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		scheme, rest = "https", url
	}
	host := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host = rest[:i]
	}
	if host != "" {
		s.tokens = append(s.tokens, token{text: fold(scheme) + "://" + lower(host) + rest[len(host):], kind: address})
	}
}

// escapesPath reports whether the path of a URL has segments that lead to another path: . and .. in any notation.
func escapesPath(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	_, path, _ := strings.Cut(rest, "/")
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch strings.ReplaceAll(fold(segment), "%2e", ".") {
		case ".", "..":
			return true
		}
	}
	return false
}

// sentence removes the first word of the next sentence from a host if the space between them is missing: example.com.They
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

// single adds a text that has punctuation only at its ends and between letters or digits.
func (s *scanner) single(text string) {
	rest := strings.TrimLeft(text, edges)
	negative := strings.Trim(text[:len(text)-len(rest)], "$€£¥") == "-"
	text = strings.TrimRight(rest, edges)
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
	case strings.Contains(host, "@"):
		s.tokens = append(s.tokens, token{text: host, kind: address})
	case hostlike(host):
		s.tokens = append(s.tokens, token{text: host, kind: name})
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

// decimal returns a number without a sign in normal form: digits, with a point if it is not whole. A text with leading zeros is a code.
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
