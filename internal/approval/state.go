package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
)

// State holds everything that the rules need to know about a call that somebody decides, answers or reconciles. The store reads it under
// lock.
type State struct {
	Tenant    string
	SessionID string
	// Call is nil when the session has no such call.
	Call *Call
	// Open is the call's open approval, question or unknown outcome, for which a person must act; nil when nothing is open.
	Open *Record
	// Latest is the call's latest approval, open or not; nil when there was none. Only [Reconcile] and [Elapse] need it.
	Latest *Record
	// TokenUsed reports that the token sent with the request has been used before.
	TokenUsed bool
	// SharesKey reports that another call of the session has the same idempotency key, because one is a retry of the other. Only a
	// decision that changes the input needs it.
	SharesKey bool
	// ArtifactID is the id for a result that is too large for the call's row. Only [Reconcile] needs it.
	ArtifactID string
}

// Call holds the columns of a call that the rules of approvals read.
type Call struct {
	ID string
	// ProviderID is the id that the model provider gave the call; empty if no model made it.
	ProviderID    string
	Tool          string
	Pass          int
	Status        jig.CallStatus
	Input         []byte
	Digest        string
	PolicyVersion string
	// EditedBy is the person who changed the input; empty if nobody did.
	EditedBy string
	// Fence counts the attempts that have begun.
	Fence int
	// Write reports that a success counts as a write of the session.
	Write bool
	// InDoubt reports that an earlier attempt may have taken effect.
	InDoubt bool
}

// Record is an approval, a question or an unknown outcome as it is stored.
type Record struct {
	jig.Pending
	Status Status
	// ApprovedDigest is the digest of the call that may run; empty while nobody has approved it.
	ApprovedDigest string
	// DecidedBy is the person who decided; Claimed reports that this person's identity was not proved.
	DecidedBy string
	Claimed   bool
	// NoticedAt is the time up to which reminders and escalations have been recorded; zero when there were none.
	NoticedAt time.Time
}

// Entry returns an audit row for an action on the call. It says which call it was, what the person saw, and who acted.
func (s State) Entry(kind audit.Kind, who jig.Principal, evidence *identity.Evidence) audit.Entry {
	e := audit.By(who, evidence, "")
	e.Kind, e.SessionID, e.Call, e.Tool = kind, s.SessionID, s.Call.ID, s.Call.Tool
	e.PolicyVersion, e.Digest = s.Call.PolicyVersion, s.Call.Digest
	if s.Open != nil {
		e.Digest, e.Shown = s.Open.Digest, audit.ShownOf(s.Open.Pending)
	}
	return e
}

// Notice returns a notice about an approval of the call. Its id is the same for the same kind and the same unique text.
func (s State) Notice(kind jig.NoticeKind, about jig.Pending, unique string) jig.Notice {
	return jig.Notice{ID: noticeID(s.SessionID, s.Call.ID, kind, unique), Kind: kind, Approval: about}
}

// Status is the state of an approval.
type Status string

// The states of an approval. An approved approval becomes consumed when its call begins.
const (
	Open     Status = "open"
	Approved Status = "approved"
	Denied   Status = "denied"
	Expired  Status = "expired"
	Canceled Status = "canceled"
	Consumed Status = "consumed"
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
	// Wider is the open approval with terms that let more people decide, and with the reasons for that; nil keeps the stored ones.
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
	// Grant is the standing approval that the call uses once when it begins; empty for none.
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
	// Failed is when a transient failure happened, for an open call that is tried again; zero for none. Anew reports that earlier failures no
	// longer matter.
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

// requested returns the notice that an approval was opened.
func requested(p jig.Pending) jig.Notice {
	unique := p.Digest + p.RequestedAt.UTC().Format(time.RFC3339Nano)
	return jig.Notice{ID: noticeID(p.SessionID, p.Call, jig.NoticeRequested, unique), Kind: jig.NoticeRequested, Approval: p}
}

// noticeID returns the id of a notice. It is the same however often the transaction is retried.
func noticeID(session, call string, kind jig.NoticeKind, unique string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call + "\x00" + string(kind) + "\x00" + unique))
	return "ntc_" + hex.EncodeToString(sum[:16])
}

// Covers reports whether an approval covers exactly what would run: the call with the given digest. The approval must be granted, or
// consumed by an earlier attempt of the call. Its status alone is not trusted: the votes must satisfy its terms.
func (r *Record) Covers(digest string) bool {
	if r == nil || r.Status != Approved && r.Status != Consumed || r.ApprovedDigest != digest {
		return false
	}
	if len(r.Votes) == 0 && r.Terms == nil { // one decision is enough; rows from before votes existed record only who decided
		return r.DecidedBy != ""
	}
	return ConsentOf(r.Pending).Granted()
}

// Proved reports whether everybody who granted the approval had at least the given proof, and the proof that the terms demand.
func (r *Record) Proved(proof jig.Proof) bool {
	proof = proof.Stronger(termsOf(r.Pending).Proof)
	return jig.ProofClaimed.AtLeast(proof) || !r.Claimed && (len(r.Votes) == 0 || WeakestProof(r.Votes).AtLeast(proof))
}

// Reasons for which an approval is withdrawn when its call begins.
const (
	WithdrawnUnproved = "it was approved without the proof of identity that is required now"
	WithdrawnDisabled = "it was approved by somebody who has been disabled or may not approve it any more"
	WithdrawnUnsigned = "it is not signed by the people who must approve the call as it would run"
	WithdrawnGrant    = "the grant was used up, expired or was revoked, or the contract of the tool has changed since it was given"
)

// Withdraw ends the approval s.Open, which may already be granted, because it is no longer valid; the call is admitted again. Those who voted
// are told. grant is the standing approval that approved the call, if people should be told about it.
func Withdraw(s State, why, grant string) Transition {
	t := Transition{Outcome: &Outcome{Status: Expired, Reason: why}}
	if s.Open.Status == Open {
		t.Outcome.Answer = string(jig.AnswerExpire)
	}
	what := Details{"digest": s.Open.Digest, "reason": why, "grant": grant}
	t.Events = []Event{s.Call.Event(jig.EventApprovalWithdrawn, what)}
	entry := s.Entry(audit.AuditWithdrawn, jig.Principal{}, nil)
	entry.Subject, entry.Reason = grant, why
	t.Audit = []audit.Entry{entry}
	if voters := votersOf(s.Open.Votes); len(voters) > 0 {
		n := s.Notice(jig.NoticeWithdrawn, s.Open.Pending, s.Open.Digest+why)
		n.Approvers, n.Reason = &jig.Approvers{People: voters}, why
		t.Notices = []jig.Notice{n}
	}
	return t
}

func votersOf(votes []jig.Vote) []string {
	var people []string
	for _, v := range votes {
		if !slices.Contains(people, v.By) {
			people = append(people, v.By)
		}
	}
	return people
}
