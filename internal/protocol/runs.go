package protocol

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

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
