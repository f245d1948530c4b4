package jsonpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig/internal/strictjson"
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
	var segments []segment
	if !p.take("$") && !strings.HasPrefix(source, "[") && !strings.HasPrefix(source, ".") {
		segments = []segment{{selectors: []selector{p.shorthand()}}}
	}
	segments = append(segments, p.segments()...)
	if p.at < len(p.source) {
		p.fail("unexpected %q", p.next())
	}
	return &Path{segments: segments}, p.err
}

// parser reads a path from left to right. It keeps the first error and then finds itself at the end of the path, so nothing else is read.
type parser struct {
	source    string
	at, depth int
	err       error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s at position %d", fmt.Sprintf(format, args...), utf8.RuneCountInString(p.source[:p.at])+1)
	}
	p.at = len(p.source)
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

// want consumes a text that must come next.
func (p *parser) want(text string) {
	switch p.space(); {
	case p.take(text):
	case p.next() == 0:
		p.fail("the path ends where %q is wanted", text)
	default:
		p.fail("want %q, not %q", text, p.next())
	}
}

// enter begins a filter or a parenthesis, and leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting && p.err == nil {
		p.err = exceeded("filters and parentheses are nested more than %d levels deep", maxNesting)
		p.at = len(p.source)
	}
}

func (p *parser) leave() { p.depth-- }

// segments reads all segments that follow: .name, .*, [...], ..name, ..*, ..[...].
func (p *parser) segments() []segment {
	var list []segment
	for {
		before := p.at
		p.space()
		switch descend := p.take(".."); {
		case p.next() == '[':
			list = append(list, segment{descend: descend, selectors: p.brackets()})
		case descend || p.take("."):
			list = append(list, segment{descend: descend, selectors: []selector{p.shorthand()}})
		default:
			p.at = before
			return list
		}
	}
}

// shorthand reads what may follow a dot: a name or a star.
func (p *parser) shorthand() selector {
	if p.take("*") {
		return wildcard{}
	}
	begin := p.at
	for nameCharacter(p.next()) || p.at > begin && digit(p.next()) {
		p.at += utf8.RuneLen(p.next())
	}
	found := name(p.source[begin:p.at])
	switch {
	case found != "":
	case p.next() == 0:
		p.fail("the path ends where a name is wanted")
	default:
		p.fail("want a name, not %q", p.next())
	}
	return found
}

// nameCharacter reports whether a name without quotes may begin with the character. The standard does not allow the dash.
func nameCharacter(c rune) bool {
	return c == '_' || c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf && c != utf8.RuneError
}

func digit(c rune) bool { return c >= '0' && c <= '9' }

// brackets reads [selector, selector].
func (p *parser) brackets() []selector {
	p.want("[")
	list := []selector{p.selector()}
	for p.space(); p.take(","); p.space() {
		list = append(list, p.selector())
	}
	p.want("]")
	return list
}

func (p *parser) selector() selector {
	p.space()
	switch c := p.next(); {
	case p.take("*"):
		return wildcard{}
	case c == '\'' || c == '"':
		return name(p.text())
	case p.take("?"):
		p.enter()
		defer p.leave()
		return &filter{test: p.either()}
	case c == ':' || c == '-' || digit(c):
		return p.indexOrSlice()
	case c == 0:
		p.fail("the path ends within [")
	default:
		p.fail("want a name in quotes, a number, *, : or ?, not %q", c)
	}
	return nil
}

func (p *parser) indexOrSlice() selector {
	start := p.integer()
	if p.space(); !p.take(":") {
		return index(orElse(start, 0)) // selector has made sure that a number follows
	}
	p.space()
	s := slice{start: start, end: p.integer()}
	if p.space(); p.take(":") {
		p.space()
		s.step = p.integer()
	}
	return s
}

// integer reads an integer; nil if there is none.
func (p *parser) integer() *int {
	begin := p.at
	p.take("-")
	for digit(p.next()) {
		p.at++
	}
	text := p.source[begin:p.at]
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxInteger || n < -maxInteger {
		p.fail("%s is not an integer of at most 53 bits", text)
	}
	return &n
}

// text reads a text in single or double quotes. Its escapes are those of JSON; in single quotes, the quote is escaped instead of the double
// quote.
func (p *parser) text() string {
	quote, encoded := p.source[p.at], []byte{'"'}
	for p.at++; p.at < len(p.source); p.at++ {
		c := p.source[p.at]
		escaped := c == '\\' && p.at+1 < len(p.source)
		if escaped {
			p.at++
			c = p.source[p.at]
		}
		switch {
		case c == quote && !escaped:
			p.at++
			return p.decoded(append(encoded, '"'))
		case c == '\'' && quote == '\'': // escaped
			encoded = append(encoded, c)
		case c == '"' && escaped == (quote == '\''):
			p.fail("\\%c is not an escape", c)
		case c == '"', escaped:
			encoded = append(encoded, '\\', c)
		default:
			encoded = append(encoded, c)
		}
	}
	p.fail("the text in quotes does not end")
	return ""
}

// decoded returns the text of a JSON string.
func (p *parser) decoded(encoded []byte) string {
	v, err := strictjson.Decode(encoded, strictjson.Limits{Depth: 1, Values: 1})
	var wrong *strictjson.SyntaxError
	if errors.As(err, &wrong) {
		p.fail("%s", wrong.Message)
	}
	text, _ := v.(string) //nolint:errcheck // after an error there is no text
	return text
}
