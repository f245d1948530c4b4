package spec

import (
	"bytes"
	"unicode/utf8"

	"github.com/jig-run/jig"
)

// notUTF8 returns the problem of a text that is not UTF-8; nil if it is.
func notUTF8(text []byte) *Problem {
	p := &Problem{Line: 1, Column: 1, Code: ProblemSyntax, Severity: SeverityError, Hint: "save it as UTF-8"}
	if encoding := encodingOf(text); encoding != "" {
		return new(p.saying("the document is %s text, not UTF-8", jig.Known(encoding)))
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			before := text[:at]
			p.Line, p.Column = 1+bytes.Count(before, []byte("\n")), at-bytes.LastIndexByte(before, '\n')
			return new(p.saying("the document is not UTF-8 text"))
		}
		at += size
	}
	return nil
}

// encodingOf returns UTF-16 or UTF-32 if a text begins like a document in that encoding: with its byte order mark, or with ASCII characters
// among zeros. It is empty for any other text.
func encodingOf(text []byte) string {
	zero := func(at ...int) bool {
		for _, i := range at {
			if i >= len(text) || text[i] != 0 {
				return false
			}
		}
		return true
	}
	switch little, big := bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}); {
	case little && zero(2, 3), zero(0, 1), zero(1, 2, 3):
		return "UTF-32"
	case little, big, zero(0, 2), zero(1, 3):
		return "UTF-16"
	}
	return ""
}

// asASCII returns the ASCII characters of a text in another encoding, so that it can be told what the text is.
func asASCII(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == 0 || r >= utf8.RuneSelf {
			return -1
		}
		return r
	}, text)
}
