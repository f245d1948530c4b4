package spec

import "strings"

// templateForm says how much of a text in a document is known before it runs.
type templateForm int

const (
	// noTemplate is a text without expressions.
	noTemplate templateForm = iota
	// mixedTemplate is a text with expressions in it. Its value is always a text.
	mixedTemplate
	// wholeTemplate is a single expression, which may give anything.
	wholeTemplate
)

// readTemplate returns the form of a text and, if it has no expressions, its literal value, with `$${` replaced by `${`.
func readTemplate(text string) (literal string, form templateForm) {
	if !strings.Contains(text, "${") {
		return text, noTemplate
	}
	if strings.HasPrefix(text, "${") && endsExpression(text[2:]) {
		return "", wholeTemplate
	}
	rest := strings.ReplaceAll(text, "$${", "")
	if strings.Contains(rest, "${") {
		return text, mixedTemplate
	}
	return strings.ReplaceAll(text, "$${", "${"), noTemplate
}

// endsExpression reports whether the brace that closes an expression may be the last character of the text. It returns true if only a CEL
// parser could tell, as with raw strings, triple-quoted strings and comments.
func endsExpression(text string) bool {
	if strings.Contains(text, "//") || strings.Contains(text, `"""`) || strings.Contains(text, `'''`) ||
		strings.ContainsAny(text, `rR`) && strings.Contains(text, `\`) {
		return true
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i == len(text)-1
			}
			depth--
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return true // not closed: parsing the expression reports it
}
