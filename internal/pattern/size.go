package pattern

import (
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
