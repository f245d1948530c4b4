package jig

import (
	"encoding/json"
	"log/slog"
	"time"
)

// CallStatus is where a call stands in the ledger.
type CallStatus string

// The states of a call. The first four are open, the others final.
const (
	// CallWaiting: policy asked, and nobody has decided yet.
	CallWaiting CallStatus = "waiting"
	// CallReserved: it may run (policy said run, or it was approved) and has not begun.
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

// Final reports whether the call has its result.
func (s CallStatus) Final() bool {
	switch s {
	case CallWaiting, CallReserved, CallExecuting, CallUnknown:
		return false
	case CallSucceeded, CallFailed, CallDenied, CallExpired, CallCanceled, CallDuplicate:
		return true
	}
	return false
}

// ToolCall is a call as the model asked for it.
type ToolCall struct {
	// ProviderID is the model provider's id of the call.
	ProviderID string `json:"provider_id"`
	Name       string `json:"name"`
	// Input is the arguments; when they were not JSON, it is empty and Malformed holds what came.
	Input     json.RawMessage `json:"input,omitempty"`
	Malformed string          `json:"malformed,omitempty"`
}

// Call is a call's row in the ledger.
type Call struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	// ID is <pass>.<ordinal>; of a step of a composition <pass>.<ordinal>/<path>.
	ID string `json:"call"`
	// Frame is the call whose composition made this one; empty when the model did.
	Frame      string `json:"frame,omitempty"`
	Pass       int    `json:"pass"`
	Ordinal    int    `json:"ordinal"`
	ProviderID string `json:"provider_id,omitempty"`
	Tool       string `json:"tool"`
	Version    string `json:"version,omitempty"`
	// Write says that a success counts as a write of the session.
	Write bool `json:"write,omitempty"`
	// Idempotent is copied from the tool, so that recovery does not depend on the catalogue.
	Idempotent bool `json:"idempotent,omitempty"`
	// Input is kept as bytes, canonical JSON (RFC 8785); what came when it was not JSON.
	Input     []byte `json:"input,omitempty"`
	Signature string `json:"signature,omitempty"`
	// IdempotencyKey is the key that the call's effect runs under. The ledger sets it at admission, see [IdempotencyKey] and
	// RetryOf; from then on it never changes.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// RetryOf names, at admission, an earlier call of the same session whose effect this one tries again: the call gets that
	// one's idempotency key. It is not stored.
	RetryOf string `json:"-"`
	// ConcurrencyKey is evaluated; calls with the same one run one after another.
	ConcurrencyKey string `json:"concurrency_key,omitempty"`
	// Digest binds what a person sees to what runs; see the documentation of approvals.
	Digest        string     `json:"digest,omitempty"`
	PolicyVersion string     `json:"policy_version,omitempty"`
	Verdict       Verdict    `json:"verdict"`
	Reasons       []string   `json:"reasons,omitempty"`
	Status        CallStatus `json:"status"`
	// Fence counts attempts that began; a result is accepted from the latest alone. After a restore from a backup it is raised further
	// where a call may have run since.
	Fence int `json:"fence"`
	// Patch is what a person changed of the arguments, as JSON Patch (RFC 6902) from what the model asked for; EditedBy is who.
	Patch    json.RawMessage `json:"patch,omitempty"`
	EditedBy string          `json:"edited_by,omitempty"`
	// Paused says what holds the call back: tenant, tool or session; empty when nothing does.
	Paused PauseScope `json:"paused,omitempty"`
	// Child is the session that the call started; empty for none.
	Child string `json:"child_session_id,omitempty"`
	// DuplicateOf is the call with the same signature.
	DuplicateOf string      `json:"duplicate_of,omitempty"`
	Result      *ToolResult `json:"result,omitempty"`
	// ResultArtifact holds the whole result when it is too large for the row; Result is then cut down.
	ResultArtifact string     `json:"result_artifact,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	StartedAt      *time.Time `json:"started_at,omitempty"`
	FinishedAt     *time.Time `json:"finished_at,omitempty"`
}

// Duration is how long the last attempt took; zero when it has not finished.
func (c Call) Duration() time.Duration {
	if c.StartedAt == nil || c.FinishedAt == nil {
		return 0
	}
	return c.FinishedAt.Sub(*c.StartedAt)
}

// Invocation is the limited context a tool gets: who it acts for and nothing of the conversation.
type Invocation struct {
	Tenant    string
	Principal Principal
	SessionID string
	CallID    string
	Agent     string
	Depth     int
	// IdempotencyKey stays the same over retries, new workflow runs, resets and deploys, and no other tenant or installation
	// uses it. It is at most 255 printable ASCII characters, so it fits an Idempotency-Key header.
	IdempotencyKey string
	// Attempt counts from 1 over all workers and runs.
	Attempt int
	// Logger writes to the worker's log with session, call and tool set.
	Logger *slog.Logger
	// Progress reports to the people who watch: it becomes an event tool.output_appended. Safe to call often.
	Progress func(text string)
}
