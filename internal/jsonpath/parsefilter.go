package jsonpath

import (
	"encoding/json"
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

// single reports whether a query can find at most one value.
func (q *query) single() bool {
	for _, s := range q.segments {
		if s.descend || len(s.selectors) != 1 {
			return false
		}
		switch s.selectors[0].(type) {
		case name, index:
		default:
			return false
		}
	}
	return true
}

func (p *parser) either() (expression, error) {
	return p.chain("||", p.both, func(list []expression) expression { return either(list) })
}

func (p *parser) both() (expression, error) {
	return p.chain("&&", p.basic, func(list []expression) expression { return both(list) })
}

// chain reads one expression, or several joined by an operator.
func (p *parser) chain(operator string, next func() (expression, error), join func([]expression) expression) (expression, error) {
	var list []expression
	for {
		e, err := next()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.space(); !p.take(operator) {
			break
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return join(list), nil
}

// basic reads an operand of && or ||.
func (p *parser) basic() (expression, error) {
	p.space()
	switch {
	case p.next() == '!' && !strings.HasPrefix(p.source[p.at:], "!="):
		p.at++
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		of, err := p.basic()
		if _, compared := of.(comparison); compared && err == nil {
			return nil, p.fail("put the comparison after ! into parentheses")
		}
		return not{of: of}, err
	case p.take("("):
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		inner, err := p.either()
		if err != nil {
			return nil, err
		}
		return either{inner}, p.want(")")
	case p.call("match"), p.call("search"):
		return p.matchingCall()
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	return p.compared(left)
}

// call reports whether a call of the function comes next and consumes its name.
func (p *parser) call(function string) bool {
	rest, named := strings.CutPrefix(p.source[p.at:], function)
	if !named || !strings.HasPrefix(strings.TrimLeft(rest, " \t\r\n"), "(") {
		return false
	}
	p.at += len(function)
	return true
}

// compared reads the operator after an operand and its right-hand side. Without an operator, a query is true if it finds anything.
func (p *parser) compared(left operand) (expression, error) {
	p.space()
	for _, operator := range []string{"==", "!=", "<=", ">=", "=~", "<", ">"} {
		if !p.take(operator) {
			continue
		}
		if err := p.checkSingle(left); err != nil {
			return nil, err
		}
		p.space()
		if operator == "=~" {
			re, err := p.regularExpression(false)
			return matching{text: left, pattern: re}, err
		}
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		return comparison{operator: operator, left: left, right: right}, p.checkSingle(right)
	}
	if rest := p.source[p.at:]; strings.HasPrefix(rest, "in ") || strings.HasPrefix(rest, "in[") {
		p.at += len("in")
		if err := p.checkSingle(left); err != nil {
			return nil, err
		}
		list, err := p.list()
		return membership{value: left, list: list}, err
	}
	if q, ok := left.(*query); ok {
		return exists{query: q}, nil
	}
	return nil, p.fail("want one of == != < <= > >= =~ in")
}

func (p *parser) checkSingle(o operand) error {
	if q, ok := o.(*query); ok && !q.single() {
		return p.fail("a comparison needs a path to a single value; use only names and numbers, or count(…)")
	}
	return nil
}

// operand reads a literal, a path, or a call of a function that returns a value.
func (p *parser) operand() (operand, error) {
	p.space()
	switch {
	case p.next() == '@', p.next() == '$':
		return p.query()
	case p.call("length"):
		if err := p.open(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		of, err := p.operand()
		if err == nil {
			err = p.checkSingle(of)
		}
		if err != nil {
			return nil, err
		}
		return length{of: of}, p.want(")")
	case p.call("count"):
		q, err := p.queryArgument()
		return count{of: q}, err
	case p.call("value"):
		q, err := p.queryArgument()
		return valueOf{of: q}, err
	}
	v, err := p.literal()
	return literal{value: v}, err
}

func (p *parser) open() error {
	if err := p.want("("); err != nil {
		return err
	}
	return p.enter()
}

// queryArgument reads a path in parentheses.
func (p *parser) queryArgument() (*query, error) {
	if err := p.want("("); err != nil {
		return nil, err
	}
	p.space()
	if p.next() != '@' && p.next() != '$' {
		return nil, p.fail("want a path that begins with @ or $")
	}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	return q, p.want(")")
}

func (p *parser) query() (*query, error) {
	q := &query{root: p.next() == '$'}
	p.at++
	var err error
	q.segments, err = p.segments()
	return q, err
}

// literal reads a number, a text, true, false or null.
func (p *parser) literal() (any, error) {
	switch c := p.next(); {
	case c == '\'' || c == '"':
		return p.text()
	case c == '-' || digit(c):
		begin := p.at
		for p.at < len(p.source) && strings.IndexByte("+-.eE0123456789", p.source[p.at]) >= 0 {
			p.at++
		}
		if n := p.source[begin:p.at]; json.Valid([]byte(n)) {
			return json.Number(n), nil
		}
		return nil, p.fail("%s is not a number", p.source[begin:p.at])
	case c == 0:
		return nil, p.fail("the path ends where a value is wanted")
	}
	for word, v := range map[string]any{"true": true, "false": false, "null": nil} {
		rest, is := strings.CutPrefix(p.source[p.at:], word)
		if is && (rest == "" || !nameCharacter(rune(rest[0])) && !digit(rune(rest[0]))) {
			p.at += len(word)
			return v, nil
		}
	}
	return nil, p.fail("want @, $, a number, a text in quotes, true, false, null or a function, not %q", p.next())
}

// list reads literals in brackets.
func (p *parser) list() ([]any, error) {
	if err := p.want("["); err != nil {
		return nil, err
	}
	var list []any
	for {
		p.space()
		v, err := p.literal()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if p.space(); !p.take(",") {
			break
		}
	}
	return list, p.want("]")
}

// matchingCall reads the arguments of match or search; match requires the whole text to match.
func (p *parser) matchingCall() (expression, error) {
	whole := strings.HasSuffix(p.source[:p.at], "match")
	if err := p.open(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	text, err := p.operand()
	if err == nil {
		err = p.checkSingle(text)
	}
	if err == nil {
		err = p.want(",")
	}
	if err != nil {
		return nil, err
	}
	p.space()
	re, err := p.regularExpression(whole)
	if err != nil {
		return nil, err
	}
	return matching{text: text, pattern: re}, p.want(")")
}

// regularExpression reads a regular expression in quotes or between slashes.
func (p *parser) regularExpression(whole bool) (*pattern.Pattern, error) {
	var source string
	switch p.next() {
	case '\'', '"':
		var err error
		if source, err = p.text(); err != nil {
			return nil, err
		}
	case '/':
		end := p.at + 1
		for end < len(p.source) && p.source[end] != '/' {
			if p.source[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(p.source) {
			return nil, p.fail("the regular expression has no closing /")
		}
		source = strings.ReplaceAll(p.source[p.at+1:end], `\/`, "/")
		p.at = end + 1
	default:
		return nil, p.fail("want a regular expression in quotes or between slashes")
	}
	if whole {
		source = `^(?:` + source + `)$`
	}
	re, err := pattern.Compile(source)
	if err != nil {
		return nil, p.fail("%v", err)
	}
	return re, nil
}
