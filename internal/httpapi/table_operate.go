package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// registerOperations adds the operations with which a tenant is governed: grants, pauses, policies, audit and usage.
func (a *API) registerOperations() {
	const widely = "A session needs the scope run or decide, a tool and the tenant need decide."
	const lifts = "Nobody ends the pause of a session that acts for them, unless they set it."
	add(a, operation{
		id: "list-grants", method: http.MethodGet, path: "/v1/grants", tag: tagOperate, scope: apikey.ScopeRead,
		does: "List the standing approvals, the latest first",
	}, a.listGrants)
	add(a, operation{
		id: "create-grant", method: http.MethodPost, path: "/v1/grants", tag: tagOperate, scope: apikey.ScopeRun, record: recordCall, also: running(),
		does:    "Create a standing approval",
		details: "This is a call of the tool grants.create, under the same rules and approvals.",
		fails:   []int{409},
	}, a.createGrant)
	add(a, operation{
		id: "list-grant-calls", method: http.MethodGet, path: "/v1/grants/{grant}/calls", tag: tagOperate, scope: apikey.ScopeRead,
		does: "List the waiting calls that a grant covers and that the principal may decide", fails: []int{404},
	}, a.listGrantCalls)
	add(a, operation{
		id: "revoke-grant", method: http.MethodPost, path: "/v1/grants/{grant}/revoke", tag: tagOperate, scope: apikey.ScopeDecide, record: recordAudit,
		does: "Revoke a standing approval", fails: []int{404},
	}, a.revokeGrant)
	add(a, operation{
		id: "list-pauses", method: http.MethodGet, path: "/v1/pauses", tag: tagOperate, scope: apikey.ScopeRead,
		does: "List the pauses, oldest first",
	}, a.listPauses)
	add(a, operation{
		id: "pause", method: http.MethodPost, path: "/v1/pauses", tag: tagOperate, scope: apikey.ScopeRun, or: apikey.ScopeDecide, record: recordAudit,
		does: "Hold back the calls of a tool, a session or the whole tenant", details: widely, fails: []int{404},
	}, a.pause)
	add(a, operation{
		id: "resume", method: http.MethodPost, path: "/v1/pauses:resume", tag: tagOperate, scope: apikey.ScopeRun, or: apikey.ScopeDecide, record: recordAudit,
		does: "End a pause", details: "Other pauses that apply to the same calls stay in force. " + widely + " " + lifts, fails: []int{404},
	}, a.resume)
	add(a, operation{
		id: "list-policies", method: http.MethodGet, path: "/v1/policies", tag: tagPolicies, scope: apikey.ScopeRead,
		does: "List the policies in force, as a worker has loaded them",
	}, a.listPolicies)
	add(a, operation{
		id: "check-policy", method: http.MethodPost, path: "/v1/policies:check", tag: tagPolicies, scope: apikey.ScopeRead,
		does:    "Check a policy document and run its cases",
		details: "This changes nothing. A document that cannot be read is refused with 422.",
	}, a.checkPolicy)
	add(a, operation{
		id: "simulate-call", method: http.MethodPost, path: "/v1/policies:simulate", tag: tagPolicies, scope: apikey.ScopeRead,
		does: "Show how policy would rule on a call",
		details: "This changes nothing. The call is judged as the first call of a session that has written nothing, by the policies in force. A document " +
			"replaces the policy of the same name.",
		fails: []int{404, 409},
	}, a.simulateCall)
	add(a, operation{
		id: "backtest-policy", method: http.MethodPost, path: "/v1/policies:backtest", tag: tagPolicies, scope: apikey.ScopeRead,
		does:    "Show what a policy would have decided about recorded calls",
		details: "This changes nothing. The response is one page; it has next_cursor if more calls follow.",
	}, a.backtestPolicy)
	add(a, operation{
		id: "get-audit", method: http.MethodGet, path: "/v1/audit", tag: tagOperate, scope: apikey.ScopeRead,
		does:    "Get rows of the audit chain, oldest first",
		details: "The rows of all pages form a chain, unless session, since or until select some of them.",
	}, a.getAudit)
	add(a, operation{
		id: "get-audit-head", method: http.MethodGet, path: "/v1/audit/head", tag: tagOperate, scope: apikey.ScopeRead,
		does: "Get the number and the hash of the last row of the audit chain", details: "Keep them somewhere else: if a later chain does not contain them, it was rewritten.",
	}, a.getAuditHead)
	add(a, operation{
		id: "export-audit", method: http.MethodGet, path: "/v1/audit/export", tag: tagOperate, scope: apikey.ScopeRead,
		does: "Export the audit chain as JSON lines, for `jig audit verify`",
		details: "The response is a stream: a header, then the rows up to the one that was last when the export began. To continue an interrupted export, set " +
			"from to the number after the last row received.",
	}, a.exportAudit)
	add(a, operation{
		id: "verify-audit", method: http.MethodGet, path: "/v1/audit/verify", tag: tagOperate, scope: apikey.ScopeRead,
		does:    "Verify that no row of the audit chain was changed, moved, added or removed",
		details: "All rows beginning with from are read. A broken chain is not an error: the result names the first broken row.",
	}, a.verifyAudit)
	describeAudit(a)
	add(a, operation{
		id: "get-statistics", method: http.MethodGet, path: "/v1/statistics", tag: tagOperate, scope: apikey.ScopeRead,
		does: "Get statistics of the approvals that wait now and of those decided since a time",
	}, a.getStatistics)
	add(a, operation{
		id: "get-usage", method: http.MethodGet, path: "/v1/usage", tag: tagOperate, scope: apikey.ScopeRead,
		does: "Get the usage of sessions and the state of budgets",
	}, a.getUsage)
}

// registerSchedules adds the operations on schedules.
func (a *API) registerSchedules() {
	const others = "For a schedule that acts for somebody else, this needs the scope operate."
	add(a, operation{
		id: "list-schedules", method: http.MethodGet, path: "/v1/schedules", tag: tagSchedules, scope: apikey.ScopeRead,
		does: "List the schedules by name", details: "The list may lag a second or so behind a change.",
	}, a.listSchedules)
	add(a, operation{
		id: "create-schedule", method: http.MethodPost, path: "/v1/schedules", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		status: http.StatusCreated, does: "Create a schedule that starts an agent, or runs a tool or a composition", fails: []int{409},
	}, a.createSchedule)
	add(a, operation{
		id: "get-schedule", method: http.MethodGet, path: "/v1/schedules/{schedule}", tag: tagSchedules, scope: apikey.ScopeRead,
		does: "Get a schedule, with its latest sessions", fails: []int{404},
	}, a.getSchedule)
	add(a, operation{
		id: "pause-schedule", method: http.MethodPost, path: "/v1/schedules/{schedule}/pause", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		does: "Pause a schedule", details: others, fails: []int{404},
	}, a.pauseSchedule)
	add(a, operation{
		id: "resume-schedule", method: http.MethodPost, path: "/v1/schedules/{schedule}/resume", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		does: "Resume a paused schedule", details: others, fails: []int{404},
	}, a.resumeSchedule)
	add(a, operation{
		id: "take-over-schedule", method: http.MethodPost, path: "/v1/schedules/{schedule}/take-over", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		does: "Take over a schedule, so that it acts for you",
		details: "It no longer ends with the person or the API key that created it. Its times and what it starts stay. Needs the scope manage, and author for a schedule " +
			"that changes documents.",
		fails: []int{404, 409},
	}, a.takeOverSchedule)
	add(a, operation{
		id: "trigger-schedule", method: http.MethodPost, path: "/v1/schedules/{schedule}/trigger", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		status: http.StatusAccepted, does: "Run a schedule now",
		details: "The schedule's own principal, and whoever has the scope operate, run it for the principal of the schedule. For anybody else, this is a start in their " +
			"own name.",
		fails: []int{404, 409},
	}, a.triggerSchedule)
	add(a, operation{
		id: "delete-schedule", method: http.MethodDelete, path: "/v1/schedules/{schedule}", tag: tagSchedules, scope: apikey.ScopeRun, record: recordAudit,
		status: http.StatusNoContent, does: "Delete a schedule; sessions that it started continue", details: others, fails: []int{404},
	}, a.deleteSchedule)
}
