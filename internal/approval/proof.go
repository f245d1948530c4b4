package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// Demands says how decisions must reach a tenant.
type Demands struct {
	// Proof is the weakest proof with which a decision counts.
	Proof jig.Proof
	// NoSignals refuses raw signals; decisions must be updates.
	NoSignals bool
}

// Sender describes who sent a decision, as the decision itself states it before its token is checked.
type Sender struct {
	// By is the principal that the decision names; Token proves who sent it. Both may be empty.
	By, Token string
	// Vouched reports that a server vouches for the principal.
	Vouched bool
	// Call is the call that the decision is about; empty when it names none.
	Call string
	// Signal reports that the decision came as a raw signal.
	Signal bool
}

// Refuse returns why a decision must be refused before its token is checked, or "". waits is true if the call waits for a person.
func (d Demands) Refuse(s Sender, waits bool) string {
	switch {
	case d.NoSignals && s.Signal:
		return "this tenant accepts no decisions by signal: decide with `jig` and a signing key"
	case s.Token == "" && !s.proof().AtLeast(d.Proof):
		return unproved(d.Proof)
	case s.Token == "" && !s.Vouched && s.By == "":
		return "`by` is missing: give the principal who decides"
	case s.Token != "" && !waits && s.Call != "":
		return fmt.Sprintf("call %s is not waiting, so the token proves nothing", s.Call)
	}
	return ""
}

// proof returns the proof of a decision without a token.
func (s Sender) proof() jig.Proof {
	if s.Vouched {
		return jig.ProofVouched
	}
	return jig.ProofClaimed
}

// unproved says that a decision needs proof and has none.
func unproved(wanted jig.Proof) string {
	if wanted == jig.ProofVouched {
		return "this tenant accepts only decisions that come through its server or are signed: decide there, or with `jig` and a signing key"
	}
	return "this tenant accepts only signed decisions: decide with `jig` and a signing key, or put a `token` into the payload"
}

// Weak returns why the proof of a decision does not suffice, or "".
func Weak(proof, wanted jig.Proof) string {
	switch {
	case proof.AtLeast(wanted):
		return ""
	case wanted == jig.ProofPasskey:
		return "this decision needs a passkey: sign it with one that is enrolled for you"
	case proof == jig.ProofVouched:
		return "the decision must be signed with a key that belongs to one person: a portal's key and a server's word prove less"
	}
	return unproved(wanted)
}

// RefuseProved returns why a decision must be refused although its token is valid, or "". proved is the principal to whom the token belongs.
func (s Sender) RefuseProved(proved string) string {
	if s.By != "" && s.By != proved {
		return fmt.Sprintf("`by` is %s, but the token belongs to %s: leave out `by`", s.By, proved)
	}
	return ""
}

// entitled returns why a principal may not answer or settle what waits, or "".
func entitled(asked jig.Pending, who jig.Principal, now time.Time) string {
	consent := ConsentOf(asked)
	if _, why := consent.Entitled(who, now); why != "" {
		return why
	}
	return Weak(who.Proof, consent.Terms.Proof)
}

// MayDecide reports whether a principal may decide, answer or reconcile an open approval and has not approved it yet. reconcilers are the
// people who may reconcile; nil means those who could have approved the call.
func MayDecide(asked jig.Pending, who jig.Principal, reconcilers *jig.Approvers, now time.Time) bool {
	return WhyNot(asked, who, reconcilers, now) == ""
}

// WhyNot returns why a principal may not decide, answer or reconcile an open approval, or "" for somebody who may; see [MayDecide].
func WhyNot(asked jig.Pending, who jig.Principal, reconcilers *jig.Approvers, now time.Time) string {
	if asked.Kind == jig.PendingReconcile && reconcilers != nil {
		if reconcilers.Include(who) {
			return ""
		}
		return fmt.Sprintf("%s may not say what happened: it is for %s", who.ID, reconcilers)
	}
	consent := ConsentOf(asked)
	_, why := consent.Entitled(who, now)
	if why == "" && consent.Voted(who) {
		return who.ID + " approved this call already: another person is needed"
	}
	return why
}

// Signed is a decision with the token that proves it. It is kept, so that the signature can be verified again.
type Signed struct {
	// Decision is the decision that the token proves, without the token.
	Decision jig.Decision
	Token    string
	// Digest is the digest of the call as its sender saw it, and Shown holds the content of that digest.
	Digest string
	Shown  Shown
}

// Shown is the content of a digest that depends on the call.
type Shown struct {
	Tool          string          `json:"tool"`
	Version       string          `json:"version"`
	Input         json.RawMessage `json:"input"`
	PolicyVersion string          `json:"policy_version"`
	Preview       *jig.Preview    `json:"preview,omitempty"`
}

// Proven is a decision whose signature was verified: who approves, or hands the decision to somebody else.
type Proven struct {
	Principal jig.Principal
	Answer    jig.Answer
	// To is the principal to whom the decision is delegated. Undo takes an earlier delegation back.
	To   string
	Undo bool
	// Edits reports that the decision changed the input, so that nobody approves it alone where askers may not decide.
	Edits bool
	// At is when it was made, at the latest.
	At time.Time
}

// Recount counts verified decisions about an approval, in their order, under its terms. It returns which approvals are missing, or "" if the call
// may run. The votes that the approval itself lists do not matter. Only the delegations that it lists count: others belong to an earlier
// approval of the call.
func Recount(asked jig.Pending, decisions []Proven) (missing string) {
	present := asked.Delegations
	asked.Votes, asked.Delegations = nil, nil
	consent := ConsentOf(asked)
	for _, d := range decisions {
		if d.Undo {
			consent.Delegations = slices.DeleteFunc(consent.Delegations, func(one jig.Delegation) bool { return one.From == d.Principal.ID })
			continue
		}
		if d.Edits {
			consent.Askers = WithEditor(consent.Askers, d.Principal)
		}
		counts, why := consent.Entitled(d.Principal, d.At)
		switch {
		case why != "" || consent.Voted(d.Principal):
		case d.Answer == jig.AnswerDelegate:
			handed := jig.Delegation{From: d.Principal.ID, Maker: d.Principal.Maker, To: d.To, At: d.At, Counts: counts}
			same := func(one jig.Delegation) bool { return one.From == handed.From && one.To == handed.To }
			if slices.ContainsFunc(present, same) && !consent.Voted(jig.Principal{ID: d.To}) {
				consent.Delegations = append(consent.Delegations, handed)
			}
		case d.Answer == jig.AnswerApprove:
			consent.Votes = append(consent.Votes, jig.Vote{By: d.Principal.ID, Maker: d.Principal.Maker, Counts: counts, At: d.At})
		}
	}
	return consent.Missing()
}

// Similar is an earlier decision about another call of the same tool.
type Similar struct {
	SessionID string
	Call      string
	Answer    jig.Answer
	By        string
	At        time.Time
	// Input is the call's input, as it was changed if an approval changed it.
	Input json.RawMessage
}
