package dataflow

import "encoding/json"

// Call is an earlier call with its result.
type Call struct {
	Result

	// Untrusted reports that an outsider may have written the result.
	Untrusted bool
	// Tainted reports that the session had read untrusted texts when the call was made, so that Input may repeat them, and the result with it.
	Tainted bool
	// Input is the call's input, and Schema its JSON Schema.
	Input, Schema json.RawMessage
}
