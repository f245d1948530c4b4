package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Glob compiles a glob for paths with slashes. * and ? match within a name, ** matches any number of folders, [a-z] matches one character,
// and {a,b} matches one of several alternatives. The pattern matches whole paths. Globs are compiled to regular expressions, because trying
// alternatives one after another can take exponential time.
func Glob(glob string) (*Pattern, error) {
	if len(glob) > MaxBytes {
		return nil, fmt.Errorf("the glob has %d bytes, at most %d are allowed", len(glob), MaxBytes)
	}
	g := &globReader{glob: glob}
	g.out.WriteString(`(?s)\A`)
	if err := g.all(); err != nil {
		return nil, err
	}
	g.out.WriteString(`\z`)
	p, err := compile(g.out.String())
	if err != nil {
		return nil, fmt.Errorf("the glob is too complex: %w", err)
	}
	return p, nil
}

// globReader translates a glob to a regular expression.
type globReader struct {
	glob    string
	at      int
	out     strings.Builder
	choices int // number of open braces
}

var errGlob = errors.New("not a glob")

func (g *globReader) all() error {
	for g.at < len(g.glob) {
		c, n := utf8.DecodeRuneInString(g.glob[g.at:])
		switch {
		case c == '*':
			g.stars()
			continue
		case c == '/' && g.glob[g.at:] == "/**":
			g.out.WriteString(`(?:/.*)?`)
			g.at += len("/**")
			continue
		case c == '?':
			g.out.WriteString(`[^/]`)
		case c == '[':
			if err := g.class(); err != nil {
				return err
			}
			continue
		case c == '{':
			g.choices++
			g.out.WriteString(`(?:`)
		case c == ',' && g.choices > 0:
			g.out.WriteByte('|')
		case c == '}' && g.choices > 0:
			g.choices--
			g.out.WriteByte(')')
		case c == '\\':
			g.at++
			if g.at == len(g.glob) {
				return fmt.Errorf("%w: it ends in a backslash", errGlob)
			}
			c, n = utf8.DecodeRuneInString(g.glob[g.at:])
			g.out.WriteString(quoted(c))
		default:
			g.out.WriteString(quoted(c))
		}
		g.at += n
	}
	if g.choices > 0 {
		return fmt.Errorf("%w: a { has no closing }", errGlob)
	}
	return nil
}

// stars translates * and **. Two stars match folders only if they are a whole name.
func (g *globReader) stars() {
	begin := g.at
	for g.at < len(g.glob) && g.glob[g.at] == '*' {
		g.at++
	}
	atStart := begin == 0 || g.glob[begin-1] == '/'
	switch rest := g.glob[g.at:]; {
	case g.at-begin != 2 || !atStart:
		g.out.WriteString(`[^/]*`)
	case rest == "":
		g.out.WriteString(`.*`)
	case rest[0] == '/':
		g.out.WriteString(`(?:[^/]*/)*`)
		g.at++
	default:
		g.out.WriteString(`[^/]*`)
	}
}

// class translates [a-z], [^a-z] and [!a-z].
func (g *globReader) class() error {
	g.at++
	g.out.WriteByte('[')
	if g.at < len(g.glob) && (g.glob[g.at] == '!' || g.glob[g.at] == '^') {
		g.out.WriteString("^/")
		g.at++
	}
	for first := true; g.at < len(g.glob); first = false {
		c, n := utf8.DecodeRuneInString(g.glob[g.at:])
		g.at += n
		switch {
		case c == ']' && first:
			return fmt.Errorf("%w: a [] has no characters", errGlob)
		case c == ']':
			g.out.WriteByte(']')
			return nil
		case c == '-' && !first && g.at < len(g.glob) && g.glob[g.at] != ']':
			g.out.WriteByte('-')
			continue
		case c == '\\' && g.at < len(g.glob):
			c, n = utf8.DecodeRuneInString(g.glob[g.at:])
			g.at += n
		}
		g.out.WriteString(inClass(c))
	}
	return fmt.Errorf("%w: a [ has no closing ]", errGlob)
}

func quoted(c rune) string { return regexp.QuoteMeta(string(c)) }

// inClass escapes a character that has a special meaning between brackets.
func inClass(c rune) string {
	if strings.ContainsRune(`\]-^[`, c) {
		return `\` + string(c)
	}
	return string(c)
}
