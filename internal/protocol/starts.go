package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/strictjson"
)

// MaxDepth limits how deeply sessions can nest: a session at this depth starts no further sessions.
const MaxDepth = 5

// StartSession describes a new session. If Document or Input is large, the client can upload it first and pass a reference instead.
type StartSession struct {
	// Agent names a registered agent. It is empty if a document is given.
	Agent string `json:"agent,omitempty"`
	// Document is an agent document (Markdown with front matter), and DocumentArtifact is the id of an uploaded one. DocumentName is its file
	// name, for error messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Task             string          `json:"task,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	// Pairs are key=value inputs. They are converted according to the agent's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Model replaces the agent's own model. A start with a parent may only name a model that the agent's document lists.
	Model     string        `json:"model,omitempty"`
	Principal jig.Principal `json:"principal"`
	// ParentID and ParentCall name the call that starts the session. Both are empty if a person or a program starts it. With a
	// parent, the principal is the parent's.
	ParentID   string `json:"parent_id,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a session without a parent was started. Empty means api.
	Source jig.Source `json:"source,omitempty"`
	// Proof is a statement, signed by a jig server, about who starts the session. A worker refuses a proof that it cannot check, so that
	// an unchecked one never counts. Empty means that the principal is only claimed.
	Proof string `json:"proof,omitempty"`
	// Mandate is that of a schedule, as the statement says or, without one, as the schedule's creator claims. Triggered says who started the session
	// outside of the schedule's times.
	Mandate   *Mandate   `json:"mandate,omitempty"`
	Triggered *Triggered `json:"triggered,omitempty"`
}

// Event is the payload of the signal event.
type Event struct {
	Name string `json:"name"`
	// Data is any JSON; empty means null. At most 32 KiB.
	Data json.RawMessage `json:"data,omitempty"`
	By   string          `json:"by,omitempty"`
	// ID is chosen by the sender. A session accepts only one event per ID. At most 256 bytes.
	ID string `json:"id,omitempty"`
	// Proof says who sends the event; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
}

// maxEventName and maxEventID are the maximum sizes of an event's name and id, in bytes.
const (
	maxEventName = 128
	maxEventID   = 256
)

// Check returns an INVALID_INPUT error if the event is not complete or too large.
func (e Event) Check() error {
	switch {
	case e.Name == "":
		return jig.Errorf(jig.CodeInvalidInput, "`name` is missing: name the event").WithField("name")
	case len(e.Name) > maxEventName:
		return jig.Errorf(jig.CodeInvalidInput, "`name` has %d bytes; at most %d are allowed", len(e.Name), maxEventName).WithField("name")
	case len(e.ID) > maxEventID:
		return jig.Errorf(jig.CodeInvalidInput, "`id` has %d bytes; at most %d are allowed", len(e.ID), maxEventID).WithField("id")
	case len(e.Data) > jig.InlineBytes:
		return jig.Errorf(jig.CodeInvalidInput, "`data` has %d bytes; at most %d are allowed", len(e.Data), jig.InlineBytes).WithField("data")
	case len(e.Data) > 0 && !json.Valid(e.Data):
		return jig.Errorf(jig.CodeInvalidInput, "`data` is not JSON").WithField("data")
	}
	return nil
}

// Message is the payload of the signal message.
type Message struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"`
	// ID is chosen by the sender. A session accepts only one message per ID. At most 256 bytes.
	ID string `json:"id,omitempty"`
	// Parent and ParentCall name the call of a session that sends the message. Both are empty if a person or a program sends it.
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Proof says who sends the message; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
}

// MemoSummary is the memo field with the summary of a workflow. Temporal shows the summary proper only for the first run of a workflow; the memo
// passes from run to run.
const MemoSummary = "summary"

// Sizes of the texts about a session that Temporal's Web UI shows, in bytes.
const (
	// summaryBytes limits a summary.
	summaryBytes = 200
	// taskBytes limits the task that one run passes to the next.
	taskBytes = 1 << 10
)

// Summary returns the line that the Web UI shows for a workflow: the name of the agent or the tool, and the first line of the task.
func Summary(name, task string) string {
	task, _, _ = strings.Cut(strings.TrimSpace(task), "\n")
	if task != "" && name != "" {
		name += ": "
	}
	return jig.Cut(strings.TrimSpace(name+task), summaryBytes)
}

// Excerpt returns the beginning of a task, short enough to pass from run to run.
func Excerpt(task string) string { return jig.Cut(strings.TrimSpace(task), taskBytes) }

// Asked returns what the session was asked to do, for people to read: the task, and the input.
func (s StartSession) Asked() string { return asked(s.Task, s.Pairs, s.Input, s.InputArtifact) }

// Asked returns the input of the call, for people to read.
func (in CallInput) Asked() string { return asked("", in.Pairs, in.Input, in.InputArtifact) }

// asked joins a task and the parts of an input, each on lines of its own.
func asked(task string, pairs map[string]string, input json.RawMessage, artifact string) string {
	members := make(map[string]json.RawMessage, len(pairs))
	for key, value := range pairs {
		members[key] = json.RawMessage(value) // the tool's schema says what it becomes
	}
	lines := []string{strings.TrimSpace(task), jsontext.Words(members), jsontext.InWords(input)}
	if artifact != "" {
		lines = append(lines, "input in artifact "+artifact)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// PassInput is the input of a run of Pass. A client sets Tenant and Start to begin a session, or Tenant alone to send a message to
// a session that has ended. The other fields are passed from one run to the next.
type PassInput struct {
	Tenant string        `json:"tenant"`
	Start  *StartSession `json:"start,omitempty"`
	// Woken is the message that wakes a session which has ended. Workers ignore it while the session runs.
	Woken *Woken `json:"woken,omitempty"`
	// Pass is the number of the first pass of this run. It is 0 in a run that a client started.
	Pass int `json:"pass,omitempty"`
	// Calling reports that an earlier run admitted the calls of this pass and that some of them are still open.
	Calling bool `json:"calling,omitempty"`
	// Continues reports, if Calling is true, that another pass follows once the calls have their results.
	Continues bool `json:"continues,omitempty"`
	// Task is the beginning of what the session was asked to do, for people who look at a later run. A client sets it with a message.
	Task string `json:"task,omitempty"`
	// Agent and Limits belong to the session. They are passed on so that a run need not query them.
	Agent  string     `json:"agent,omitempty"`
	Limits jig.Limits `json:"limits,omitzero"`
	// Quick reports that the agent's model is known to answer quickly.
	Quick bool `json:"quick,omitempty"`
	// Deadline is the deadline of the session, or zero if it has none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Tools lists the tools that the session has used, sorted. It is the value of the search attribute JigTool.
	Tools []string `json:"tools,omitempty"`
	// Inbox holds signals that arrived too late for the previous run.
	Inbox []Envelope `json:"inbox,omitempty"`
	// Said holds, for every message and event of the earlier runs, how often the same bytes were sent.
	Said map[string]int `json:"said,omitempty"`
	// Shown holds the current values of the search attributes.
	Shown Shown `json:"shown,omitzero"`
	// Parent identifies the call that this session answers as the child of another session's workflow. It is nil for any other session.
	Parent *ParentCall `json:"parent,omitempty"`
	// Canceled reports that the run before was asked to cancel while it was ending. Temporal does not pass such a request on.
	Canceled bool `json:"canceled,omitempty"`
}

// Woken identifies the message that wakes a session which has ended.
type Woken struct {
	ID string `json:"id,omitempty"`
	// Content is the [Message.Content]; the text itself comes with the message.
	Content    string `json:"content"`
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	Proof      string `json:"proof,omitempty"`
}

// ParentCall identifies a call that is answered by a session.
type ParentCall struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Told reports that the parent may still show this session as waiting for people.
	Told bool `json:"told,omitempty"`
}

// Shown holds the values of a session's search attributes. Tools is a count.
type Shown struct {
	Agent   string     `json:"agent,omitempty"`
	Status  jig.Status `json:"status,omitempty"`
	Pending int        `json:"pending,omitempty"`
	Pass    int        `json:"pass,omitempty"`
	Tools   int        `json:"tools,omitempty"`
}

// Envelope is a signal as it arrived, with a key that makes sure that it takes effect only once.
type Envelope struct {
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It refuses what internal/strictjson refuses, except in the inbox, whose signals are read later.
func (in *PassInput) UnmarshalJSON(text []byte) error {
	type plain PassInput
	return strictjson.UnmarshalBut(inbox, text, (*plain)(in))
}

// inbox is the name of the member of [PassInput] and [CallInput] that holds signals as they arrived.
const inbox = "inbox"

// PassResult is the result of a session's workflow.
type PassResult struct {
	SessionID string     `json:"session_id"`
	Status    jig.Status `json:"status"`
	// Answer is cut to 32 KiB. The store has the complete answer.
	Answer    string     `json:"answer,omitempty"`
	Truncated bool       `json:"truncated,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Passes    int        `json:"passes"`
	Error     *jig.Error `json:"error,omitempty"`
}

// MaxChildInput bounds the input, in bytes, that the request to start a child carries itself. A larger input is stored as an artifact first.
const MaxChildInput = 32 << 10

// CallInput is the input of a run of Call: one tool call from a person or a program, without a model.
type CallInput struct {
	Tenant string `json:"tenant"`
	// Tool names a tool or a registered execution spec. It is empty when a document is given.
	Tool string `json:"tool,omitempty"`
	// Document is an execution spec, and DocumentArtifact is the id of an uploaded one. DocumentName is its file name, for messages.
	Document         string          `json:"document,omitempty"`
	DocumentArtifact string          `json:"document_artifact,omitempty"`
	DocumentName     string          `json:"document_name,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	InputArtifact    string          `json:"input_artifact,omitempty"`
	Principal        jig.Principal   `json:"principal"`
	// Pairs are key=value inputs. They are converted according to the tool's input schema.
	Pairs map[string]string `json:"pairs,omitempty"`
	// Parent is the session that started this one, and ParentCall is the call of that session. Both are empty when a person or a
	// program started it. With a parent, the principal is the parent's.
	Parent     string `json:"parent,omitempty"`
	ParentCall string `json:"parent_call,omitempty"`
	// Source says how a call without a parent was started. Empty means api.
	Source jig.Source `json:"source,omitempty"`
	// Proof says who starts the call; see [StartSession.Proof].
	Proof string `json:"proof,omitempty"`
	// Mandate and Triggered are as in [StartSession].
	Mandate   *Mandate   `json:"mandate,omitempty"`
	Triggered *Triggered `json:"triggered,omitempty"`
	// Task, Calling and Inbox are passed from one run to the next. Task names the tool and its input, for people.
	Task    string     `json:"task,omitempty"`
	Calling bool       `json:"calling,omitempty"`
	Inbox   []Envelope `json:"inbox,omitempty"`
	// Said and Canceled have the same meaning as in [PassInput].
	Said     map[string]int `json:"said,omitempty"`
	Canceled bool           `json:"canceled,omitempty"`
	// Check makes the client refuse a call that cannot work before anything is started. It is not sent.
	Check bool `json:"-"`
	// Key is an idempotency key, from which the client makes the session's id. It is not sent.
	Key string `json:"-"`
}

// UnmarshalJSON implements [json.Unmarshaler]; see [PassInput.UnmarshalJSON].
func (in *CallInput) UnmarshalJSON(text []byte) error {
	type plain CallInput
	return strictjson.UnmarshalBut(inbox, text, (*plain)(in))
}

// CallResult is the result of a Call workflow and the answer of its update wait.
type CallResult struct {
	SessionID string `json:"session_id"`
	// ClientID is the id that the client chose for the session. The client sets it; workflows do not.
	ClientID string         `json:"client_id,omitempty"`
	Call     string         `json:"call"`
	Status   jig.CallStatus `json:"status"`
	// Result is set once the call is final. Its data is cut to 32 KiB.
	Result *jig.ToolResult `json:"result,omitempty"`
	// Pending lists the calls that wait for a person, while the call waits for them. The client sets it; workflows do not.
	Pending []WaitingCall `json:"pending,omitempty"`
}
