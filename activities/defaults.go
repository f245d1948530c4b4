package activities

import "encoding/json"

// withDefaults fills in the `default`s of properties that a document leaves out, in nested objects too. It ignores what it does not
// understand; validation reports that later.
func withDefaults(schema, document json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return document
	}
	doc := map[string]json.RawMessage{}
	if json.Unmarshal(document, &doc) != nil || doc == nil {
		return document
	}
	changed := false
	for name, property := range s.Properties {
		var p struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(property, &p) != nil {
			continue
		}
		value, given := doc[name]
		switch {
		case !given && p.Default != nil:
			doc[name], changed = p.Default, true
		case given:
			if filled := withDefaults(property, value); string(filled) != string(value) {
				doc[name], changed = filled, true
			}
		}
	}
	if !changed {
		return document
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return document
	}
	return out
}
