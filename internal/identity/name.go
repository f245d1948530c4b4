package identity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/visible"
)

// CheckName returns an error unless people can see all of a principal's name: it is in the Unicode form NFC, without invisible and control characters
// and without spaces at its ends. The error is INVALID_INPUT with the field principal.
func CheckName(name string) error {
	what := ""
	switch hidden := false; {
	case !utf8.ValidString(name):
		what = "is not valid UTF-8"
	case name != strings.TrimFunc(name, unicode.IsSpace):
		what = "begins or ends with a space"
	case !norm.NFC.IsNormalString(name):
		what = "is not in the Unicode form NFC"
	default:
		visible.Map(name, func(r rune, invisible bool) rune {
			hidden = hidden || invisible || unicode.IsControl(r) || unicode.IsSpace(r) && r != ' '
			return r
		})
		if !hidden {
			return nil
		}
		what = "has a character that people cannot see"
	}
	return jig.Errorf(jig.CodeInvalidInput, "the name of the principal %s", what).WithField("principal").
		WithHint("type the name again, with plain letters, digits and punctuation")
}

// Resembles reports whether people may take two names for each other, because their letters look alike or differ only in case. The same name does not
// resemble itself.
func Resembles(a, b string) bool { return a != b && Skeleton(a) == Skeleton(b) }

// alike holds characters of other scripts, and digits, beside the Latin letters for which people may take them, in lower case.
const alike = "аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwкkмmтtвbнhαaβbεeζzηnιiκkνvοoρpτtυuχxγyօoոnսuհhցgıiøođdħh"

// looks maps the characters of alike.
func looks(r rune) rune {
	switch r {
	case 'l', '1', '|', 'ӏ', 'ł':
		return 'i'
	case '0':
		return 'o'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212', '_':
		return '-'
	}
	if r < utf8.RuneSelf {
		return r
	}
	pair := []rune(alike)
	for i := 0; i+1 < len(pair); i += 2 {
		if pair[i] == r {
			return pair[i+1]
		}
	}
	return r
}

// Skeleton returns a form of a name that names have in common which look alike: compatibility characters as their ordinary ones, no case, no marks and
// nothing invisible, and letters as Latin ones.
func Skeleton(name string) string {
	folded := cases.Fold().String(norm.NFKD.String(name))
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf, unicode.Cc, unicode.Z) {
			return -1
		}
		return looks(r)
	}, norm.NFKD.String(folded))
}
