package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxNearest bounds how many names a hint proposes.
const maxNearest = 3

// NearestNames returns the candidates that name is probably a slip of, nearest first, at most three. A slip is a letter
// added, dropped, changed or swapped with its neighbour, about one for every three letters; case does not count.
func NearestNames(name string, candidates []string) []string {
	type scored struct {
		name     string
		distance int
	}
	limit := max(1, min(len(name)/3, 6))
	var near []scored
	for _, candidate := range candidates {
		if abs(len(candidate)-len(name)) > limit {
			continue
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d <= limit {
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

// Suggest makes a hint of the nearest names: `did you mean "tools"?`, or lists the candidates when none is near and they are few.
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

// editDistance is the optimal string alignment distance over bytes: insertions, deletions, substitutions, swaps of neighbours.
func editDistance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(next[j-1]+1, row[j]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
