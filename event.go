package jig

import (
	"encoding/json"
	"time"
)

// EventType names the kind of an event.
type EventType string

// The events of a session's log.
const (
	EventSessionStarted     EventType = "session.started"
	EventSessionCompleted   EventType = "session.completed"
	EventSessionFailed      EventType = "session.failed"
	EventSessionCanceled    EventType = "session.canceled"
	EventMessageAdded       EventType = "message.added"
	EventPassStarted        EventType = "pass.started"
	EventPassCompleted      EventType = "pass.completed"
	EventToolStarted        EventType = "tool.started"
	EventToolHeld           EventType = "tool.held"
	EventToolOutput         EventType = "tool.output_appended"
	EventToolCompleted      EventType = "tool.completed"
	EventToolFailed         EventType = "tool.failed"
	EventToolCancelled      EventType = "tool.cancelled"
	EventToolSkipped        EventType = "tool.skipped_duplicate"
	EventToolNeedsApproval  EventType = "tool.needs_approval"
	EventToolApproved       EventType = "tool.approved"
	EventToolDenied         EventType = "tool.denied"
	EventToolExpired        EventType = "tool.expired"
	EventToolOutcomeUnknown EventType = "tool.outcome_unknown"
	EventToolInDoubt        EventType = "tool.in_doubt"
	EventToolReconciled     EventType = "tool.reconciled"
	EventStepWaiting        EventType = "step.waiting"
	EventToolUndone         EventType = "tool.undone"
	EventDecisionRefused    EventType = "decision.refused"
	EventApprovalVoted      EventType = "approval.voted"
	EventApprovalDelegated  EventType = "approval.delegated"
	EventApprovalReminded   EventType = "approval.reminded"
	EventApprovalEscalated  EventType = "approval.escalated"
	EventApprovalWithdrawn  EventType = "approval.withdrawn"
	EventToolEdited         EventType = "tool.edited"
	EventToolAsked          EventType = "tool.asked"
	EventToolAnswered       EventType = "tool.answered"
	EventGrantCreated       EventType = "grant.created"
	EventGrantUsed          EventType = "grant.used"
	EventToolPaused         EventType = "tool.paused"
	EventSessionHeld        EventType = "session.held"
	EventSessionPaused      EventType = "session.paused"
	EventSessionResumed     EventType = "session.resumed"
	EventBudgetExhausted    EventType = "budget.exhausted"
	EventModelWaiting       EventType = "model.waiting"
	EventModelWarning       EventType = "model.warning"
	// The events of an extraction; internal/plan/extraction defines the shapes of their data.
	EventTaskStarted   EventType = "task.started"
	EventTaskCompleted EventType = "task.completed"
	EventTaskFailed    EventType = "task.failed"
	EventTaskSkipped   EventType = "task.skipped"
	EventEntityUpdated EventType = "entity.updated"
)

// EventCustom is the prefix of user-defined event types: those that a composition emits and those that are sent to a session.
const EventCustom = "custom."

// Event is one line of a session's append-only log. Seq counts 1, 2, 3 … without gaps.
type Event struct {
	SessionID string          `json:"session_id"`
	Seq       int64           `json:"seq"`
	At        time.Time       `json:"at"`
	Type      EventType       `json:"type"`
	Pass      int             `json:"pass,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// InlineBytes is the size in bytes of the largest value kept in a row; larger values become artifacts.
const InlineBytes = 32 << 10
