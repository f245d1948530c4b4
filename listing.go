package jig

import "time"

// PendingFilter narrows a list of waiting calls. Empty fields do not filter.
type PendingFilter struct {
	// Tool is the name of a tool, or category.* for all tools of a category.
	Tool        string      `json:"tool,omitempty"`
	Kind        PendingKind `json:"kind,omitempty"`
	SessionID   string      `json:"session_id,omitempty"`
	Agent       string      `json:"agent,omitempty"`
	RequestedBy string      `json:"requested_by,omitempty"`
	// For keeps calls that this principal may decide and has not decided yet. The engine applies it, because it knows the groups of people.
	For string `json:"for,omitempty"`
	// Before and After bound the time of the request, exclusively: older than Before, newer than After.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

// Spread is the distribution of a set of durations, in seconds; all zeros when the set is empty.
type Spread struct {
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

// Figures are statistics about a tenant's approvals. Times to decision are measured from the request and cover only approvals that people
// decided.
type Figures struct {
	Since   time.Time      `json:"since"`
	At      time.Time      `json:"at"`
	Open    OpenFigures    `json:"open"`
	Decided DecidedFigures `json:"decided"`
	// Reviewers lists the people who decided or voted since then, the busiest first. Tools lists tools with approvals that are open or that
	// ended since then.
	Reviewers []ReviewerFigures `json:"reviewers"`
	Tools     []ToolFigures     `json:"tools"`
}

// OpenFigures are statistics about calls that wait now, including questions and reconciliations.
type OpenFigures struct {
	Count int                 `json:"count"`
	Kinds map[PendingKind]int `json:"kinds"`
	// Oldest is when the oldest of them was requested; zero when nothing waits.
	Oldest time.Time `json:"oldest,omitzero"`
	Age    Spread    `json:"age"`
}

// DecidedFigures are statistics about approvals that ended since a given time.
type DecidedFigures struct {
	Count    int                     `json:"count"`
	Outcomes map[ApprovalOutcome]int `json:"outcomes"`
	Time     Spread                  `json:"time_to_decision"`
	// ExpiryRate is the share of expired approvals, from 0 to 1, among those that people were asked for and that expired, were approved or
	// were denied.
	ExpiryRate float64 `json:"expiry_rate"`
}

// ReviewerFigures are statistics about one person. Approved counts the approvals for which this person gave the last vote that was needed;
// Votes counts every vote in favor.
type ReviewerFigures struct {
	By       string `json:"by"`
	Approved int    `json:"approved"`
	Denied   int    `json:"denied"`
	Votes    int    `json:"votes"`
	// Median is the median time to decision, in seconds.
	Median float64 `json:"median_seconds"`
}

// ToolFigures are statistics about the approvals of one tool.
type ToolFigures struct {
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
	Kind   PendingKind
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

// RecordedCall is an admitted call, with the data needed to judge it again.
type RecordedCall struct {
	// Call is the call without its result.
	Call Call
	// Session is the session as it was when the call was admitted. It has only the recorded fields; of its agent, these are Name, Version and
	// Registered.
	Session Session
	// Tool is the contract that the worker has now; nil if the tool no longer exists.
	Tool *Tool
}

// BacktestResult compares the verdicts on a recorded call with and without a new policy document.
type BacktestResult struct {
	SessionID string    `json:"session_id"`
	Call      string    `json:"call"`
	Tool      string    `json:"tool"`
	At        time.Time `json:"at"`
	// Recorded is the original verdict, Now is the verdict of the current policies, and New is their verdict with the new document. Now and
	// New are empty if the tool is no longer known.
	Recorded Verdict `json:"recorded"`
	Now      Verdict `json:"now,omitempty"`
	New      Verdict `json:"new,omitempty"`
	// Status is the call's status in the ledger.
	Status CallStatus `json:"status"`
	// Rules lists the rules that applied with the new document, as <policy>/<rule>, the strictest first. Reason is the text of the first
	// one.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// Changed reports whether the new document changes the verdict.
func (r BacktestResult) Changed() bool { return r.Now != r.New }
