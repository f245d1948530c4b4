package protocol

import (
	"cmp"
	"strconv"

	"github.com/jig-run/jig"
)

// Settlement names a call that was settled late, while its workflow considers it unknown and waits for a person.
type Settlement struct {
	Call string `json:"call"`
}

// MaxDecisions is the largest number of decisions in one message. Each is a transaction, and all of them must fit into the time that a
// worker has for one signal; otherwise it would begin again forever.
const MaxDecisions = 500

// Decisions is the payload of the signals approve and deny and of the update decide: one decision, or up to [MaxDecisions] of them. For
// a signal, the signal's name is the answer. In the update, each decision carries its own answer (default: approve).
type Decisions struct {
	jig.Decision
	Decisions []jig.Decision `json:"decisions,omitempty"`
	// Proof says who decides; see [StartSession.Proof]. Decisions that a person signed carry a token instead.
	Proof string `json:"proof,omitempty"`
}

// All returns the decisions as a list. Each of several decisions inherits by, answer, note and reason from the outer object unless
// it sets its own.
func (d Decisions) All() []jig.Decision {
	if len(d.Decisions) == 0 {
		return []jig.Decision{d.Decision}
	}
	list := make([]jig.Decision, len(d.Decisions))
	for i, one := range d.Decisions {
		one.By, one.Answer = cmp.Or(one.By, d.By), cmp.Or(one.Answer, d.Answer)
		one.Note, one.Reason = cmp.Or(one.Note, d.Note), cmp.Or(one.Reason, d.Reason)
		list[i] = one
	}
	return list
}

// Answered is the payload of the signal and the update answer. Proof says who answers; see [Decisions].
type Answered struct {
	jig.Reply
	Proof string `json:"proof,omitempty"`
}

// Content returns what a statement about the answer binds.
func (a Answered) Content() string { return ContentOf(UpdateAnswer, a.Reply) }

// Reconciled is the payload of the signal and the update reconcile. Proof says who knows what happened; see [Decisions].
type Reconciled struct {
	jig.Reconciliation
	Proof string `json:"proof,omitempty"`
}

// Content returns what a statement about the outcome binds.
func (r Reconciled) Content() string { return ContentOf(UpdateReconcile, r.Reconciliation) }

// RuledRequest asks what became of the decisions of an update, whose answer may have got lost. Count is their number, at most [MaxDecisions].
type RuledRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Update    string `json:"update"`
	Count     int    `json:"count"`
	// Same has the [Again] of each decision, to find those that an earlier update has sent.
	Same []string `json:"same,omitempty"`
}

// Again returns the key under which the answer to a request that was accepted is also stored, so that its principal finds the answer who sends the
// same [jig.Decision], [jig.Reply] or [jig.Reconciliation] again. Who sends it, and the token that proves that, do not belong to the request.
func Again(principal string, request any) string {
	switch r := request.(type) {
	case jig.Decision:
		r.By, r.Token = "", ""
		request = r
	case jig.Reply:
		r.By, r.Token = "", ""
		request = r
	case jig.Reconciliation:
		r.By, r.Token = "", ""
		request = r
	}
	return "again:" + ContentOf(principal, request)
}

// UpdateKey returns the key under which the decisions of an update are stored.
func UpdateKey(id string) string { return "update:" + id }

// DecisionKey returns the key of one of the decisions of a signal or an update, which has the key of all.
func DecisionKey(all string, i int) string { return all + "#" + strconv.Itoa(i) }

// DecideResult is the answer of the updates decide, answer and reconcile.
type DecideResult struct {
	SessionID string      `json:"session_id"`
	Decisions []jig.Ruled `json:"decisions"`
}
