package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/protocol"
)

// refusals is a store that records why signals were refused.
type refusals struct {
	activities.Store
	reasons []string
}

func (r *refusals) Refuse(_ context.Context, _, _, _, reason string, _ json.RawMessage) error {
	r.reasons = append(r.reasons, reason)
	return nil
}

func (r *refusals) RecordAudit(_ context.Context, _ string, e audit.Entry) error {
	r.reasons = append(r.reasons, e.Reason)
	return nil
}

const unproved = "this worker cannot check the proof of the request (leave `proof` out, or give the worker the root key: see docs/proof.md)"

// A proof that nobody checked must not start anything.
func TestOpen_RefusesAProofThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	store := &refusals{}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: store, Tenants: who{}})
	ref := protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}
	_, err := a.Open(t.Context(), activities.OpenInput{SessionRef: ref, Start: &protocol.StartSession{Agent: "nightly", Proof: "x"}})
	require.ErrorContains(t, err, "cannot check the proof")
	_, err = a.OpenCall(t.Context(), activities.OpenCallInput{SessionRef: ref, Call: protocol.CallInput{Tool: "file.read", Proof: "x"}})
	require.ErrorContains(t, err, "cannot check the proof")
	require.Len(t, store.reasons, 2, "the audit has both refusals")
}

// twice returns the reason for refusing a payload that names a property twice.
func twice(name string, at int) string {
	return fmt.Sprintf("the payload could not be read: the property %q appears twice at byte %d (give it once)", name, at)
}

// A signal that cannot be read is refused with a reason that its sender understands, and never dropped.
func TestSignal_UnreadablePayloadIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, payload, reason string }{
		{"approve", `{"cal":"1.1"}`, `the payload could not be read: unknown field "cal"`},
		{"approve", `"1.1"`, "the payload could not be read: it is of type string; give a JSON object"},
		{"approve", `{"call":1.1}`, "the payload could not be read: `call` must not be of type number"},
		{"answer", ``, "the payload could not be read: it is empty; give a JSON object"},
		{"reconcile", `{"call":"1.1"} {}`, "the payload could not be read: there is text after the JSON value at byte 15"},
		{
			"decide", `{"call": "1.1", "by": "ana", "answer": "deny", "Answer": "approve"}`,
			`the payload could not be read: unknown field "Answer" (names are case-sensitive: write "answer")`,
		},
		{"approve", `{"Answer":"approve"}`, `the payload could not be read: unknown field "Answer" (names are case-sensitive: write "answer")`},
		{"decide", `{"call":"1.1","by":"ana","answer":"deny","answer":"approve"}`, twice("answer", 49)},
		{"approve", `{"call":"1.1","by":"ana","call":"1.2"}`, twice("call", 31)},
		{"decide", `{"by":"ana","decisions":[{"call":"1.1","answer":"deny","answer":"approve"}]}`, twice("answer", 63)},
		{"decide", `{"by":"ana","decisions":[{"call":"1.1","grant":{"max_uses":1,"max_uses":9}}]}`, twice("max_uses", 71)},
		{
			"decide", `{"by":"ana","decisions":[{"call":"1.1","grant":{"Max_Uses":9}}]}`,
			`the payload could not be read: unknown field "Max_Uses" (names are case-sensitive: write "max_uses")`,
		},
		{"approve", `{"call":"1.1","by":"ana","input":{"a":1,"a":2}}`, twice("a", 43)},
		{"answer", `{"call":"1.1","by":"ana","value":[{"a":1,"a":2}]}`, twice("a", 44)},
		{"reconcile", `{"call":"1.1","by":"ana","outcome":"executed","outcome":"not_executed"}`, twice("outcome", 55)},
		{"delegate", `{"call":"1.1","by":"ana","to":"ben","to":"eva"}`, twice("to", 40)},
		{"message", `{"text":"hello","text":"bye"}`, twice("text", 22)},
		{"message", "{\"text\":\"caf\xe9\"}", "the payload could not be read: a string is not valid UTF-8 at byte 8 (encode the text as UTF-8)"},
		{
			"message", `{"text":"\ud99c"}`,
			"the payload could not be read: a string contains half a surrogate pair at byte 8 (write the character itself, or both halves of its pair)",
		},
		{"event", `{"name":"paid","name":"failed"}`, twice("name", 21)},
		{"event", `{"name":"paid","data":{"a":[{"b":1,"b":2}]}}`, twice("b", 38)},
		{"message", `{"body":"hello"}`, `the payload could not be read: unknown field "body"`},
		{"event", `{"nam":"paid"}`, `the payload could not be read: unknown field "nam"`},
		{"message", `{"text":"hello","proof":"x"}`, unproved},
		{
			"decide", `{"by":"ana","decisions":[` + strings.Repeat(`{"call":"1.1"},`, protocol.MaxDecisions) + `{"call":"1.1"}]}`,
			"`decisions` has 501 entries; at most 500 are allowed in one message",
		},
		{"approve", `{"call":"1.1","by":"ana","proof":"x"}`, unproved},
		{"aprove", `{}`, `unknown signal "aprove"; use approve, deny, delegate, answer, reconcile, message or event`},
	} {
		store := &refusals{}
		heard, err := activities.New(activities.Deps{Policy: noPolicies{}, Store: store, Tenants: who{}}).Hear(t.Context(), activities.Signal{
			SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Name: row.name, Key: "k", Payload: json.RawMessage(row.payload),
		})
		require.NoError(t, err)
		require.Equal(t, []jig.Ruled{{Outcome: jig.DecisionRefused, Reason: row.reason}}, heard.Decisions)
		require.Equal(t, []string{row.reason}, store.reasons)
	}
}

// The names of free data are its sender's, in whatever case.
func TestSignal_NamesOfFreeDataDifferInCase(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "decide", json.RawMessage(`{"call":"`+c.ID+`","by":"fay","answer":"deny","note":"{\"a\":1,\"A\":2}"}`))
	require.Equal(t, jig.CallDenied, got.Status)
}

// Nothing that a sender meant is silently ignored: a payload that contradicts itself decides nothing.
func TestSignal_ContradictoryPayloadDecidesNothing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	for payload, row := range map[string]struct{ name, why string }{
		`{"call":"1.1","by":"ana","answer":"deny"}`:                                         {"approve", "the signal is approve, and `answer` is deny"},
		`{"by":"ana","answer":"deny","decisions":[{"call":"1.1"}]}`:                         {"approve", "the signal is approve, and `answer` is deny"},
		`{"call":"1.1","by":"ana","answer":"approve","to":"ben"}`:                           {"delegate", "the signal is delegate, and `answer` is approve"},
		`{"by":"ana","input":{"order":"a","amount":1},"decisions":[{"call":"1.1"}]}`:        {"decide", "`input` is outside of `decisions`"},
		`{"by":"ana","digest":"0000","decisions":[{"call":"1.1"}]}`:                         {"decide", "`digest` is outside of `decisions`"},
		`{"by":"ana","call":"1.2","decisions":[{"call":"1.1"}]}`:                            {"approve", "`call` is outside of `decisions`"},
		`{"by":"ana","to":"ben","answer":"delegate","decisions":[{"call":"1.1","to":"x"}]}`: {"decide", "`to` is outside of `decisions`"},
		`{"by":"ana","grant":{"max_uses":2},"decisions":[{"call":"1.1"}]}`:                  {"decide", "`grant` is outside of `decisions`"},
		`{"by":"ana","token":"t","decisions":[{"call":"1.1"}]}`:                             {"decide", "`token` is outside of `decisions`"},
	} {
		got := o.sent(t, row.name, "signal:"+payload, json.RawMessage(payload))
		require.Equal(t, jig.DecisionRefused, got.Outcome, payload)
		require.Contains(t, got.Reason, row.why, payload)
		require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status, payload)
	}
	reason := json.RawMessage(`{"by":"fay","answer":"deny","reason":"not now","decisions":[{"call":"1.1"}]}`)
	require.Equal(t, jig.CallDenied, o.hear(t, "decide", reason).Status)
	require.Equal(t, "not now", o.call(t, c.ID).Result.Error.Message)
}
