package jsonpath

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/pattern"
)

// expression is a part of a filter with a truth value: either, both, not, comparison, matching, membership or exists.
type expression any

type (
	either     []expression
	both       []expression
	not        struct{ of expression }
	exists     struct{ query *query }
	comparison struct {
		operator    string
		left, right operand
	}
	matching struct {
		text    operand
		pattern *pattern.Pattern
	}
	membership struct {
		value operand
		list  []any
	}
)

// operand is an operand of an operator: a literal, a *query (of at most one value), length, count or valueOf.
type operand any

type (
	literal struct{ value any }
	length  struct{ of operand }
	count   struct{ of *query }
	valueOf struct{ of *query }
	// query is a path from the current value or from the root.
	query struct {
		root     bool
		segments []segment
	}
)

// either reads a filter: expressions joined by ||.
func (p *parser) either() expression {
	list := either{p.both()}
	for p.space(); p.take("||"); p.space() {
		list = append(list, p.both())
	}
	return list
}

func (p *parser) both() expression {
	list := both{p.basic()}
	for p.space(); p.take("&&"); p.space() {
		list = append(list, p.basic())
	}
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// basic reads an operand of && or ||.
func (p *parser) basic() expression {
	switch p.space(); {
	case p.take("!"):
		p.enter()
		defer p.leave()
		of := p.basic()
		if _, compared := of.(comparison); compared {
			p.fail("put the comparison after ! into parentheses")
		}
		return not{of: of}
	case p.take("("):
		p.enter()
		defer p.leave()
		inner := p.either()
		p.want(")")
		return inner
	case p.call("match"):
		return p.matching(true)
	case p.call("search"):
		return p.matching(false)
	}
	return p.compared(p.operand())
}

// call reports whether a call of the function comes next and consumes its name.
func (p *parser) call(function string) bool {
	rest, named := strings.CutPrefix(p.source[p.at:], function)
	return named && strings.HasPrefix(strings.TrimLeft(rest, " \t\r\n"), "(") && p.take(function)
}

// compared reads the operator after an operand and its right-hand side. Without an operator, a query is true if it finds anything.
func (p *parser) compared(left operand) expression {
	p.space()
	for _, operator := range []string{"==", "!=", "<=", ">=", "=~", "<", ">"} {
		if !p.take(operator) {
			continue
		}
		p.single(left)
		if operator == "=~" {
			return matching{text: left, pattern: p.regularExpression(false)}
		}
		return comparison{operator: operator, left: left, right: p.single(p.operand())}
	}
	if rest := p.source[p.at:]; strings.HasPrefix(rest, "in ") || strings.HasPrefix(rest, "in[") {
		p.at += len("in")
		return membership{value: p.single(left), list: p.list()}
	}
	q, ok := left.(*query)
	if !ok {
		p.fail("want one of == != < <= > >= =~ in")
	}
	return exists{query: q}
}

// single refuses a path that may find several values.
func (p *parser) single(o operand) operand {
	if q, ok := o.(*query); ok && !q.single() {
		p.fail("a comparison needs a path to a single value; use only names and numbers, or count(…)")
	}
	return o
}

// operand reads a literal, a path, or a call of a function that returns a value.
func (p *parser) operand() operand {
	p.space()
	switch {
	case p.next() == '@', p.next() == '$':
		return p.query()
	case p.call("length"):
		p.want("(")
		p.enter()
		defer p.leave()
		of := p.single(p.operand())
		p.want(")")
		return length{of: of}
	case p.call("count"):
		return count{of: p.queryArgument()}
	case p.call("value"):
		return valueOf{of: p.queryArgument()}
	}
	return literal{value: p.literal()}
}

// queryArgument reads a path in parentheses.
func (p *parser) queryArgument() *query {
	p.want("(")
	if p.space(); p.next() != '@' && p.next() != '$' {
		p.fail("want a path that begins with @ or $")
	}
	q := p.query()
	p.want(")")
	return q
}

// query reads a path that begins with @ or $.
func (p *parser) query() *query {
	root := p.take("$")
	p.take("@")
	return &query{root: root, segments: p.segments()}
}

// literal reads a number, a text, true, false or null.
func (p *parser) literal() any {
	switch c := p.next(); {
	case c == '\'' || c == '"':
		return p.text()
	case c == '-' || digit(c):
		begin := p.at
		for p.at < len(p.source) && strings.IndexByte("+-.eE0123456789", p.source[p.at]) >= 0 {
			p.at++
		}
		n := p.source[begin:p.at]
		if !json.Valid([]byte(n)) {
			p.fail("%s is not a number", n)
		}
		return json.Number(n)
	case c == 0:
		p.fail("the path ends where a value is wanted")
	}
	for word, v := range map[string]any{"true": true, "false": false, "null": nil} {
		rest, is := strings.CutPrefix(p.source[p.at:], word)
		if is && (rest == "" || !nameCharacter(rune(rest[0])) && !digit(rune(rest[0]))) {
			p.take(word)
			return v
		}
	}
	p.fail("want @, $, a number, a text in quotes, true, false, null or a function, not %q", p.next())
	return nil
}

// list reads literals in brackets.
func (p *parser) list() []any {
	p.want("[")
	p.space()
	list := []any{p.literal()}
	for p.space(); p.take(","); p.space() {
		p.space()
		list = append(list, p.literal())
	}
	p.want("]")
	return list
}

// matching reads the arguments of match or search; match requires the whole text to match.
func (p *parser) matching(whole bool) expression {
	p.want("(")
	p.enter()
	defer p.leave()
	text := p.single(p.operand())
	p.want(",")
	re := p.regularExpression(whole)
	p.want(")")
	return matching{text: text, pattern: re}
}

// regularExpression reads a regular expression in quotes or between slashes.
func (p *parser) regularExpression(whole bool) *pattern.Pattern {
	var source string
	switch p.space(); p.next() {
	case '\'', '"':
		source = p.text()
	case '/':
		end := p.at + 1
		for end < len(p.source) && p.source[end] != '/' {
			if p.source[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(p.source) {
			p.fail("the regular expression has no closing /")
			return nil
		}
		source = strings.ReplaceAll(p.source[p.at+1:end], `\/`, "/")
		p.at = end + 1
	default:
		p.fail("want a regular expression in quotes or between slashes")
		return nil
	}
	if whole {
		source = `^(?:` + source + `)$`
	}
	re, err := pattern.Compile(source)
	if err != nil {
		p.fail("%v", err)
	}
	return re
}

// single reports whether a query can find at most one value.
func (q *query) single() bool {
	return !slices.ContainsFunc(q.segments, func(s segment) bool {
		if s.descend || len(s.selectors) != 1 {
			return true
		}
		switch s.selectors[0].(type) {
		case name, index:
			return false
		}
		return true
	})
}
