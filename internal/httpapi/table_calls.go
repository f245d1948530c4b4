package httpapi

import (
	"net/http"

	"github.com/jig-run/jig/internal/identity/apikey"
)

// registerCalls adds the operations on single calls.
func (a *API) registerCalls() {
	add(a, operation{
		id: "get-call", method: http.MethodGet, path: "/v1/sessions/{session}/call", tag: tagCalls, scope: apikey.ScopeRead, embeds: embedsTool,
		does: "Get a call with its whole input and result", fails: []int{404, 409},
	}, a.getCall)
	add(a, operation{
		id: "list-runs", method: http.MethodGet, path: "/v1/sessions/{session}/runs", tag: tagCalls, scope: apikey.ScopeRead,
		does: "List the calls of a session that have run, as flat objects, in the order in which they ended",
		details: "Each run is derived from the events tool.started and tool.completed, tool.failed or tool.cancelled of a call. Calls that have not started " +
			"or have not ended are left out. A page may have fewer runs than limit even if more follow.",
		fails: []int{404},
	}, a.listRuns)
	add(a, operation{
		id: "call-tool", method: http.MethodPost, path: "/v1/tools/{tool}/calls", tag: tagCalls, scope: apikey.ScopeRun, embeds: embedsTool,
		record: recordCall, also: running(),
		does: "Call a tool without a model",
		details: "The call is admitted, approved, recorded and run once, like a call of an agent. With the header Prefer: wait=SECONDS, the response comes when " +
			"the call has its result or waits for a person. Repeated requests are recognized as for sessions.",
		fails: []int{404, 409},
	}, a.callTool)
	add(a, operation{
		id: "run-composition", method: http.MethodPost, path: "/v1/calls", tag: tagCalls, scope: apikey.ScopeRun, record: recordCall, also: running(),
		does:    "Run a tool, a registered composition, or the document of an unregistered one",
		details: "This works like call-tool, and also runs compositions whose names are not names of tools.",
		fails:   []int{404, 409},
	}, a.runComposition)
}

// registerApprovals adds the operations on calls that wait for people.
func (a *API) registerApprovals() {
	add(a, operation{
		id: "list-approvals", method: http.MethodGet, path: "/v1/approvals", tag: tagApprovals, scope: apikey.ScopeRead,
		does: "List the calls that wait for people, oldest first",
	}, a.listApprovals)
	add(a, operation{
		id: "get-approval", method: http.MethodGet, path: "/v1/approvals/{session}", tag: tagApprovals, scope: apikey.ScopeRead,
		does: "Get a call that waits for a person, with its whole input", fails: []int{404, 409},
	}, a.getApproval)
	add(a, operation{
		id: "review-approvals", method: http.MethodPost, path: "/v1/approvals:review", tag: tagApprovals, scope: apikey.ScopeRead,
		does:    "Show whether the principal may decide calls, and what policy demands of them today",
		details: "This changes nothing. Calls that no longer wait are left out.",
	}, a.reviewApprovals)
	add(a, operation{
		id: "decide", method: http.MethodPost, path: "/v1/approvals/{session}/decision", tag: tagApprovals, scope: apikey.ScopeDecide, record: recordAudit,
		does:    "Approve or deny a call",
		details: "The digest identifies what was decided: it must match the waiting call. A refused decision is not an error: its outcome is refused.",
		fails:   []int{404, 409},
	}, a.decide)
	add(a, operation{
		id: "decide-several", method: http.MethodPost, path: "/v1/approvals:decide", tag: tagApprovals, scope: apikey.ScopeDecide, record: recordAudit,
		does: "Decide about several calls, with one outcome for each",
		details: "The decisions are independent of each other: one that is refused, or whose session does not exist, does not affect the others. " +
			"The outcome of an item is accepted, refused, or failed with an error.",
	}, a.decideSeveral)
	add(a, operation{
		id: "delegate", method: http.MethodPost, path: "/v1/approvals/{session}/delegate", tag: tagApprovals, scope: apikey.ScopeDecide, record: recordAudit,
		does: "Delegate the decision about a call to somebody else", fails: []int{404, 409},
	}, a.delegate)
	add(a, operation{
		id: "answer", method: http.MethodPost, path: "/v1/approvals/{session}/answer", tag: tagApprovals, scope: apikey.ScopeDecide, record: recordAudit,
		does: "Answer the question of a call", fails: []int{404, 409},
	}, a.answer)
	add(a, operation{
		id: "reconcile", method: http.MethodPost, path: "/v1/approvals/{session}/reconcile", tag: tagApprovals, scope: apikey.ScopeDecide, record: recordAudit,
		does: "Say what happened in a call whose outcome is unknown", fails: []int{404, 409},
	}, a.reconcile)
}
