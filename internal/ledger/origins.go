package ledger

import (
	"cmp"

	"github.com/jig-run/jig"
)

// Origins holds the texts that the arguments of a session's calls can come from.
type Origins struct {
	// Source, Task and Input are those of the session at the root of the tree.
	Source jig.Source
	Task   string
	Input  []byte
	// Messages are the later messages to any session from the root to this one, and Events the events that were sent to them.
	Messages []OriginMessage
	Events   []OriginEvent
	// Calls are the calls that have a result, the oldest first, of all these sessions.
	Calls []OriginCall
	// More reports that there are older messages, events or calls.
	More bool
}

// OriginMessage is a message to a session. Typed reports that the session's principal sent it.
type OriginMessage struct {
	Text, By string
	Typed    bool
}

// OriginEvent is an event that was sent to a session.
type OriginEvent struct {
	Name string
	Data []byte
}

// OriginCall is a call whose result the session may have read.
type OriginCall struct {
	// ID is the id of the call; for a call of a session above, the session's id comes before it.
	ID, Tool string
	Result   jig.ToolResult
	// Untrusted reports that outsiders may have written the result, or that it may repeat what they wrote. Cut reports that only a part of the
	// result is here.
	Untrusted, Cut bool
}

// Typed returns what the principal typed. The text of a session that was started by another program than the command line or the API, or by an
// agent, was not typed by the principal.
func (o Origins) Typed() []string {
	if !Typed(o.Source) {
		return nil
	}
	typed := []string{o.Task, string(o.Input)}
	for _, m := range o.Messages {
		if m.Typed {
			typed = append(typed, m.Text)
		}
	}
	return typed
}

// Told returns the other texts that were not read by a call, by what they are: messages of others, events, and what a session was started with
// that its principal did not type.
func (o Origins) Told() []OriginText {
	var told []OriginText
	typed := Typed(o.Source)
	if !typed {
		told = append(told, OriginText{"what the session was started with", o.Task}, OriginText{"what the session was started with", string(o.Input)})
	}
	for _, m := range o.Messages {
		if !m.Typed || !typed {
			told = append(told, OriginText{"a message of " + cmp.Or(m.By, "somebody"), m.Text})
		}
	}
	for _, e := range o.Events {
		told = append(told, OriginText{"the event " + e.Name, string(e.Data)})
	}
	return told
}

// OriginText is a text, and what it is, for people.
type OriginText struct {
	What, Text string
}

// Typed reports whether what starts a session was typed by its principal.
func Typed(source jig.Source) bool {
	switch source {
	case jig.SourceCLI, jig.SourceAPI, jig.SourceSchedule, jig.SourceTemporal:
		return true
	case jig.SourceWeb, jig.SourceMCP, jig.SourceAgent:
	}
	return false
}
