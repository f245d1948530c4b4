// Package nearest finds the names that a person or a model probably meant. It must not know what the names stand for.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// maxLength bounds the names that are compared, so that a hostile name costs nothing.
const maxLength = 128

// Names returns at most limit of the known names that are near want, the nearest first and equally near ones sorted.
// Near is an edit distance of at most a third of the longer name, case aside, or one name containing the other.
func Names(want string, known []string, limit int) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	low := strings.ToLower(want)
	if low == "" || len(low) > maxLength {
		return nil
	}
	for _, name := range known {
		other := strings.ToLower(name)
		if other == "" || len(other) > maxLength {
			continue
		}
		longest := max(len(low), len(other))
		d := Distance(low, other, longest+1)
		contained := min(len(low), len(other)) >= 3 && (strings.Contains(other, low) || strings.Contains(low, other))
		if d <= max(1, longest/3) || contained {
			found = append(found, candidate{name: name, distance: d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(limit, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// Hint is a "did you mean" for Names, or fallback when nothing is near.
func Hint(want string, known []string, fallback string) string {
	names := Names(want, known, 3)
	if len(names) == 0 {
		return fallback
	}
	return "did you mean " + strings.Join(names, " or ") + "?"
}

// Distance is how many edits lie between two words: letters (bytes) added, dropped or changed, and neighbours swapped (optimal string
// alignment). It is limit when there are that many or more, which costs nothing where the lengths alone say so.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
