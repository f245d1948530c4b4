package workflows

import "github.com/jig-run/jig/activities"

// Activity types that clients start by themselves, to look over approvals and recorded calls.
const (
	ReadPending  = "jig.pending"
	ReadCall     = "jig.call"
	ReadFigures  = "jig.figures"
	ReadBacktest = "jig.backtest"
	ReadPolicies = "jig.policies"
)

// What they take and give.
type (
	// PendingRequest asks for a page of what waits in a tenant and passes a filter; the answer is an ApprovalsPage.
	PendingRequest = activities.PendingRequest
	// ShowRequest asks for what waits under a call, with a piece of its arguments; the answer is a ShowPage.
	ShowRequest = activities.ShowRequest
	// ShowPage is what waits under a call, with a piece of its arguments.
	ShowPage = activities.ShowPage
	// FiguresRequest asks how a tenant's approvals fare; the answer is jig.Figures.
	FiguresRequest = activities.FiguresRequest
	// BacktestRequest asks what a policy document would have made of the calls since a time, a page at a time.
	BacktestRequest = activities.BacktestRequest
	// BacktestPage is what came of a page of recorded calls.
	BacktestPage = activities.BacktestPage
	// BacktestCount is how many calls have the same three verdicts.
	BacktestCount = activities.BacktestCount
	// PoliciesRequest asks for a page of a tenant's policies.
	PoliciesRequest = activities.PoliciesRequest
	// PoliciesPage is a page of a tenant's policies, sorted by name.
	PoliciesPage = activities.PoliciesPage
)
