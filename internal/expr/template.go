package expr

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// Template is a text with expressions in `${ … }`; `$${` means a literal `${`. A template that is a single expression and nothing else gives
// that expression's value with its type. Any other template gives a text, in which strings appear unchanged and other values as JSON.
type Template struct {
	env    *Env
	source string
	parts  []part
}

// part is a piece of text or, if program is set, an expression.
type part struct {
	text    string
	program *Program
	offset  int
}

// piece is a part before it is compiled: literal text, or the source of an expression. offset is where an expression begins, in characters.
type piece struct {
	text       string
	expression bool
	offset     int
}

// Template compiles a template. Errors count lines and columns in the template's own text.
func (e *Env) Template(source string) (*Template, error) {
	pieces, err := e.split(source)
	if err != nil {
		return nil, err
	}
	return e.template(source, pieces)
}

func (e *Env) template(source string, pieces []piece) (*Template, error) {
	t := &Template{env: e, source: source}
	for _, p := range pieces {
		if !p.expression {
			t.parts = append(t.parts, part{text: p.text})
			continue
		}
		program, err := e.Compile(p.text)
		if err != nil {
			return nil, within(err, source, p.offset)
		}
		t.parts = append(t.parts, part{program: program, offset: p.offset})
	}
	return t, nil
}

// Limits of one template and of one document of templates: the number of expressions, and their total length as a multiple of the longest
// source.
const (
	maxExpressions = 500
	maxSources     = 4
)

func (e *Env) tooMany(what string, expressions, sources int) error {
	if expressions > maxExpressions {
		return jig.Errorf(jig.CodeInvalidInput, "the %s has more than %d expressions", what, maxExpressions)
	}
	if limit := maxSources * e.use.Limits.Source; sources > limit {
		return jig.Errorf(jig.CodeInvalidInput, "the expressions of the %s have more than %d KiB together", what, limit>>10)
	}
	return nil
}

// split separates the expressions of a template from its text.
func (e *Env) split(source string) ([]piece, error) {
	if limit := 4 * e.use.Limits.Result; len(source) > limit {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the template has %d bytes, at most %d are allowed", len(source), limit)
	}
	var pieces []piece
	rest, counted, offset, expressions, sources := source, 0, 0, 0, 0
	for rest != "" {
		at := strings.Index(rest, "${")
		if at < 0 {
			return withText(pieces, rest), nil
		}
		if at > 0 && rest[at-1] == '$' {
			pieces = withText(pieces, rest[:at-1]+"${")
			rest = rest[at+2:]
			continue
		}
		pieces = withText(pieces, rest[:at])
		begin := len(source) - len(rest) + at + 2
		offset += utf8.RuneCountInString(source[counted:begin])
		counted = begin
		length := closing(source[begin:])
		if length < 0 {
			return nil, (&IssueError{Source: source, Offset: offset - 2, Message: "this ${ has no closing }"}).jig()
		}
		expression := source[begin : begin+length]
		if strings.TrimSpace(expression) == "" {
			return nil, (&IssueError{Source: source, Offset: offset, Message: "there is no expression between ${ and }"}).jig()
		}
		expressions++
		sources += len(expression)
		if err := e.tooMany("template", expressions, sources); err != nil {
			return nil, err
		}
		pieces = append(pieces, piece{text: expression, expression: true, offset: offset})
		rest = source[begin+length+1:]
	}
	return pieces, nil
}

func withText(pieces []piece, text string) []piece {
	if text == "" {
		return pieces
	}
	if n := len(pieces); n > 0 && !pieces[n-1].expression {
		pieces[n-1].text += text
		return pieces
	}
	return append(pieces, piece{text: text})
}

// Constant reports whether the template has no expressions.
func (t *Template) Constant() bool {
	return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].program == nil
}

func (t *Template) constant() string {
	if len(t.parts) == 0 {
		return ""
	}
	return t.parts[0].text
}

// Eval renders the template. For the types of the result see [Program.Eval].
func (t *Template) Eval(ctx context.Context, vars map[string]any) (any, error) {
	return t.evalIn(ctx, t.env.evaluation(vars))
}

func (t *Template) evalIn(ctx context.Context, in *evaluation) (any, error) {
	if len(t.parts) == 1 && t.parts[0].program != nil {
		v, err := t.parts[0].program.evalIn(ctx, in)
		if err != nil {
			return nil, within(err, t.source, t.parts[0].offset)
		}
		return v, nil
	}
	return t.text(ctx, in)
}

// EvalText renders the template as a text, even if it is a single expression.
func (t *Template) EvalText(ctx context.Context, vars map[string]any) (string, error) {
	return t.text(ctx, t.env.evaluation(vars))
}

func (t *Template) text(ctx context.Context, in *evaluation) (string, error) {
	if t.Constant() {
		return t.constant(), nil
	}
	limit := t.env.use.Limits.Result
	var b strings.Builder
	var values []string
	for _, part := range t.parts {
		piece := part.text
		if part.program != nil {
			v, err := part.program.evalIn(ctx, in)
			if err != nil {
				return "", within(err, t.source, part.offset)
			}
			if piece, err = asText(v); err != nil {
				return "", err
			}
			values = append(values, piece)
		}
		if b.Len()+len(piece) > limit {
			return "", jig.Errorf(jig.CodeInvalidInput, "the rendered text is larger than %d KiB", limit>>10)
		}
		b.WriteString(piece)
	}
	if r, ok := ctx.Value(rendered{}).(Rendered); ok {
		r[b.String()] = values
	}
	return b.String(), nil
}

// Rendered holds the texts that templates with several parts gave, and the values of the expressions in them.
type Rendered map[string][]string

type rendered struct{}

// WithRendered returns a context in which templates add the texts that they render to r. It must be used by one goroutine.
func WithRendered(ctx context.Context, r Rendered) context.Context {
	return context.WithValue(ctx, rendered{}, r)
}

func asText(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := jsontext.Encode(v)
	return string(raw), err
}

// closing returns the index of the brace that ends an expression: the first } that is not in a string, a comment or inner braces. It
// returns -1 if there is none.
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

// stringLength returns the length of the CEL string literal whose opening quote is at i. The literal has single or triple quotes and is raw
// if an r precedes it. An unclosed literal ends with the source.
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

// raw reports whether a backslash has no special meaning in the string literal that opens at i: r"…", br"…", R'…'.
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
