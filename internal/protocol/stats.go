package protocol

import (
	"time"

	"github.com/jig-run/jig"
)

// Percentiles describe a set of durations, in seconds. They are zero when the set is empty.
type Percentiles struct {
	P50 float64 `json:"p50_seconds"`
	P90 float64 `json:"p90_seconds"`
	Max float64 `json:"max_seconds"`
}

// ApprovalOutcome is how an approval ended.
type ApprovalOutcome string

// The outcomes.
const (
	OutcomeApproved ApprovalOutcome = "approved"
	// OutcomeGranted: a grant covered the call, and nobody was asked.
	OutcomeGranted ApprovalOutcome = "granted"
	OutcomeDenied  ApprovalOutcome = "denied"
	// OutcomeExpired: nobody decided in time.
	OutcomeExpired ApprovalOutcome = "expired"
	// OutcomeReplaced: the tool changed, or an edit required more, and a new approval was requested instead.
	OutcomeReplaced ApprovalOutcome = "replaced"
	// OutcomeCanceled: the session ended first.
	OutcomeCanceled ApprovalOutcome = "canceled"
)

// ApprovalStats are statistics about a tenant's approvals. Times to decision are measured from the request and cover only approvals that people
// decided.
type ApprovalStats struct {
	Since   time.Time    `json:"since"`
	At      time.Time    `json:"at"`
	Open    OpenStats    `json:"open"`
	Decided DecidedStats `json:"decided"`
	// Reviewers lists the people who decided or voted since then, the busiest first. Tools lists tools with approvals that are open or that
	// ended since then.
	Reviewers []ReviewerStats `json:"reviewers"`
	Tools     []ToolStats     `json:"tools"`
}

// OpenStats are statistics about calls that wait now, including questions and reconciliations.
type OpenStats struct {
	Count int                     `json:"count"`
	Kinds map[jig.PendingKind]int `json:"kinds"`
	// Oldest is when the oldest of them was requested; zero when nothing waits.
	Oldest time.Time   `json:"oldest,omitzero"`
	Age    Percentiles `json:"age"`
}

// DecidedStats are statistics about approvals that ended since a given time.
type DecidedStats struct {
	Count    int                     `json:"count"`
	Outcomes map[ApprovalOutcome]int `json:"outcomes"`
	Time     Percentiles             `json:"time_to_decision"`
	// ExpiryRate is the share of expired approvals, from 0 to 1, among those that people were asked for and that expired, were approved or
	// were denied.
	ExpiryRate float64 `json:"expiry_rate"`
}

// ReviewerStats are statistics about one person. Approved counts the approvals for which this person gave the last vote that was needed;
// Votes counts every vote in favor.
type ReviewerStats struct {
	By       string `json:"by"`
	Approved int    `json:"approved"`
	Denied   int    `json:"denied"`
	Votes    int    `json:"votes"`
	// Median is the median time to decision, in seconds.
	Median float64 `json:"median_seconds"`
}

// ToolStats are statistics about the approvals of one tool.
type ToolStats struct {
	Tool string `json:"tool"`
	Open int    `json:"open"`
	// Decided counts the approvals that people approved or denied.
	Decided int `json:"decided"`
	Expired int `json:"expired"`
	// ApprovedShare is the approved share of Decided, from 0 to 1.
	ApprovedShare float64 `json:"approved_share"`
	// Median is the median time to decision, in seconds.
	Median float64 `json:"median_seconds"`
}

// OpenCount is the number of waiting calls of one kind in a tenant. Oldest is when the oldest was requested.
type OpenCount struct {
	Tenant string
	Kind   jig.PendingKind
	Count  int64
	Oldest time.Time
}

// OutcomeCount is the number of a tenant's approvals that ended in one way.
type OutcomeCount struct {
	Tenant  string
	Outcome ApprovalOutcome
	Count   int64
}

// Pace says how fast approvals are decided across all tenants, in seconds, and which share expired, from 0 to 1.
type Pace struct {
	P50, P90, P99 float64
	ExpiredShare  float64
}

// SessionCount is the number of a tenant's sessions in one status.
type SessionCount struct {
	Tenant string
	Status jig.Status
	Count  int64
}

// DeliveryCount is the number of notices that a tenant's webhooks have not received yet. Oldest is when the oldest was written.
type DeliveryCount struct {
	Tenant string
	Count  int64
	Oldest time.Time
}
