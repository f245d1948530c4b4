package jig

import (
	"time"
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
	NoticeWithdrawn NoticeKind = "approval.withdrawn"
)

// NoticeKinds lists the kinds of notices.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{NoticeRequested, NoticeReminder, NoticeEscalated, NoticeDelegated, NoticeDecided, NoticeExpired, NoticeWithdrawn}
}

// Notice tells people about an approval while they are not looking. It is stored in the same transaction as the change that it reports, and
// sent at least once; ID stays the same across all attempts.
type Notice struct {
	ID     string     `json:"id"`
	Tenant string     `json:"tenant"`
	Kind   NoticeKind `json:"kind"`
	At     time.Time  `json:"at"`
	// Approval is the approval that waits or waited.
	Approval Pending `json:"approval"`
	// Approvers may decide from now on: the people whom an escalation added, or the delegate. If an approval was withdrawn, they are those who
	// had approved.
	Approvers *Approvers `json:"approvers,omitempty"`
	// Status, By and Reason describe the outcome, once it was decided or has expired.
	Status CallStatus `json:"status,omitempty"`
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Proof says how the identity of By was proved.
	Proof Proof `json:"proof,omitempty"`
}
