package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

// Signal is a signal or update as it arrived, with a key that makes sure that it takes effect only once.
type Signal struct {
	protocol.SessionRef
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload"`
	// Pass is the current pass.
	Pass int `json:"pass,omitempty"`
	// Composing reports that something in the session may wait for an event, now or later: a composition that has not ended, or the call with
	// which the session was started.
	Composing bool `json:"composing,omitempty"`
}

// Handled is the outcome of a signal.
type Handled struct {
	Decisions []jig.Ruled `json:"decisions,omitempty"`
	// Calls are the calls that a decision concerned and that are still open. An approved one may run now.
	Calls []CallRef `json:"calls,omitempty"`
	// Frames are the compositions that the decided calls belong to.
	Frames []string `json:"frames,omitempty"`
	// Message reports that a user message was added which no pass has read. Event reports that an event arrived that a composition may be waiting for.
	Message bool `json:"message,omitempty"`
	Event   bool `json:"event,omitempty"`
	// Ending is set (cancel or fail) if an approval expired and its terms end the session.
	Ending jig.ExpiryOutcome `json:"ending,omitempty"`
}

// Hear processes a signal or update: a decision, an answer, a reconciliation, a message or an event. A signal that cannot be read,
// or whose name is unknown, is refused with an event, never dropped. Hear is idempotent by the signal's key.
func (a *Activities) Hear(ctx context.Context, in Signal) (Handled, error) {
	handled, err := a.handle(ctx, in)
	return handled, temporalError(err)
}

func (a *Activities) handle(ctx context.Context, in Signal) (Handled, error) {
	switch in.Name {
	case "approve", "deny", "delegate", "decide":
		return a.decide(ctx, in)
	case "answer":
		return a.reply(ctx, in)
	case "reconcile":
		return a.reconcile(ctx, in)
	case "message":
		return a.message(ctx, in)
	case "event":
		return a.event(ctx, in)
	}
	return a.refuseSignal(ctx, in, jig.Templatef("unknown signal %q; use approve, deny, delegate, answer, reconcile, message or event", in.Name))
}

// event processes an event that a composition may be waiting for.
func (a *Activities) event(ctx context.Context, in Signal) (Handled, error) {
	var e protocol.Event
	if err := strictjson.UnmarshalKnown(in.Payload, &e); err != nil {
		return a.unreadable(ctx, in, err)
	}
	who, err := a.eventSender(ctx, in.SessionRef, e, a.Now())
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if err != nil {
		return Handled{}, err
	}
	if err := e.Check(); err != nil {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if !in.Composing {
		return a.refuseSignal(ctx, in, "nothing in this session is waiting for an event")
	}
	if err := a.recordAsker(ctx, in.Tenant, in.SessionID, &who, "", jig.AskedEvent); err != nil {
		return Handled{}, err
	}
	key := in.Key
	if e.ID != "" {
		key = jig.MessageKey(e.ID)
	}
	_, err = a.Store.Receive(ctx, in.Tenant, in.SessionID, key, plan.ReceivedEvent{Name: e.Name, Data: e.Data, By: who.ID, Claimed: who.Claimed})
	if jig.CodeOf(err) == jig.CodeConflict {
		return a.refuseSignal(ctx, in, explain(err))
	}
	return Handled{Event: true}, err
}

// maxMessageID is the maximum size of a message id, in bytes.
const maxMessageID = 256

func (a *Activities) message(ctx context.Context, in Signal) (Handled, error) {
	var m protocol.Message
	if err := strictjson.UnmarshalKnown(in.Payload, &m); err != nil {
		return a.unreadable(ctx, in, err)
	}
	who, err := a.messageSender(ctx, in.SessionRef, m.Woken(), a.Now())
	if who == nil && err == nil {
		err = a.mayAct(ctx, in.Tenant, m.By)
	}
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if err != nil {
		return Handled{}, err
	}
	if who != nil {
		m.By = who.ID
	}
	if strings.TrimSpace(m.Text) == "" {
		return a.refuseSignal(ctx, in, "`text` is missing: give the message")
	}
	if len(m.ID) > maxMessageID {
		return a.refuseSignal(ctx, in, fmt.Sprintf("`id` has %d bytes; at most %d are allowed", len(m.ID), maxMessageID))
	}
	session, err := a.Store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return Handled{}, err
	}
	if session.Agent.Name == jig.CallAgent {
		return a.refuseSignal(ctx, in, "this session is a single call, which reads no messages")
	}
	if err := a.recordMessageAskers(ctx, in, m, who); err != nil {
		return Handled{}, err
	}
	key := in.Key
	if m.ID != "" {
		key = jig.MessageKey(m.ID)
	}
	added, err := a.Store.AddMessage(ctx, in.Tenant, in.SessionID, key, chat.Message{Role: chat.RoleUser, Text: m.Text, By: m.By, Sender: m.Parent, Pass: in.Pass})
	read := false
	if err == nil && !added && m.ID != "" { // it was sent before
		read, err = a.Store.MessageRead(ctx, in.Tenant, in.SessionID, m.ID)
	}
	return Handled{Message: !read}, err
}

// recordMessageAskers records who puts the words of a message into the session: its author or, if a call sends it, those on whose word that call rests.
func (a *Activities) recordMessageAskers(ctx context.Context, in Signal, m protocol.Message, who *jig.Principal) error {
	if m.Parent == "" {
		return a.recordAsker(ctx, in.Tenant, in.SessionID, who, m.By, jig.AskedMessage)
	}
	sends, err := a.Store.Call(ctx, in.Tenant, m.Parent, m.ParentCall)
	if err != nil {
		return err
	}
	return a.Store.SaidBy(ctx, in.SessionID, sends)
}

// unreadable refuses a signal whose payload has the wrong form.
func (a *Activities) unreadable(ctx context.Context, in Signal, err error) (Handled, error) {
	return a.refuseSignal(ctx, in, "the payload could not be read: "+explain(err))
}

// refuseSignal refuses a signal as a whole, with an event that says why. why may be a template.
func (a *Activities) refuseSignal(ctx context.Context, in Signal, why string) (Handled, error) {
	reason := jig.Text(why)
	data, err := json.Marshal(map[string]any{"name": in.Name, "payload": jig.Cut(string(in.Payload), 1000), "reason": reason})
	if err != nil {
		return Handled{}, jig.Errorf(jig.CodeInternal, "encoding a refusal: %w", err)
	}
	ruled := jig.Ruled{Outcome: jig.DecisionRefused, Reason: reason}
	return Handled{Decisions: []jig.Ruled{ruled}}, a.Store.Refuse(ctx, in.Tenant, in.SessionID, in.Key, reason, data)
}

// AsJSON returns a payload unchanged if it is JSON, and otherwise as a JSON string. An empty payload becomes null.
func AsJSON(payload []byte) json.RawMessage {
	if len(payload) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(payload) {
		return payload
	}
	b, err := json.Marshal(string(payload))
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
