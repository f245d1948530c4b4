package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

// admitted writes the spans of the calls that ended when they were admitted (denied, refused or duplicate ones), and of the approvals that are
// asked for.
func (a *Activities) admitted(ctx context.Context, session jig.Session, admission ledger.Admission) {
	for _, call := range admission.Calls {
		call.Tenant, call.SessionID = admission.Tenant, admission.SessionID
		a.Tracing.CallRefused(ctx, call)
	}
	a.Tracing.Asked(ctx, session, admission.Approvals...)
}

// traced runs a call once, within the span of the attempt.
func (a *Activities) traced(ctx context.Context, found contract, call jig.Call, inv jig.Invocation) jig.ToolResult {
	ctx, end := a.Tracing.Call(ctx, call, inv.Attempt)
	result := found.run(ctx, call.Input, inv)
	end(result)
	return result
}
