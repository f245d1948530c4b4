package expr

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
)

// Template is a text with expressions in `${ … }`; `$${` stands for a literal `${`. A template that is one expression and
// nothing else gives that expression's value with its type; any other gives a text, in which values that are texts stand
// as they are and others as their JSON.
type Template struct {
	source string
	parts  []part
	limit  int
}

// part is a piece of text or, when program is set, an expression.
type part struct {
	text    string
	program *Program
	offset  int
}

// Template compiles a template. Errors count lines and columns in the template's own text.
func (e *Env) Template(source string) (*Template, error) {
	if limit := 4 * e.use.Limits.Result; len(source) > limit {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the template has %d bytes, at most %d are allowed", len(source), limit)
	}
	t := &Template{source: source, limit: e.use.Limits.Result}
	rest := source
	for rest != "" {
		at := strings.Index(rest, "${")
		if at < 0 {
			t.addText(rest)
			break
		}
		if at > 0 && rest[at-1] == '$' {
			t.addText(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		t.addText(rest[:at])
		begin := len(source) - len(rest) + at + 2
		length := closing(source[begin:])
		if length < 0 {
			i := &IssueError{Source: source, Offset: utf8.RuneCountInString(source[:begin-2]), Message: "this ${ has no closing }"}
			return nil, i.jig()
		}
		if err := e.addExpression(t, source[begin:begin+length], begin); err != nil {
			return nil, err
		}
		rest = source[begin+length+1:]
	}
	return t, nil
}

func (t *Template) addText(text string) {
	if text == "" {
		return
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].program == nil {
		t.parts[n-1].text += text
		return
	}
	t.parts = append(t.parts, part{text: text})
}

func (e *Env) addExpression(t *Template, source string, begin int) error {
	offset := utf8.RuneCountInString(t.source[:begin])
	if strings.TrimSpace(source) == "" {
		return (&IssueError{Source: t.source, Offset: offset, Message: "there is no expression between ${ and }"}).jig()
	}
	p, err := e.Compile(source)
	if err != nil {
		return within(err, t.source, offset)
	}
	t.parts = append(t.parts, part{program: p, offset: offset})
	return nil
}

// Constant reports whether the template holds no expression.
func (t *Template) Constant() bool {
	return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].program == nil
}

// Eval renders the template; see Program.Eval for the types.
func (t *Template) Eval(ctx context.Context, vars map[string]any) (any, error) {
	if len(t.parts) == 1 && t.parts[0].program != nil {
		v, err := t.parts[0].program.Eval(ctx, vars)
		if err != nil {
			return nil, within(err, t.source, t.parts[0].offset)
		}
		return v, nil
	}
	return t.text(ctx, vars)
}

// EvalText renders the template as a text, also when it is one expression.
func (t *Template) EvalText(ctx context.Context, vars map[string]any) (string, error) {
	return t.text(ctx, vars)
}

func (t *Template) text(ctx context.Context, vars map[string]any) (string, error) {
	if t.Constant() {
		if len(t.parts) == 0 {
			return "", nil
		}
		return t.parts[0].text, nil
	}
	var b strings.Builder
	for _, part := range t.parts {
		piece := part.text
		if part.program != nil {
			v, err := part.program.Eval(ctx, vars)
			if err != nil {
				return "", within(err, t.source, part.offset)
			}
			if piece, err = asText(v); err != nil {
				return "", err
			}
		}
		if b.Len()+len(piece) > t.limit {
			return "", jig.Errorf(jig.CodeInvalidInput, "the rendered text is larger than %d KiB", t.limit>>10)
		}
		b.WriteString(piece)
	}
	return b.String(), nil
}

func asText(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := marshal(v)
	return string(raw), err
}

// closing finds the brace that ends an expression: the first } that is not in a string, a comment or inner braces.
func closing(source string) int {
	depth := 0
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			i += stringLength(source, i) - 1
		case '/':
			if strings.HasPrefix(source[i:], "//") {
				end := strings.IndexByte(source[i:], '\n')
				if end < 0 {
					return -1
				}
				i += end
			}
		}
	}
	return -1
}

// stringLength is the length of the CEL string literal whose opening quote is at i: single or triple quotes, raw when an r
// stands before it. An unclosed one ends with the source.
func stringLength(source string, i int) int {
	quote := source[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(source[i:], triple) {
		quote = triple
	}
	for j := i + len(quote); j < len(source); j++ {
		if source[j] == '\\' && !raw(source, i) {
			j++
			continue
		}
		if strings.HasPrefix(source[j:], quote) {
			return j + len(quote) - i
		}
	}
	return len(source) - i
}

// raw reports whether the string literal that opens at i is one in which a backslash means itself: r"…", br"…", R'…'.
func raw(source string, i int) bool {
	prefix := i
	for prefix > 0 && i-prefix < 2 && strings.ContainsRune("rRbB", rune(source[prefix-1])) {
		prefix--
	}
	if prefix > 0 && wordByte(source[prefix-1]) {
		return false
	}
	return strings.ContainsAny(source[prefix:i], "rR")
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// EvalJSON is Eval with the result as JSON.
func (t *Template) EvalJSON(ctx context.Context, vars map[string]any) (json.RawMessage, error) {
	v, err := t.Eval(ctx, vars)
	if err != nil {
		return nil, err
	}
	return marshal(v)
}
