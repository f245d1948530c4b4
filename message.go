package jig

import (
	"encoding/json"
	"time"
)

// Role is who says a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of a session's transcript that is not a tool result.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// Pass is the pass that the message belongs to: of an assistant, the pass that it is the turn of; of a user, the pass
	// that was under way when it arrived (0 for the task).
	Pass int       `json:"pass"`
	At   time.Time `json:"at"`
}

// MessageKey is what a session keeps a message under that has an id of its sender's choice: once.
func MessageKey(id string) string { return "message:" + id }

// Usage counts tokens.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
	CacheReadTokens   int64 `json:"cache_read_tokens,omitempty"`
	CacheCreateTokens int64 `json:"cache_create_tokens,omitempty"`
}

// Plus is the sum of both.
func (u Usage) Plus(more Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens + more.InputTokens, OutputTokens: u.OutputTokens + more.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + more.CacheReadTokens, CacheCreateTokens: u.CacheCreateTokens + more.CacheCreateTokens,
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
	Text  string     `json:"text"`
	Calls []ToolCall `json:"calls,omitempty"`
	Usage Usage      `json:"usage"`
	Stop  StopReason `json:"stop"`
	// Model is the model as the provider names it.
	Model string `json:"model,omitempty"`
	// Opaque is provider state that must be sent back with the turn (signed reasoning blocks, say).
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// Exchange is one pass of the transcript: what people said before it, the model's turn, and the calls with their results
// in the order asked.
type Exchange struct {
	Pass     int       `json:"pass"`
	Messages []Message `json:"messages,omitempty"`
	Turn     *Turn     `json:"turn,omitempty"`
	Calls    []Call    `json:"calls,omitempty"`
}

// ModelRequest is what a model provider is asked.
type ModelRequest struct {
	// Model is provider/name.
	Model string `json:"model"`
	// System is the agent's instructions with the menu of tools and the working state.
	System string `json:"system"`
	// Exchanges are the transcript, oldest first; results already cut to the budget.
	Exchanges []Exchange `json:"exchanges"`
	// Tools are the tools the model may call, sorted by name.
	Tools     []Tool `json:"tools,omitempty"`
	MaxTokens int    `json:"max_tokens"`
	// SessionID, Pass and Input are for scripts; Script holds their rules.
	SessionID string          `json:"session_id"`
	Pass      int             `json:"pass"`
	Input     json.RawMessage `json:"input,omitempty"`
	Script    json.RawMessage `json:"script,omitempty"`
}
