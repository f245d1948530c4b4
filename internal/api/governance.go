package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// governance lists the operations with which a tenant is governed: grants, pauses, policies, audit and usage.
func governance() []Any {
	return []Any{
		ListGrants, CreateGrant, ListGrantCalls, RevokeGrant, ListPauses, Pause, Resume, ListPolicies, CheckPolicy, SimulateCall,
		BacktestPolicy, GetAudit, GetAuditHead, ExportAudit, VerifyAudit, GetStatistics, GetUsage,
	}
}

// ListGrantsRequest asks for the standing approvals.
type ListGrantsRequest struct {
	All bool `query:"all" doc:"Include those that are used up, expired or revoked"`
}

// GrantList lists standing approvals.
type GrantList struct {
	Grants []jig.Grant `json:"grants"`
}

// CreateGrantRequest creates a standing approval.
type CreateGrantRequest struct {
	CallHeaders
	Body jig.GrantRequest
}

// GrantPath names a grant in the path.
type GrantPath struct {
	Grant string `path:"grant" names:"grant" maxLength:"128" doc:"The id of the grant"`
}

// GrantCalls lists waiting calls that a grant covers.
type GrantCalls struct {
	Approvals []jig.Pending `json:"approvals" doc:"The oldest first, at most as many as the grant has uses left"`
}

// RevokeGrantRequest revokes a standing approval.
type RevokeGrantRequest struct {
	GrantPath
	Body *RevokeGrantBody `nameHint:"RevokeGrant"`
}

// RevokeGrantBody is the body of a request to revoke a standing approval.
type RevokeGrantBody struct {
	Token string `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
}

// PauseRequest pauses or resumes something.
type PauseRequest struct {
	Body struct {
		Because
		Scope  jig.PauseScope `json:"scope" enum:"tenant,tool,session"`
		Target string         `json:"target,omitempty" names:"{scope}" maxLength:"192" doc:"The name of the tool or the id of the session; leave it out for the tenant"`
	} `nameHint:"PauseCalls"`
}

// PolicyList lists policies.
type PolicyList struct {
	Policies []jig.PolicyState `json:"policies"`
}

// CheckPolicyRequest checks a policy document.
type CheckPolicyRequest struct {
	Body struct {
		Document string `json:"document" minLength:"1" doc:"The text of a policy document"`
	} `nameHint:"CheckPolicy"`
}

// SimulateCallRequest asks how policy would rule on a call.
type SimulateCallRequest struct {
	Body struct {
		Tool     string          `json:"tool" names:"tool" minLength:"1" maxLength:"64" doc:"The name of the tool"`
		Input    json.RawMessage `json:"input,omitempty" doc:"The arguments, which are filled with defaults and not validated"`
		Document string          `json:"document,omitempty" doc:"The text of a policy document, which replaces the policy of the same name"`
		Agent    string          `json:"agent,omitempty" names:"agent" maxLength:"200" doc:"The agent that makes the call; omit it for a call without a model"`
		By       string          `json:"by,omitempty" names:"person" maxLength:"200" doc:"The principal of the session. Naming another one than the credential's needs the scope author or manage. Default: that of the credential"`
	} `nameHint:"SimulateCall"`
}

// BacktestRequest asks what a policy would have decided.
type BacktestRequest struct {
	Body struct {
		Document string    `json:"document" minLength:"1" doc:"The text of a policy document, which replaces the policy of the same name"`
		Since    time.Time `json:"since" doc:"Only calls since this time"`
		All      bool      `json:"all,omitempty" doc:"Include calls whose verdict the document does not change"`
		Cursor   string    `json:"cursor,omitempty" maxLength:"2000" doc:"next_cursor of the previous page, with the same document, since and all"`
	} `nameHint:"BacktestPolicy"`
}

// ExportAuditRequest asks for the audit chain.
type ExportAuditRequest struct {
	From int64 `query:"from" minimum:"1" default:"1" doc:"The number of the first row"`
}

// VerifyAuditRequest asks to verify the audit chain.
type VerifyAuditRequest struct {
	From int64  `query:"from" minimum:"1" default:"1" doc:"The number of the first row to verify"`
	Head string `query:"head" names:"audit_head" maxLength:"64" doc:"A hash that was saved earlier, which the chain must contain"`
}

// Texts that several operations share.
const (
	widely = "A session needs the scope run or decide, a tool and the tenant need decide."
	lifts  = "Nobody ends the pause of a session that acts for them, unless they set it."
)

// ListGrants lists the standing approvals, the latest first.
var ListGrants = reading[ListGrantsRequest, GrantList](Operate, "list-grants", "/v1/grants", "List the standing approvals, the latest first")

// CreateGrant creates a standing approval.
var CreateGrant = Op[CreateGrantRequest, CalledCall]{Operation: Operation{
	Name: "create-grant", Method: http.MethodPost, Path: "/v1/grants", Tag: Operate, Scope: credential.ScopeRun, Record: RecordCall, Also: Running(),
	Summary: "Create a standing approval",
	Details: "This is a call of the tool grants.create, under the same rules and approvals.",
	Fails:   []int{409},
}}

// ListGrantCalls lists the waiting calls that a grant covers and that the principal may decide.
var ListGrantCalls = reading[GrantPath, GrantCalls](
	Operate, "list-grant-calls", "/v1/grants/{grant}/calls", "List the waiting calls that a grant covers and that the principal may decide", http.StatusNotFound,
)

// RevokeGrant revokes a standing approval.
var RevokeGrant = Op[RevokeGrantRequest, jig.Grant]{Operation: Operation{
	Name: "revoke-grant", Method: http.MethodPost, Path: "/v1/grants/{grant}/revoke", Tag: Operate, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Revoke a standing approval", Fails: []int{404},
}}

// ListPauses lists the pauses, oldest first.
var ListPauses = Op[protocol.PausesRequest, protocol.PauseList]{Engine: protocol.ReadPauses, Operation: Operation{
	Name: "list-pauses", Method: http.MethodGet, Path: "/v1/pauses", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "List the pauses, oldest first",
}}

// Pause holds back the calls of a tool, a session or the whole tenant.
var Pause = Op[PauseRequest, protocol.PauseResult]{Operation: Operation{
	Name: "pause", Method: http.MethodPost, Path: "/v1/pauses", Tag: Operate, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Hold back the calls of a tool, a session or the whole tenant", Details: widely, Fails: []int{404},
}}

// Resume ends a pause.
var Resume = Op[PauseRequest, protocol.PauseResult]{Operation: Operation{
	Name: "resume", Method: http.MethodPost, Path: "/v1/pauses:resume", Tag: Operate, Scope: credential.ScopeRun, OrScope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "End a pause", Details: "Other pauses that apply to the same calls stay in force. " + widely + " " + lifts, Fails: []int{404},
}}

// ListPolicies lists the policies in force, as a worker has loaded them.
var ListPolicies = reading[struct{}, PolicyList](Policies, "list-policies", "/v1/policies", "List the policies in force, as a worker has loaded them")

// CheckPolicy checks a policy document and runs its cases.
var CheckPolicy = Op[CheckPolicyRequest, protocol.CasesPage]{Operation: Operation{
	Name: "check-policy", Method: http.MethodPost, Path: "/v1/policies:check", Tag: Policies, Scope: credential.ScopeRead,
	Summary: "Check a policy document and run its cases",
	Details: "This changes nothing. A document that cannot be read is refused with 422.",
}}

// SimulateCall shows how policy would rule on a call.
var SimulateCall = Op[SimulateCallRequest, protocol.Verdict]{Operation: Operation{
	Name: "simulate-call", Method: http.MethodPost, Path: "/v1/policies:simulate", Tag: Policies, Scope: credential.ScopeRead,
	Summary: "Show how policy would rule on a call",
	Details: "This changes nothing. The call is judged as the first call of a session that has written nothing, by the policies in force. A document " +
		"replaces the policy of the same name.",
	Fails: []int{404, 409},
}}

// BacktestPolicy shows what a policy would have decided about recorded calls.
var BacktestPolicy = Op[BacktestRequest, protocol.BacktestPage]{Operation: Operation{
	Name: "backtest-policy", Method: http.MethodPost, Path: "/v1/policies:backtest", Tag: Policies, Scope: credential.ScopeRead,
	Summary: "Show what a policy would have decided about recorded calls",
	Details: "This changes nothing. The response is one page; it has next_cursor if more calls follow.",
}}

// GetAudit gets rows of the audit chain, oldest first.
var GetAudit = Op[protocol.AuditRequest, protocol.AuditPage]{Engine: protocol.ReadAudit, Operation: Operation{
	Name: "get-audit", Method: http.MethodGet, Path: "/v1/audit", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "Get rows of the audit chain, oldest first",
	Details: "The rows of all pages form a chain, unless a filter selects some of them.",
}}

// GetAuditHead gets the number and the hash of the last row of the audit chain.
var GetAuditHead = Op[struct{}, audit.Head]{Operation: Operation{
	Name: "get-audit-head", Method: http.MethodGet, Path: "/v1/audit/head", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "Get the number and the hash of the last row of the audit chain", Details: "Keep them somewhere else: if a later chain does not contain them, it was rewritten.",
}}

// ExportAudit exports the audit chain as JSON lines, for `jig audit verify`.
var ExportAudit = Op[ExportAuditRequest, struct{}]{Operation: Operation{
	Name: "export-audit", Method: http.MethodGet, Path: "/v1/audit/export", Tag: Operate, Scope: credential.ScopeRead,
	Media: JSONLines, Form: "One JSON object per line: a header, then the rows.",
	Summary: "Export the audit chain as JSON lines, for `jig audit verify`",
	Details: "The response is a stream: a header, then the rows up to the one that was last when the export began. To continue an interrupted export, set " +
		"from to the number after the last row received.",
}}

// VerifyAudit verifies that no row of the audit chain was changed, moved, added or removed.
var VerifyAudit = Op[VerifyAuditRequest, audit.Report]{Operation: Operation{
	Name: "verify-audit", Method: http.MethodGet, Path: "/v1/audit/verify", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "Verify that no row of the audit chain was changed, moved, added or removed",
	Details: "All rows beginning with from are read. A broken chain is not an error: the result names the first broken row.",
}}

// GetStatistics gets statistics of the approvals that wait now and of those decided since a time.
var GetStatistics = Op[protocol.StatisticsRequest, protocol.ApprovalStats]{Engine: protocol.ReadStatistics, Operation: Operation{
	Name: "get-statistics", Method: http.MethodGet, Path: "/v1/statistics", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "Get statistics of the approvals that wait now and of those decided since a time",
}}

// GetUsage gets the usage of sessions and the state of budgets.
var GetUsage = Op[protocol.UsageRequest, protocol.Usage]{Engine: protocol.ReadUsage, Operation: Operation{
	Name: "get-usage", Method: http.MethodGet, Path: "/v1/usage", Tag: Operate, Scope: credential.ScopeRead,
	Summary: "Get the usage of sessions and the state of budgets",
}}
