package strictjson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// MaxExactInteger is 2^53. A double represents every integer up to it exactly.
const MaxExactInteger = 1 << 53

// maxExactDigits is the number of significant decimal digits that a double always distinguishes.
const maxExactDigits = 15

func (d *decoder) number() (any, error) {
	start := d.pos
	d.accept('-')
	if !d.accept('0') && d.digits() == 0 {
		return nil, d.fail("a number lacks its digits")
	}
	if d.accept('.') && d.digits() == 0 {
		return nil, d.fail("a number lacks its digits after the point")
	}
	exponent := ""
	if d.accept('e') || d.accept('E') {
		from := d.pos
		if !d.accept('-') {
			d.accept('+')
		}
		if d.digits() == 0 {
			return nil, d.fail("a number lacks its exponent")
		}
		exponent = d.text[from:d.pos]
	}
	literal := d.text[start:d.pos]
	if err := d.checkNumber(literal, exponent); err != nil {
		return nil, err
	}
	return json.Number(literal), nil
}

func (d *decoder) accept(c byte) bool {
	if d.pos < len(d.text) && d.text[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) digits() int {
	from := d.pos
	for d.pos < len(d.text) && d.text[d.pos] >= '0' && d.text[d.pos] <= '9' {
		d.pos++
	}
	return d.pos - from
}

func (d *decoder) checkNumber(literal, exponent string) error {
	if len(literal) <= maxExactDigits && exponent == "" {
		return nil
	}
	if len(literal) > maxNumberLength {
		return d.fail("a number has more than %d characters", maxNumberLength)
	}
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxNumberExponent || e < -maxNumberExponent {
			return d.fail("a number has an exponent beyond %d", maxNumberExponent)
		}
	}
	if d.exact && !ExactNumber(literal) {
		return d.fail("a number is beyond 2^53 and would lose digits; write it as a string")
	}
	return nil
}

// ExactNumber reports whether the literal is acceptable where numbers must be exact: integers up to 2^53, other numbers below 2^53 with any
// number of digits, and larger numbers with no more significant digits than a double distinguishes. The notation of the larger ones does not
// matter, because 1.5e20 comes back from its double as 150000000000000000000.
func ExactNumber(literal string) bool {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return false
	}
	if !strings.ContainsAny(literal, ".eE") {
		if n, err := strconv.ParseInt(literal, 10, 64); err == nil && n <= MaxExactInteger && n >= -MaxExactInteger {
			return true
		}
	}
	if math.Abs(f) < MaxExactInteger && strings.ContainsAny(literal, ".eE") {
		return true
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
	mantissa = strings.NewReplacer("-", "", ".", "").Replace(mantissa)
	return len(strings.Trim(mantissa, "0")) <= maxExactDigits
}
