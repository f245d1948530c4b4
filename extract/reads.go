package extract

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// reads is what the expressions of a task read, member by member. It is read off their text and may name too much, never too
// little: a name that a macro hides counts as read.
type reads struct {
	tasks, content, entity, input names
	tenant, now                   bool
}

// names are members of a map that are read by name; all says that any may be.
type names struct {
	list []string
	all  bool
}

func (n *names) add(name string) {
	if !slices.Contains(n.list, name) {
		n.list = append(n.list, name)
	}
}

func (n names) any() bool { return n.all || len(n.list) > 0 }

// expression adds what a CEL source reads.
func (r *reads) expression(source string) {
	tokens, _ := lex(source)
	r.tokens(tokens)
}

// document adds what the templates in a JSON document read.
func (r *reads) document(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		if text, ok := token.(string); ok {
			r.template(text)
		}
	}
}

// template adds what the expressions in ${ … } read.
func (r *reads) template(text string) {
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return
		}
		escaped := at > 0 && text[at-1] == '$'
		if text = text[at+2:]; escaped {
			continue
		}
		tokens, length := lex(text)
		r.tokens(tokens)
		text = text[length:]
	}
}

func (r *reads) tokens(tokens []token) {
	for i, t := range tokens {
		if t.kind != identifier || isMember(tokens, i) {
			continue
		}
		switch t.text {
		case "tasks":
			member(tokens, i, &r.tasks)
		case "input":
			member(tokens, i, &r.input)
		case "tenant":
			r.tenant = true
		case "now":
			r.now = true
		case "entity":
			r.ofEntity(tokens, i)
		}
	}
}

func (r *reads) ofEntity(tokens []token, at int) {
	var first names
	next := member(tokens, at, &first)
	if first.all || first.list[0] != "content" {
		r.entity.all = r.entity.all || first.all
		r.content.all = r.content.all || first.all
		r.entity.list = append(r.entity.list, first.list...)
		return
	}
	member(tokens, next, &r.content)
}

// isMember says whether the name at i is selected from something; one behind a dot that follows nothing is a variable.
func isMember(tokens []token, i int) bool {
	i--
	if i >= 0 && tokens[i].text == "?" && tokens[i].kind == other {
		i--
	}
	if i < 1 || tokens[i].kind != other || tokens[i].text != "." {
		return false
	}
	switch before := tokens[i-1]; before.kind {
	case identifier:
		return before.text != "in"
	case literal, number:
		return true
	case other:
		return strings.Contains(")]}", before.text)
	}
	return false
}

// member notes which member of the value that ends at token i is read, and says where the name of it ends.
func member(tokens []token, i int, of *names) int {
	is := func(at int, text string) bool {
		return at >= 0 && at < len(tokens) && tokens[at].kind == other && tokens[at].text == text
	}
	next := i + 1
	switch {
	case is(next, "."):
		if next++; is(next, "?") {
			next++
		}
		if next < len(tokens) && tokens[next].kind == identifier && !is(next+1, "(") {
			of.add(tokens[next].text)
			return next
		}
	case is(next, "["):
		if next++; is(next, "?") {
			next++
		}
		if next < len(tokens) && tokens[next].kind == literal && !tokens[next].opaque && is(next+1, "]") {
			of.add(tokens[next].text)
			return next + 1
		}
	case i >= 2 && tokens[i-1].kind == identifier && tokens[i-1].text == "in" && tokens[i-2].kind == literal && !tokens[i-2].opaque &&
		(i == 2 || !is(i-3, "+")):
		of.add(tokens[i-2].text)
		return i
	}
	of.all = true
	return i
}

type tokenKind int

const (
	identifier tokenKind = iota
	literal
	number
	other
)

// token of CEL; opaque is a text whose value is not told by its characters (escapes, bytes).
type token struct {
	kind   tokenKind
	text   string
	opaque bool
}

// lex reads tokens up to the end, or to the } that closes what was not opened. length is what was read.
func lex(source string) (tokens []token, length int) {
	depth, at := 0, 0
	for at < len(source) {
		switch c := source[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			at++
		case strings.HasPrefix(source[at:], "//"):
			end := strings.IndexByte(source[at:], '\n')
			if end < 0 {
				return tokens, len(source)
			}
			at += end
		case c == '"' || c == '\'':
			t, size := text(source[at:], false)
			tokens, at = append(tokens, t), at+size
		case c == '`':
			size := strings.IndexByte(source[at+1:], '`')
			if size < 0 {
				return tokens, len(source)
			}
			tokens, at = append(tokens, token{kind: identifier, text: source[at+1 : at+1+size]}), at+size+2
		case isLetter(c):
			end := at
			for end < len(source) && (isLetter(source[end]) || isDigit(source[end])) {
				end++
			}
			word := source[at:end]
			if end < len(source) && (source[end] == '"' || source[end] == '\'') && len(word) <= 2 && strings.Trim(word, "rRbB") == "" {
				t, size := text(source[end:], strings.ContainsAny(word, "rR"))
				t.opaque = t.opaque || strings.ContainsAny(word, "bB")
				tokens, at = append(tokens, t), end+size
				continue
			}
			tokens, at = append(tokens, token{kind: identifier, text: word}), end
		case isDigit(c):
			end := at
			for end < len(source) && (isLetter(source[end]) || isDigit(source[end]) ||
				source[end] == '.' && end+1 < len(source) && isDigit(source[end+1])) {
				end++
			}
			tokens, at = append(tokens, token{kind: number, text: source[at:end]}), end
		default:
			if c == '{' {
				depth++
			}
			if c == '}' {
				if depth--; depth < 0 {
					return tokens, at
				}
			}
			tokens, at = append(tokens, token{kind: other, text: source[at : at+1]}), at+1
		}
	}
	return tokens, at
}

// text reads a text in quotes, single or threefold.
func text(source string, raw bool) (t token, length int) {
	quote := source[:1]
	if strings.HasPrefix(source, strings.Repeat(quote, 3)) {
		quote = source[:3]
	}
	at := len(quote)
	for at < len(source) {
		switch {
		case source[at] == '\\' && !raw:
			t.opaque = true
			at += 2
		case strings.HasPrefix(source[at:], quote):
			return token{kind: literal, text: source[len(quote):at], opaque: t.opaque}, at + len(quote)
		default:
			at++
		}
	}
	return token{kind: literal, opaque: true}, len(source)
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
