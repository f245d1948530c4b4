package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// question admits a call that a person must answer.
func (w world) question(t *testing.T, terms *jig.Terms) jig.Call {
	t.Helper()
	c := w.call(1)
	c.Tool, c.Write, c.Verdict, c.Status = "person.ask", false, jig.VerdictAsk, jig.CallWaiting
	p := pendingOf(c)
	p.Kind, p.Terms, p.Question = jig.PendingQuestion, terms, &jig.Question{Text: "Which day?", Options: []json.RawMessage{[]byte(`"monday"`)}}
	require.NoError(t, w.Admit(t.Context(), ledger.Admission{Tenant: w.tenant, SessionID: w.session, Pass: 1, Calls: []jig.Call{c}, Approvals: []jig.Pending{p}}))
	return c
}

func (w world) answer(who jig.Principal, value string) approval.ReplyRequest {
	return approval.ReplyRequest{
		Tenant: w.tenant, SessionID: w.session, Key: jig.NewSessionID(), Principal: who, Digest: "d1", Now: time.Now(),
		Reply: jig.Reply{Call: "1.1", Value: json.RawMessage(value), By: who.ID, Note: "so be it"},
	}
}

func TestReply_IsTheCallsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.question(t, nil)
	p, err := w.Pending(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.PendingQuestion, p.Kind)
	require.Equal(t, "Which day?", p.Question.Text)
	r := w.answer(jig.Principal{ID: "ben", Claimed: true}, `"monday"`)
	for range 2 {
		got, err := w.Reply(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, jig.Ruled{Call: c.ID, Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}, got.Ruled)
		w.isCurrent(t, got)
	}
	row := w.row(t, c)
	require.Equal(t, jig.CallSucceeded, row.Status)
	require.JSONEq(t, `{"answer":"monday","by":"ben"}`, string(row.Result.Data))
	require.Equal(t, []string{"tool.asked", "tool.answered", "tool.completed"}, w.types(t))
	require.Equal(t, map[string]any{"by": "ben", "claimed": true, "note": "so be it", "value": "monday"}, w.last(t, jig.EventToolAnswered))
	require.Equal(t, []string{"answered ben"}, w.audit(t))
	require.Equal(t, ledger.ReserveFinal, w.reserve(t, c).Outcome, "a question never runs")
	w.requireWrites(t, 0)
}

func TestReply_RefusalChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.question(t, new(finance(1)))
	for why, change := range map[string]func(*approval.ReplyRequest){
		"there is no call":                   func(r *approval.ReplyRequest) { r.Reply.Call = "9.9" },
		"the question changed":               func(r *approval.ReplyRequest) { r.Digest = "d2" },
		"expired at":                         func(r *approval.ReplyRequest) { r.Now = time.Now().Add(2 * time.Hour) },
		"does not fit":                       func(r *approval.ReplyRequest) { r.Refusal = "the answer does not fit" },
		"eve may not decide":                 func(r *approval.ReplyRequest) { r.Principal = jig.Principal{ID: "eve"} },
		"does not say who decides":           func(r *approval.ReplyRequest) { r.Principal = jig.Principal{} },
		"the question changed since it was ": func(r *approval.ReplyRequest) { r.Digest = "" },
	} {
		before := len(w.log(t))
		r := w.answer(member("fay"), `"monday"`)
		change(&r)
		for range 2 {
			got, err := w.Reply(t.Context(), r)
			require.NoError(t, err)
			require.Equal(t, jig.DecisionRefused, got.Outcome, why)
			require.Contains(t, got.Reason, why)
		}
		require.Len(t, w.log(t), before+1, why)
		require.Equal(t, jig.CallWaiting, w.row(t, c).Status)
	}
	require.Len(t, w.audit(t), 7)
	got := w.says(t, member("fay"), jig.Decision{})
	require.Contains(t, got.Reason, "the call is a question: reply with answer, or deny it")
	require.Equal(t, jig.CallDenied, w.says(t, member("fay"), jig.Decision{Answer: jig.AnswerDeny}).Status)
	late, err := w.Reply(t.Context(), w.answer(member("fay"), `"monday"`))
	require.NoError(t, err)
	require.Contains(t, late.Reason, "its status is denied")
}

func TestReply_RefusesApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.asking(t)
	got, err := w.Reply(t.Context(), w.answer(jig.Principal{ID: "ben"}, `"yes"`))
	require.NoError(t, err)
	require.Contains(t, got.Reason, "the call waits for approval, not for an answer")
	require.Equal(t, jig.CallWaiting, w.row(t, c).Status)
}

// An unknown outcome may be reconciled by the people whom the tenant names. If it names nobody, those who could have approved the call
// may.
func TestReconcile_WhoMay(t *testing.T) {
	t.Parallel()
	terms := finance(1)
	terms.NotRequester = true
	for name, row := range map[string]struct {
		who         jig.Principal
		reconcilers *jig.Approvers
		why         string
	}{
		"who could have approved it": {member("fay"), nil, ""},
		"who could not":              {jig.Principal{ID: "eve"}, nil, "eve may not decide this call"},
		"who asked for it":           {member("ana"), nil, "ana asked for this call"},
		"who is named":               {jig.Principal{ID: "eve"}, &jig.Approvers{People: []string{"eve"}}, ""},
		"who is not named":           {member("fay"), &jig.Approvers{People: []string{"eve"}}, "fay may not say what happened to a call: that is for eve"},
	} {
		w := newWorld(t)
		c := w.under(t, terms, nil)
		require.Equal(t, jig.CallReserved, w.says(t, member("flo"), jig.Decision{}).Status)
		w.reserve(t, c)
		require.Equal(t, ledger.ReserveUnknown, w.reserve(t, c).Outcome)
		got, err := w.Reconcile(t.Context(), approval.ReconcileRequest{
			Tenant: w.tenant, SessionID: w.session, Key: "k", Principal: row.who, Reconcilers: row.reconcilers, Now: time.Now(),
			Reconciliation: jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeNotHappened},
		})
		require.NoError(t, err)
		require.Equal(t, row.why == "", got.Outcome == jig.DecisionAccepted, name)
		require.Contains(t, got.Reason, row.why)
		rows := w.audit(t)
		if row.why == "" {
			require.Equal(t, "reconciled "+row.who.ID, rows[len(rows)-1], name)
			require.Equal(t, ledger.ReserveRun, w.reserve(t, c).Outcome, "under the approval that it already had")
			continue
		}
		require.Equal(t, "refused "+row.who.ID, rows[len(rows)-1], name)
		require.Equal(t, jig.CallUnknown, w.row(t, c).Status)
	}
}
