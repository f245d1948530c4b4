package ledger

import (
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/chat"
)

// Window holds the open calls of a pass or a composition that a workflow run handles at one time.
type Window struct {
	// Calls are open calls in the order requested: all that wait for a person, and at most the requested number of others. For a composition,
	// they are all of its open calls.
	Calls []jig.Call
	// Approvals are the approvals of waiting calls, by call id.
	Approvals map[string]jig.Pending
	// More reports that the pass has further open calls.
	More bool
}

// Beginning is a pass as it begins, with everything that its prompt is built from.
type Beginning struct {
	// Session is the session, including what pauses it.
	Session jig.Session
	// Turn is the turn of the pass; nil if the model has not answered yet.
	Turn *chat.Turn
	// Exchanges are the exchanges that the session's summary does not cover, oldest first, with calls and results as stored.
	Exchanges []chat.Exchange
	// MessagePass is the pass that was running when the latest user message arrived; 0 when the task is the only message.
	MessagePass int
}

// PassRead holds the words and the calls of a pass, as people read them later.
type PassRead struct {
	// Session is the session that the pass belongs to.
	Session jig.Session
	// Exchange has the messages before the turn, the turn, and some of the calls with their results as stored, those of compositions
	// included.
	Exchange chat.Exchange
	// TurnAt is when the turn was stored; nil if the model has not answered.
	TurnAt *time.Time
}

// Answer is the model's turn of a pass, with the admission of its calls and, if it has no call to run, the end of the session.
type Answer struct {
	Admission
	Turn chat.Turn
	// End ends the session; nil if the session continues.
	End *End
	// EndsAnyway reports that End applies even if a message has arrived that the turn does not answer.
	EndsAnyway bool
}

// PassState holds the data needed to settle a pass.
type PassState struct {
	Session jig.Session
	Turn    chat.Turn
	// Counts holds the number of the pass's calls in each status.
	Counts map[jig.CallStatus]int
	// Unread counts the user messages that arrived after the pass's prompt was built.
	Unread int
	// MessagePass is the pass that was running when the latest user message arrived; 0 when the task is the only message.
	MessagePass int
}

// Addressed reports whether a message began the pass. Such a pass does not end the session without an answer.
func (s PassState) Addressed(pass int) bool { return s.MessagePass > 0 && s.MessagePass == pass-1 }

// End records in the store how a session or a pass ended. The status working means that the session continues.
type End struct {
	Tenant    string
	SessionID string
	Pass      int
	Status    jig.Status
	Reason    string
	Answer    string
	Error     *jig.Error
	// Audit says who ended the session from outside, and how; nil if the session ended by itself. It is recorded if the session ends.
	Audit *audit.Entry `json:"-"`
	// Since, unless zero, is the last known time at which the session changed. If it has changed since then, nothing is done.
	Since time.Time
}

// RecordedCall is an admitted call, with the data needed to judge it again.
type RecordedCall struct {
	// Call is the call without its result.
	Call jig.Call
	// Session is the session as it was when the call was admitted. It has only the recorded fields; of its agent, these are Name, Version and
	// Registered.
	Session jig.Session
	// Tool is the contract that the worker has now; nil if the tool no longer exists.
	Tool *jig.Tool
}

// ModelWait says that a model is asked again, because a request failed: for the turn of a pass or, if Call is set, of a call whose tool asks a
// model. It is also the data of the event model.waiting.
type ModelWait struct {
	Pass int    `json:"pass"`
	Call string `json:"-"`
	// Code, Reason and Message say why the request failed.
	Code    jig.Code `json:"code"`
	Reason  string   `json:"reason,omitempty"`
	Message string   `json:"message"`
	// Attempt counts the failed requests for the turn, or the attempts of the call; Same those of the latest that failed with the same reason.
	Attempt int `json:"attempt"`
	Same    int `json:"same,omitempty"`
	// Next is when the model is asked again.
	Next time.Time `json:"next_attempt_at"`
}

// String returns why the model is asked again, and when.
func (w ModelWait) String() string {
	return fmt.Sprintf("%s; the model is asked again at %s", w.Message, w.Next.UTC().Format(time.RFC3339))
}

// Ending describes how a workflow ended, according to Temporal.
type Ending struct {
	How EndedHow
	// Reason is the reason that was given with the request. Identity is how the sender of the request called itself. Nobody checks either.
	Reason, Identity string
}

// EndedHow says how a workflow was ended.
type EndedHow int

// The ways in which a workflow is ended.
const (
	// EndedSomehow means that Temporal does not say.
	EndedSomehow EndedHow = iota
	// EndedItself means that nobody but the workflow itself or its parent ended it.
	EndedItself
	EndedCanceled
	EndedTerminated
	EndedTimedOut
	// EndedGone means that Temporal does not know the workflow.
	EndedGone
)
