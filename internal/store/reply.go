package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
)

// Reply answers a question: the call succeeds with the value. It is idempotent by Key. A refused answer is recorded (a
// decision.refused event, an audit row and the answer under its key) and changes nothing else.
func (db *DB) Reply(ctx context.Context, r approval.ReplyRequest) (jig.Ruled, error) {
	w := r.Reply
	return db.ruling(ctx, r.Tenant, r.SessionID, r.Key, w.Call, r.Evidence, func(t *tx, s subject, l *log) (jig.Ruled, error) {
		why := replyObjection(r, s)
		if why == "" {
			pending, err := s.approval.pending()
			if err != nil {
				return jig.Ruled{}, err
			}
			if r.ProofWanted {
				pending = approval.Proved(pending)
			}
			_, why = approval.ConsentOf(pending).Entitled(r.Principal, r.Now)
		}
		if why != "" {
			d := details{"by": r.Principal.ID, "claimed": r.Principal.Claimed, "answer": "answer"}
			return s.refused(l, w.Call, why, d, entryOf(r.Principal, r.Evidence, w.Note)), nil
		}
		return t.reply(ctx, r, s, l)
	})
}

func replyObjection(r approval.ReplyRequest, s subject) string {
	switch {
	case r.Refusal != "":
		return r.Refusal
	case s.call == nil:
		return fmt.Sprintf("there is no call %q in this session", r.Reply.Call)
	case s.call.status() != jig.CallWaiting || s.approval == nil:
		return fmt.Sprintf("the call does not wait for an answer: it is %s", s.call.Status)
	case jig.PendingKind(s.approval.Kind) != jig.PendingQuestion:
		return fmt.Sprintf("the call waits for %s, not for an answer: approve or deny it", s.approval.Kind)
	case s.approval.ExpiresAt != nil && !r.Now.Before(*s.approval.ExpiresAt):
		return "the question expired at " + s.approval.ExpiresAt.UTC().Format(time.RFC3339)
	case r.Digest != s.call.Digest, s.approval.Digest != s.call.Digest:
		return "the question changed since it was shown"
	case s.reused:
		return tokenUsed
	}
	return ""
}

func (t *tx) reply(ctx context.Context, r approval.ReplyRequest, s subject, l *log) (jig.Ruled, error) {
	data, err := encode(struct {
		Answer json.RawMessage `json:"answer"`
		By     string          `json:"by"`
	}{r.Reply.Value, r.Principal.ID})
	if err != nil {
		return jig.Ruled{}, err
	}
	result := jig.ToolResult{Success: true, Data: data, Summary: "answered by " + r.Principal.ID + ": " + cut(string(r.Reply.Value), 200)}
	columns, err := columnsOf(result)
	if err != nil {
		return jig.Ruled{}, err
	}
	t.queue("CallSet", t.tenant, s.session, s.call.CallID, jig.CallSucceeded, columns.body, columns.summary, columns.err, "")
	t.queue("ApprovalDecide", t.tenant, s.approval.ID, approval.Approved, "answer", text(r.Principal.ID), r.Principal.Claimed,
		text(r.Reply.Note), "", r.Key, s.approval.Digest, nil, nil, nil, nil)
	shown, _ := preview(r.Reply.Value)
	l.of(s.call, jig.EventToolAnswered, details{"by": r.Principal.ID, "claimed": r.Principal.Claimed, "note": r.Reply.Note, "value": shown})
	l.of(s.call, jig.EventToolCompleted, resultDetails(result))
	entry := s.entry(audit.AuditAnswered, r.Principal, r.Evidence)
	entry.Note, entry.Status = r.Reply.Note, jig.CallSucceeded
	entry.Reason = "answer: " + cut(string(shown), jig.PreviewBytes)
	l.audits = append(l.audits, entry)
	ruled := jig.Ruled{Call: s.call.CallID, Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}
	pending, err := s.approval.pending()
	if err != nil {
		return ruled, err
	}
	n := s.notice(approval.NoticeDecided, pending, r.Key)
	n.Status, n.By = ruled.Status, r.Principal.ID
	l.notices = append(l.notices, n)
	return ruled, t.flush(ctx)
}
