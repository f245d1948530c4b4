package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// escape matches the escapes that matter to halves: backslashes, which may escape each other, and units of UTF-16.
var escape = regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}`)

// readable returns an error for a body that is not valid Unicode, or that holds a number beyond those of a double. Arguments that are sent as
// a text within the body are checked as well.
func readable(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("the body is not valid UTF-8")
	}
	if err := halves(body); err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return nil
}

// halves returns an error if a JSON text has half a surrogate pair.
func halves(text []byte) error {
	open := -1 // where the first half of a pair ended
	for _, at := range escape.FindAllIndex(text, -1) {
		found := string(text[at[0]:at[1]])
		if len(found) < 6 {
			continue
		}
		var unit int
		if _, err := fmt.Sscanf(found[2:], "%x", &unit); err != nil {
			return fmt.Errorf("%s is no escape", found)
		}
		first, second := unit>>10 == 0xD800>>10, unit>>10 == 0xDC00>>10
		switch {
		case second && open == at[0]:
			open = -1
		case second || open >= 0:
			return fmt.Errorf("no low surrogate in string, or no high one before it: %s", found)
		case first:
			open = at[1]
		}
	}
	if open >= 0 {
		return fmt.Errorf("no low surrogate in string")
	}
	return nil
}

// ids are the ids of calls in a conversation.
type ids map[string]bool

// add returns an error if one of the ids is used already.
func (known ids) add(list []string) error {
	for _, id := range list {
		if known[id] {
			return fmt.Errorf("tool_use ids must be unique: %s", id)
		}
		known[id] = true
	}
	return nil
}
