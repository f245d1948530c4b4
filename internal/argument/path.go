package argument

import (
	"slices"
	"strings"
	"unicode"

	"github.com/jig-run/jig"
)

// Path returns a relative path in canonical form: without "." segments, doubled slashes and slashes at the end; "." is the folder itself. It
// refuses what could mean another file than the text says: ".." segments, a slash at the beginning, backslashes and control characters.
func Path(text string) (string, error) {
	segments := strings.Split(text, "/")
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", jig.Errorf(jig.CodeInvalidInput, "contains a control character").WithHint("write the path without it")
	case strings.Contains(text, `\`):
		return "", jig.Errorf(jig.CodeInvalidInput, `contains a backslash`).WithHint("separate folders with /")
	case strings.HasPrefix(text, "/"):
		return "", jig.Errorf(jig.CodeInvalidInput, "is an absolute path").WithHint("write the path relative to its folder, without / at the beginning")
	case slices.Contains(segments, ".."):
		return "", jig.Errorf(jig.CodeInvalidInput, `contains ".." as a segment`).WithHint("write the path without . and ..")
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "" || s == "." })
	if len(segments) == 0 {
		return ".", nil
	}
	return strings.Join(segments, "/"), nil
}
