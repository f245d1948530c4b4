package jig

import (
	"encoding/json"
	"strings"
)

// Confirmation is the result data of a call that lacks the confirmation flag its tool requires.
type Confirmation struct {
	// RequiresConfirmation is always true. The name follows a common pattern that models know.
	RequiresConfirmation bool   `json:"requiresConfirmation"` //nolint:tagliatelle // the name that models know from other tools
	Message              string `json:"message"`
}

// Unconfirmed returns the answer to a call that must not act yet: its tool requires confirmation (Confirm), and the input does not say
// `confirmed: true`. It returns nil when the call may act. An input that is not an object is an error.
func (t Tool) Unconfirmed(input []byte) (*ToolResult, error) {
	if !t.Confirm {
		return nil, nil // nil: the tool requires no confirmation, so the call may act
	}
	var flag struct {
		Confirmed bool `json:"confirmed"`
	}
	if err := json.Unmarshal(input, &flag); err != nil {
		return nil, Errorf(CodeInternal, "reading the input of %s: %w", t.Name, err)
	}
	if flag.Confirmed {
		return nil, nil // nil: the input confirms, so the call may act
	}
	what, _, more := strings.Cut(t.Description, ". ")
	if more {
		what += "."
	}
	data, err := json.Marshal(Confirmation{
		RequiresConfirmation: true,
		Message:              "Nothing was done yet: ask the person whether this is what they want, and call again with confirmed: true when they say so. " + what,
	})
	if err != nil {
		return nil, Errorf(CodeInternal, "encoding a confirmation: %w", err)
	}
	return &ToolResult{Success: true, Data: data, Summary: "needs a person's approval"}, nil
}
