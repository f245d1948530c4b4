package approval

import (
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
		e.Digest, e.Shown = s.Open.Digest, s.Open.shown()
	}
	return e
}

// Notice returns a notice about an approval of the call. Its id is the same for the same kind and the same unique text.
func (s State) Notice(kind jig.NoticeKind, about jig.Pending, unique string) jig.Notice {
	return jig.Notice{ID: noticeID(s.SessionID, s.Call.ID, kind, unique), Kind: kind, Approval: about}
}

// shown returns the parts of the call that the approver saw.
func (r *Record) shown() *audit.Shown {
	return &audit.Shown{Summary: r.Summary, Preview: r.Preview, Reasons: r.Reasons, Input: r.Input, Truncated: r.Truncated}
}
