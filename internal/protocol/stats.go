package protocol

import (
	"encoding/json"
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

// UsageRequest asks what a tenant's sessions used.
type UsageRequest struct {
	Tenant string    `json:"tenant" caller:"tenant"`
	Since  time.Time `json:"since" query:"since" doc:"Usage since this time. Default: midnight (UTC) a week ago"`
	// Until is the end of the time; the default is now.
	Until time.Time `json:"until,omitzero" query:"until" doc:"Usage until this time. Default: now"`
	// By lists what the rows are grouped by: agent, model, tool, day. Without it there is one row.
	By []string `json:"by,omitempty" query:"by" enum:"agent,model,tool,day" maxItems:"4" doc:"What the rows are grouped by"`
	// Agent, Model, Tool and SessionID are filters.
	Agent     string `json:"agent,omitempty" query:"agent" names:"agent" maxLength:"200"`
	Model     string `json:"model,omitempty" query:"model" maxLength:"200"`
	Tool      string `json:"tool,omitempty" query:"tool" names:"tool" maxLength:"200"`
	SessionID string `json:"session_id,omitempty" query:"session" names:"session" maxLength:"192"`
}

// SetDefaults completes a request that came over HTTP.
func (r *UsageRequest) SetDefaults(now time.Time) { r.Since = sinceOr(r.Since, now) }

// UsageDimensions lists what usage can be grouped by.
func UsageDimensions() []string { return []string{"agent", "model", "tool", "day"} }

// UsageRow sums up the usage of calls with the same agent, model, tool and day, as far as rows are grouped by these.
type UsageRow struct {
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Day   string `json:"day,omitempty"`
	// Requests counts answers of models, Calls the calls of tools that began.
	Requests int64 `json:"requests"`
	Calls    int64 `json:"calls"`
	// InputTokens does not include the tokens that were read from or written to the provider's cache.
	InputTokens       int64 `json:"input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
	CacheReadTokens   int64 `json:"cache_read_tokens"`
	CacheCreateTokens int64 `json:"cache_create_tokens"`
	// Cost is in the tenant's currency, by the prices of the time.
	Cost json.Number `json:"cost"`
}

// BudgetState is how much of a limit is used.
type BudgetState struct {
	Budget string `json:"budget"`
	Limit  string `json:"limit"`
	Level  string `json:"level"`
	// Scope is the agent, the session or the pass that the limit counts; empty for a tenant. Day is empty for the window total.
	Scope string `json:"scope,omitempty"`
	Day   string `json:"day,omitempty"`
	// Tokens and Cost are the limits; zero or empty means that there is none.
	Tokens         int64       `json:"tokens,omitempty"`
	Cost           json.Number `json:"cost,omitempty"`
	UsedTokens     int64       `json:"used_tokens"`
	UsedCost       json.Number `json:"used_cost"`
	ReservedTokens int64       `json:"reserved_tokens"`
	ReservedCost   json.Number `json:"reserved_cost"`
}

// Usage is the usage of a tenant's sessions.
type Usage struct {
	Since time.Time `json:"since"`
	// Currency is the currency of all amounts; empty if the tenant has no budgets.
	Currency string     `json:"currency,omitempty"`
	Rows     []UsageRow `json:"rows"`
	// Budgets lists the limits that have been used in the present day or in total.
	Budgets []BudgetState `json:"budgets"`
}
