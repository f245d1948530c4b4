// Package usage contains the tool usage.get, which returns what the tenant's sessions used. It must not know how usage is stored.
package usage

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools"
)

// GetTool is the name of the tool.
const GetTool = "usage.get"

// Options are the settings of the tools.
type Options struct {
	// Usage returns what a tenant's sessions used, and how much of its budgets is used; required.
	Usage func(ctx context.Context, r protocol.UsageRequest) (protocol.Usage, error)
}

// Input is the input of usage.get.
type Input struct {
	Since     time.Time `json:"since,omitzero"       jsonschema:"usage since this time; default: midnight (UTC) a week ago"`
	Until     time.Time `json:"until,omitzero"       jsonschema:"usage until this time; default: now"`
	By        []string  `json:"by,omitempty"         jsonschema:"what the rows are grouped by; one row without it" maxItems:"4" enum:"agent,model,tool,day"`
	Agent     string    `json:"agent,omitempty"      jsonschema:"only sessions of this agent"                                               maxLength:"200"`
	Model     string    `json:"model,omitempty"      jsonschema:"only this model, as provider/model"                                        maxLength:"200"`
	Tool      string    `json:"tool,omitempty"       jsonschema:"only calls of this tool"                                                   maxLength:"200"`
	SessionID string    `json:"session_id,omitempty" jsonschema:"only this session"                                                         maxLength:"192"`
}

// Result is the output of usage.get.
type Result struct{ protocol.Usage }

// Summary implements tools.Summarizer.
func (r Result) Summary() string {
	var requests, calls int64
	for _, row := range r.Rows {
		requests, calls = requests+row.Requests, calls+row.Calls
	}
	return fmt.Sprintf("%d answers of models and %d calls since %s", requests, calls, r.Since.Format(time.DateOnly))
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{tools.New(jig.Tool{
		Name: GetTool,
		Description: "Returns what the tenant's sessions used: answers of models, calls of tools, tokens (also those read from the provider's cache) and cost, " +
			"grouped as asked; and how much of each budget is used.",
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"operator"},
		Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}}, RequiredPermission: tenancy.PermissionRead,
	}, func(ctx context.Context, inv jig.Invocation, in Input) (Result, error) {
		request := protocol.UsageRequest{
			Tenant: inv.Tenant, Since: in.Since, Until: in.Until, By: in.By, Agent: in.Agent, Model: in.Model, Tool: in.Tool, SessionID: in.SessionID,
		}
		request.SetDefaults(time.Now())
		used, err := o.Usage(ctx, request)
		return Result{used}, err
	})}
}
