package protocol

import "github.com/jig-run/jig"

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
