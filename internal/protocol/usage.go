package protocol

import (
	"encoding/json"
	"time"
)

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
