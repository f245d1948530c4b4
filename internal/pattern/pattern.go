// Package pattern compiles and matches regular expressions (RE2) that documents, models and people supply. It bounds their memory and work,
// because Go's own engine does not: a source of 1,000 bytes can compile to a program of 400,000 instructions, and matching takes that many
// steps for each byte of the text.
package pattern

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of regular expressions.
const (
	// MaxBytes is the maximum length of the source, in bytes.
	MaxBytes = 1_000
	// MaxSize is the maximum size of the compiled program, in instructions.
	MaxSize = 2_500
	// MaxSteps is the maximum number of steps of matching all texts of an entity. A text takes as many steps as it has bytes, times the
	// instructions of the program. That many steps take about a second.
	MaxSteps = 100_000_000
	// MaxEffort is the maximum effort of compiling all expressions of a Set, in instructions.
	MaxEffort = 200_000

	// maxFolding bounds the number of characters that the parser goes through for ranges that ignore case, such as (?i)[a-\x{10FFF}].
	maxFolding = 130_000
	// The parser's work beyond producing instructions, counted in instructions: foldingWeight characters that ignore case count as one, and
	// each Unicode class such as \pL counts as classWeight.
	foldingWeight = 10
	classWeight   = 100
	// unchecked is how many steps Match takes before it checks its context again.
	unchecked = 1_000_000
)

// Pattern is a compiled regular expression. It is safe for concurrent use.
type Pattern struct {
	compiled *regexp.Regexp
	size     int
	effort   int
}

// Compile compiles a regular expression. The error says what is wrong with it or which bound it exceeds.
func Compile(source string) (*Pattern, error) {
	if len(source) > MaxBytes {
		return nil, fmt.Errorf("the regular expression has %d bytes, at most %d are allowed", len(source), MaxBytes)
	}
	folded := folding(source)
	if folded > maxFolding {
		return nil, fmt.Errorf("the regular expression ignores the case of more than %d characters; "+
			"make the ranges of characters under (?i) smaller", maxFolding)
	}
	p, err := compile(source)
	if err != nil {
		return nil, err
	}
	p.effort = p.size + len(source) + folded/foldingWeight + classWeight*strings.Count(strings.ToLower(source), `\p`)
	return p, nil
}

// compile refuses programs that are too large before it compiles them.
func compile(source string) (*Pattern, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("not a regular expression: %w", err)
	}
	size := sizeOf(parsed)
	if size > MaxSize {
		return nil, fmt.Errorf("the regular expression is too large: it compiles to %s instructions, at most %d are allowed; "+
			"repeat less with {n} or split it", atMost(size), MaxSize)
	}
	compiled, err := regexp.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("not a regular expression: %w", err)
	}
	return &Pattern{compiled: compiled, size: size, effort: size}, nil
}

// Set compiles the expressions of one document, which share one bound. It is not safe for concurrent use.
type Set struct {
	// Most is the maximum effort of compiling all of them, in instructions; default MaxEffort.
	Most  int
	spent int
}

// Compile is like the function [Compile], within the effort that the set has left.
func (s *Set) Compile(source string) (*Pattern, error) {
	most := cmp.Or(s.Most, MaxEffort)
	if s.spent > most {
		return nil, tooMany(most)
	}
	p, err := Compile(source)
	if err != nil {
		s.spent += len(source) // a document must not be able to submit any number of invalid expressions
		return nil, err
	}
	if s.spent += p.effort; s.spent > most {
		return nil, tooMany(most)
	}
	return p, nil
}

func tooMany(most int) error {
	return fmt.Errorf("the regular expressions are too large together: more than %d instructions", most)
}

// String returns the source of the regular expression.
func (p *Pattern) String() string { return p.compiled.String() }

// Size returns the size of the program in instructions: the maximum number of steps that a match takes for each byte of the text.
func (p *Pattern) Size() int { return p.size }

// Effort returns the effort of compiling the expression, in instructions.
func (p *Pattern) Effort() int { return p.effort }

// Steps returns the maximum number of steps of matching a text of n bytes.
func (p *Pattern) Steps(n int) int64 { return int64(n+1) * int64(p.size) }

// MatchString reports whether the text contains a match. It takes as long as it needs, at most Steps(len(text)) steps.
func (p *Pattern) MatchString(text string) bool { return p.compiled.MatchString(text) }

// Match reports whether the text contains a match. It stops soon after ctx ends and returns ctx's error.
func (p *Pattern) Match(ctx context.Context, text []byte) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err //nolint:wrapcheck // the caller's own context
	}
	if p.Steps(len(text)) <= unchecked {
		return p.compiled.Match(text), nil
	}
	runes := &runeReader{ctx: ctx, text: text, every: max(1, unchecked/p.size)}
	found := p.compiled.MatchReader(runes)
	if runes.err != nil {
		return false, runes.err
	}
	return found, nil
}

// runeReader feeds a text to the engine. When the context has ended, it pretends that the text ends.
type runeReader struct {
	ctx         context.Context //nolint:containedctx // io.RuneReader has no parameter for it
	text        []byte
	every, read int
	err         error
}

// ReadRune implements io.RuneReader.
func (r *runeReader) ReadRune() (rune, int, error) {
	if r.read++; r.read%r.every == 0 {
		r.err = r.ctx.Err()
	}
	if r.err != nil || len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRune(r.text)
	r.text = r.text[n:]
	return c, n, nil
}

// lastFolded is the last character that has upper and lower case.
const lastFolded = 0x1e943

// tooLarge is the largest size that is counted.
const tooLarge = 1 << 30

// sizeOf returns an upper bound of the number of instructions that a parsed expression compiles to. It does not compile the expression,
// because the compiler expands repetitions, and a few nested ones take gigabytes.
func sizeOf(re *syntax.Regexp) int { return min(tooLarge, 2+count(re)) }

func count(re *syntax.Regexp) int {
	sum := 0
	for _, sub := range re.Sub {
		sum = min(tooLarge, sum+count(sub))
	}
	switch re.Op { //nolint:exhaustive // everything else is one instruction
	case syntax.OpLiteral:
		return max(1, len(re.Rune))
	case syntax.OpCapture:
		return sum + 2
	case syntax.OpQuest:
		return sum + 1
	case syntax.OpStar, syntax.OpPlus:
		return sum + 2
	case syntax.OpRepeat:
		return repeated(sum, re.Min, re.Max)
	case syntax.OpConcat:
		return max(1, sum)
	case syntax.OpAlternate:
		return sum + len(re.Sub)
	}
	return 1
}

// repeated returns the size of x{least,most}; most is -1 if there is no upper limit.
func repeated(size, least, most int) int {
	if most < 0 {
		return min(tooLarge, size*max(1, least)+2)
	}
	return min(tooLarge, max(1, size*least+(size+1)*(most-least)))
}

// folding returns an upper bound of the number of characters that the parser goes through one by one because of ranges under (?i). It
// counts every dash as a range that begins at character 0.
func folding(source string) int {
	if !ignoresCase(source) {
		return 0
	}
	sum := 0
	for rest := source; ; {
		_, after, found := strings.Cut(rest, "-")
		if !found {
			return sum
		}
		sum += min(int(first(after)), lastFolded)
		rest = after
	}
}

// ignoresCase reports whether an expression has a group with the flag i.
func ignoresCase(source string) bool {
	for rest := source; ; {
		_, after, found := strings.Cut(rest, "(?")
		if !found {
			return false
		}
		flags := after[:len(after)-len(strings.TrimLeft(after, "imsU-"))]
		if strings.Contains(flags, "i") {
			return true
		}
		rest = after
	}
}

// first returns the first character of an expression, which may be written as \x{1F600} or \x41.
func first(source string) rune {
	if hex, ok := strings.CutPrefix(source, `\x{`); ok {
		digits, _, _ := strings.Cut(hex, "}")
		n, err := strconv.ParseInt(digits, 16, 32)
		if err != nil || n > utf8.MaxRune {
			return utf8.MaxRune
		}
		return rune(n)
	}
	if strings.HasPrefix(source, `\`) {
		return utf8.RuneSelf // other escapes are below this
	}
	c, _ := utf8.DecodeRuneInString(source)
	return c
}

// atMost formats a size; a size of tooLarge or more is not counted exactly.
func atMost(size int) string {
	if size >= tooLarge {
		return "more than a billion"
	}
	return strconv.Itoa(size)
}
