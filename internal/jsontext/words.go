package jsontext

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// InWords returns an input for people to read, on one line: "lines=3, order=7, to=[\"ana\"]". Input that is no object is returned as it is.
func InWords(input json.RawMessage) string {
	var members map[string]json.RawMessage
	if len(input) == 0 || json.Unmarshal(input, &members) != nil {
		return string(input)
	}
	return Words(members)
}

// Words joins the members of an input, sorted by name. Texts stand without quotes.
func Words(members map[string]json.RawMessage) string {
	list := make([]string, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		var b bytes.Buffer
		switch value := members[name]; {
		case json.Unmarshal(value, &text) == nil:
		case json.Compact(&b, value) == nil:
			text = b.String()
		default:
			text = string(value)
		}
		list = append(list, name+"="+strings.Join(strings.Fields(text), " "))
	}
	return strings.Join(list, ", ")
}
