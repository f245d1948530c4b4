package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// registerOperations adds the operations with which a tenant is governed: grants, pauses, policies, audit and usage.
func (a *API) registerOperations() {
	const widely = "A session needs the scope run or decide, a tool and the tenant need decide."
	const lifts = "Nobody ends the pause of a session that acts for them, unless they set it."
	add(a, api.Operation{
		Name: "list-grants", Method: http.MethodGet, Path: "/v1/grants", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "List the standing approvals, the latest first",
	}, a.listGrants)
	add(a, api.Operation{
		Name: "create-grant", Method: http.MethodPost, Path: "/v1/grants", Tag: api.Operate, Scope: credential.ScopeRun, Record: api.RecordCall, Also: api.Running(),
		Summary: "Create a standing approval",
		Details: "This is a call of the tool grants.create, under the same rules and approvals.",
		Fails:   []int{409},
	}, a.createGrant)
	add(a, api.Operation{
		Name: "list-grant-calls", Method: http.MethodGet, Path: "/v1/grants/{grant}/calls", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "List the waiting calls that a grant covers and that the principal may decide", Fails: []int{404},
	}, a.listGrantCalls)
	add(a, api.Operation{
		Name: "revoke-grant", Method: http.MethodPost, Path: "/v1/grants/{grant}/revoke", Tag: api.Operate, Scope: credential.ScopeDecide, Record: api.RecordAudit,
		Summary: "Revoke a standing approval", Fails: []int{404},
	}, a.revokeGrant)
	add(a, api.Operation{
		Name: "list-pauses", Method: http.MethodGet, Path: "/v1/pauses", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "List the pauses, oldest first",
	}, a.listPauses)
	add(a, api.Operation{
		Name: "pause", Method: http.MethodPost, Path: "/v1/pauses", Tag: api.Operate, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide, Record: api.RecordAudit,
		Summary: "Hold back the calls of a tool, a session or the whole tenant", Details: widely, Fails: []int{404},
	}, a.pause)
	add(a, api.Operation{
		Name: "resume", Method: http.MethodPost, Path: "/v1/pauses:resume", Tag: api.Operate, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide, Record: api.RecordAudit,
		Summary: "End a pause", Details: "Other pauses that apply to the same calls stay in force. " + widely + " " + lifts, Fails: []int{404},
	}, a.resume)
	add(a, api.Operation{
		Name: "list-policies", Method: http.MethodGet, Path: "/v1/policies", Tag: api.Policies, Scope: credential.ScopeRead,
		Summary: "List the policies in force, as a worker has loaded them",
	}, a.listPolicies)
	add(a, api.Operation{
		Name: "check-policy", Method: http.MethodPost, Path: "/v1/policies:check", Tag: api.Policies, Scope: credential.ScopeRead,
		Summary: "Check a policy document and run its cases",
		Details: "This changes nothing. A document that cannot be read is refused with 422.",
	}, a.checkPolicy)
	add(a, api.Operation{
		Name: "simulate-call", Method: http.MethodPost, Path: "/v1/policies:simulate", Tag: api.Policies, Scope: credential.ScopeRead,
		Summary: "Show how policy would rule on a call",
		Details: "This changes nothing. The call is judged as the first call of a session that has written nothing, by the policies in force. A document " +
			"replaces the policy of the same name.",
		Fails: []int{404, 409},
	}, a.simulateCall)
	add(a, api.Operation{
		Name: "backtest-policy", Method: http.MethodPost, Path: "/v1/policies:backtest", Tag: api.Policies, Scope: credential.ScopeRead,
		Summary: "Show what a policy would have decided about recorded calls",
		Details: "This changes nothing. The response is one page; it has next_cursor if more calls follow.",
	}, a.backtestPolicy)
	add(a, api.Operation{
		Name: "get-audit", Method: http.MethodGet, Path: "/v1/audit", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Get rows of the audit chain, oldest first",
		Details: "The rows of all pages form a chain, unless session, since or until select some of them.",
	}, a.getAudit)
	add(a, api.Operation{
		Name: "get-audit-head", Method: http.MethodGet, Path: "/v1/audit/head", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Get the number and the hash of the last row of the audit chain", Details: "Keep them somewhere else: if a later chain does not contain them, it was rewritten.",
	}, a.getAuditHead)
	add(a, api.Operation{
		Name: "export-audit", Method: http.MethodGet, Path: "/v1/audit/export", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Export the audit chain as JSON lines, for `jig audit verify`",
		Details: "The response is a stream: a header, then the rows up to the one that was last when the export began. To continue an interrupted export, set " +
			"from to the number after the last row received.",
	}, a.exportAudit)
	add(a, api.Operation{
		Name: "verify-audit", Method: http.MethodGet, Path: "/v1/audit/verify", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Verify that no row of the audit chain was changed, moved, added or removed",
		Details: "All rows beginning with from are read. A broken chain is not an error: the result names the first broken row.",
	}, a.verifyAudit)
	describeAudit(a)
	add(a, api.Operation{
		Name: "get-statistics", Method: http.MethodGet, Path: "/v1/statistics", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Get statistics of the approvals that wait now and of those decided since a time",
	}, a.getStatistics)
	add(a, api.Operation{
		Name: "get-usage", Method: http.MethodGet, Path: "/v1/usage", Tag: api.Operate, Scope: credential.ScopeRead,
		Summary: "Get the usage of sessions and the state of budgets",
	}, a.getUsage)
}

// registerSchedules adds the operations on schedules.
func (a *API) registerSchedules() {
	const others = "For a schedule that acts for somebody else, this needs the scope operate."
	add(a, api.Operation{
		Name: "list-schedules", Method: http.MethodGet, Path: "/v1/schedules", Tag: api.Schedules, Scope: credential.ScopeRead,
		Summary: "List the schedules by name", Details: "The list may lag a second or so behind a change.",
	}, a.listSchedules)
	add(a, api.Operation{
		Name: "create-schedule", Method: http.MethodPost, Path: "/v1/schedules", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Status: http.StatusCreated, Summary: "Create a schedule that starts an agent, or runs a tool or a composition", Fails: []int{409},
	}, a.createSchedule)
	add(a, api.Operation{
		Name: "get-schedule", Method: http.MethodGet, Path: "/v1/schedules/{schedule}", Tag: api.Schedules, Scope: credential.ScopeRead,
		Summary: "Get a schedule, with its latest sessions", Fails: []int{404},
	}, a.getSchedule)
	add(a, api.Operation{
		Name: "pause-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/pause", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Summary: "Pause a schedule", Details: others, Fails: []int{404},
	}, a.pauseSchedule)
	add(a, api.Operation{
		Name: "resume-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/resume", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Summary: "Resume a paused schedule", Details: others, Fails: []int{404},
	}, a.resumeSchedule)
	add(a, api.Operation{
		Name: "take-over-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/take-over", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Summary: "Take over a schedule, so that it acts for you",
		Details: "It no longer ends with the person or the API key that created it. Its times and what it starts stay. Needs the scope manage, and author for a schedule " +
			"that changes documents.",
		Fails: []int{404, 409},
	}, a.takeOverSchedule)
	add(a, api.Operation{
		Name: "trigger-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/trigger", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Status: http.StatusAccepted, Summary: "Run a schedule now",
		Details: "The schedule's own principal, and whoever has the scope operate, run it for the principal of the schedule. For anybody else, this is a start in their " +
			"own name.",
		Fails: []int{404, 409},
	}, a.triggerSchedule)
	add(a, api.Operation{
		Name: "delete-schedule", Method: http.MethodDelete, Path: "/v1/schedules/{schedule}", Tag: api.Schedules, Scope: credential.ScopeRun, Record: api.RecordAudit,
		Status: http.StatusNoContent, Summary: "Delete a schedule; sessions that it started continue", Details: others, Fails: []int{404},
	}, a.deleteSchedule)
}
