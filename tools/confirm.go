package tools

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
)

// confirmedMember is the member of an input with which a person's confirmation is passed on; see [jig.Tool.Unconfirmed].
const confirmedMember = "confirmed"

// withConfirmed adds the confirmation flag to an input schema that lacks it.
func withConfirmed(adjust func(*jsonschema.Schema)) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		if s.Properties == nil {
			s.Properties = map[string]*jsonschema.Schema{}
		}
		if s.Properties[confirmedMember] == nil {
			s.Properties[confirmedMember] = &jsonschema.Schema{
				Type: "boolean", Description: "true once the person has said that this is what they want; without it nothing is done",
			}
		}
		if adjust != nil {
			adjust(s)
		}
	}
}

// filler completes an input; see [Fill].
type filler func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error)

// keepConfirmed returns a filler whose completed inputs keep the confirmation flag, for which the tool's input type may have no field.
func keepConfirmed(fill filler) filler {
	return func(ctx context.Context, inv jig.Invocation, input json.RawMessage) (json.RawMessage, error) {
		filled, err := fill(ctx, inv, input)
		if err != nil {
			return nil, err
		}
		var before, after map[string]json.RawMessage
		if json.Unmarshal(input, &before) != nil || json.Unmarshal(filled, &after) != nil || before[confirmedMember] == nil {
			return filled, nil //nolint:nilerr // an input that is no object has no flag, and is refused later
		}
		after[confirmedMember] = before[confirmedMember]
		if filled, err = json.Marshal(after); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "encoding the completed input: %w", err)
		}
		return filled, nil
	}
}
