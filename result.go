package jig

import "encoding/json"

// ToolResult is the result that every tool returns.
type ToolResult struct {
	// Success reports whether the tool did what was asked.
	Success bool `json:"success"`
	// Data is the value for the model: JSON that fits the tool's output schema.
	Data json.RawMessage `json:"data,omitempty"`
	// Summary is one line for people.
	Summary string `json:"summary"`
	// Markdown, when set, goes into the next prompt instead of Data.
	Markdown string `json:"markdown,omitempty"`
	// Error says what failed; nil if Success.
	Error *Error `json:"error,omitempty"`
	// Artifacts are the ids of values that are stored separately.
	Artifacts []string `json:"artifacts,omitempty"`
	// Warnings describe problems of a call that succeeded anyway, e.g. Data that does not fit the output schema.
	Warnings []string `json:"warnings,omitempty"`
}

// Cause returns the error of an unsuccessful result, or a generic one if the tool gave no reason.
func (r ToolResult) Cause() *Error {
	if r.Error != nil {
		return r.Error
	}
	return Errorf(CodeInternal, "the tool failed without saying why")
}

// Failure returns the result of a call that failed with err.
func Failure(err error) ToolResult {
	e := AsError(err)
	return ToolResult{Summary: e.Message, Error: e}
}
