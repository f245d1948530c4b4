package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig/internal/suggest"
)

// maxNearest is the number of names that a hint proposes at most.
const maxNearest = 3

// NearestNames returns the candidates that name is probably a typo of, nearest first, at most three. A typo is a letter added, dropped,
// changed or swapped with its neighbor, about one for every three letters. Case does not count.
func NearestNames(name string, candidates []string) []string {
	type scored struct {
		name     string
		distance int
	}
	limit := max(1, min(len(name)/3, 6))
	var near []scored
	for _, candidate := range candidates {
		if d := suggest.Distance(strings.ToLower(name), strings.ToLower(candidate), limit+1); d <= limit {
			near = append(near, scored{candidate, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, maxNearest)
	for _, one := range near[:min(len(near), maxNearest)] {
		names = append(names, one.name)
	}
	return names
}

// Suggest makes a hint from the nearest names: `did you mean "tools"?`. If none is near and there are at most 20 candidates, it lists them.
func Suggest(name string, candidates []string) string {
	if near := NearestNames(name, candidates); len(near) > 0 {
		return fmt.Sprintf("did you mean %s?", quotedList(near, " or "))
	}
	if len(candidates) == 0 || len(candidates) > 20 {
		return ""
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(candidates)), ", ")
}

func quotedList(names []string, last string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + last + quoted[len(quoted)-1]
}
