// Package suggest finds the names that a person or a model probably meant. It must not know what the names stand for.
package suggest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Limits of the comparison. Longer names, and names after the first maxKnown, are skipped, so that hostile names cost little.
const (
	maxLength = 128
	maxKnown  = 2_000
)

// Names returns at most limit of the known names that are near want, nearest first; equally near names are sorted. A name is near if one
// edit, or edits to at most a third of the longer name, turn one into the other, or if one name contains the other. Names more than twice as
// far as the nearest are left out. Case does not matter.
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
		if c.distance > 2*max(found[0].distance, 1) {
			break
		}
		names = append(names, c.name)
	}
	return names
}

// Hint returns a "did you mean" for the nearest names, or fallback if no name is near.
func Hint(want string, known []string, fallback string) string {
	names := Names(want, known, 3)
	if len(names) == 0 {
		return fallback
	}
	return "did you mean " + strings.Join(names, " or ") + "?"
}

// Quoted returns a hint like Hint, with the names in quotes, or an empty string if no name is near.
func Quoted(want string, known []string) string {
	names := Names(want, known, 3)
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + Or(names) + "?"
}

// OrKnown returns the hint of Quoted. If no name is near and at most 20 names are known, it lists them.
func OrKnown(want string, known []string) string {
	const most = 20
	if hint := Quoted(want, known); hint != "" || len(known) == 0 || len(known) > most {
		return hint
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Or lists names in quotes: "a", "b" or "c". There must be at least one.
func Or(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// Distance returns the number of edits between two words: bytes added, removed or changed, and neighbors swapped (optimal string
// alignment). If there are limit edits or more, it returns limit. Its work grows with the length of the words times limit, and it stops as
// soon as it is certain to reach limit.
func Distance(a, b string, limit int) int {
	if limit <= 0 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return max(limit, 0)
	}
	// Bytes whose positions differ by limit or more cannot be matched in fewer edits, so only a band of each row is computed.
	band := limit - 1
	var ordinary [3 * 80]int // words are usually short
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

// minOf returns the minimum of a part of a row.
func minOf(row []int, from, to int) int { return slices.Min(row[from : to+1]) }
