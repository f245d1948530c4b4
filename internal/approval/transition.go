package approval

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// Transition lists the changes that a decision, an answer, a reconciliation or the passing of time makes. The store saves them in one
// transaction. A refused decision has an event and an audit row, and changes nothing else.
type Transition struct {
	// Ruled is the answer to the person who decided.
	Ruled jig.Ruled
	// Votes and Delegations replace those of the open approval, which stays open; nil keeps the stored ones. NoticedAt, unless zero, is
	// the time up to which reminders and escalations have been recorded.
	Votes       []jig.Vote
	Delegations []jig.Delegation
	NoticedAt   time.Time
	// Wider is the open approval with terms by which more people may decide, and the reasons that say so; nil keeps them.
	Wider *jig.Pending
	// Outcome ends the open approval; nil while it stays open.
	Outcome *Outcome
	// Call changes the call; nil means no change.
	Call *CallChange
	// Opens is the approval or question to open next; nil for none.
	Opens *jig.Pending
	// Said is who has put words into the session, which later calls rest on; nil for nobody.
	Said *jig.Asker
	// Grant is the standing approval to create; nil for none.
	Grant *jig.Grant
	// Events, Notices and Audit are written in this order.
	Events  []Event
	Notices []jig.Notice
	Audit   []audit.Entry
}

// ask opens an approval or a question.
func (t *Transition) ask(o Opening) {
	t.Opens = &o.Pending
	t.Events = append(t.Events, o.Events...)
	t.Notices = append(t.Notices, o.Notices...)
}

// widen records that more people may decide about an open approval.
func (t *Transition) widen(c Call, before, after jig.Pending) {
	events, notices := c.escalated(before, after)
	if len(events) > 0 {
		t.Wider = &after
		t.Events, t.Notices = append(t.Events, events...), append(t.Notices, notices...)
	}
}

// Refused reports whether a decision was refused.
func (t Transition) Refused() bool { return t.Ruled.Outcome == jig.DecisionRefused }

// Outcome describes how an approval ends.
type Outcome struct {
	Status Status
	// Answer is approve, deny, answer or expire, or the outcome of a reconciliation; empty for an approval that another one replaces.
	Answer string
	// By is the person who decided; empty when nobody did. Claimed reports that the identity was not proved.
	By      string
	Claimed bool
	Note    string
	Reason  string
	// Key is the key of the request that decided.
	Key string
	// Digest is the digest of the call that may run now; empty when nothing may.
	Digest string
	// Votes are all the votes of an approval that was granted; nil keeps the stored ones.
	Votes []jig.Vote
	// Grant is the standing approval of which the call uses one use when it begins; empty for none.
	Grant string
	// Before, After and Patch describe a change of the input; nil when there was none.
	Before, After []byte
	Patch         json.RawMessage
	// NewTerms reports that Terms replace the terms of the approval, because its input was changed; the votes are for the new terms.
	NewTerms bool
	Terms    *jig.Terms
}

// CallChange is the new state of a call.
type CallChange struct {
	Status jig.CallStatus
	// Result is set when the call ends.
	Result *jig.ToolResult
	// Whole is the full result (JSON of a [jig.ToolResult]) when Result was shortened; it is stored as [State.ArtifactID].
	Whole []byte
	// Wrote reports that the call counts as a write of the session.
	Wrote bool
	// Reads says what the call has read, in addition to what its row says.
	Reads Reads
	// InDoubt, unless nil, reports whether an earlier attempt may have taken effect; nil keeps what is stored.
	InDoubt *bool
	// Failed is the time of a failure that may pass, for an open call that begins again; zero for none. Anew reports that earlier failures do not
	// matter any more.
	Failed time.Time
	Anew   bool
	// Edited is the call with its changed input; nil when the input was not changed.
	Edited *jig.Call
}

// Reads says what a call has read beyond the labels of its tool: private data, and data that outsiders may have written. Steps adds what the
// calls of its composition have read.
type Reads struct{ Private, Untrusted, Steps bool }

// Event is an event of a session's log, before it is encoded.
type Event struct {
	Type   jig.EventType
	Pass   int
	CallID string
	Tool   string
	Data   Details
	// Asked, when set, is used in place of Data: the approval or question that opens.
	Asked *jig.Pending
}

// Details is the data of an event. Members that are empty are left out when the event is stored.
type Details map[string]any
