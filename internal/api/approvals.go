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

// approvals lists the operations on calls that wait for people.
func approvals() []Any {
	return []Any{ListApprovals, GetApproval, ReviewApprovals, Decide, DecideSeveral, Delegate, Answer, Reconcile}
}

// ListApprovalsRequest asks for a page of the calls that wait for people, or of the decisions about calls.
type ListApprovalsRequest struct {
	Decided bool          `query:"decided" doc:"Decisions about calls, the latest first, instead of calls that wait"`
	By      string        `query:"by" names:"person" maxLength:"200" doc:"Only decisions of this principal; me is that of the credential. Implies decided"`
	Outcome audit.Outcome `query:"outcome" enum:"approved,granted,denied,expired,withdrawn,answered,reconciled" doc:"Only decisions with this outcome; implies decided. A standing approval has granted a call"`
	Since   time.Time     `query:"since" doc:"Only decisions made at or after this time; implies decided"`
	Until   time.Time     `query:"until" doc:"Only decisions made before this time; implies decided"`

	CanDecide   bool      `query:"can_decide" doc:"Only calls that the principal of the credential may decide and has not decided yet"`
	Kind        string    `query:"kind" enum:"approval,reconcile,question"`
	Tool        string    `query:"tool" names:"tool" maxLength:"200" doc:"Only calls of this tool, or of a category such as file.*"`
	Agent       string    `query:"agent" names:"agent" maxLength:"200"`
	Session     string    `query:"session" names:"session" maxLength:"192" doc:"Only calls of this session and of the sessions that answer its calls"`
	RequestedBy string    `query:"requested_by" names:"person" maxLength:"200"`
	Before      time.Time `query:"before" doc:"Only calls that have waited since before this time"`
	After       time.Time `query:"after" doc:"Only calls that have waited since after this time"`
	Page
}

// History reports whether the request asks for decisions.
func (r ListApprovalsRequest) History() bool {
	return r.Decided || r.By != "" || r.Outcome != "" || !r.Since.IsZero() || !r.Until.IsZero()
}

// ListApprovals lists the calls that wait for people.
var ListApprovals = Op[ListApprovalsRequest, protocol.ApprovalList]{Operation: Operation{
	Name: "list-approvals", Method: http.MethodGet, Path: "/v1/approvals", Tag: Approvals, Scope: credential.ScopeRead,
	Summary: "List the calls that wait for people, oldest first, or the decisions about calls, the latest first",
	Details: "Decisions are listed by person, tool, agent, session, outcome and time, also those of sessions that were deleted. An approval that did not " +
		"suffice (in_part) is listed only with the decisions of its person.",
}}

// GetApproval gets a call that waits or waited for a person.
var GetApproval = Op[CallPath, protocol.ShownCall]{Operation: Operation{
	Name: "get-approval", Method: http.MethodGet, Path: "/v1/approvals/{session}", Tag: Approvals, Scope: credential.ScopeRead,
	Summary: "Get a call that waits for a person, with its whole input, or the decisions about one that waited and what it has come to",
	Fails:   []int{404, 409},
}}

// ReviewApprovalsRequest asks what applies to calls now.
type ReviewApprovalsRequest struct {
	Body struct {
		Signs bool      `json:"signs,omitempty" doc:"Whether the principal would sign the decisions"`
		Calls []CallRef `json:"calls" maxItems:"500"`
	} `nameHint:"ReviewApprovals"`
}

// CallRef names a call.
type CallRef struct {
	Session string `json:"session_id" names:"session" maxLength:"192"`
	Call    string `json:"call" names:"call" maxLength:"512"`
}

// ReviewApprovals shows what applies to calls now.
var ReviewApprovals = Op[ReviewApprovalsRequest, protocol.ReviewList]{Operation: Operation{
	Name: "review-approvals", Method: http.MethodPost, Path: "/v1/approvals:review", Tag: Approvals, Scope: credential.ScopeRead,
	Summary: "Show whether the principal may decide calls, and what policy demands of them today",
	Details: "This changes nothing. Calls that no longer wait are left out.",
}}

// DecisionBody holds what decisions have in common.
type DecisionBody struct {
	Call    string            `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
	Digest  string            `json:"digest" minLength:"1" doc:"The digest of the call as it was shown"`
	Input   json.RawMessage   `json:"input,omitempty" doc:"Arguments instead of the requested ones"`
	Grant   *jig.GrantRequest `json:"grant,omitempty" doc:"Asks for a standing approval of further calls"`
	GrantID string            `json:"grant_id,omitempty" names:"grant" doc:"A standing approval that covers the call, and is used once"`
	Reason  string            `json:"reason,omitempty" doc:"Why it was denied; the agent sees it"`
	Note    string            `json:"note,omitempty" doc:"A note for the log"`
	Token   string            `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
}

// By returns the decision of a principal.
func (d DecisionBody) By(principal string, answer jig.Answer) jig.Decision {
	return jig.Decision{
		Call: d.Call, By: principal, Answer: answer, Digest: d.Digest, Input: d.Input, Grant: d.Grant, GrantID: d.GrantID, Reason: d.Reason, Note: d.Note,
		Token: d.Token,
	}
}

// DecideRequest approves or denies a call.
type DecideRequest struct {
	SessionPath
	Body struct {
		DecisionBody
		Answer jig.Answer `json:"answer" enum:"approve,deny"`
	} `nameHint:"Decide"`
}

// Decide approves or denies a call.
var Decide = Op[DecideRequest, jig.Ruled]{Operation: Operation{
	Name: "decide", Method: http.MethodPost, Path: "/v1/approvals/{session}/decision", Tag: Approvals, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Approve or deny a call",
	Details: "The digest identifies what was decided: it must match the waiting call. A decision that is refused is an error with the outcome refused: 409, " +
		"403 for somebody who is not entitled, 404 if there is no such call, or 410 after the approval has expired.",
	Fails: []int{404, 409, 410},
}}

// DecideSeveralRequest decides about several calls.
type DecideSeveralRequest struct {
	Body struct {
		Decisions []SeveralItem `json:"decisions" minItems:"1" maxItems:"500"`
	} `nameHint:"DecideSeveral"`
}

// SeveralItem is one of several decisions.
type SeveralItem struct {
	DecisionBody
	Session string     `json:"session_id" names:"session" minLength:"1" maxLength:"192" doc:"The session in which the call waits"`
	Answer  jig.Answer `json:"answer" enum:"approve,deny,delegate"`
	To      string     `json:"to,omitempty" names:"person" maxLength:"200" doc:"With delegate: the principal who decides instead"`
	Undo    bool       `json:"undo,omitempty" doc:"With delegate: takes your delegation back"`
}

// OutcomeFailed is the outcome of a decision that could not be made.
const OutcomeFailed = "failed"

// SeveralOutcome is the outcome of one of several decisions.
type SeveralOutcome struct {
	Session string `json:"session_id"`
	jig.Ruled
	Error *Problem `json:"error,omitempty" doc:"Why the decision was refused or could not be made, with a status of its own"`
}

// Outcomes holds the outcomes of several decisions.
type Outcomes struct {
	Results []SeveralOutcome `json:"results" doc:"One outcome for each decision, in the same order"`
}

// DecideSeveral decides about several calls.
var DecideSeveral = Op[DecideSeveralRequest, Outcomes]{Operation: Operation{
	Name: "decide-several", Method: http.MethodPost, Path: "/v1/approvals:decide", Tag: Approvals, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Decide about several calls, with one outcome for each",
	Details: "The decisions are independent of each other: one that is refused, or whose session does not exist, does not affect the others. " +
		"The outcome of an item is accepted, or refused or failed with an error that has a status.",
}}

// DelegateRequest delegates a decision.
type DelegateRequest struct {
	SessionPath
	Body struct {
		Call   string `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		To     string `json:"to,omitempty" names:"person" maxLength:"200" doc:"The principal who decides instead"`
		Undo   bool   `json:"undo,omitempty" doc:"Takes your delegation back, without to, until the delegate has approved"`
		Digest string `json:"digest,omitempty" doc:"If given, it must match the waiting call"`
		Note   string `json:"note,omitempty" doc:"A note for the log"`
		Token  string `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"Delegate"`
}

// Delegate delegates a decision to somebody else.
var Delegate = Op[DelegateRequest, jig.Ruled]{Operation: Operation{
	Name: "delegate", Method: http.MethodPost, Path: "/v1/approvals/{session}/delegate", Tag: Approvals, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Delegate the decision about a call to somebody else", Fails: []int{404, 409, 410},
}}

// AnswerRequest answers the question of a call.
type AnswerRequest struct {
	SessionPath
	Body struct {
		Call  string          `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		Value json.RawMessage `json:"value" doc:"The answer, which must fit the question"`
		Note  string          `json:"note,omitempty" doc:"A note for the log"`
		Token string          `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"AnswerQuestion"`
}

// Answer answers the question of a call.
var Answer = Op[AnswerRequest, jig.Ruled]{Operation: Operation{
	Name: "answer", Method: http.MethodPost, Path: "/v1/approvals/{session}/answer", Tag: Approvals, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Answer the question of a call", Fails: []int{404, 409, 410},
}}

// ReconcileRequest says what happened in a call.
type ReconcileRequest struct {
	SessionPath
	Body struct {
		Call    string               `json:"call" names:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		Outcome jig.ReconcileOutcome `json:"outcome" enum:"happened,not_happened,give_up"`
		Attempt int                  `json:"attempt,omitempty" minimum:"0" doc:"The attempt that the person has investigated, as shown by the approval. Default: 1"`
		Result  json.RawMessage      `json:"result,omitempty" doc:"What the effect returned, if it happened"`
		Note    string               `json:"note,omitempty" doc:"A note for the log"`
		Token   string               `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"Reconcile"`
}

// Reconcile says what happened in a call whose outcome is unknown.
var Reconcile = Op[ReconcileRequest, jig.Ruled]{Operation: Operation{
	Name: "reconcile", Method: http.MethodPost, Path: "/v1/approvals/{session}/reconcile", Tag: Approvals, Scope: credential.ScopeDecide, Record: RecordAudit,
	Summary: "Say what happened in a call whose outcome is unknown", Fails: []int{404, 409, 410},
}}
