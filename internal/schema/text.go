package schema

import (
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// CheckText returns INVALID_INPUT for a text that is not JSON, or in which two readers may see different values: because of duplicate names,
// invalid UTF-8, half a surrogate pair, deep nesting, or a number that no double can hold.
func CheckText(text []byte) error {
	if _, err := strictjson.Decode(text, strictjson.Limits{Depth: Options{}.withDefaults().MaxInstanceDepth, Values: strictjson.MaxValues}); err != nil {
		return notJSON("the text", err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil { // a number such as 1e400
		return jig.Errorf(jig.CodeInvalidInput, "the text cannot be read: %w", err)
	}
	return nil
}
