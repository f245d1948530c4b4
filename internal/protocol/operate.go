package protocol

import (
	"strconv"
	"strings"

	"github.com/jig-run/jig"
)

// PauseRequest pauses or resumes calls that have not begun.
type PauseRequest struct {
	Tenant string         `json:"tenant"`
	Scope  jig.PauseScope `json:"scope"`
	// Target is a tool's name or a session's id. It is empty for the whole tenant.
	Target string `json:"target,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Token  string `json:"token,omitempty"`
	// Decides says whether the credential of By decides, as a server found it; nil where no server asks.
	Decides *bool `json:"decides,omitempty"`
}

// InstallationRequest asks for the id of the installation.
type InstallationRequest struct {
	Tenant string `json:"tenant"`
}

// PausesRequest asks for the pauses of a tenant.
type PausesRequest struct {
	Tenant string `json:"tenant" caller:"tenant"`
}

// PauseList lists the pauses that are in force now, oldest first.
type PauseList struct {
	Pauses []jig.Pause `json:"pauses"`
}

// PauseResult lists the pauses that are in force now.
type PauseResult struct {
	// Changed is false if the request changed nothing.
	Changed bool        `json:"changed"`
	Pauses  []jig.Pause `json:"pauses"`
}

// Subject returns the target of the request in the form that tokens use.
func (r PauseRequest) Subject() string {
	if r.Target == "" {
		return string(r.Scope)
	}
	return string(r.Scope) + ":" + r.Target
}

// GrantsRequest asks for a page of grants. If Revoke is set, it ends that grant and returns it.
type GrantsRequest struct {
	Tenant string `json:"tenant"`
	Cursor string `json:"cursor,omitempty"`
	// All includes grants that are used up, expired or revoked.
	All bool `json:"all,omitempty"`
	// Revoke is the id of a grant to end.
	Revoke string `json:"revoke,omitempty"`
	By     string `json:"by,omitempty"`
	Token  string `json:"token,omitempty"`
}

// FitsRequest asks for a page of the waiting calls that a grant covers and that somebody may decide, the oldest first.
type FitsRequest struct {
	Tenant string `json:"tenant"`
	Grant  string `json:"grant"`
	// For is the principal who would decide.
	For    string `json:"for"`
	Cursor string `json:"cursor,omitempty"`
}

// FitsPage is a page of waiting calls that a grant covers. It may be incomplete even if more follow.
type FitsPage struct {
	Grant     jig.Grant     `json:"grant"`
	Approvals []jig.Pending `json:"approvals"`
	Next      string        `json:"next_cursor,omitempty"`
}

// GrantsPage is a page of grants, the latest first.
type GrantsPage struct {
	Grants []jig.Grant `json:"grants"`
	Next   string      `json:"next_cursor,omitempty"`
}

// ScheduleAction is what somebody does to a schedule.
type ScheduleAction string

// The actions.
const (
	ScheduleCreate   ScheduleAction = "create"
	ScheduleTrigger  ScheduleAction = "trigger"
	SchedulePause    ScheduleAction = "pause"
	ScheduleResume   ScheduleAction = "resume"
	ScheduleDelete   ScheduleAction = "delete"
	ScheduleTakeOver ScheduleAction = "take_over"
)

// OperateRequest asks whether somebody may operate a schedule, and records in the audit that they do. The client then does it.
type OperateRequest struct {
	Tenant   string         `json:"tenant"`
	Schedule string         `json:"schedule"`
	Action   ScheduleAction `json:"action"`
	// Owner is the principal for whom the schedule acts, and By is who asks.
	Owner string `json:"owner,omitempty"`
	By    string `json:"by,omitempty"`
	// Operates and Manages say what the credential of By allows, as a server found it. Where no server asks, they are nil, and the tenant's document
	// says what By may do.
	Operates *bool `json:"operates,omitempty"`
	Manages  *bool `json:"manages,omitempty"`
	// Credential names the credential of By, and Note is for people.
	Credential string `json:"credential,omitempty"`
	Note       string `json:"note,omitempty"`
}

// OperateAnswer says how the action is done.
type OperateAnswer struct {
	// Own reports that a trigger is a start of the one who asks, in their own name, because they may not operate the schedule.
	Own bool `json:"own,omitempty"`
}

// Triggered says who started a session of a schedule outside of its times.
type Triggered struct {
	By jig.Principal `json:"by"`
	// Proof is a server's statement of kind [StateTrigger] about By; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
}

// MandateKey begins a mandate's credential that is an API key.
const MandateKey = "api_key:"

// Mandate says with which credential a schedule was created, so that it ends with that credential.
type Mandate struct {
	// Credential is the kind and the id of the credential, e.g. api_key:<id>. A schedule ends with an API key, not with a login.
	Credential string `json:"credential,omitempty"`
	// Persons are the people among its principals; see identity.Link.
	Persons []string `json:"persons,omitempty"`
}

const canceledBy = "canceled by "

// CancelReason returns the reason that is sent to Temporal with the request to cancel a session. It names the person or program that asks; by may
// be empty.
func CancelReason(by, reason string) string {
	if by == "" {
		return reason
	}
	if strings.Contains(by, ": ") || strings.HasPrefix(by, `"`) {
		by = strconv.Quote(by)
	}
	if reason == "" {
		return canceledBy + by
	}
	return canceledBy + by + ": " + reason
}

// CanceledBy splits a reason that [CancelReason] made. For other texts, by is empty and reason is the text. Anybody who can cancel a workflow can
// write such a text, so by is a claim.
func CanceledBy(text string) (by, reason string) {
	rest, ok := strings.CutPrefix(text, canceledBy)
	if !ok {
		return "", text
	}
	if !strings.HasPrefix(rest, `"`) {
		by, reason, _ = strings.Cut(rest, ": ")
	} else if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		by, _ = strconv.Unquote(quoted) //nolint:errcheck // it is quoted correctly
		reason = strings.TrimPrefix(rest[len(quoted):], ": ")
	}
	if by == "" {
		return "", text
	}
	return by, reason
}
