package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/jig-run/jig"
)

// StatementKind says what a server makes a statement about.
type StatementKind string

// The kinds. A statement of one kind is never valid for another.
const (
	// StateStart is the start of a session or of a single call.
	StateStart StatementKind = "start"
	// StateSchedule is a mandate: a schedule may start the same session again and again.
	StateSchedule StatementKind = "schedule"
	// StateTrigger is a start of a schedule's session outside of its times. The schedule's own statement says for whom the session acts.
	StateTrigger StatementKind = "trigger"
	// StateMessage is a message to a session.
	StateMessage StatementKind = "message"
	// StateEvent is an event for a session.
	StateEvent StatementKind = "event"
	// StateDecide is a message with decisions, an answer or an outcome.
	StateDecide StatementKind = "decide"
	// StateRead is a request that an activity of clients answers.
	StateRead StatementKind = "read"
)

// Statement is a server's statement about a request that it sends on behalf of a principal whom it has authenticated.
type Statement struct {
	Kind   StatementKind
	Tenant string
	// Principal is the principal with the groups and permissions that the server found. A client leaves it empty; the server fills it in.
	Principal jig.Principal
	// Session is the session that is started or told. For a schedule, the ids of its sessions begin with it. It is empty for a read.
	Session string
	// Content identifies the request itself: the [jig.SessionRequest.Digest] of a start, and the [ContentOf] of anything else.
	Content string
	// Source says how a session is started.
	Source jig.Source
	// Mandate is that of a schedule.
	Mandate Mandate
	// ID counts once. For a message or an event, it is the id of that.
	ID string
	// Key is the id of the key that signed the statement. Verifying sets it.
	Key string
}

// Voucher signs statements. The server has one.
type Voucher interface {
	// Vouch returns the statement, signed, for the principal on whose behalf ctx acts.
	Vouch(ctx context.Context, s Statement) (string, error)
}

// ContentOf returns the SHA-256, in hex, of the JSON of some values.
func ContentOf(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil { // cannot happen: the values are messages, which have been sent as JSON or will be
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Content returns what a statement about the message binds.
func (m Message) Content() string { return ContentOf(m.Text) }

// Woken returns what the run that the message may start knows about it.
func (m Message) Woken() Woken {
	return Woken{ID: m.ID, Content: m.Content(), Parent: m.Parent, ParentCall: m.ParentCall, Proof: m.Proof}
}

// Content returns what a statement about the event binds.
func (e Event) Content() string { return ContentOf(e.Name, e.Data) }

// Request returns the hash of the message that a call sends to a session, as the call's row has it.
func (w Woken) Request(session string) string { return ContentOf(session, w.ID, w.Content) }

// Content returns what a statement about the decisions binds.
func (d Decisions) Content() string {
	d.Proof = ""
	return ContentOf(d)
}
