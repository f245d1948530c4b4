package workflows

import "github.com/jig-run/jig/activities"

// Activity types that clients start directly, to review approvals and recorded calls.
const (
	ReadPending  = "jig.pending"
	ReadCall     = "jig.call"
	ReadFigures  = "jig.figures"
	ReadBacktest = "jig.backtest"
	ReadPolicies = "jig.policies"
)

// These are the requests and answers of these activities.
type (
	// PendingRequest asks for a page of the calls in a tenant that wait for a person and match a filter. The answer is an
	// [ApprovalsPage].
	PendingRequest = activities.PendingRequest
	// ShowRequest asks for the open approval or question of a call, with a piece of the call's arguments. The answer is a [ShowPage].
	ShowRequest = activities.ShowRequest
	// ShowPage holds the open approval or question of a call, with a piece of the call's arguments.
	ShowPage = activities.ShowPage
	// FiguresRequest asks for statistics of a tenant's approvals. The answer is a [jig.Figures].
	FiguresRequest = activities.FiguresRequest
	// BacktestRequest asks how a policy document would have decided the calls since a given time. It returns one page at a time.
	BacktestRequest = activities.BacktestRequest
	// BacktestPage is the outcome for a page of recorded calls.
	BacktestPage = activities.BacktestPage
	// BacktestCount is the number of calls with the same three verdicts.
	BacktestCount = activities.BacktestCount
	// PoliciesRequest asks for a page of a tenant's policies.
	PoliciesRequest = activities.PoliciesRequest
	// PoliciesPage is a page of a tenant's policies, sorted by name.
	PoliciesPage = activities.PoliciesPage
)
