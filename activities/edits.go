package activities

import (
	"encoding/json"

	"github.com/wI2L/jsondiff"

	"github.com/jig-run/jig"
)

// patched returns a change of a call's input as JSON Patch (RFC 6902): patch relative to the current input, and whole relative to
// the input that was requested first. whole is nil if nothing was ever changed.
func patched(call jig.Call, input []byte) (patch, whole json.RawMessage, err error) {
	diff, err := jsondiff.CompareJSON(call.Input, input)
	if err != nil {
		return nil, nil, jig.Errorf(jig.CodeInternal, "comparing the changed input of call %s: %w", call.ID, err)
	}
	if diff == nil {
		diff = jsondiff.Patch{}
	}
	if patch, err = json.Marshal(diff); err != nil {
		return nil, nil, jig.Errorf(jig.CodeInternal, "encoding the change of call %s: %w", call.ID, err)
	}
	var earlier, added []json.RawMessage
	if len(call.Patch) > 0 {
		if err := json.Unmarshal(call.Patch, &earlier); err != nil {
			return nil, nil, jig.Errorf(jig.CodeInternal, "reading the earlier change of call %s: %w", call.ID, err)
		}
	}
	if err := json.Unmarshal(patch, &added); err != nil {
		return nil, nil, jig.Errorf(jig.CodeInternal, "reading the change of call %s: %w", call.ID, err)
	}
	// Operations are applied in order, so consecutive changes can be concatenated.
	if len(earlier)+len(added) == 0 {
		return patch, nil, nil
	}
	if whole, err = json.Marshal(append(earlier, added...)); err != nil {
		return nil, nil, jig.Errorf(jig.CodeInternal, "encoding the changes of call %s: %w", call.ID, err)
	}
	return patch, whole, nil
}
