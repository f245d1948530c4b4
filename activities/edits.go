package activities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wI2L/jsondiff"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
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

const (
	// maxChanges is how many changed arguments a card names, and maxChanged how much of each value it shows, in bytes.
	maxChanges = 10
	maxChanged = 120
)

// changed says what somebody changed in the arguments of a call, from what to what, for those who decide about it next.
func changed(by jig.Principal, evidence *identity.Evidence, note string, before, after []byte) []string {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return nil
	}
	names := map[string]bool{}
	for name := range was {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(was[name], is[name]) {
			parts = append(parts, fmt.Sprintf("%s: %s → %s", name, shownValue(was[name]), shownValue(is[name])))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if more := len(parts) - maxChanges; more > 0 {
		parts = append(parts[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	line := jig.ChangedBy + by.ID + by.Proof.Text(by.Claimed, evidence.KeyID()) + ": " + strings.Join(parts, ", ")
	if note != "" {
		line += fmt.Sprintf(" (%q)", jig.Cut(note, maxChanged))
	}
	return []string{line}
}

// shownValue returns the beginning of an argument.
func shownValue(value json.RawMessage) string {
	if value == nil {
		return "none"
	}
	return jig.Cut(string(value), maxChanged)
}
