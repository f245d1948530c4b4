package jig

import "encoding/json"

// ToolResult is what every tool gives back, whatever it does.
type ToolResult struct {
	// Success says whether the tool did what it was asked to do.
	Success bool `json:"success"`
	// Data is what the model reasons about: a JSON value that fits the tool's output schema.
	Data json.RawMessage `json:"data,omitempty"`
	// Summary is one line for people.
	Summary string `json:"summary"`
	// Markdown goes into the next prompt in place of Data, when set.
	Markdown string `json:"markdown,omitempty"`
	// Error says what failed; nil when Success.
	Error *Error `json:"error,omitempty"`
	// Artifacts are the ids of values kept aside.
	Artifacts []string `json:"artifacts,omitempty"`
	// Warnings say what is wrong with a result although the call succeeded, e.g. that Data does not fit the output schema.
	Warnings []string `json:"warnings,omitempty"`
}

// Cause is the error of a result that is no success, also when the tool did not say why.
func (r ToolResult) Cause() *Error {
	if r.Error != nil {
		return r.Error
	}
	return Errorf(CodeInternal, "the tool failed without saying why")
}

// Failure is the result of a call that failed with err.
func Failure(err error) ToolResult {
	e := AsError(err)
	return ToolResult{Summary: e.Message, Error: e}
}
