// Package nearest finds the names that a person or a model probably meant. It must not know what the names stand for.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// The names that are compared: longer ones, and those after so many, are passed over, so that hostile ones cost little.
const (
	maxLength = 128
	maxKnown  = 2_000
)

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
	for _, name := range known[:min(len(known), maxKnown)] {
		other := strings.ToLower(name)
		if other == "" || len(other) > maxLength {
			continue
		}
		longest := max(len(low), len(other))
		contained := min(len(low), len(other)) >= 3 && (strings.Contains(other, low) || strings.Contains(low, other))
		limit := 1 + max(1, longest/3)
		if contained {
			limit = longest + 1
		}
		if d := Distance(low, other, limit); d < limit {
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
// alignment). It is limit when there are that many or more. Its work grows with the length of the words times limit, and ends as soon
// as limit is certain.
func Distance(a, b string, limit int) int {
	if limit <= 0 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return max(limit, 0)
	}
	// Letters whose places are limit or more apart are not the same letter in fewer edits, so only a band of each row is computed.
	band := limit - 1
	var ordinary [3 * 80]int // words are short as a rule
	space := ordinary[:]
	width := len(b) + 1
	if 3*width > len(space) {
		space = make([]int, 3*width)
	}
	before, last, row := space[:width], space[width:2*width], space[2*width:3*width]
	for j := range last {
		last[j] = min(j, limit)
	}
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-band), min(len(b), i+band)
		row[from-1] = limit
		if from == 1 {
			row[0] = min(i, limit)
		}
		if to < len(b) {
			row[to+1] = limit
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost, limit)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least == limit && i > 1 && minOf(last, from-1, to) == limit { // a swap reaches back two rows
			return limit
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}

// minOf is the least of a part of a row.
func minOf(row []int, from, to int) int { return slices.Min(row[from : to+1]) }
