package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jig-run/jig"
)

// MaxSummaryBytes is the maximum length of a result's summary; a longer one is cut.
const MaxSummaryBytes = 200

// Validate checks an input against the tool's schema and returns nil if it fits. Otherwise the error is a single *jig.Error with all
// violations: TOOL_NOT_FOUND; MISSING_PARAM if only required parameters are missing; else INVALID_INPUT. An empty input counts as {}.
func (r *Registry) Validate(name string, input []byte) error {
	t, missing := r.find(name)
	if missing != nil {
		return missing
	}
	return t.validate(input)
}

func (t *registered) validate(input []byte) error {
	err := t.input.Validate(orEmpty(input))
	if err == nil {
		return nil
	}
	e := jig.AsError(err)
	e = e.Reworded("%s: %s", jig.Known(t.contract.Name), e.Words())
	e.NotExecuted = true
	return e
}

// Fill completes an input that fits the tool's schema. Most tools have nothing to complete; their input is returned unchanged.
func (r *Registry) Fill(ctx context.Context, name string, input []byte, inv jig.Invocation) ([]byte, error) {
	t, missing := r.find(name)
	if missing != nil {
		return nil, missing
	}
	if t.fill == nil {
		return input, nil
	}
	return t.fill(ctx, complete(inv), orEmpty(input))
}

// Preview describes what a call will change. The error says why there is no preview. It does not panic, but it may return late if the
// tool's function ignores ctx.
func (r *Registry) Preview(ctx context.Context, name string, input []byte, inv jig.Invocation) (jig.Preview, error) {
	t, missing := r.find(name)
	if missing != nil {
		return jig.Preview{}, missing
	}
	return t.previewed(ctx, input, inv)
}

// PreviewDocument is like [Registry.Preview] for a tool made by [OfDocument], which is not registered.
func (r *Registry) PreviewDocument(ctx context.Context, t Tool, input []byte, inv jig.Invocation) (jig.Preview, error) {
	ready, err := r.compile(t)
	if err != nil {
		return jig.Preview{}, err
	}
	return ready.previewed(ctx, input, inv)
}

// previewed calls the tool's preview function and turns a panic into an error. The stack goes only to the log.
func (t *registered) previewed(ctx context.Context, input []byte, inv jig.Invocation) (p jig.Preview, err error) {
	if t.preview == nil {
		return p, jig.Errorf(jig.CodeNotFound, "%s has no previews", t.contract.Name)
	}
	if err := t.validate(input); err != nil {
		return p, err
	}
	inv = complete(inv)
	defer func() {
		if cause := recover(); cause != nil {
			inv.Logger.ErrorContext(ctx, "the preview of a tool panicked", slog.String("tool", t.contract.Name),
				slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			p, err = jig.Preview{}, jig.Errorf(jig.CodeInternal, "it failed with an internal error; see the worker's log").WithReason("panic")
		}
	}()
	p, err = t.preview(ctx, inv, orEmpty(input))
	return p, unreachable(err)
}

func orEmpty(input []byte) []byte {
	if len(bytes.TrimSpace(input)) == 0 {
		return []byte("{}")
	}
	return input
}

// Run runs the tool once: it looks the tool up, checks the input, calls the handler within the tool's timeout, and checks the output. It
// never panics. The result always has a one-line summary. A failed result has an error, with NotExecuted set if the handler was not called.
// If the output does not fit the schema, a read fails; a tool that may have changed something keeps its success, and the result gets a
// warning.
func (r *Registry) Run(ctx context.Context, name string, input []byte, inv jig.Invocation) jig.ToolResult {
	t, missing := r.find(name)
	if missing != nil {
		return finish(name, failure(missing))
	}
	return t.run(ctx, input, inv)
}

// RunDocument is like [Registry.Run] for a tool made by [OfDocument], which is not registered.
func (r *Registry) RunDocument(ctx context.Context, t Tool, input []byte, inv jig.Invocation) jig.ToolResult {
	ready, err := r.compile(t)
	if err != nil {
		e := *jig.AsError(err)
		e.NotExecuted = true
		return finish(t.contract.Name, failure(&e))
	}
	return ready.run(ctx, input, inv)
}

// run is the one path that runs a tool.
func (t *registered) run(ctx context.Context, input []byte, inv jig.Invocation) jig.ToolResult {
	name := t.contract.Name
	if err := t.validate(input); err != nil {
		return finish(name, failure(err))
	}
	if err := ctx.Err(); err != nil {
		e := stopped(err, t.contract)
		e.NotExecuted = true
		return finish(name, failure(e))
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.contract.Timeout, jig.DefaultToolTimeout))
	defer cancel()
	result := t.call(watched(ctx), orEmpty(input), complete(inv))
	return finish(name, t.checkOutput(t.explain(ctx, result)))
}

// complete makes sure that the handler gets a logger and a progress function.
func complete(inv jig.Invocation) jig.Invocation {
	if inv.Logger == nil {
		inv.Logger = slog.New(slog.DiscardHandler)
	}
	if inv.Progress == nil {
		inv.Progress = func(string) {}
	}
	return inv
}

// call runs the handler and turns a panic into a result. The stack goes only to the log.
func (t *registered) call(ctx context.Context, input json.RawMessage, inv jig.Invocation) (result jig.ToolResult) {
	defer func() {
		if cause := recover(); cause != nil {
			inv.Logger.ErrorContext(ctx, "tool panicked", slog.String("tool", t.contract.Name),
				slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			result = failure(jig.Errorf(jig.CodeInternal, "%s failed with an internal error; see the worker's log", t.contract.Name).
				WithReason("panic"))
		}
	}()
	return t.handler(ctx, inv, input)
}

// explain turns an INTERNAL failure into TIMEOUT or CANCELED if it says only that the context ended.
func (t *registered) explain(ctx context.Context, result jig.ToolResult) jig.ToolResult {
	e := result.Error
	if e == nil || e.Code != jig.CodeInternal || e.Reason != "" {
		return result
	}
	ended := context.Cause(ctx)
	switch {
	case errors.Is(e, context.DeadlineExceeded):
		ended = context.DeadlineExceeded
	case errors.Is(e, context.Canceled) && ended != nil:
	case ctx.Err() != nil:
	case t.contract.Idempotent: // it is repeated, so it matters whether the failure may pass
		result.Error = jig.AsError(unreachable(e))
		return result
	default:
		return result
	}
	why := stopped(ended, t.contract)
	why.Cause, why.NotExecuted, why.Hint = e, e.NotExecuted, cmp.Or(e.Hint, why.Hint)
	result.Error, result.Summary = why, why.Message
	return result
}

// stopped returns the error for a context that ended.
func stopped(err error, c jig.Tool) *jig.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return jig.Errorf(jig.CodeTimeout, "%s did not finish in time (%s)", c.Name, cmp.Or(c.Timeout, jig.DefaultToolTimeout).Round(time.Millisecond))
	}
	return jig.Errorf(jig.CodeCanceled, "%s was canceled", c.Name)
}

// checkOutput makes sure that a handler's result follows the tool's contract.
func (t *registered) checkOutput(result jig.ToolResult) jig.ToolResult {
	name := t.contract.Name
	if !result.Success {
		if result.Error == nil {
			return failure(jig.Errorf(jig.CodeInternal, "%s failed without an error message", name))
		}
		e := *result.Error
		if !slices.Contains(jig.Codes(), e.Code) {
			e.Reason = cmp.Or(e.Reason, string(e.Code))
			e.Code = jig.CodeInternal
		}
		e.Message = cmp.Or(e.Message, name+" failed")
		result.Error = &e
		if !json.Valid(result.Data) {
			result.Data = nil
		}
		return result
	}
	if result.Error != nil {
		return failure(jig.Errorf(jig.CodeInvalidOutput, "%s reported both success and an error: %s", name, result.Error.Message))
	}
	if err := t.output.Validate(result.Data); err != nil {
		e := *jig.AsError(err)
		e.Code = jig.CodeInvalidOutput
		e.Message = name + " returned an output that its output schema does not allow: " + strings.Join(append(result.Warnings, e.Message), "; ")
		e.Hint = "fix the tool; its input is not at fault"
		return misfit(t.contract, result, &e)
	}
	return result
}

// misfit returns the result for a tool that reported success but returned an unusable output. A read fails. Any other tool may have changed
// something, so its success counts, with a warning.
func misfit(contract jig.Tool, result jig.ToolResult, problem *jig.Error) jig.ToolResult {
	if contract.Permission == jig.PermissionRead {
		return failure(problem)
	}
	if len(result.Data) > 0 && !json.Valid(result.Data) {
		quoted, err := json.Marshal(strings.ToValidUTF8(string(result.Data), "\uFFFD"))
		if err != nil {
			quoted = nil
		}
		result.Data = quoted
	}
	result.Warnings = []string{problem.Message}
	result.Summary = cmp.Or(result.Summary, contract.Name+" succeeded") + " (with a warning: its output does not fit its schema)"
	return result
}

// finish makes sure that every result has a one-line summary and that its texts are valid UTF-8.
func finish(name string, result jig.ToolResult) jig.ToolResult {
	if result.Summary == "" {
		result.Summary = name + " succeeded"
		if result.Error != nil {
			result.Summary = result.Error.Message
		}
	}
	result.Summary = cut(oneLine(result.Summary), MaxSummaryBytes)
	result.Markdown = strings.ToValidUTF8(result.Markdown, "\uFFFD")
	return result
}

// oneLine replaces each run of white space and control characters with one space.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
}

// cut shortens s to at most limit bytes, including the "…" that marks the cut.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return jig.Cut(s, limit-len("…"))
}
