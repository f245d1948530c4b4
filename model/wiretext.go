package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// wireText is a JSON string as a provider sent it. A provider may cut a stream within a character: then one piece ends with half a surrogate
// pair, or with the first bytes of a character, and the next piece begins with the rest. So a wireText keeps both, and [pieces] joins them.
type wireText []byte

var errNotText = errors.New("want a text")

// UnmarshalJSON reads a string; null is "".
func (t *wireText) UnmarshalJSON(raw []byte) error {
	*t = nil
	if string(raw) == "null" {
		return nil
	}
	if raw[0] != '"' {
		return errNotText
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		*t = bytes.Clone(raw)
		return nil
	}
	for i := 0; i < len(raw); {
		switch {
		case raw[i] != '\\':
			*t, i = append(*t, raw[i]), i+1
		case raw[i+1] == 'u':
			n, _ := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16) //nolint:errcheck // the JSON decoder has checked it
			*t, i = appendUnit(*t, rune(n)), i+6
		default:
			*t, i = append(*t, unescaped(raw[i+1])), i+2
		}
	}
	return nil
}

func unescaped(c byte) byte {
	if at := strings.IndexByte("bfnrt", c); at >= 0 {
		return "\b\f\n\r\t"[at]
	}
	return c
}

// appendUnit appends a UTF-16 unit as UTF-8. Half a surrogate pair becomes three bytes that are not valid UTF-8, as in WTF-8.
func appendUnit(b []byte, unit rune) []byte {
	if utf16.IsSurrogate(unit) {
		return append(b, byte(0xE0|unit>>12), byte(0x80|unit>>6&0x3F), byte(0x80|unit&0x3F)) //nolint:gosec // a surrogate has 16 bits
	}
	return utf8.AppendRune(b, unit)
}

// unitAt returns the half of a surrogate pair that [appendUnit] wrote at the start of b, or 0.
func unitAt(b []byte) rune {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2] < 0x80 || b[2] > 0xBF {
		return 0
	}
	return rune(b[0]&0x0F)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// pieces joins the pieces of a text.
type pieces struct {
	// escape keeps what is not part of a character, half a surrogate pair as its escape, so that whoever reads the text as JSON sees and
	// refuses it. Otherwise it becomes U+FFFD.
	escape bool

	text []byte
	// open is the beginning of a character that the next piece may complete.
	open []byte
	// lossy reports that something was replaced by U+FFFD.
	lossy bool
}

// add appends a piece and returns the text that is complete by now.
func (p *pieces) add(piece wireText) string {
	if len(p.open) > 0 {
		piece = append(p.open, piece...)
		p.open = nil
	}
	whole := len(piece) - unfinished(piece)
	p.open = piece[whole:len(piece):len(piece)]
	return p.write(piece[:whole])
}

// end returns the whole text.
func (p *pieces) end() string {
	p.write(p.open)
	p.open = nil
	return string(p.text)
}

// empty reports whether nothing was added.
func (p *pieces) empty() bool { return len(p.text)+len(p.open) == 0 }

func (p *pieces) write(b []byte) string {
	if !utf8.Valid(b) {
		b = p.repaired(b)
	}
	p.text = append(p.text, b...)
	return string(b)
}

// repaired joins surrogate pairs and replaces everything else that is not valid UTF-8.
func (p *pieces) repaired(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1 {
			out, b = append(out, b[:size]...), b[size:]
			continue
		}
		half := unitAt(b)
		switch pair := utf16.DecodeRune(half, unitAt(b[min(3, len(b)):])); {
		case half == 0 && p.escape:
			out, b = append(out, b[0]), b[1:] // whoever reads the text as JSON refuses it, too
		case half == 0:
			out, b, p.lossy = utf8.AppendRune(out, utf8.RuneError), b[1:], true
		case pair != utf8.RuneError:
			out, b = utf8.AppendRune(out, pair), b[6:]
		case p.escape:
			out, b = append(out, `\u`+strconv.FormatInt(int64(half), 16)...), b[3:]
		default:
			out, b, p.lossy = utf8.AppendRune(out, utf8.RuneError), b[3:], true
		}
	}
	return out
}

// unfinished returns how many bytes at the end of b are the beginning of a character.
func unfinished(b []byte) int {
	if n := len(b); n >= 3 {
		if half := unitAt(b[n-3:]); half != 0 && half < 0xDC00 {
			return 3
		}
	}
	for n := 1; n <= min(3, len(b)); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// scalar is a short value, such as an id or a name: a string, or the text of a number. Anything else is "".
type scalar string

// UnmarshalJSON never fails.
func (l *scalar) UnmarshalJSON(raw []byte) error {
	*l = ""
	var text string
	var number json.Number
	switch {
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		*l = scalar(text)
	case json.Unmarshal(raw, &number) == nil:
		*l = scalar(number)
	}
	return nil
}

// count is a number of tokens or an index; nil if none was sent. 10.0 and "10" are 10. What is not a whole number is as if it were not sent.
type count struct{ n *int64 }

// UnmarshalJSON never fails.
func (c *count) UnmarshalJSON(raw []byte) error {
	const most = 1 << 53
	if f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil && f >= 0 && f <= most && f == float64(int64(f)) {
		n := int64(f)
		c.n = &n
	}
	return nil
}

// or returns the number, or another one if there is none.
func (c count) or(other int64) int64 {
	if c.n == nil {
		return other
	}
	return *c.n
}

// present reports whether raw holds a value other than null, false, "" and an empty object or list.
func present(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}
