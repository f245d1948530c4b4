package expr

import (
	"strings"
	"unicode/utf8"
)

// Limits of a source before it is parsed. The parser takes about 2 KiB for each token. It also looks ahead over all signs in a row, and
// over the rest of the source after each quote that is never closed.
const (
	maxTokens = 8_000
	maxSigns  = 50
)

// scan splits a source into tokens as the parser's lexer does, and refuses sources that would take the parser too long.
func scan(source string) *IssueError {
	tokens, signs := 0, 0
	for i := 0; i < len(source); {
		length, message := token(source, i)
		issue := func(message string) *IssueError {
			return &IssueError{Source: source, Offset: utf8.RuneCountInString(source[:i]), Message: message}
		}
		if message != "" {
			return issue("syntax error: " + message)
		}
		switch c := source[i]; {
		case blank(c) || strings.HasPrefix(source[i:], "//"):
			i += length
			continue
		case (c == '-' || c == '!') && length == 1:
			signs++
		default:
			signs = 0
		}
		if tokens++; tokens > maxTokens {
			return issue("the expression has more than 8,000 words and signs")
		}
		if signs > maxSigns {
			return issue("more than 50 signs in a row")
		}
		i += length
	}
	return nil
}

// token returns the length of the token that begins at i, or a message if no token begins there. It may split a number into several tokens.
func token(source string, i int) (length int, message string) {
	rest := source[i:]
	switch c := source[i]; {
	case blank(c):
		return 1, ""
	case strings.HasPrefix(rest, "//"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end, ""
		}
		return len(rest), ""
	case c == '"' || c == '\'':
		return quoted(rest, false)
	case c == '`':
		if end := strings.IndexByte(rest[1:], '`'); end > 0 {
			return end + 2, ""
		}
		return 0, "this name has no closing `"
	case wordByte(c):
		for length < len(rest) && wordByte(rest[length]) {
			length++
		}
		if length < len(rest) && (rest[length] == '"' || rest[length] == '\'') && prefixes[strings.ToLower(rest[:length])] {
			closed, message := quoted(rest[length:], strings.ContainsAny(rest[:length], "rR"))
			return length + closed, message
		}
		return length, ""
	}
	for _, sign := range [...]string{"==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(rest, sign) {
			return 2, ""
		}
	}
	if strings.IndexByte("<>[]{}().,-!?:+*/%", source[i]) >= 0 {
		return 1, ""
	}
	_, size := utf8.DecodeRuneInString(rest)
	return 0, "unexpected '" + strings.ToValidUTF8(rest[:size], "�") + "'"
}

var prefixes = map[string]bool{"r": true, "b": true, "br": true}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// quoted returns the length of the string literal at the beginning of a source. Three quotes open a long literal if three quotes close it.
func quoted(source string, raw bool) (length int, message string) {
	quote := source[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(source, triple) {
		if end, _ := closed(source, triple, raw); end > 0 {
			return end, ""
		}
	}
	end, escape := closed(source, quote, raw)
	switch {
	case end > 0:
		return end, ""
	case escape:
		return 0, "this text has an unknown escape; a backslash is written \\\\"
	}
	return 0, "this text has no closing " + quote
}

// closed returns the length of a string literal including its quotes. It is 0 if the literal does not end, or has an unknown escape (escape
// is true).
func closed(source, quote string, raw bool) (length int, escape bool) {
	for i := len(quote); i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote), false
		case len(quote) == 1 && (source[i] == '\n' || source[i] == '\r'):
			return 0, false
		case source[i] == '\\' && !raw:
			n := escapeLength(source[i+1:])
			if n == 0 {
				return 0, true
			}
			i += 1 + n
		default:
			i++
		}
	}
	return 0, false
}

// escapeLength returns the length of a valid escape after a backslash, or 0 if it is not valid.
func escapeLength(rest string) int {
	if rest == "" {
		return 0
	}
	digits, set := 0, "0123456789abcdefABCDEF"
	switch c := rest[0]; {
	case strings.IndexByte("abfnrtv\"'\\?`", c) >= 0:
		return 1
	case c == 'x' || c == 'X':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c >= '0' && c <= '3':
		digits, set = 2, "01234567"
	default:
		return 0
	}
	if len(rest) <= digits || strings.Trim(rest[1:1+digits], set) != "" {
		return 0
	}
	return 1 + digits
}
