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

// maxWanted is the longest name, in bytes, for which a suggestion is looked up.
const maxWanted = 64

// didYouMean returns "; did you mean 'x'?" with the name nearest to the wanted one, or an empty string if none is near.
func didYouMean(wanted string, names []string) string {
	if len(wanted) > maxWanted {
		return ""
	}
	best, bestDistance := "", 1+max(1, len(wanted)/3)
	for _, name := range names {
		if d := suggest.Distance(strings.ToLower(wanted), strings.ToLower(name), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean '" + best + "'?"
}
