// Package chat holds the conversation with a model: messages, turns, usage, and the requests that model providers answer.
package chat

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// Role says who wrote a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is an entry of a session's transcript other than a tool result.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// Sender is the session whose call sent the message; empty for a message of a person or a program. Only writing needs it.
	Sender string `json:"-"`
	// Pass is the pass to which the message belongs: for an assistant, the pass of its turn; for a user, the pass that was running when the
	// message arrived (0 for the task).
	Pass int       `json:"pass"`
	At   time.Time `json:"at"`
}

// Usage counts tokens.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
	CacheReadTokens   int64 `json:"cache_read_tokens,omitempty"`
	CacheCreateTokens int64 `json:"cache_create_tokens,omitempty"`
	// Cost is in billionths of the tenant's currency; 0 if nothing has a price.
	Cost int64 `json:"cost,omitempty"`
}

// Plus returns the sum of two usages.
func (u Usage) Plus(more Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens + more.InputTokens, OutputTokens: u.OutputTokens + more.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + more.CacheReadTokens, CacheCreateTokens: u.CacheCreateTokens + more.CacheCreateTokens,
		Cost: u.Cost + more.Cost,
	}
}

// StopReason says why the model stopped.
type StopReason string

// The reasons.
const (
	StopEnd     StopReason = "end"
	StopCalls   StopReason = "calls"
	StopLength  StopReason = "length"
	StopRefusal StopReason = "refusal"
)

// Turn is one answer of the model.
type Turn struct {
	Text  string         `json:"text"`
	Calls []jig.ToolCall `json:"calls,omitempty"`
	Usage Usage          `json:"usage"`
	Stop  StopReason     `json:"stop"`
	// Model is the provider's name for the model.
	Model string `json:"model,omitempty"`
	// Asked is the model that was asked, as provider/name. It is not the agent's own model if a budget chose another one.
	Asked string `json:"asked,omitempty"`
	// Warning says why the answer may not be complete, or is empty.
	Warning string `json:"warning,omitempty"`
	// Opaque is provider state that must be sent back with the turn, e.g. signed reasoning blocks.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	// Begun reports, with an error, that the provider had accepted the request, so that it may cost what the answer has used.
	Begun bool `json:"-"`
}

// Exchange is one pass of the transcript: what users said before it, the model's turn, and the calls with their results in the order
// requested.
type Exchange struct {
	Pass     int        `json:"pass"`
	Messages []Message  `json:"messages,omitempty"`
	Turn     *Turn      `json:"turn,omitempty"`
	Calls    []jig.Call `json:"calls,omitempty"`
}

// Request is a request to a model provider.
type Request struct {
	// Model is provider/name.
	Model string `json:"model"`
	// System is the agent's instructions, followed by the tool menu and the working state.
	System string `json:"system"`
	// Exchanges are the transcript, oldest first, with results already shortened to the token budget.
	Exchanges []Exchange `json:"exchanges"`
	// Tools are the tools the model may call, sorted by name.
	Tools     []jig.Tool `json:"tools,omitempty"`
	MaxTokens int        `json:"max_tokens"`
	// SessionID, Pass and Input are available to scripts; Script holds a script's rules.
	SessionID string          `json:"session_id"`
	Pass      int             `json:"pass"`
	Input     json.RawMessage `json:"input,omitempty"`
	Script    json.RawMessage `json:"script,omitempty"`
	// Tenant and Call say for whom the model is asked, for budgets: the session's tenant and, if a tool asks the model, its call. Summary is
	// set for the request for a summary. Providers do not see them.
	Tenant  string `json:"-"`
	Call    string `json:"-"`
	Summary bool   `json:"-"`
}

// The limits on a turn or a call that asks a model whose provider fails: how many requests it makes, and for how long. A provider may ask for a
// wait of at most an hour.
const (
	MaxRequests = 10
	RetryFor    = MaxRequests * time.Hour
)

// FromProvider reports whether err says that a model's provider failed in a way that may pass, or broke its answer.
func FromProvider(err *jig.Error) bool {
	reasons := []string{jig.ReasonProviderFailed, jig.ReasonBrokenAnswer, jig.ReasonNoAnswer}
	return err != nil && err.Code.Retryable() && slices.Contains(reasons, err.Reason)
}

// AskedAgain returns the error with which a model's answer failed after the model has been asked again a number of times. It is err itself
// unless the answer was broken for the fourth time, or empty for the second: then it is INVALID_OUTPUT, with the same reason, which is final.
func AskedAgain(err *jig.Error, times int) *jig.Error {
	most := map[string]int{jig.ReasonBrokenAnswer: 3, jig.ReasonNoAnswer: 1}[err.Reason]
	if most == 0 || times < most {
		return err
	}
	final := *err
	final.Code, final.RetryAfter = jig.CodeInvalidOutput, 0
	final.Hint = "send a message to ask again, or use another model"
	return &final
}
