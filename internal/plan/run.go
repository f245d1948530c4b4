package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/ledger"
)

// Limits of one move. They bound the data that it stores and the facts that it reads together.
const (
	// MaxStored is the number of bytes that a move may keep. A move that reaches it asks to be continued by another move at once.
	MaxStored = 4 << 20
	// MaxShown is the number of steps and waits that a move shows to people.
	MaxShown = 20
	// MaxBatch is the number of calls or values that are read together.
	MaxBatch = 1_000
)

// Run is the computation of one move: the facts that it has read, and the move that it makes of them. The interpreters embed it.
type Run struct {
	// Name says what runs, for error messages, e.g. "the composition pay".
	Name string
	At   Situation
	Move Move
	// Calls and Values are the facts that have been read. Values also has what this move keeps.
	Calls  map[string]StepCall
	Values map[string]json.RawMessage
	// Stored counts the bytes that the move keeps. Paused reports whether a limit was reached, so that another move must follow at once.
	Stored int
	Paused bool

	facts Facts
	// wake is the earliest time at which a step must be looked at, in milliseconds since 1970; 0 if there is no such time.
	wake int64
	// requested holds the paths of the calls that this move requests.
	requested map[string]bool
}

// NewRun returns a Run that has read nothing yet.
func NewRun(name string, facts Facts, at Situation) Run {
	return Run{
		Name: name, At: at, facts: facts,
		Calls: map[string]StepCall{}, Values: map[string]json.RawMessage{}, requested: map[string]bool{},
	}
}

// LoadValues reads the values that have not been read yet.
func (r *Run) LoadValues(ctx context.Context, paths []string) error {
	return load(ctx, r.Values, paths, r.facts.Values)
}

// LoadCalls reads the calls that have not been read yet.
func (r *Run) LoadCalls(ctx context.Context, paths []string) error {
	return load(ctx, r.Calls, paths, r.facts.Calls)
}

func load[T any](ctx context.Context, known map[string]T, paths []string, read func(context.Context, []string) (map[string]T, error)) error {
	missing := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, ok := known[path]
		return ok
	})
	for batch := range slices.Chunk(missing, MaxBatch) {
		found, err := read(ctx, batch)
		if err != nil {
			return err
		}
		maps.Copy(known, found)
	}
	return nil
}

// LoadRequested is LoadCalls for calls that were requested before. It is an INTERNAL error if one of them does not exist.
func (r *Run) LoadRequested(ctx context.Context, paths []string) error {
	if err := r.LoadCalls(ctx, paths); err != nil {
		return err
	}
	for _, path := range paths {
		if _, ok := r.Calls[path]; !ok {
			return jig.Errorf(jig.CodeInternal, "the call %s of %s is gone", path, r.Name)
		}
	}
	return nil
}

// Facts returns what the run reads from, for readers with caches of their own.
func (r *Run) Facts() Facts { return r.facts }

// Ask requests a call.
func (r *Run) Ask(a Ask) {
	r.Move.Calls = append(r.Move.Calls, a)
	r.requested[a.Path] = true
	r.Stored += len(a.Input)
}

// Keep stores a value under its path.
func (r *Run) Keep(path string, raw json.RawMessage) {
	if r.Move.Values == nil {
		r.Move.Values = map[string]json.RawMessage{}
	}
	r.Move.Values[path] = raw
	r.Values[path] = raw
	r.Stored += len(raw)
}

// Now returns the time of the move, in milliseconds since 1970.
func (r *Run) Now() int64 { return r.At.Now.UnixMilli() }

// After returns the time d from now, in milliseconds since 1970, rounded up.
func (r *Run) After(d time.Duration) int64 {
	return r.At.Now.Add(d + time.Millisecond - time.Nanosecond).UnixMilli()
}

// Show tells people that a step is running.
func (r *Run) Show(path string) {
	if len(r.Move.Steps) < MaxShown {
		r.Move.Steps = append(r.Move.Steps, path)
	}
}

// AwaitCall says that a step waits for a call, which is listed as open if it was requested by an earlier move and is not final.
func (r *Run) AwaitCall(path string) {
	if !r.requested[path] && !r.Calls[path].Status.Final() {
		r.Move.Open = append(r.Move.Open, path)
	}
}

// AwaitTime says that a step waits for a time, in milliseconds since 1970; 0 means that it does not.
func (r *Run) AwaitTime(at int64) {
	if at != 0 && (r.wake == 0 || at < r.wake) {
		r.wake = at
	}
}

// Wake sets the time of the next move: at once if a limit was reached, otherwise the earliest time that a step waits for.
func (r *Run) Wake() {
	switch {
	case r.Paused:
		r.Move.Wake = r.At.Now
	case r.wake != 0:
		r.Move.Wake = Time(r.wake)
	}
}

// Time converts milliseconds since 1970, as states have them, to a time.
func Time(milliseconds int64) time.Time { return time.UnixMilli(milliseconds).UTC() }

// AttemptPath returns the path of an attempt of a step's call. Attempts are numbered from 1.
func AttemptPath(path string, attempt int) string {
	if attempt <= 1 {
		return path
	}
	return path + "~" + strconv.Itoa(attempt)
}

// Backoff returns the pause after a number of failures: first, doubled after each further failure, and at most the given maximum.
func Backoff(first, maximum time.Duration, failures int) time.Duration {
	pause := first
	for range failures - 1 {
		if pause *= 2; pause >= maximum {
			break
		}
	}
	return min(pause, maximum)
}

// MaxInput is the maximum size of a call's input, in bytes.
const MaxInput = 256 << 10

// CheckInput returns an INVALID_INPUT error if the input of a call that the document renders at this place is too large.
func (d Document) CheckInput(at string, input json.RawMessage) *jig.Error {
	if len(input) <= MaxInput {
		return nil
	}
	return d.Located(at, jig.Errorf(jig.CodeInvalidInput, "the input takes %d KiB; at most %d are allowed", len(input)>>10, MaxInput>>10).
		WithHint("store large values separately and pass their ids"))
}

// InJSON asks an agent for an answer that fits a JSON Schema. Unfenced reads the answer.
func InJSON(schema json.RawMessage) string {
	return "Your final answer is to be JSON alone, without any other text, that fits this JSON Schema:\n" + string(schema)
}

// Unfenced returns the JSON in an agent's answer, without the Markdown code fence around it. It is an INVALID_OUTPUT error if the answer is
// not JSON.
func Unfenced(answer string) (json.RawMessage, *jig.Error) {
	answer = strings.TrimSpace(answer)
	if inner, ok := strings.CutPrefix(answer, "```"); ok && strings.HasSuffix(inner, "```") {
		_, inner, _ = strings.Cut(strings.TrimSuffix(inner, "```"), "\n")
		answer = strings.TrimSpace(inner)
	}
	if !json.Valid([]byte(answer)) {
		return nil, jig.Errorf(jig.CodeInvalidOutput, "the agent's answer is not the requested JSON")
	}
	return json.RawMessage(answer), nil
}

// OrNull returns a JSON value, or null if there is none.
func OrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`null`)
	}
	return raw
}

// Document identifies the document that a run follows.
type Document struct{ Name, Version string }

// Located returns err as an INVALID_INPUT error that names the place in the document.
func (d Document) Located(at string, err error) *jig.Error {
	e := jig.AsError(err)
	at = expr.JoinPath(at, e.Field)
	e = e.Reworded("%s, %s: %s", d.Name, jig.Known(at), e.Words())
	e.Code, e.Field = jig.CodeInvalidInput, at
	return e
}

// Fault returns an INVALID_INPUT error that names the place in the document.
func (d Document) Fault(at, format string, args ...any) *jig.Error {
	return d.Located(at, jig.Errorf(jig.CodeInvalidInput, format, args...))
}

// Problem turns the error of an expression into a problem with the document, unless the context has ended; then it returns an error.
func (d Document) Problem(ctx context.Context, at string, err error) (*jig.Error, error) {
	if err == nil {
		return nil, nil // no problem and no error
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return d.Located(at, err), nil
}

// CheckVersion returns an INTERNAL error if the document is not of the version that the run began with. run says what runs.
func (d Document) CheckVersion(run, began string) error {
	if d.Version == began {
		return nil
	}
	return jig.Errorf(jig.CodeInternal, "the document is of version %s; the %s began with %s", jig.ShortVersion(d.Version), run, jig.ShortVersion(began))
}

// Head begins the state of a run. It says what can read the rest.
type Head struct {
	// Format is the version of the state's JSON format, and Plan that of the document.
	Format int    `json:"v"`
	Plan   string `json:"plan,omitempty"`
}

// format is the current version of the JSON format of states.
const format = 1

// NewHead returns the beginning of a state for a version of a document.
func NewHead(version string) Head { return Head{Format: format, Plan: version} }

// Check returns an error if the state is not one for this version of a document.
func (h Head) Check(version string) error {
	switch {
	case h.Format != format:
		return fmt.Errorf("its format is %d, not %d", h.Format, format)
	case h.Plan != version:
		return fmt.Errorf("it is of version %q, not %q", h.Plan, version)
	}
	return nil
}

// ReadState decodes the state of a run, whose name is for messages, and checks it, so that the code that follows can rely on it. An empty
// state leaves st as it is. Errors are INTERNAL.
func ReadState(name string, raw json.RawMessage, st any, check func() error) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(st); err != nil {
		return jig.Errorf(jig.CodeInternal, "the state of %s cannot be read: %w", name, err)
	}
	if err := check(); err != nil {
		return jig.Errorf(jig.CodeInternal, "the state of %s is not one of this version: %w", name, err)
	}
	return nil
}

// Limits of an error in a state or an event: the bytes of its texts, those of its short texts, and the number of violations.
const (
	MaxMessage    = 2 << 10
	maxShortText  = MaxMessage / 8
	maxViolations = 10
)

// Brief shortens an error for a state or an event.
func Brief(err *jig.Error) *jig.Error {
	e := *err
	e.Message, e.Hint = jig.Cut(e.Message, MaxMessage), jig.Cut(e.Hint, MaxMessage)
	e.Field, e.Reason = jig.Cut(e.Field, maxShortText), jig.Cut(e.Reason, maxShortText)
	e.Cause, e.Violations = nil, slices.Clone(e.Violations[:min(len(e.Violations), maxViolations)])
	for i, v := range e.Violations {
		e.Violations[i] = jig.Violation{Pointer: jig.Cut(v.Pointer, maxShortText), Message: jig.Cut(v.Message, maxShortText)}
	}
	return &e
}

// Facts provides the data from which a composition's next move is computed. A path names a step within the composition, e.g. "page",
// "sections[4]", "sections[4]/inner", "page~2" (a second attempt) or "page.undo".
type Facts interface {
	// Calls returns the calls with these paths that exist, in any status.
	Calls(ctx context.Context, paths []string) (map[string]StepCall, error)
	// Values returns the values that were stored under these paths.
	Values(ctx context.Context, paths []string) (map[string]json.RawMessage, error)
}

// ExtractionFacts provides the data from which an extraction's next move is computed.
type ExtractionFacts interface {
	Facts
	// Sources returns the current sources that values may be based on and claims may cite: the texts of the entity being filled, the
	// entities connected with it, and their texts.
	Sources(ctx context.Context) (entity.Sources, error)
}

// StepCall is the state of a step's call. A final call usually has a result; an open one has none.
type StepCall struct {
	Status jig.CallStatus
	Result *jig.ToolResult
	// Tool is the tool of the call; Writes and Idempotent come from its contract.
	Tool               string
	Writes, Idempotent bool
}

// MayRetry reports whether a failed call may be repeated without asking a person; see [ledger.MayRetry]. The repeated call keeps the
// idempotency key and the input.
func (c StepCall) MayRetry() bool { return ledger.MayRetry(c.Writes, c.Idempotent, c.Outcome().Error) }

// Outcome returns the result of a final call, or one derived from its status if the call left no result.
func (c StepCall) Outcome() jig.ToolResult {
	if c.Result != nil {
		return *c.Result
	}
	code, word := jig.CodeInternal, "failed"
	switch c.Status {
	case jig.CallSucceeded:
		return jig.ToolResult{Success: true}
	case jig.CallDenied:
		code, word = jig.CodeDenied, "was denied"
	case jig.CallExpired:
		code, word = jig.CodeExpired, "expired"
	case jig.CallCanceled:
		code, word = jig.CodeCanceled, "was canceled"
	case jig.CallDuplicate:
		code, word = jig.CodeDuplicate, "is a duplicate"
	case jig.CallFailed, jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown:
	}
	return jig.Failure(jig.Errorf(code, "the call %s", word))
}

// Situation is the context of a composition's run, apart from its state.
type Situation struct {
	// Input is the composition's input. Session {id, agent, task, input} and Principal {id, groups, permissions} are available to
	// expressions.
	Input     json.RawMessage
	Tenant    string
	Session   json.RawMessage
	Principal json.RawMessage
	// Now is the value of now in expressions; it also decides which waits are over.
	Now time.Time
	// Events are the events sent to the session since the run began that no wait has consumed, oldest first.
	Events []ReceivedEvent
	// Call is the id under which the call that runs the plan is known outside of its session, <session>/<call>. It may be empty in tests.
	Call string
	// Canceled is set once the run has been canceled: running steps end, and completed ones are undone.
	Canceled bool
}
