package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
)

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeRequested NoticeKind = "approval.requested"
	NoticeReminder  NoticeKind = "approval.reminder"
	NoticeEscalated NoticeKind = "approval.escalated"
	NoticeDelegated NoticeKind = "approval.delegated"
	NoticeDecided   NoticeKind = "approval.decided"
	NoticeExpired   NoticeKind = "approval.expired"
)

// NoticeKinds lists the kinds of notices.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeRequested, NoticeReminder, NoticeEscalated, NoticeDelegated, NoticeDecided, NoticeExpired}
}

// Notice tells people about an approval while they are not looking. It is stored in the same transaction as the change that it reports, and
// sent at least once; ID stays the same across all attempts.
type Notice struct {
	ID     string     `json:"id"`
	Tenant string     `json:"tenant"`
	Kind   NoticeKind `json:"kind"`
	At     time.Time  `json:"at"`
	// Approval is the approval that waits or waited.
	Approval jig.Pending `json:"approval"`
	// Approvers may decide from now on: the people whom an escalation added, or the delegate.
	Approvers *jig.Approvers `json:"approvers,omitempty"`
	// Status, By and Reason describe the outcome, once it was decided or has expired.
	Status jig.CallStatus `json:"status,omitempty"`
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// requested returns the notice that an approval was opened.
func requested(p jig.Pending) Notice {
	unique := p.Digest + p.RequestedAt.UTC().Format(time.RFC3339Nano)
	return Notice{ID: noticeID(p.SessionID, p.Call, NoticeRequested, unique), Kind: NoticeRequested, Approval: p}
}

// noticeID returns the id of a notice. It is the same however often the transaction is retried.
func noticeID(session, call string, kind NoticeKind, unique string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call + "\x00" + string(kind) + "\x00" + unique))
	return "ntc_" + hex.EncodeToString(sum[:16])
}
