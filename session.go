package jig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// DefaultTenant is the tenant used when none is named. GlobalTenant owns the rows that every tenant may read.
const (
	DefaultTenant = "default"
	GlobalTenant  = "_global"
)

// Principal is the person or program that acts.
type Principal struct {
	// ID names the principal, e.g. "ana" or "ci".
	ID string `json:"id"`
	// Permissions lists the principal's permissions, e.g. "entities.team.read"; "*" grants all.
	Permissions []string `json:"permissions,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	// Claimed is true if the principal's identity was not proved. Anyone who can reach Temporal can claim any name.
	Claimed bool `json:"claimed,omitempty"`
	// Proof says how the identity was proved; empty means claimed.
	Proof Proof `json:"proof,omitempty"`
	// Maker is the principal who made the credential with which this one acts; empty for a credential of the principal's own. It is
	// [MakerOperator] for a credential that the installation's operator made.
	Maker string `json:"maker,omitempty"`
}

// MakerOperator is the maker of credentials that the installation's operator made. It names no person.
const MakerOperator = "operator"

// Proof says how the identity of a principal was proved.
type Proof string

// The proofs, from the weakest to the strongest.
const (
	// ProofClaimed: nobody checked the name.
	ProofClaimed Proof = "claimed"
	// ProofVouched: a server authenticated the principal.
	ProofVouched Proof = "vouched"
	// ProofKey: the principal signed with a key that only they hold.
	ProofKey Proof = "key"
	// ProofPasskey: the principal signed with a passkey.
	ProofPasskey Proof = "passkey"
)

// Text returns what people read after a name: " (claimed)", " (vouched by srv_9532f35f)", " (signed with key ana-21fe31df)" or " (signed with passkey
// pk-1)"; "" if nothing is known. claimed says that there was no proof. key is the id of the key, or of the server that vouched; it may be empty.
func (p Proof) Text(claimed bool, key string) string {
	key = Cut(key, 40)
	switch {
	case claimed || p == ProofClaimed:
		return " (claimed)"
	case p == ProofVouched:
		return " (" + strings.TrimSuffix("vouched by "+key, " by ") + ")"
	case p == ProofPasskey:
		return " (" + strings.TrimSpace("signed with passkey "+key) + ")"
	case p == ProofKey || key != "":
		return " (" + strings.TrimSuffix("signed with key "+key, " with key ") + ")"
	}
	return ""
}

// AtLeast reports whether the proof is as strong as another one. The empty proof is the weakest.
func (p Proof) AtLeast(q Proof) bool { return p.strength() >= q.strength() }

func (p Proof) strength() int {
	return max(0, slices.Index([]Proof{ProofClaimed, ProofVouched, ProofKey, ProofPasskey}, p))
}

// Stronger returns the stronger of two proofs.
func (p Proof) Stronger(q Proof) Proof {
	if p.AtLeast(q) {
		return p
	}
	return q
}

// Holds reports whether the principal has a permission. Everybody has the empty permission.
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

// Status is the state of a session, in the terms of the A2A protocol.
type Status string

// The states of a session.
const (
	StatusWorking       Status = "working"
	StatusInputRequired Status = "input_required"
	StatusCompleted     Status = "completed"
	StatusFailed        Status = "failed"
	StatusCanceled      Status = "canceled"
)

// Final reports whether the session is over, so that nothing more happens unless a message arrives.
func (s Status) Final() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCanceled
}

// Source says how a session was started.
type Source string

// The sources. A session started by another session has the source agent.
const (
	SourceWeb      Source = "web"
	SourceAPI      Source = "api"
	SourceMCP      Source = "mcp"
	SourceCLI      Source = "cli"
	SourceSchedule Source = "schedule"
	SourceAgent    Source = "agent"
	// SourceTemporal: somebody started the session at Temporal, and no server vouches for it.
	SourceTemporal Source = "temporal"
)

// DraftPrefix begins the name of an agent whose document is not registered. No agent can be registered under such a name, so rules and
// grants for registered agents never match a draft.
const DraftPrefix = "draft:"

// CallAgent is the agent name of a session that consists of a single call. No document may use it.
const CallAgent = "call"

// Agent is a parsed agent document: instructions, tools and limits.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Version is the hash of the document.
	Version string `json:"version"`
	// Registered reports that exactly this document is registered for the tenant under the agent's name. Otherwise the name begins with
	// DraftPrefix. In the session of a single call, it says the same about the called tool.
	Registered bool `json:"registered,omitempty"`
	// Model is provider/name: anthropic/…, openai/… or script/….
	Model string `json:"model"`
	// Instructions are the body of the document.
	Instructions string `json:"instructions"`
	// Tools is the whitelist: names, "category.*", or "*" for all.
	Tools []string `json:"tools"`
	// Agents are the agents that this one may start; empty means none.
	Agents []string `json:"agents,omitempty"`
	// Models are the models that another agent, or a composition, may choose instead of Model: names, "provider/*", or "*" for all. Empty
	// means none.
	Models []string `json:"models,omitempty"`
	// Script holds the rules of a script model (JSON), if the document has any.
	Script json.RawMessage `json:"script,omitempty"`
	// InputSchema describes the session's input; empty means any object.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// Limits bound a session of this agent.
	Limits Limits `json:"limits"`
}

// PassesAuto as [Limits].PassesPerRun lets passes share a workflow run until its history has grown long. A pass that takes longer than a
// few seconds, for example because it waits for a person, is the last of its run.
const PassesAuto = -1

// Limits bound a session. Zero values mean the defaults.
type Limits struct {
	// MaxPasses is the number of passes after which the session ends; default 50.
	MaxPasses int `json:"max_passes,omitempty"`
	// MaxParallelCalls bounds the calls of a pass that run at once; default 10.
	MaxParallelCalls int `json:"max_parallel_calls,omitempty"`
	// PassesPerRun is how many passes share a workflow run; default 1. See also PassesAuto.
	PassesPerRun int `json:"passes_per_run,omitempty"`
	// TokenBudget bounds the prompt, estimated at four bytes per token; default 100,000.
	TokenBudget int `json:"token_budget,omitempty"`
	// MaxTokens bounds one answer of the model, in tokens; default 8,192.
	MaxTokens int `json:"max_tokens,omitempty"`
	// MaxTotalTokens bounds the input plus output tokens of the whole session; 0 means no bound.
	MaxTotalTokens int64 `json:"max_total_tokens,omitempty"`
	// Deadline bounds the lifetime of the session; 0 means none. In JSON: nanoseconds.
	Deadline time.Duration `json:"deadline,omitempty"`
	// ApprovalExpires is how long a call waits for a decision; default 7 days. In JSON: nanoseconds.
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

// Session is a session's row in the store: its initial settings and its current state.
type Session struct {
	Tenant string `json:"tenant"`
	ID     string `json:"session_id"`
	// Agent is fixed at the start: later changes to the document do not affect a running session.
	Agent     Agent           `json:"agent"`
	Principal Principal       `json:"principal"`
	Input     json.RawMessage `json:"input,omitempty"`
	Task      string          `json:"task,omitempty"`
	// Catalog pins the version of each tool that the agent may use, by name.
	Catalog map[string]string `json:"catalog,omitempty"`
	Status  Status            `json:"status"`
	// Paused says what holds back the session's next pass, tenant or session, if the caller looked that up; empty when nothing does.
	Paused PauseScope `json:"paused,omitempty"`
	// Pass is the number of the latest pass, 0 before the first.
	Pass int `json:"pass"`
	// Writes counts the successful write calls. It is part of the signature of a read.
	Writes int `json:"writes"`
	// ReadPrivate and ReadUntrusted say what the session has read so far, including what the session that started it had read by then.
	ReadPrivate   bool `json:"read_private,omitempty"`
	ReadUntrusted bool `json:"read_untrusted,omitempty"`
	// Tokens is the total usage of all passes so far, input plus output.
	Tokens int64           `json:"tokens"`
	Todo   json.RawMessage `json:"todo,omitempty"`
	Answer string          `json:"answer,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	// ParentID is the session that started this one, ParentCall is the call that did so, and ParentAgent is that session's agent. All are
	// empty if a person or a program started the session.
	ParentID    string `json:"parent_id,omitempty"`
	ParentCall  string `json:"parent_call,omitempty"`
	ParentAgent string `json:"parent_agent,omitempty"`
	// RootAgent is the agent of the session at the root of the tree; without a parent, it is the session's own agent.
	RootAgent string `json:"root_agent,omitempty"`
	// Depth is the number of ancestors of this session.
	Depth int `json:"depth,omitempty"`
	// Source says how the session was started.
	Source Source `json:"source,omitempty"`
	// TriggeredBy is who started the session outside of the times of its schedule; nil otherwise. It is known only when the session begins.
	TriggeredBy *Asker `json:"-"`
	// RequestDigest is the digest of the [SessionRequest] that started the session; empty if another session started it.
	RequestDigest string `json:"request_digest,omitempty"`
	// SummaryThrough is the last pass that Summary replaces in the prompt; 0 when there is no summary.
	SummaryThrough int       `json:"summary_through,omitempty"`
	Summary        string    `json:"summary,omitempty"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

// ReasonSessionDeleted is the reason of the CONFLICT when a session is started under the id of one that was pruned or erased.
const ReasonSessionDeleted = "session_deleted"

// Reasons why a session ended.
const (
	ReasonAnswered          = "answered"
	ReasonPartial           = "partial" // an extraction ended, and some of its tasks or entities failed
	ReasonAllToolsDuplicate = "all_tools_duplicate"
	ReasonMaxPasses         = "max_passes"
	ReasonDeadline          = "deadline"
	ReasonBudget            = "budget"
	ReasonRefusal           = "refusal"
	ReasonCutOff            = "cut_off"
	ReasonNoAnswer          = "no_answer"
	ReasonBrokenAnswer      = "broken_answer"
	ReasonProviderWait      = "provider_wait"
	ReasonProviderQuota     = "provider_quota"
	ReasonProviderFailed    = "provider_failed"
	ReasonTerminated        = "terminated"
	ReasonExpired           = "approval_expired"
)

// SessionRequest is a request to start a session under an id that the client chose. Repeating the same request under the same id returns
// the existing session; a different request is a CONFLICT.
type SessionRequest struct {
	// Agent or Tool names what runs. Document is the text of the document if the client sends one.
	Agent    string `json:"agent,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Document string `json:"document,omitempty"`
	Task     string `json:"task,omitempty"`
	// Input and Pairs are the input as the client gave it.
	Input json.RawMessage   `json:"input,omitempty"`
	Pairs map[string]string `json:"pairs,omitempty"`
	Model string            `json:"model,omitempty"`
	// Principal is the id of the principal for whom the session acts.
	Principal string `json:"principal,omitempty"`
}

// Digest returns the SHA-256 of the request in hex. The order of members and the white space in Input do not matter.
func (r SessionRequest) Digest() string {
	r.Input = normalInput(r.Input)
	text, err := json.Marshal(r)
	if err != nil { // cannot happen: normalInput returns only JSON
		panic("jig: a session request cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// normalInput returns a JSON value in a normal form: nil for no input, and a JSON string for input that is not JSON.
func normalInput(input json.RawMessage) json.RawMessage {
	if len(input) == 0 {
		return nil
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&value) != nil || d.More() {
		value = string(input)
	}
	normal, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return normal
}
