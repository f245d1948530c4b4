package activities_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

func TestQuestion_AcceptsOnlyFittingAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		ask     string
		fits    []string
		fitsNot []string
	}{
		"a text":    {`{"question":"Why?"}`, []string{`"because"`}, []string{`""`, `7`, `null`, `{}`}},
		"options":   {`{"question":"Which?","options":["a",{"b":1.0}]}`, []string{`"a"`, `{ "b": 1 }`}, []string{`"b"`, `{"b":2}`, `["a"]`}},
		"a schema":  {`{"question":"How many?","schema":{"type":"integer","minimum":1}}`, []string{`3`}, []string{`0`, `"3"`, `1.5`}},
		"of both":   {`{"question":"How many?","schema":{"type":"integer"},"options":[1,2]}`, []string{`2`}, []string{`3`, `"1"`}},
		"an object": {`{"question":"Who?","schema":{"type":"object","required":["name"]}}`, []string{`{"name":"bob"}`}, []string{`{}`, `"bob"`}},
	} {
		for _, value := range row.fits {
			o := newOffice(t)
			c := o.asks(t, 1, person.AskTool, row.ask)
			require.Equal(t, jig.CallWaiting, c.Status, name)
			require.Equal(t, jig.PendingQuestion, o.pending(t, c.ID).Kind)
			for _, bad := range row.fitsNot {
				got := o.hear(t, "answer", jig.Reply{Call: c.ID, By: "ben", Value: json.RawMessage(bad)})
				require.Equal(t, jig.DecisionRefused, got.Outcome, "%s %s", name, bad)
				require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status)
			}
			require.Equal(t, jig.CallWaiting, o.runs(t, c.ID), "it is never run")
			got := o.hear(t, "answer", jig.Reply{Call: c.ID, By: "ben", Value: json.RawMessage(value)})
			require.Equal(t, jig.CallSucceeded, got.Status, "%s %s: %s", name, value, got.Reason)
			require.JSONEq(t, `{"answer":`+value+`,"by":"ben"}`, string(o.call(t, c.ID).Result.Data))
			require.Contains(t, o.hear(t, "answer", jig.Reply{Call: c.ID, By: "ben", Value: json.RawMessage(value)}).Reason, "its status is succeeded")
		}
	}
}

func TestQuestion_UnanswerableIsRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for pass, row := range []struct{ ask, why string }{
		{`{"question":"?","schema":{"type":"nothing"}}`, "not a valid JSON Schema"},
		{`{"question":"?","schema":{"type":"integer"},"options":[1,"two"]}`, "option 2 does not fit"},
		{`{"question":"?","expires":"soon"}`, "expires is"},
		{`{"question":"?","expires":"366d"}`, "expires is"},
		{`{"question":"?","expires":"-1h"}`, "expires is"},
		{`{}`, "question"},
	} {
		c := o.asks(t, pass+1, person.AskTool, row.ask)
		require.Equal(t, jig.CallFailed, c.Status, row.ask)
		require.Contains(t, c.Result.Error.Error(), row.why)
	}
}

func TestQuestion_ExpiresAfterItsOwnDuration(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, person.AskTool, `{"question":"Why?","expires":"2d"}`)
	p := o.pending(t, c.ID)
	require.Equal(t, 48*time.Hour, p.ExpiresAt.Sub(p.RequestedAt))
	require.Equal(t, "Why?", p.Summary)
	_, err := o.Expire(t.Context(), activities.ExpireInput{SessionRef: o.ref(), Calls: []string{c.ID}, Now: p.ExpiresAt})
	require.NoError(t, err)
	require.Equal(t, jig.CallExpired, o.call(t, c.ID).Status)
	for i, expires := range []string{"1d12h", "1.5d"} {
		p := o.pending(t, o.asks(t, i+2, person.AskTool, `{"question":"Why?","expires":"`+expires+`"}`).ID)
		require.Equal(t, 36*time.Hour, p.ExpiresAt.Sub(p.RequestedAt), expires)
	}
}

// A policy says who may answer a question, and answers need proof if the tenant requires it.
func TestQuestion_WhoMayAnswer(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: ask, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	c := o.asks(t, 1, person.AskTool, `{"question":"Why?"}`)
	vouched := func(who, value string) jig.Reply {
		r := jig.Reply{Call: c.ID, Value: json.RawMessage(value)}
		claim, err := token.ForReply(o.tenant, o.session, r, o.pending(t, c.ID).Digest)
		r.Token = o.sign(t, who, claim, err)
		return r
	}
	require.Contains(t, o.hear(t, "answer", jig.Reply{Call: c.ID, By: "fay", Value: json.RawMessage(`"so"`)}).Reason, "only signed decisions")
	require.Contains(t, o.hear(t, "answer", vouched("ana", `"so"`)).Reason, "ana may not decide")
	changed := vouched("fay", `"so"`)
	changed.Value = json.RawMessage(`"not so"`)
	require.Contains(t, o.hear(t, "answer", changed).Reason, "another content")
	approving := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	require.Contains(t, o.hear(t, "approve", approving).Reason, "the call is a question")
	require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status)
	require.Equal(t, jig.CallSucceeded, o.hear(t, "answer", vouched("fay", `"so"`)).Status)
}

// An answer and an outcome that the server sends count as vouched for, each for nothing else.
func TestAnswer_TheServersWordIsAProof(t *testing.T) {
	t.Parallel()
	f := newFront(t, func(o *office) { o.settings.Proof = jig.ProofVouched })
	c := f.asks(t, 1, person.AskTool, `{"question":"Why?"}`)
	answer := protocol.Answered{Reply: jig.Reply{Call: c.ID, By: "ana", Value: json.RawMessage(`"because"`)}}
	require.Contains(t, f.hear(t, "answer", answer).Reason, "come through its server or are signed")
	outcome := protocol.Reconciled{Reconciliation: jig.Reconciliation{Call: c.ID, By: "ana", Outcome: jig.OutcomeHappened}}
	word := f.state(t, protocol.Statement{Kind: protocol.StateDecide, Session: f.session, Content: outcome.Content()}, time.Now())
	answer.Proof, outcome.Proof = word, word
	require.Contains(t, f.hear(t, "answer", answer).Reason, "another content")
	require.NotContains(t, f.hear(t, "reconcile", outcome).Reason, "server")
	answer.Proof = f.state(t, protocol.Statement{Kind: protocol.StateDecide, Session: f.session, Content: answer.Content()}, time.Now())
	require.Equal(t, jig.CallSucceeded, f.hear(t, "answer", answer).Status)
}
