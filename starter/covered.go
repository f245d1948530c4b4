package starter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// longText is the length, in bytes, from which a text of one line is not printed twice on a card.
const longText = 200

// withoutCovered returns an input with the size instead of each long text that a diff of the preview shows: people need not read it twice. The
// diff must be of exactly this text.
func withoutCovered(input json.RawMessage, p *jig.Preview) json.RawMessage {
	if p == nil || len(p.Changes) == 0 {
		return input
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(input)))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return input
	}
	short, found := replaceCovered(value, p.Changes)
	if !found {
		return input
	}
	text, err := jsontext.Encode(short)
	if err != nil { // cannot happen: it was JSON
		return input
	}
	return text
}

// replaceCovered replaces the long texts in a value that the changes show, and reports whether there are any.
func replaceCovered(value any, changes []string) (short any, found bool) {
	replace := func(value any) any {
		short, covered := replaceCovered(value, changes)
		found = found || covered
		return short
	}
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = replace(v[name])
		}
	case []any:
		for i := range v {
			v[i] = replace(v[i])
		}
	case string:
		if (strings.Contains(v, "\n") || len(v) > longText) && slices.ContainsFunc(changes, func(change string) bool { return shows(change, v) }) {
			return sizeText(v) + ", as above", true
		}
	}
	return value, found
}

// sizeText returns the size of a text; the beginning of a longer one has at least that size.
func sizeText(text string) string {
	if begin, cut := strings.CutSuffix(text, "…"); cut {
		return fmt.Sprintf("over %d bytes", len(begin))
	}
	return fmt.Sprintf("%d bytes", len(text))
}

// shows reports whether a change, a heading with a diff below it, is of a text: every line of the diff that is in the new version is in the text, at
// its place, and without hunks these are all its lines. A text that ends with … is the beginning of a longer one, and then a diff that ends so counts too.
func shows(change, text string) bool {
	_, diff, found := strings.Cut(change, "\n")
	if !found {
		return false
	}
	begin, cut := strings.CutSuffix(text, "…")
	lines := strings.Split(strings.TrimSuffix(visibleText(begin), "\n"), "\n")
	at, matched, hunks := 0, 0, false
	diff, short := strings.CutSuffix(diff, "…")
	if short && !cut || strings.Contains(diff, "\n… ") {
		return false
	}
	for line := range strings.SplitSeq(diff, "\n") {
		if next, isHunk := hunkStart(line); isHunk {
			at, hunks = next, true
			continue
		}
		content, isNew := strings.CutPrefix(line, "+")
		if !isNew {
			if content, isNew = strings.CutPrefix(line, " "); !isNew && line != "" {
				continue // removed, or a remark
			}
		}
		switch {
		case cut && (at >= len(lines) || at == len(lines)-1 && strings.HasPrefix(content, strings.TrimRight(lines[at], " "))):
		case short && strings.HasSuffix(diff, "\n"+line) && strings.HasPrefix(lines[min(at, len(lines)-1)], content):
		case at >= len(lines) || strings.TrimRight(lines[at], " ") != content:
			return false
		default:
			matched++
		}
		at++
	}
	return matched > 0 && (hunks || cut || at >= len(lines))
}

// visibleText returns a text as previews show it, apart from blanks at the ends of lines.
func visibleText(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\t", "    ")
}

// hunkStart returns the index of the line at which a hunk of a unified diff begins in the new version, if the line begins a hunk.
func hunkStart(line string) (at int, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return 0, false
	}
	_, rest, _ = strings.Cut(rest, " +")
	end := strings.IndexAny(rest, ", ")
	if end < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(rest[:end])
	return max(n-1, 0), err == nil
}
