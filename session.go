package jig

import (
	"encoding/json"
	"time"
)

// DefaultTenant is the tenant used when none is named; GlobalTenant owns the rows that everybody may read.
const (
	DefaultTenant = "default"
	GlobalTenant  = "_global"
)

// Principal is the person or program that acts.
type Principal struct {
	// ID names the principal, e.g. "ana" or "ci".
	ID string `json:"id"`
	// Permissions it holds, e.g. "entities.team.read"; "*" holds all.
	Permissions []string `json:"permissions,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	// Claimed is true while nobody has proved who it is: whoever reaches Temporal may claim any name.
	Claimed bool `json:"claimed,omitempty"`
	// Proof says how we know who it is; empty means claimed.
	Proof Proof `json:"proof,omitempty"`
}

// Proof says how we know who acts.
type Proof string

// The proofs, from the weakest to the strongest.
const (
	// ProofClaimed: nobody checked the name.
	ProofClaimed Proof = "claimed"
	// ProofVouched: a server authenticated the principal.
	ProofVouched Proof = "vouched"
	// ProofKey: the principal signed with a key that is theirs alone.
	ProofKey Proof = "key"
	// ProofPasskey: the principal signed with a passkey.
	ProofPasskey Proof = "passkey"
)

// Holds reports whether the principal holds a permission; the empty permission is held by everybody.
func (p Principal) Holds(permission string) bool {
	if permission == "" {
		return true
	}
	for _, have := range p.Permissions {
		if have == permission || have == "*" {
			return true
		}
	}
	return false
}

// Status is a session's state, in the words of the A2A protocol.
type Status string

// The states of a session.
const (
	StatusWorking       Status = "working"
	StatusInputRequired Status = "input_required"
	StatusCompleted     Status = "completed"
	StatusFailed        Status = "failed"
	StatusCanceled      Status = "canceled"
)

// Final reports whether nothing more happens in this state unless a message arrives.
func (s Status) Final() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCanceled
}

// Source says how a session was started.
type Source string

// The sources. A session that another session started has the source agent.
const (
	SourceWeb      Source = "web"
	SourceAPI      Source = "api"
	SourceMCP      Source = "mcp"
	SourceCLI      Source = "cli"
	SourceSchedule Source = "schedule"
	SourceAgent    Source = "agent"
)

// DraftPrefix begins the name of an agent whose document is not registered. No agent can be registered under such a name, so no
// rule or grant for a registered agent matches one.
const DraftPrefix = "draft:"

// CallAgent is the name of the agent that a session which is one call has; no document may be called so.
const CallAgent = "call"

// Agent is an agent document as parsed: who it is, what it may use, how far it may go.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Version is the hash of the document.
	Version string `json:"version"`
	// Registered says that the tenant has exactly this document registered under the agent's name. The name of one that is not
	// registered begins with DraftPrefix. In the session of a single call it says the same of the tool that is called.
	Registered bool `json:"registered,omitempty"`
	// Model is provider/name: anthropic/…, openai/… or script/….
	Model string `json:"model"`
	// Instructions are the document's body.
	Instructions string `json:"instructions"`
	// Tools is the whitelist: names, "category.*", or "*" for all.
	Tools []string `json:"tools"`
	// Agents are the agents that it may start; none when empty.
	Agents []string `json:"agents,omitempty"`
	// Models are those that another agent, or a composition, may choose for it in place of Model: names, "provider/*", or "*" for all;
	// none when empty.
	Models []string `json:"models,omitempty"`
	// Script holds the rules of a script model (JSON), when the document has them.
	Script json.RawMessage `json:"script,omitempty"`
	// InputSchema describes the session's input; any object when empty.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// Limits of a session of this agent; see Limits.
	Limits Limits `json:"limits"`
}

// Limits bound a session. Zero values mean the defaults.
type Limits struct {
	// MaxPasses ends the session; default 50.
	MaxPasses int `json:"max_passes,omitempty"`
	// MaxParallelCalls bounds the calls of a pass that run at once; default 10.
	MaxParallelCalls int `json:"max_parallel_calls,omitempty"`
	// PassesPerRun is how many passes share a workflow run; default 1.
	PassesPerRun int `json:"passes_per_run,omitempty"`
	// TokenBudget bounds the prompt (about four bytes a token); default 100,000.
	TokenBudget int `json:"token_budget,omitempty"`
	// MaxTokens bounds one answer of the model; default 8,192.
	MaxTokens int `json:"max_tokens,omitempty"`
	// MaxTotalTokens bounds input plus output tokens of the whole session; 0 means no bound.
	MaxTotalTokens int64 `json:"max_total_tokens,omitempty"`
	// Deadline bounds the session's whole life; 0 means none. In JSON: nanoseconds.
	Deadline time.Duration `json:"deadline,omitempty"`
	// ApprovalExpires is how long a call waits for its decision; default 7 days.
	ApprovalExpires time.Duration `json:"approval_expires,omitempty"`
}

// WithDefaults fills in the zero values.
func (l Limits) WithDefaults() Limits {
	setDefault(&l.MaxPasses, 50)
	setDefault(&l.MaxParallelCalls, 10)
	setDefault(&l.PassesPerRun, 1)
	setDefault(&l.TokenBudget, 100_000)
	setDefault(&l.MaxTokens, 8192)
	setDefault(&l.ApprovalExpires, 7*24*time.Hour)
	return l
}

// Session is a session's row: what it was started with and where it stands.
type Session struct {
	Tenant string `json:"tenant"`
	ID     string `json:"session_id"`
	// Agent is pinned at the start: a later change of the document does not reach a running session.
	Agent     Agent           `json:"agent"`
	Principal Principal       `json:"principal"`
	Input     json.RawMessage `json:"input,omitempty"`
	Task      string          `json:"task,omitempty"`
	// Catalogue pins the version of each tool the agent may use, by name.
	Catalogue map[string]string `json:"catalogue,omitempty"`
	Status    Status            `json:"status"`
	// Paused says what holds the session's next pass back, tenant or session, where that was looked up; empty when nothing does.
	Paused PauseScope `json:"paused,omitempty"`
	// Pass is the number of the latest pass, 0 before the first.
	Pass int `json:"pass"`
	// Writes counts the successful write calls: part of a read's signature.
	Writes int `json:"writes"`
	// Tokens is the usage of all passes so far, input plus output.
	Tokens int64           `json:"tokens"`
	Todo   json.RawMessage `json:"todo,omitempty"`
	Answer string          `json:"answer,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	// ParentID is the session that started this one, ParentCall the call that did, and ParentAgent that session's agent; all are
	// empty for a session that a person or a program started.
	ParentID    string `json:"parent_id,omitempty"`
	ParentCall  string `json:"parent_call,omitempty"`
	ParentAgent string `json:"parent_agent,omitempty"`
	// RootAgent is the agent of the first session of the tree: the session's own when it has no parent.
	RootAgent string `json:"root_agent,omitempty"`
	// Depth counts the sessions above this one.
	Depth int `json:"depth,omitempty"`
	// Source says how the session was started.
	Source Source `json:"source,omitempty"`
	// RequestDigest identifies what the session was started with, see [SessionRequest]; empty for one that another session started.
	RequestDigest string `json:"request_digest,omitempty"`
	// SummaryThrough is the last pass that Summary stands for in the prompt; 0 when there is none.
	SummaryThrough int       `json:"summary_through,omitempty"`
	Summary        string    `json:"summary,omitempty"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

// ReasonSessionDeleted is the reason of the CONFLICT when a session is to begin under the id of one that was pruned or erased.
const ReasonSessionDeleted = "session_deleted"

// Reasons why a session ended.
const (
	ReasonAnswered          = "answered"
	ReasonAllToolsDuplicate = "all_tools_duplicate"
	ReasonMaxPasses         = "max_passes"
	ReasonDeadline          = "deadline"
	ReasonBudget            = "budget"
	ReasonRefusal           = "refusal"
	ReasonCutOff            = "cut_off"
	ReasonTerminated        = "terminated"
	ReasonExpired           = "approval_expired"
)
