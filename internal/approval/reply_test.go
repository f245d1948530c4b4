package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// asking returns the state of a question that one person of finance may answer.
func asking() approval.State {
	s := waiting(byFinance(1))
	s.Call.Write = false
	s.Open.Kind, s.Open.Question = jig.PendingQuestion, &jig.Question{Text: "Which day?"}
	return s
}

func replies(who jig.Principal, value string) approval.ReplyRequest {
	return approval.ReplyRequest{
		Tenant: "acme", SessionID: "ses_1", Key: "k1", Principal: who, Evidence: proof(), Voters: office(), Digest: "d1", Now: noonOf().Add(time.Minute),
		Reply: jig.Reply{Call: "1.1", Value: json.RawMessage(value), Note: "so be it"},
	}
}

func TestReply_Refuses(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(*approval.State, *approval.ReplyRequest){
		"the answer does not fit":                    func(_ *approval.State, r *approval.ReplyRequest) { r.Refusal = "the answer does not fit" },
		`there is no call "1.1"`:                     func(s *approval.State, _ *approval.ReplyRequest) { s.Call, s.Open = nil, nil },
		"does not wait for an answer: its status is": func(s *approval.State, _ *approval.ReplyRequest) { s.Call.Status = jig.CallDenied },
		"the call does not wait for an answer":       func(s *approval.State, _ *approval.ReplyRequest) { s.Open = nil },
		"the call waits for approval, not":           func(s *approval.State, _ *approval.ReplyRequest) { s.Open.Kind = jig.PendingApproval },
		"the question expired at 2026-03-02T13":      func(_ *approval.State, r *approval.ReplyRequest) { r.Now = noonOf().Add(time.Hour) },
		"the question changed since it was":          func(_ *approval.State, r *approval.ReplyRequest) { r.Digest = "d0" },
		"the question changed since":                 func(s *approval.State, _ *approval.ReplyRequest) { s.Open.Digest = "d0" },
		"the question changed":                       func(_ *approval.State, r *approval.ReplyRequest) { r.Digest = "" },
		"the token was used already":                 func(s *approval.State, _ *approval.ReplyRequest) { s.TokenUsed = true },
		"eve may not decide this call":               func(_ *approval.State, r *approval.ReplyRequest) { r.Principal = eve() },
		"the request does not say who decides":       func(_ *approval.State, r *approval.ReplyRequest) { r.Principal = jig.Principal{} },
		"eve may not decide this call: it is": func(s *approval.State, r *approval.ReplyRequest) { // the delegation was merely claimed
			r.Principal, r.Proof = eve(), jig.ProofKey
			s.Open.Delegations = []jig.Delegation{{From: "fay", To: "eve", Claimed: true, Counts: []int{0}}}
		},
	} {
		s, r := asking(), replies(fay(), `"monday"`)
		change(&s, &r)
		got, err := approval.Reply(s, r)
		require.NoError(t, err)
		requireRefused(t, got, s, why)
		require.Equal(t, "answer", got.Events[0].Data["answer"])
	}
}

func TestReply_IsTheCallsResult(t *testing.T) {
	t.Parallel()
	s, r := asking(), replies(fay(), `"monday"`)
	got, err := approval.Reply(s, r)
	require.NoError(t, err)
	require.Equal(t, jig.Ruled{Call: "1.1", Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}, got.Ruled)
	require.Equal(t, jig.CallSucceeded, got.Call.Status)
	require.False(t, got.Call.Wrote)
	require.True(t, got.Call.Result.Success)
	require.Equal(t, `answered by fay: "monday"`, got.Call.Result.Summary)
	require.JSONEq(t, `{"answer":"monday","by":"fay"}`, string(got.Call.Result.Data))
	require.Equal(t, &approval.Outcome{Status: approval.Approved, Answer: "answer", By: "fay", Note: "so be it", Key: "k1", Digest: "d1"}, got.Outcome)
	require.Equal(t, []string{"event tool.answered", "event tool.completed", "notice approval.decided", "audit answered fay"}, told(got))
	require.Equal(t, approval.Details{"by": "fay", "claimed": false, "key": "k1", "note": "so be it", "value": json.RawMessage(`"monday"`)}, got.Events[0].Data)
	require.Equal(t, `answer: "monday"`, got.Audit[0].Reason)
}

func TestReply_ShowsTheBeginningOfALongValue(t *testing.T) {
	t.Parallel()
	got, err := approval.Reply(asking(), replies(fay(), `"`+strings.Repeat("x", 5000)+`"`))
	require.NoError(t, err)
	require.Less(t, len(got.Audit[0].Reason), jig.ExcerptBytes+20)
	require.Less(t, len(got.Call.Result.Summary), 250)
	require.Greater(t, len(got.Call.Result.Data), 5000)
	require.Contains(t, got.Events[1].Data, "data_preview")
}

func TestReply_ValueMustBeJSON(t *testing.T) {
	t.Parallel()
	_, err := approval.Reply(asking(), replies(fay(), `{`))
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}
