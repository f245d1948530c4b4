package starter

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
)

// inputBar begins every line of a call's arguments but the first of each argument, so that no argument can pass for another one or for a line
// of the card.
const inputBar = "  " + quoteBar

// inputText formats the arguments of a call for people: one field per line, with multi-line strings as they are. Lines are broken to fit a
// terminal of the given width; 0 means that they are not.
func inputText(p jig.Pending, width int) string {
	var text string
	var lines []string
	if json.Unmarshal(p.Input, &text) == nil { // the shortened form of an input that is not an object or has very many fields
		lines = quoted(strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(text), inputBar, width)
	} else {
		lines = fieldLines(p.Input, width)
	}
	if p.Truncated {
		lines = append(lines, "    (shortened at …; the digest covers the full text, and `approvals show` prints it)")
	}
	return strings.Join(lines, "\n")
}

func fieldLines(raw json.RawMessage, width int) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return quoted(prettyJSON(raw), inputBar, width)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fieldText(fields[name])
		if strings.Contains(value, "\n") {
			lines = append(append(lines, "    "+fieldName(name)+":"), quoted(value, inputBar, width)...)
			continue
		}
		pieces := quoted(fieldName(name)+": "+value, inputBar, width)
		pieces[0] = "    " + strings.TrimPrefix(pieces[0], inputBar)
		lines = append(lines, pieces...)
	}
	return lines
}

// fieldName returns the name of a field, as JSON if it could pass for more than a name.
func fieldName(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.$", r)
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		return jsonText(name)
	}
	return name
}

// fieldText returns the value of a field: a string without quotes, unless it could pass for another value then, and anything else as JSON.
func fieldText(raw json.RawMessage) string {
	var s string
	switch {
	case json.Unmarshal(raw, &s) != nil:
		return prettyJSON(raw)
	case json.Valid([]byte(s)), strings.TrimSpace(s) != s && !strings.Contains(s, "\n"), s == "":
		return jsonText(s)
	}
	return s
}

func jsonText(s string) string {
	b, err := jsontext.Encode(s)
	if err != nil { // texts can always be encoded
		return s
	}
	return string(b)
}
