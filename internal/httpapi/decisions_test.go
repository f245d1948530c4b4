package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/protocol"
)

// judge is an engine that accepts the decisions about one session.
type judge struct {
	decided []jig.Decision
	replied jig.Reply
	word    jig.Reconciliation
}

func (j *judge) Decide(_ context.Context, _, id string, list []jig.Decision) (protocol.DecideResult, error) {
	if id != "known" {
		return protocol.DecideResult{}, jig.Errorf(jig.CodeNotFound, "there is no session %s", id).WithField("session")
	}
	j.decided = append(j.decided, list...)
	var result protocol.DecideResult
	for _, d := range list {
		ruled := jig.Ruled{Call: d.Call, Outcome: jig.DecisionAccepted}
		if why, ok := refusals()[d.Digest]; ok {
			ruled = why
			ruled.Call, ruled.Outcome = d.Call, jig.DecisionRefused
		}
		result.Decisions = append(result.Decisions, ruled)
	}
	return result, nil
}

func (j *judge) Reply(_ context.Context, _, _ string, reply jig.Reply) (protocol.DecideResult, error) {
	j.replied = reply
	return protocol.DecideResult{Decisions: []jig.Ruled{{Call: reply.Call, Outcome: jig.DecisionAccepted}}}, nil
}

func (j *judge) Reconcile(_ context.Context, _, _ string, word jig.Reconciliation) (protocol.DecideResult, error) {
	j.word = word
	return protocol.DecideResult{Decisions: []jig.Ruled{{Call: word.Call, Outcome: jig.DecisionAccepted}}}, nil
}

// refusals returns why the judge refuses decisions with some digests.
func refusals() map[string]jig.Ruled {
	missing := jig.Templatef("there is no call %q in this session", "1.7")
	return map[string]jig.Ruled{
		"stale":    {Reason: "the call has changed", Code: jig.CodeConflict, Status: jig.CallWaiting},
		"stranger": {Reason: "it is for finance", Code: jig.CodeNotPermitted, Status: jig.CallWaiting},
		"late":     {Reason: "the approval has expired", Code: jig.CodeExpired, Status: jig.CallExpired},
		"missing":  {Reason: jig.Text(missing), Template: missing, Code: jig.CodeNotFound},
		"older":    {Reason: "nobody knows"},
	}
}

// A decision that is refused is an error, with what the decision was told.
func TestDecide_RefusalIsAnError(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.engine.judge = &judge{}
	for digest, want := range map[string]struct {
		status               int
		code, reason, called string
	}{
		"stale":    {http.StatusConflict, "CONFLICT", "the call has changed", "waiting"},
		"stranger": {http.StatusForbidden, "NOT_PERMITTED", "it is for finance", "waiting"},
		"late":     {http.StatusGone, "EXPIRED", "the approval has expired", "expired"},
		"missing":  {http.StatusNotFound, "NOT_FOUND", `there is no call "{call}" in this session`, ""},
		"older":    {http.StatusConflict, "CONFLICT", "…", ""},
	} {
		for path, one := range map[string]string{
			"/v1/approvals/known/decision": `{"call":"1.7","answer":"approve","digest":"` + digest + `"}`,
			"/v1/approvals/known/delegate": `{"call":"1.7","to":"ben","digest":"` + digest + `"}`,
		} {
			answer, body := s.send(http.MethodPost, path, one)
			require.Equal(t, want.status, answer.StatusCode, body)
			var p api.Problem
			require.NoError(t, json.Unmarshal([]byte(body), &p))
			require.Equal(t, []string{want.code, jig.DecisionRefused, want.reason, want.reason, want.called, "call"},
				[]string{string(p.Code), p.Outcome, p.Reason, p.Detail, string(p.CallStatus), p.Field})
		}
		answer, body := s.send(http.MethodPost, "/v1/approvals:decide", `{"decisions":[{"session_id":"known","call":"1.7","answer":"approve","digest":"`+digest+`"}]}`)
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		var several api.Outcomes
		require.NoError(t, json.Unmarshal([]byte(body), &several))
		one := several.Results[0]
		require.Equal(t, []any{jig.DecisionRefused, want.status, want.called}, []any{one.Outcome, one.Error.Status, string(one.Status)})
		require.NotContains(t, one.Reason, "1.7")
		require.NotContains(t, body, "template")
	}
}

// Each decision of a batch has an outcome of its own, in the order of the request, whatever becomes of the others.
func TestDecideSeveral_HasOneOutcomeForEach(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	j := &judge{}
	s.engine.judge = j
	answer, body := s.send(http.MethodPost, "/v1/approvals:decide", `{"decisions":[
		{"session_id":"known","call":"1.1","answer":"approve","digest":"d"},
		{"session_id":"gone","call":"1.1","answer":"deny","digest":"d"},
		{"session_id":"known","call":"1.2","answer":"approve","digest":"stale"},
		{"session_id":"known","call":"1.3","answer":"delegate","digest":"d","to":"ben"}]}`)
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	var got struct {
		Results []struct {
			Session       string `json:"session_id"`
			Call, Outcome string
			Error         *struct{ Code string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	outcomes := []string{}
	for _, r := range got.Results {
		outcomes = append(outcomes, r.Call+" "+r.Outcome)
	}
	require.Equal(t, []string{"1.1 accepted", "1.1 failed", "1.2 refused", "1.3 accepted"}, outcomes)
	require.Equal(t, "NOT_FOUND", got.Results[1].Error.Code)
	require.NotContains(t, body, "gone\"}", "the error repeats no value")
	require.Len(t, j.decided, 3)
	for _, d := range j.decided {
		require.Equal(t, "ana", d.By)
	}
	require.Equal(t, "ben", j.decided[2].To)
	for _, bad := range []string{`{"decisions":[]}`, `{"decisions":[{"session_id":"known","call":"1.1","answer":"approve"}]}`} {
		answer, body := s.send(http.MethodPost, "/v1/approvals:decide", bad)
		require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, body)
	}
}

// Whoever delegates, answers and reconciles is the principal of the key.
func TestDecisions_AreThoseOfTheKeysPrincipal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	j := &judge{}
	s.engine.judge = j
	for path, body := range map[string]string{
		"delegate":  `{"call":"1.1","to":"ben","note":"he knows"}`,
		"answer":    `{"call":"1.1","value":{"ok":true}}`,
		"reconcile": `{"call":"1.1","outcome":"happened","attempt":2,"result":{"id":7}}`,
	} {
		answer, said := s.send(http.MethodPost, "/v1/approvals/known/"+path, body)
		require.Equal(t, http.StatusOK, answer.StatusCode, said)
		require.JSONEq(t, `{"call":"1.1","outcome":"accepted"}`, said)
	}
	require.Equal(t, []jig.Decision{{Call: "1.1", By: "ana", Answer: jig.AnswerDelegate, To: "ben", Note: "he knows"}}, j.decided)
	require.Equal(t, jig.Reply{Call: "1.1", Value: json.RawMessage(`{"ok":true}`), By: "ana"}, j.replied)
	answer, said := s.send(http.MethodPost, "/v1/approvals/known/delegate", `{"call":"1.1","undo":true}`)
	require.Equal(t, http.StatusOK, answer.StatusCode, said)
	require.Equal(t, jig.Decision{Call: "1.1", By: "ana", Answer: jig.AnswerDelegate, Undo: true}, j.decided[len(j.decided)-1])
	require.Equal(t, jig.Reconciliation{Call: "1.1", Outcome: jig.OutcomeHappened, Attempt: 2, Result: json.RawMessage(`{"id":7}`), By: "ana"}, j.word)
}

// A body that two readers could understand differently is refused, so that a gateway which inspects requests sees what the server does.
func TestBody_AmbiguousJSONIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	j := &judge{}
	s.engine.judge = j
	const decision = "/v1/approvals/known/decision"
	for _, row := range []struct {
		path, body string
		status     int
		field      string
	}{
		{decision, `{"call":"1.1","digest":"d","answer":"deny","Answer":"approve"}`, http.StatusUnprocessableEntity, "body.Answer"},
		{decision, `{"call":"1.1","digest":"d","Answer":"approve"}`, http.StatusUnprocessableEntity, ""},
		{decision, `{"call":"1.1","digest":"d","answer":"deny","answer":"approve"}`, http.StatusBadRequest, "body.answer"},
		{decision, `{"call":"1.1","digest":"d","answer":"approve","input":{"a":{"b":1,"b":2}}}`, http.StatusBadRequest, "body.input.a.b"},
		{decision, `{"call":"1.1","digest":"d","answer":"approve","note":"\ud99c"}`, http.StatusBadRequest, "body.note"},
		{"/v1/approvals:decide", `{"decisions":[{"session_id":"known","call":"1.1","Answer":"approve","answer":"deny","digest":"d"}]}`, http.StatusUnprocessableEntity, "body.decisions[0].Answer"},
		{"/v1/sessions", `{"agent":"a","task":"one","task":"two"}`, http.StatusBadRequest, "body.task"},
		{"/v1/sessions", `{"agent":"a","task":"one","Task":"two"}`, http.StatusUnprocessableEntity, "body.Task"},
		{"/v1/sessions", "{\"agent\":\"a\",\"task\":\"caf\xe9\"}", http.StatusBadRequest, "body.task"},
		{"/v1/sessions", `{"agent":"a","input":{"a":1,"a":2}}`, http.StatusBadRequest, "body.input.a"},
		{"/v1/sessions/known/messages", `{"text":"one","text":"two"}`, http.StatusBadRequest, "body.text"},
		{"/v1/sessions/known/messages", `{"text":"one","TEXT":"two"}`, http.StatusUnprocessableEntity, "body.TEXT"},
	} {
		answer, body := s.send(http.MethodPost, row.path, row.body)
		require.Equal(t, row.status, answer.StatusCode, "%s: %s", row.body, body)
		var problem struct {
			Code        jig.Code `json:"code"`
			Field, Hint string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &problem))
		require.Equal(t, jig.CodeInvalidInput, problem.Code)
		if row.field != "" {
			require.Equal(t, row.field, problem.Field, row.body)
		}
		require.NotEmpty(t, problem.Hint, row.body)
	}
	require.Empty(t, j.decided)
}

// Filters that only decisions have ask for decisions, with a cursor of their own.
func TestListApprovals_ListsDecisions(t *testing.T) {
	t.Parallel()
	engine := &asked{}
	s := newSiteWith(t, func(o *httpapi.Options) { o.Engine.Asker = engine })
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	answer, body := s.send(http.MethodGet, "/v1/approvals?by=ana&tool=ledger.*&agent=payer&session=order-7&outcome=denied&since=2026-11-01T00:00:00Z&limit=3", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.JSONEq(t, `{"approvals":[]}`, body)
	require.Equal(t, []string{string(protocol.ReadDecisions)}, engine.names)
	require.Equal(t, protocol.DecisionsRequest{Tenant: "acme", Limit: 3, Filter: protocol.AuditFilter{
		SessionID: "acme.order-7", By: "ana", Tool: "ledger.*", Agent: "payer", Outcome: audit.OutcomeDenied, Since: since,
	}}, engine.requests[0])
	for _, query := range []string{"decided=true", "by=me", "outcome=expired", "since=2026-11-01T00:00:00Z", "until=2026-11-01T00:00:00Z"} {
		answer, body = s.send(http.MethodGet, "/v1/approvals?"+query, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		answer, body = s.send(http.MethodGet, "/v1/approvals?can_decide=true&"+query, "")
		require.Equal(t, http.StatusUnprocessableEntity, problem(t, answer, body).Status, query)
	}
	require.Len(t, engine.requests, 6)
	require.NotContains(t, []string{"", "me"}, engine.requests[2].(protocol.DecisionsRequest).Filter.By) //nolint:forcetypeassert,errcheck // of this type, or the test fails
}
