package spec

import "strings"

// templateForm says how much of a text of a document is known before it runs.
type templateForm int

const (
	// noTemplate is a text without expressions.
	noTemplate templateForm = iota
	// mixedTemplate becomes a text, whatever its expressions give.
	mixedTemplate
	// wholeTemplate is one expression, which may give anything.
	wholeTemplate
)

// readTemplate tells the form of a text and, of one without expressions, what it says: `$${` stands for `${`.
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

// endsExpression reports whether the brace that closes an expression may be the last character of the text. It says yes
// where telling would mean reading CEL: raw and triple-quoted strings, comments.
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
	return true // not closed: reading says so
}
