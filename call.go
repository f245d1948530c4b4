package jig

import (
	"encoding/json"
	"log/slog"
	"time"
)

// CallStatus is the state of a call in the ledger.
type CallStatus string

// The states of a call. The first four are open, the others final.
const (
	// CallWaiting: the verdict was ask, and nobody has decided yet.
	CallWaiting CallStatus = "waiting"
	// CallReserved: the call may run (the verdict was run, or it was approved) but has not begun.
	CallReserved CallStatus = "reserved"
	// CallExecuting: an attempt has begun.
	CallExecuting CallStatus = "executing"
	// CallUnknown: an attempt began and nobody can know whether its effect happened; it waits for a person.
	CallUnknown CallStatus = "unknown"

	CallSucceeded CallStatus = "succeeded"
	CallFailed    CallStatus = "failed"
	CallDenied    CallStatus = "denied"
	CallExpired   CallStatus = "expired"
	CallCanceled  CallStatus = "canceled"
	CallDuplicate CallStatus = "duplicate"
)

// Final reports whether the call is over and has its result.
func (s CallStatus) Final() bool {
	switch s {
	case CallWaiting, CallReserved, CallExecuting, CallUnknown:
		return false
	case CallSucceeded, CallFailed, CallDenied, CallExpired, CallCanceled, CallDuplicate:
		return true
	}
	return false
}

// ToolCall is a call as the model requested it.
type ToolCall struct {
	// ProviderID is the id that the model provider gave the call.
	ProviderID string `json:"provider_id"`
	Name       string `json:"name"`
	// Input holds the arguments. If they were not valid JSON, Input is empty and Malformed holds the raw text.
	Input     json.RawMessage `json:"input,omitempty"`
	Malformed string          `json:"malformed,omitempty"`
}

// Call is a call's row in the ledger.
type Call struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	// ID is <pass>.<ordinal>; for a step of a composition it is <pass>.<ordinal>/<path>.
	ID string `json:"call"`
	// Frame is the id of the call whose composition made this one; empty when the model made it.
	Frame      string `json:"frame,omitempty"`
	Pass       int    `json:"pass"`
	Ordinal    int    `json:"ordinal"`
	ProviderID string `json:"provider_id,omitempty"`
	Tool       string `json:"tool"`
	Version    string `json:"version,omitempty"`
	// Write says that a success counts as a write of the session.
	Write bool `json:"write,omitempty"`
	// Idempotent is copied from the tool, so that recovery does not depend on the catalog.
	Idempotent bool `json:"idempotent,omitempty"`
	// Input is canonical JSON (RFC 8785), kept as bytes. If the arguments were not JSON, it holds them unchanged.
	Input     []byte `json:"input,omitempty"`
	Signature string `json:"signature,omitempty"`
	// IdempotencyKey is the key under which the call's effect runs. The ledger sets it at admission (see [IdempotencyKey] and RetryOf) and
	// never changes it afterwards.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// RetryOf is set at admission only and is not stored. It names an earlier call of the same session that this one retries; the new call
	// gets the idempotency key of the earlier one.
	RetryOf string `json:"-"`
	// ConcurrencyKey is the evaluated key of the tool's contract; calls with the same key run one after another.
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	// Preview describes the effect of the call to the people who decide; nil if the tool has no previews or nobody was asked. Previews
	// counts how often a later preview of the same call was different.
	Preview  *Preview `json:"preview,omitempty"`
	Previews int      `json:"previews,omitempty"`
	// Digest binds what a person sees to what runs; see the documentation of approvals.
	Digest        string     `json:"digest,omitempty"`
	PolicyVersion string     `json:"policy_version,omitempty"`
	Verdict       Verdict    `json:"verdict"`
	Reasons       []string   `json:"reasons,omitempty"`
	Status        CallStatus `json:"status"`
	// Fence counts the attempts that have begun; only the latest attempt may write a result. After a restore from a backup, the fence is
	// raised further for calls that may have run since the backup.
	Fence int `json:"fence"`
	// InDoubt reports that an earlier attempt of a call that may begin again may have taken effect. It is not part of the JSON.
	InDoubt bool `json:"-"`
	// FailedAt is the time of the first failure of the open call that may pass; zero if there was none. Failures counts the attempts that ended with
	// one. Tried reports that an attempt began before the ledger knew of it. None of them is part of the JSON.
	FailedAt time.Time `json:"-"`
	Failures int       `json:"-"`
	Tried    bool      `json:"-"`
	// Patch is the change that a person made to the model's arguments, as JSON Patch (RFC 6902). EditedBy is that person.
	Patch    json.RawMessage `json:"patch,omitempty"`
	EditedBy string          `json:"edited_by,omitempty"`
	// Paused says what holds the call back: tenant, tool or session; empty when nothing does.
	Paused PauseScope `json:"paused,omitempty"`
	// Child is the session that the call started; empty when it started none.
	Child string `json:"child_session_id,omitempty"`
	// ReadsPrivate and ReadsUntrusted say what the result may contain: by the labels of the tool and, once there is a result, by what the call
	// has really read.
	ReadsPrivate   bool `json:"reads_private,omitempty"`
	ReadsUntrusted bool `json:"reads_untrusted,omitempty"`
	// Flow says what was known about the origin of the arguments when the call was admitted. It is nil if the session had read neither private
	// nor untrusted data.
	Flow *DataFlow `json:"flow,omitempty"`
	// DuplicateOf is the earlier call with the same signature.
	DuplicateOf string      `json:"duplicate_of,omitempty"`
	Result      *ToolResult `json:"result,omitempty"`
	// ResultArtifact holds the whole result when it is too large for the row; Result is then a shortened copy.
	ResultArtifact string     `json:"result_artifact,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	StartedAt      *time.Time `json:"started_at,omitempty"`
	FinishedAt     *time.Time `json:"finished_at,omitempty"`
}

// Duration returns how long the last attempt took, or zero if the call has not finished.
func (c Call) Duration() time.Duration {
	if c.StartedAt == nil || c.FinishedAt == nil {
		return 0
	}
	return c.FinishedAt.Sub(*c.StartedAt)
}

// Invocation is the limited context that a tool gets: it names the principal, but does not contain the conversation.
type Invocation struct {
	Tenant    string
	Principal Principal
	SessionID string
	CallID    string
	Agent     string
	Depth     int
	// IdempotencyKey stays the same across retries, new workflow runs, resets and deploys. No other tenant or installation uses it. It is
	// at most 255 printable ASCII characters, so it fits an Idempotency-Key header.
	IdempotencyKey string
	// Attempt counts from 1, across all workers and runs. It is 0 while a preview is computed.
	Attempt int
	// Precondition is the precondition of the preview that people approved; empty if there is none. The tool must act only if it still
	// holds, checked together with the effect, and fail with CONFLICT otherwise.
	Precondition string
	// Logger writes to the worker's log, with session, call and tool already set.
	Logger *slog.Logger
	// Progress reports progress to people who are watching, as an event tool.output_appended. It is safe to call often.
	Progress func(text string)
}

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
