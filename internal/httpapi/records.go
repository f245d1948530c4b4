package httpapi

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

type auditRequest struct {
	After   int64     `query:"after" minimum:"0" doc:"The number of the last row that the client has"`
	Session string    `query:"session" names:"session" maxLength:"192" doc:"Only rows about this session"`
	Since   time.Time `query:"since" doc:"Only rows written at or after this time"`
	Until   time.Time `query:"until" doc:"Only rows written before this time"`
}

type auditAnswer struct{ Body protocol.AuditPage }

func (a *API) getAudit(ctx context.Context, in *auditRequest) (*auditAnswer, error) {
	tenant, _ := callerOf(ctx)
	request := protocol.AuditRequest{Tenant: tenant, After: in.After, Since: in.Since, Until: in.Until}
	if in.Session != "" {
		request.SessionID = jig.SessionID(tenant, in.Session)
	}
	page, err := a.options.Engine.AuditOnce(ctx, request)
	page.Rows = append([]audit.Row{}, page.Rows...)
	return &auditAnswer{Body: page}, err
}

// aWeekAgo returns since when statistics and usage count by default: the beginning of a day, so that the same request has the same answer.
func aWeekAgo() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -7) }

type statisticsRequest struct {
	Since time.Time `query:"since" doc:"Approvals decided since this time. Default: midnight (UTC) a week ago"`
}

type statisticsAnswer struct{ Body protocol.ApprovalStats }

func (a *API) getStatistics(ctx context.Context, in *statisticsRequest) (*statisticsAnswer, error) {
	tenant, _ := callerOf(ctx)
	if in.Since.IsZero() {
		in.Since = aWeekAgo()
	}
	stats, err := a.options.Engine.Statistics(ctx, tenant, in.Since)
	return &statisticsAnswer{Body: stats}, err
}

type usageRequest struct {
	Since   time.Time `query:"since" doc:"Usage since this time. Default: midnight (UTC) a week ago"`
	Until   time.Time `query:"until" doc:"Usage until this time. Default: now"`
	By      []string  `query:"by" enum:"agent,model,tool,day" maxItems:"4" doc:"What the rows are grouped by"`
	Agent   string    `query:"agent" names:"agent" maxLength:"200"`
	Model   string    `query:"model" maxLength:"200"`
	Tool    string    `query:"tool" names:"tool" maxLength:"200"`
	Session string    `query:"session" names:"session" maxLength:"192"`
}

type usageAnswer struct{ Body protocol.Usage }

func (a *API) getUsage(ctx context.Context, in *usageRequest) (*usageAnswer, error) {
	tenant, _ := callerOf(ctx)
	if in.Since.IsZero() {
		in.Since = aWeekAgo()
	}
	used, err := a.options.Engine.Usage(ctx, protocol.UsageRequest{
		Tenant: tenant, Since: in.Since, Until: in.Until, By: in.By, Agent: in.Agent, Model: in.Model, Tool: in.Tool, SessionID: in.Session,
	})
	used.Rows, used.Budgets = append([]protocol.UsageRow{}, used.Rows...), append([]protocol.BudgetState{}, used.Budgets...)
	return &usageAnswer{Body: used}, err
}
