package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/stored"
)

// Reply applies an answer to a question: the call succeeds with the value. The people who could approve the call may answer. If the answer
// is not accepted, the transition is a refusal. The error is INVALID_INPUT if the value is not JSON.
func Reply(s State, r ReplyRequest) (Transition, error) {
	code, why := s.refusedAs(r.Unentitled, r.Now), replyObjection(s, r)
	if why == "" {
		code, why = jig.CodeNotPermitted, entitled(r.Counted(s.Open.Pending, r.Now), r.Principal, r.Now)
	}
	if why != "" {
		about := by(r.Principal, r.Evidence)
		about["answer"] = "answer"
		return s.refuse(code, r.Reply.Call, why, about, audit.By(r.Principal, r.Evidence, r.Reply.Note)), nil
	}
	data, err := stored.Encode(struct {
		Answer json.RawMessage `json:"answer"`
		By     string          `json:"by"`
	}{r.Reply.Value, r.Principal.ID})
	if err != nil {
		return Transition{}, err
	}
	result := jig.ToolResult{Success: true, Data: data, Summary: "answered by " + r.Principal.ID + ": " + stored.Cut(string(r.Reply.Value), 200)}
	shown, _ := stored.Preview(r.Reply.Value)
	t := Transition{Ruled: s.accepted(jig.CallSucceeded), Call: &CallChange{Status: jig.CallSucceeded, Result: &result}}
	t.Said = said(r.Principal, jig.AskedAnswer)
	t.Outcome = &Outcome{
		Status: Approved, Answer: "answer", By: r.Principal.ID, Claimed: r.Principal.Claimed, Note: r.Reply.Note, Key: r.Key, Digest: s.Open.Digest,
	}
	what := by(r.Principal, r.Evidence)
	what["note"], what["value"] = r.Reply.Note, shown
	t.Events = []Event{
		s.Call.Event(jig.EventToolAnswered, what),
		s.Call.Event(jig.EventToolCompleted, stored.ResultDetails(result)),
	}
	entry := s.Entry(audit.AuditAnswered, r.Principal, r.Evidence)
	entry.Note, entry.Status = r.Reply.Note, jig.CallSucceeded
	entry.Reason = "answer: " + stored.Cut(string(shown), jig.ExcerptBytes)
	t.Audit = []audit.Entry{entry}
	n := s.Notice(jig.NoticeDecided, s.Open.Pending, r.Key)
	n.Status, n.By, n.Proof, n.Key = jig.CallSucceeded, r.Principal.ID, r.Principal.Proof, r.Evidence.KeyID()
	t.Notices = []jig.Notice{n}
	return t, nil
}

// replyObjection returns why an answer cannot be accepted, regardless of who sent it, or "" when there is no such reason.
func replyObjection(s State, r ReplyRequest) string {
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.Call == nil:
		return noCall(r.Reply.Call)
	case s.Call.Status != jig.CallWaiting || s.Open == nil:
		return fmt.Sprintf("the call does not wait for an answer: its status is %s", s.Call.Status)
	case s.Open.Kind != jig.PendingQuestion:
		return fmt.Sprintf("the call waits for %s, not for an answer: approve or deny it", s.Open.Kind)
	case expired(s.Open.Pending, r.Now):
		return "the question expired at " + s.Open.ExpiresAt.Format(time.RFC3339)
	case r.Digest != s.Call.Digest, s.Open.Digest != s.Call.Digest:
		return "the question changed since it was shown"
	case s.TokenUsed:
		return RefusedToken
	}
	return ""
}
