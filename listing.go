package jig

import "time"

// PendingFilter narrows a list of what waits; an empty field says nothing.
type PendingFilter struct {
	// Tool is a tool's name, or category.* for all of a category.
	Tool        string      `json:"tool,omitempty"`
	Kind        PendingKind `json:"kind,omitempty"`
	SessionID   string      `json:"session_id,omitempty"`
	Agent       string      `json:"agent,omitempty"`
	RequestedBy string      `json:"requested_by,omitempty"`
	// For keeps what this principal may decide and has not yet. The engine sees to it: it knows who is in which group.
	For string `json:"for,omitempty"`
	// Before and After bound when it was asked for, themselves left out: what is older, and what is newer.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
}

// Spread says how a number of durations are spread, in seconds; zeros when there are none.
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
	// OutcomeGranted: a standing approval covered it, and nobody was asked.
	OutcomeGranted ApprovalOutcome = "granted"
	OutcomeDenied  ApprovalOutcome = "denied"
	// OutcomeExpired: nobody decided in time.
	OutcomeExpired ApprovalOutcome = "expired"
	// OutcomeReplaced: the tool changed, or an edit called for more, and another approval was asked for.
	OutcomeReplaced ApprovalOutcome = "replaced"
	// OutcomeCanceled: its session ended first.
	OutcomeCanceled ApprovalOutcome = "canceled"
)

// Figures say how a tenant's approvals fare. Times to a decision are of approvals that people decided, from when they were
// asked for.
type Figures struct {
	Since   time.Time      `json:"since"`
	At      time.Time      `json:"at"`
	Open    OpenFigures    `json:"open"`
	Decided DecidedFigures `json:"decided"`
	// Reviewers have decided or voted since, the busiest first; Tools had approvals that are open, or ended since.
	Reviewers []ReviewerFigures `json:"reviewers"`
	Tools     []ToolFigures     `json:"tools"`
}

// OpenFigures are of what waits now, questions and reconciliations included.
type OpenFigures struct {
	Count int                 `json:"count"`
	Kinds map[PendingKind]int `json:"kinds"`
	// Oldest is when the oldest was asked for; zero when nothing waits.
	Oldest time.Time `json:"oldest,omitzero"`
	Age    Spread    `json:"age"`
}

// DecidedFigures are of approvals that ended since a time.
type DecidedFigures struct {
	Count    int                     `json:"count"`
	Outcomes map[ApprovalOutcome]int `json:"outcomes"`
	Time     Spread                  `json:"time_to_decision"`
	// ExpiryRate is the share that expired, from 0 to 1, of those that people were asked and that expired, were approved or denied.
	ExpiryRate float64 `json:"expiry_rate"`
}

// ReviewerFigures are of one person. An approval counts as approved by whoever gave the last word that it took; Votes counts
// every word for an approval.
type ReviewerFigures struct {
	By       string `json:"by"`
	Approved int    `json:"approved"`
	Denied   int    `json:"denied"`
	Votes    int    `json:"votes"`
	// Median is the median time to the decisions, in seconds.
	Median float64 `json:"median_seconds"`
}

// ToolFigures are of one tool's approvals.
type ToolFigures struct {
	Tool string `json:"tool"`
	Open int    `json:"open"`
	// Decided counts those that people approved or denied.
	Decided int `json:"decided"`
	Expired int `json:"expired"`
	// ApprovedShare is the share of Decided that was approved, from 0 to 1.
	ApprovedShare float64 `json:"approved_share"`
	// Median is the median time to the decisions, in seconds.
	Median float64 `json:"median_seconds"`
}

// OpenCount is what waits of a kind in a tenant; Oldest is when the oldest was asked for.
type OpenCount struct {
	Tenant string
	Kind   PendingKind
	Count  int64
	Oldest time.Time
}

// OutcomeCount is how many approvals of a tenant ended in one way.
type OutcomeCount struct {
	Tenant  string
	Outcome ApprovalOutcome
	Count   int64
}

// Pace is how fast approvals are decided over all tenants, in seconds, and the share that expired, from 0 to 1.
type Pace struct {
	P50, P90, P99 float64
	ExpiredShare  float64
}

// RecordedCall is a call that was admitted, with what a ruling on it needs.
type RecordedCall struct {
	// Call has no result.
	Call Call
	// Session is as it was when the call was admitted, as far as that is known: its agent has a name, a version and whether it is registered.
	Session Session
	// Tool is the contract that the worker has now; nil when the tool is not there any more.
	Tool *Tool
}

// BacktestResult is what a policy would make of a recorded call.
type BacktestResult struct {
	SessionID string    `json:"session_id"`
	Call      string    `json:"call"`
	Tool      string    `json:"tool"`
	At        time.Time `json:"at"`
	// Recorded is the verdict that was given then; Now what the policies in force give; New what they give with the document
	// that is tried. Now and New are empty when the tool is not known any more.
	Recorded Verdict `json:"recorded"`
	Now      Verdict `json:"now,omitempty"`
	New      Verdict `json:"new,omitempty"`
	// Status is what became of the call.
	Status CallStatus `json:"status"`
	// Rules are those that spoke with the document that is tried, <policy>/<rule>, the strictest first; Reason is what the
	// first of them says.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// Changed reports whether the document changes the verdict.
func (r BacktestResult) Changed() bool { return r.Now != r.New }
