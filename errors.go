package jig

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Code names a class of failure. The same word appears in tool results, events, the command line and Go errors.
type Code string

// The error codes of calls, sessions and requests.
const (
	CodeToolNotFound    Code = "TOOL_NOT_FOUND"
	CodeNotPermitted    Code = "NOT_PERMITTED"
	CodeMissingParam    Code = "MISSING_PARAM"
	CodeInvalidInput    Code = "INVALID_INPUT"
	CodeDenied          Code = "DENIED"
	CodeExpired         Code = "EXPIRED"
	CodeCanceled        Code = "CANCELED"
	CodeDuplicate       Code = "DUPLICATE"
	CodeTimeout         Code = "TIMEOUT"
	CodeRateLimited     Code = "RATE_LIMITED"
	CodeOutcomeUnknown  Code = "OUTCOME_UNKNOWN"
	CodeInvalidOutput   Code = "INVALID_OUTPUT"
	CodeNotFound        Code = "NOT_FOUND"
	CodeConflict        Code = "CONFLICT"
	CodeBudgetExhausted Code = "BUDGET_EXHAUSTED"
	CodeUnavailable     Code = "UNAVAILABLE"
	CodeInternal        Code = "INTERNAL"
)

// Codes lists every code, in the order of the documentation.
func Codes() []Code {
	return []Code{
		CodeToolNotFound, CodeNotPermitted, CodeMissingParam, CodeInvalidInput, CodeDenied, CodeExpired, CodeCanceled,
		CodeDuplicate, CodeTimeout, CodeRateLimited, CodeOutcomeUnknown, CodeInvalidOutput, CodeNotFound, CodeConflict,
		CodeBudgetExhausted, CodeUnavailable, CodeInternal,
	}
}

// Retryable reports whether the same request may succeed later without any change.
func (c Code) Retryable() bool {
	switch c {
	case CodeTimeout, CodeRateLimited, CodeUnavailable, CodeInternal:
		return true
	case CodeToolNotFound, CodeNotPermitted, CodeMissingParam, CodeInvalidInput, CodeDenied, CodeExpired, CodeCanceled,
		CodeDuplicate, CodeOutcomeUnknown, CodeInvalidOutput, CodeNotFound, CodeConflict, CodeBudgetExhausted:
		return false
	}
	return false
}

// Error is a failure with a code, for people and programs alike. A [ToolResult] carries one, and every package of jig returns one at its
// edge.
//
// The error that a writing tool returns decides whether jig knows what happened. An error for which [Error.NoEffect] is true ends the call
// as failed. After any other error (UNAVAILABLE, INTERNAL, TIMEOUT, a plain Go error, a panic) the effect may have happened: the call
// becomes unknown, and a person has to settle it.
type Error struct {
	// Code is the class of the failure.
	Code Code `json:"code"`
	// Message says what is wrong, in one sentence.
	Message string `json:"message"`
	// Field points at the offending value, if there is one: a JSON pointer into the input, or a name.
	Field string `json:"field,omitempty"`
	// Hint says how to fix the problem.
	Hint string `json:"hint,omitempty"`
	// Reason is a finer code that the tool defines.
	Reason string `json:"reason,omitempty"`
	// Violations lists every place where an input breaks its schema, when there are several.
	Violations []Violation `json:"violations,omitempty"`
	// RetryAfter is the shortest wait before a retry, as requested by the remote side; zero when it did not request a wait.
	RetryAfter time.Duration `json:"-"`
	// NotExecuted reports that the call had no effect, so that repeating it is safe. Jig sets it when it refuses a call before entering the
	// tool; a tool sets it when it knows, e.g. because it could not connect. See [Error.NoEffect].
	NotExecuted bool `json:"-"`
	// Template is the message with its values set apart, which [Errorf] makes. The server sends no message of an error without one.
	Template string `json:"-"`
	// HintTemplate is the hint with its values set apart, if it has any.
	HintTemplate string `json:"-"`
	// Cause is the underlying error; it is never serialized.
	Cause error `json:"-"`
}

// Violation is one place where a value does not fit its JSON Schema.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the offending value.
	Pointer string `json:"pointer"`
	// Message says what is wrong with it.
	Message string `json:"message"`
	// Template is the message with its values set apart, as in an [Error].
	Template string `json:"-"`
}

// Words returns the message as an operand, like [Error.Words].
func (v Violation) Words() any { return wordsOf(v.Template, v.Message) }

// Errorf returns an Error with a formatted message; the operand of %w becomes its cause. A server keeps the operands to itself, except those that
// [Known] marks; see [Templatef].
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: wrapped.Error(), Template: Templatef(format, args...), Cause: errors.Unwrap(wrapped)}
}

// CausedBy returns a copy of the error with an underlying error.
func (e *Error) CausedBy(cause error) *Error { c := *e; c.Cause = cause; return &c }

// Words returns the error's message as an operand of [Errorf] or [Templatef], with its values set apart. If nobody has told them apart, the whole
// message is a value.
func (e *Error) Words() any { return wordsOf(e.Template, e.Message) }

func wordsOf(template, message string) any {
	if template == "" {
		return message
	}
	return words(template)
}

// hint returns the hint as an operand.
func (e *Error) hint() any {
	if e.HintTemplate == "" {
		return known{e.Hint}
	}
	return words(e.HintTemplate)
}

// Reworded returns a copy of the error with another message, as [Templatef] formats it.
func (e *Error) Reworded(format string, args ...any) *Error {
	c := *e
	c.Template = Templatef(format, args...)
	c.Message = Text(c.Template)
	return &c
}

// WithField returns a copy of the error that names the offending field.
func (e *Error) WithField(field string) *Error { c := *e; c.Field = field; return &c }

// WithHint returns a copy of the error with a hint on how to fix the problem. A hint with values of a request is
// given as a template; see [Templatef].
func (e *Error) WithHint(hint string) *Error {
	c := *e
	c.HintTemplate, c.Hint = "", Text(hint)
	if c.Hint != hint {
		c.HintTemplate = hint
	}
	return &c
}

// WithReason returns a copy of the error with a finer code.
func (e *Error) WithReason(reason string) *Error { c := *e; c.Reason = reason; return &c }

// promises reports whether a tool's error with this code promises that the call changed nothing.
func (c Code) promises() bool {
	switch c {
	case CodeInvalidInput, CodeNotFound, CodeConflict, CodeNotPermitted, CodeRateLimited:
		return true
	case CodeToolNotFound, CodeMissingParam, CodeDenied, CodeExpired, CodeCanceled, CodeDuplicate, CodeTimeout, CodeOutcomeUnknown,
		CodeInvalidOutput, CodeBudgetExhausted, CodeUnavailable, CodeInternal:
		return false
	}
	return false
}

// NoEffect reports whether the error says that the call changed nothing: either it is marked NotExecuted, or its code makes that promise. A
// tool that returns INVALID_INPUT, NOT_FOUND, CONFLICT, NOT_PERMITTED or RATE_LIMITED promises that its effect did not happen. The other
// codes promise nothing.
func (e *Error) NoEffect() bool { return e.NotExecuted || e.Code.promises() }

// AfterEffect returns a copy for a call that had changed something before it failed. The copy no longer promises that nothing happened:
// NotExecuted is cleared, and a code that makes such a promise becomes INTERNAL. The old code becomes the reason unless a reason is already
// set.
func (e *Error) AfterEffect() *Error {
	c := *e
	c.NotExecuted = false
	if c.Code.promises() {
		c.Code, c.Reason = CodeInternal, cmp.Or(c.Reason, string(c.Code))
	}
	return &c
}

func (e *Error) Error() string { return e.text(e.Message, e.Hint) }

// text returns the error as a text, with a message and a hint.
func (e *Error) text(message, hint string) string {
	s := string(e.Code) + ": " + message
	if e.Field != "" {
		s += " (" + e.Field + ")"
	}
	if hint != "" {
		s += "; " + hint
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, &jig.Error{Code: c}) true for every error with that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// AsError returns the Error in err's chain, or wraps err as INTERNAL. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: err.Error(), Cause: err}
}

// CodeOf returns the code of err, INTERNAL for an error without one, and "" for nil.
func CodeOf(err error) Code {
	if e := AsError(err); e != nil {
		return e.Code
	}
	return ""
}
