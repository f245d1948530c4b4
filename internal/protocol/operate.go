package protocol

import (
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
