package starter

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// inputText formats the arguments of a call for people: one field per line, with multi-line strings as they are.
func inputText(p jig.Pending) string {
	var text string
	if json.Unmarshal(p.Input, &text) == nil { // the shortened form of an input that is not an object or has very many fields
		text = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(text)
	} else {
		text = fieldsText(p.Input)
	}
	if p.Truncated {
		text += "\n(shortened at …; the digest covers the full text, and `approvals show` prints it)"
	}
	return safeText(text)
}

func fieldsText(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return prettyJSON(raw)
	}
	lines := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var s string
		switch {
		case json.Unmarshal(fields[name], &s) != nil:
			lines = append(lines, name+": "+prettyJSON(fields[name]))
		case strings.Contains(s, "\n"):
			lines = append(lines, name+":", indent(s, "  "))
		default:
			lines = append(lines, name+": "+s)
		}
	}
	return strings.Join(lines, "\n")
}
