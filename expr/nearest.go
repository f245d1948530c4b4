package expr

import (
	"slices"
	"strings"
	"unicode"
)

// names lists what a source may name: variables and functions.
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

// didYouMean is "; did you mean 'x'?" for the name nearest to the wanted one, empty when none is near.
func didYouMean(wanted string, names []string) string {
	best, bestDistance := "", 1+max(1, len(wanted)/3)
	for _, name := range names {
		if d := distance(strings.ToLower(wanted), strings.ToLower(name), bestDistance); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean '" + best + "'?"
}

// distance is the number of edits (insert, delete, replace, exchange neighbours) between two words; limit when it is that or more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 64 {
		return limit
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := old[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(old[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return min(old[len(b)], limit)
}
