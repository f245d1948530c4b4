package starter

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// reviewFakes holds prepared answers about approvals and policies, and the recorded requests.
type reviewFakes struct {
	page       client.PendingPage
	filter     jig.PendingFilter
	cursor     string
	limit      int
	statistics protocol.ApprovalStats
	since      time.Time
	backtest   []client.BacktestPage
	policies   []jig.PolicyState
	usage      protocol.Usage
	asked      protocol.UsageRequest
	document   string
	all        bool
	failing    error
	// reviews are the answers about waiting calls, and reviewed says for whom they were asked.
	reviews  []protocol.Review
	reviewed string
	// decisionPages are the pages of decisions, and decisionsAsked the requests for them.
	decisionPages  []protocol.ApprovalList
	decisionsAsked []protocol.DecisionsRequest
	// shownDecisions are the decisions about a call that is shown.
	shownDecisions []jig.Decided
}

func (f *reviewFakes) Decisions(_ context.Context, request protocol.DecisionsRequest) (protocol.ApprovalList, error) {
	f.decisionsAsked = append(f.decisionsAsked, request)
	return f.decisionPages[len(f.decisionsAsked)-1], f.failing
}

func (f *reviewFakes) Review(_ context.Context, _, principal string, _ bool, _ []protocol.WaitingCall) ([]protocol.Review, error) {
	f.reviewed = principal
	return f.reviews, f.failing
}

func (f *reviewFakes) Pending(_ context.Context, _ string, filter jig.PendingFilter, cursor string, limit int) (client.PendingPage, error) {
	f.filter, f.cursor, f.limit = filter, cursor, limit
	return f.page, f.failing
}

func (f *reviewFakes) Policies(context.Context, string) ([]jig.PolicyState, error) {
	return f.policies, f.failing
}

func (f *reviewFakes) Backtest(
	_ context.Context, _ string, document []byte, since time.Time, all bool, fn func(client.BacktestPage) error,
) error {
	f.document, f.since, f.all = string(document), since, all
	for _, page := range f.backtest {
		if err := fn(page); err != nil {
			return err
		}
	}
	return f.failing
}
