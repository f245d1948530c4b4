package api

import (
	"encoding/json"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// schedules lists the operations on schedules.
func schedules() []Any {
	return []Any{
		ListSchedules, CreateSchedule, GetSchedule, PauseSchedule, ResumeSchedule, TakeOverSchedule, TriggerSchedule, DeleteSchedule,
	}
}

// CreateScheduleRequest creates a schedule.
type CreateScheduleRequest struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"63" doc:"Lower-case letters, digits, '.', '_' and '-'"`

		Agent        string            `json:"agent,omitempty" names:"agent" doc:"The agent to start"`
		Document     string            `json:"document,omitempty" doc:"The document of an agent that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Task         string            `json:"task,omitempty" doc:"The first message to the agent"`
		Model        string            `json:"model,omitempty" doc:"A model instead of the agent's own"`
		Tool         string            `json:"tool,omitempty" names:"tool" maxLength:"64" doc:"The tool or the registered composition to run, instead of an agent"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The input of each run"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More inputs, as strings that the schema converts"`

		protocol.Timetable
		Overlap protocol.Overlap `json:"overlap,omitempty" enum:"skip,buffer_one,buffer_all,cancel_other,terminate_other,allow_all" doc:"What to do if the previous run has not ended. Default: skip"`
		CatchUp protocol.Span    `json:"catch_up,omitzero" doc:"How late a missed start may still happen, e.g. 1h. Default: 1h"`
		Paused  bool             `json:"paused,omitempty"`
		Note    string           `json:"note,omitempty" maxLength:"1000"`
		Limit   int              `json:"limit,omitempty" minimum:"0" doc:"Ends the schedule after that many starts"`
	} `nameHint:"CreateSchedule"`
}

// ScheduleList lists schedules.
type ScheduleList struct {
	Schedules []protocol.Schedule `json:"schedules"`
}

// SchedulePath names a schedule in the path.
type SchedulePath struct {
	Schedule string `path:"schedule" names:"schedule" maxLength:"63" doc:"The name of the schedule"`
}

// ScheduleNoteRequest pauses or resumes a schedule.
type ScheduleNoteRequest struct {
	SchedulePath
	Body *ScheduleNote
}

// ScheduleNote is a note about a schedule.
type ScheduleNote struct {
	Note string `json:"note,omitempty" maxLength:"1000" doc:"A note for people; it replaces the previous one"`
}

// Triggered names the session that a schedule started.
type Triggered struct {
	SessionID string     `json:"session_id,omitempty" doc:"The session"`
	ClientID  string     `json:"client_id,omitempty"`
	Status    jig.Status `json:"status" enum:"working"`
}

// others is a text that several operations share.
const others = "For a schedule that acts for somebody else, this needs the scope operate."

// ListSchedules lists the schedules by name.
var ListSchedules = Op[struct{}, ScheduleList]{Operation: Operation{
	Name: "list-schedules", Method: http.MethodGet, Path: "/v1/schedules", Tag: Schedules, Scope: credential.ScopeRead,
	Summary: "List the schedules by name", Details: "The list may lag a second or so behind a change.",
}}

// CreateSchedule creates a schedule that starts an agent, or runs a tool or a composition.
var CreateSchedule = Op[CreateScheduleRequest, protocol.Schedule]{Operation: Operation{
	Name: "create-schedule", Method: http.MethodPost, Path: "/v1/schedules", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Status: http.StatusCreated, Summary: "Create a schedule that starts an agent, or runs a tool or a composition", Fails: []int{409},
}}

// GetSchedule gets a schedule, with its latest sessions.
var GetSchedule = reading[SchedulePath, protocol.Schedule](
	Schedules, "get-schedule", "/v1/schedules/{schedule}", "Get a schedule, with its latest sessions", http.StatusNotFound,
)

// PauseSchedule pauses a schedule.
var PauseSchedule = Op[ScheduleNoteRequest, protocol.Schedule]{Operation: Operation{
	Name: "pause-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/pause", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Summary: "Pause a schedule", Details: others, Fails: []int{404},
}}

// ResumeSchedule resumes a paused schedule.
var ResumeSchedule = Op[ScheduleNoteRequest, protocol.Schedule]{Operation: Operation{
	Name: "resume-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/resume", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Summary: "Resume a paused schedule", Details: others, Fails: []int{404},
}}

// TakeOverSchedule takes over a schedule, so that it acts for you.
var TakeOverSchedule = Op[SchedulePath, protocol.Schedule]{Operation: Operation{
	Name: "take-over-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/take-over", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Summary: "Take over a schedule, so that it acts for you",
	Details: "It no longer ends with the person or the API key that created it. Its times and what it starts stay. Needs the scope manage, and author for a schedule " +
		"that changes documents.",
	Fails: []int{404, 409},
}}

// TriggerSchedule runs a schedule now.
var TriggerSchedule = Op[SchedulePath, Triggered]{Operation: Operation{
	Name: "trigger-schedule", Method: http.MethodPost, Path: "/v1/schedules/{schedule}/trigger", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Status: http.StatusAccepted, Summary: "Run a schedule now",
	Details: "The schedule's own principal, and whoever has the scope operate, run it for the principal of the schedule. For anybody else, this is a start in their " +
		"own name.",
	Fails: []int{404, 409},
}}

// DeleteSchedule deletes a schedule; sessions that it started continue.
var DeleteSchedule = Op[SchedulePath, struct{}]{Operation: Operation{
	Name: "delete-schedule", Method: http.MethodDelete, Path: "/v1/schedules/{schedule}", Tag: Schedules, Scope: credential.ScopeRun, Record: RecordAudit,
	Status: http.StatusNoContent, Summary: "Delete a schedule; sessions that it started continue", Details: others, Fails: []int{404},
}}
