package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNesting is the maximum nesting depth of filters and parentheses.
const maxNesting = 20

// maxInteger is the largest index: 2^53-1, as in the standard.
const maxInteger = 1<<53 - 1

// Parse parses a path such as $.items[*].id or $.items[?(@.price > 5)].name. The error says what is wrong, and where.
func Parse(source string) (*Path, error) {
	if len(source) > MaxBytes {
		return nil, exceeded("the path has %d bytes, at most %d are allowed", len(source), MaxBytes)
	}
	p := &parser{source: source}
	if p.take("$") || strings.HasPrefix(source, "[") || strings.HasPrefix(source, ".") {
		segments, err := p.segments()
		return p.end(segments, err)
	}
	first, err := p.shorthand()
	if err != nil {
		return nil, err
	}
	rest, err := p.segments()
	return p.end(append([]segment{{selectors: []selector{first}}}, rest...), err)
}

// parser reads a path from left to right.
type parser struct {
	source string
	at     int
	depth  int
}

func (p *parser) end(segments []segment, err error) (*Path, error) {
	if err != nil {
		return nil, err
	}
	if p.at < len(p.source) {
		return nil, p.fail("unexpected %q", p.next())
	}
	return &Path{segments: segments}, nil
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%s at position %d", fmt.Sprintf(format, args...), utf8.RuneCountInString(p.source[:p.at])+1)
}

// next returns the next character without consuming it, 0 at the end.
func (p *parser) next() rune {
	if p.at >= len(p.source) {
		return 0
	}
	c, _ := utf8.DecodeRuneInString(p.source[p.at:])
	return c
}

func (p *parser) space() {
	for p.at < len(p.source) && strings.IndexByte(" \t\r\n", p.source[p.at]) >= 0 {
		p.at++
	}
}

// take consumes a text if it comes next.
func (p *parser) take(text string) bool {
	if !strings.HasPrefix(p.source[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) want(text string) error {
	if p.space(); !p.take(text) {
		if p.at >= len(p.source) {
			return p.fail("the path ends where %q is wanted", text)
		}
		return p.fail("want %q, not %q", text, p.next())
	}
	return nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return exceeded("filters and parentheses are nested more than %d levels deep", maxNesting)
	}
	return nil
}

// segments reads all segments that follow: .name, .*, [...], ..name, ..*, ..[...].
func (p *parser) segments() ([]segment, error) {
	var list []segment
	for {
		before := p.at
		p.space()
		var s segment
		var err error
		switch {
		case p.take(".."):
			s.descend = true
			if p.next() == '[' {
				s.selectors, err = p.brackets()
			} else {
				s.selectors, err = p.dotted()
			}
		case p.take("."):
			s.selectors, err = p.dotted()
		case p.next() == '[':
			s.selectors, err = p.brackets()
		default:
			p.at = before
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
}

func (p *parser) dotted() ([]selector, error) {
	s, err := p.shorthand()
	return []selector{s}, err
}

// shorthand reads what may follow a dot: a name or a star.
func (p *parser) shorthand() (selector, error) {
	if p.take("*") {
		return wildcard{}, nil
	}
	begin := p.at
	for p.at < len(p.source) && (nameCharacter(p.next()) || p.at > begin && digit(p.next())) {
		p.at += utf8.RuneLen(p.next())
	}
	if p.at == begin {
		if p.at >= len(p.source) {
			return nil, p.fail("the path ends where a name is wanted")
		}
		return nil, p.fail("want a name, not %q", p.next())
	}
	return name(p.source[begin:p.at]), nil
}

// nameCharacter reports whether a name without quotes may begin with the character. The standard does not allow the dash.
func nameCharacter(c rune) bool {
	return c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf && c != utf8.RuneError
}

func digit(c rune) bool { return c >= '0' && c <= '9' }

// brackets reads [selector, selector].
func (p *parser) brackets() ([]selector, error) {
	if err := p.want("["); err != nil {
		return nil, err
	}
	var list []selector
	for {
		p.space()
		s, err := p.selector()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
		if p.space(); !p.take(",") {
			break
		}
	}
	return list, p.want("]")
}

func (p *parser) selector() (selector, error) {
	switch c := p.next(); {
	case c == '*':
		p.at++
		return wildcard{}, nil
	case c == '\'' || c == '"':
		text, err := p.text()
		return name(text), err
	case c == '?':
		p.at++
		if err := p.enter(); err != nil {
			return nil, err
		}
		test, err := p.either()
		p.depth--
		return &filter{test: test}, err
	case c == ':' || c == '-' || digit(c):
		return p.indexOrSlice()
	case c == 0:
		return nil, p.fail("the path ends within [")
	default:
		return nil, p.fail("want a name in quotes, a number, *, : or ?, not %q", c)
	}
}

func (p *parser) indexOrSlice() (selector, error) {
	start, err := p.optionalInteger()
	if err != nil {
		return nil, err
	}
	if p.space(); !p.take(":") {
		return index(*start), nil // selector has made sure that a number follows
	}
	s := slice{start: start}
	p.space()
	if s.end, err = p.optionalInteger(); err != nil {
		return nil, err
	}
	if p.space(); p.take(":") {
		p.space()
		if s.step, err = p.optionalInteger(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// optionalInteger reads an integer; nil if there is none.
func (p *parser) optionalInteger() (*int, error) {
	if p.next() != '-' && !digit(p.next()) {
		return nil, nil // nil: the parts of a slice are optional
	}
	begin := p.at
	p.take("-")
	for digit(p.next()) {
		p.at++
	}
	n, err := strconv.Atoi(p.source[begin:p.at])
	if err != nil || n > maxInteger || n < -maxInteger {
		return nil, p.fail("%s is not an integer of at most 53 bits", p.source[begin:p.at])
	}
	return &n, nil
}

// text reads a text in single or double quotes.
func (p *parser) text() (string, error) {
	quote := p.source[p.at]
	p.at++
	var b strings.Builder
	for p.at < len(p.source) {
		c := p.source[p.at]
		switch {
		case c == quote:
			p.at++
			return b.String(), nil
		case c < ' ':
			return "", p.fail("a string must not contain control characters")
		case c != '\\':
			b.WriteByte(c)
			p.at++
		default:
			p.at++
			if err := p.escaped(&b, quote); err != nil {
				return "", err
			}
		}
	}
	return "", p.fail("the text in quotes does not end")
}

func (p *parser) escaped(b *strings.Builder, quote byte) error {
	if p.at >= len(p.source) {
		return p.fail("the text in quotes does not end")
	}
	c := p.source[p.at]
	p.at++
	if c == 'u' {
		return p.unicode(b)
	}
	if at := strings.IndexByte("bfnrt/\\", c); at >= 0 {
		b.WriteByte("\b\f\n\r\t/\\"[at])
		return nil
	}
	if c == quote {
		b.WriteByte(c)
		return nil
	}
	return p.fail("\\%c is not an escape", c)
}

// unicode reads the digits after \u, including the second half of a surrogate pair.
func (p *parser) unicode(b *strings.Builder) error {
	c, err := p.hex()
	if err != nil {
		return err
	}
	switch {
	case c >= 0xDC00 && c <= 0xDFFF:
		return p.fail("half of a surrogate pair")
	case c >= 0xD800 && c <= 0xDBFF:
		if !p.take(`\u`) {
			return p.fail("half of a surrogate pair")
		}
		low, err := p.hex()
		if err != nil {
			return err
		}
		if low < 0xDC00 || low > 0xDFFF {
			return p.fail("half of a surrogate pair")
		}
		c = 0x10000 + (c-0xD800)<<10 + (low - 0xDC00)
	}
	b.WriteRune(c)
	return nil
}

func (p *parser) hex() (rune, error) {
	if len(p.source)-p.at < 4 {
		return 0, p.fail("want four hexadecimal digits")
	}
	n, err := strconv.ParseUint(p.source[p.at:p.at+4], 16, 32)
	if err != nil {
		return 0, p.fail("want four hexadecimal digits")
	}
	p.at += 4
	return rune(n), nil //nolint:gosec // four hexadecimal digits fit into a rune
}
