package expr

import (
	"slices"
	"strings"
	"unicode"

	"github.com/jig-run/jig/internal/suggest"
)

// names lists the names that a source may use: variables and functions.
func (e *Env) names() []string {
	var out []string
	for _, v := range e.use.Variables {
		out = append(out, v.Name)
	}
	for name := range e.cel.Functions() {
		if name != "" && unicode.IsLetter(rune(name[0])) && !strings.Contains(name, "@") {
			out = append(out, name)
		}
	}
	slices.Sort(out[len(e.use.Variables):])
	return out
}

// didYouMean returns "; did you mean 'x'?" with the name nearest to the wanted one, or an empty string if none is near.
func didYouMean(wanted string, names []string) string {
	near := suggest.Names(wanted, names, 1)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean '" + near[0] + "'?"
}
