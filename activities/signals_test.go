package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/activities/activitiestest"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ports"
	"github.com/jig-run/jig/internal/protocol"
)

// refusals is a store that records why signals were refused.
type refusals struct {
	ports.Store
	reasons []string
}

func (r *refusals) Refuse(_ context.Context, _, _, _, reason string, _ json.RawMessage) error {
	r.reasons = append(r.reasons, reason)
	return nil
}

func (r *refusals) RecordRefusal(_ context.Context, _ string, e audit.Entry) error {
	r.reasons = append(r.reasons, e.Reason)
	return nil
}

const unproved = "this worker cannot check the proof of the request (leave `proof` out, or give the worker the root key: see docs/proof.md)"

// A proof that nobody checked must not start anything.
func TestAStartWithAProofThatCannotBeCheckedIsRefused(t *testing.T) {
	t.Parallel()
	store := &refusals{}
	a := activities.New(activities.Deps{Store: activitiestest.StoreOf(store), Tenants: who{}})
	ref := protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}
	_, err := a.Open(t.Context(), activities.OpenInput{SessionRef: ref, Start: &protocol.StartSession{Agent: "nightly", Proof: "x"}})
	require.ErrorContains(t, err, "cannot check the proof")
	_, err = a.OpenCall(t.Context(), activities.OpenCallInput{SessionRef: ref, Tool: "file.read", Proof: "x"})
	require.ErrorContains(t, err, "cannot check the proof")
	require.Len(t, store.reasons, 2, "the audit has both refusals")
}

// A signal that cannot be read is refused with a reason that its sender understands, and never dropped.
func TestSignal_UnreadablePayloadIsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, payload, reason string }{
		{"approve", `{"cal":"1.1"}`, `the payload could not be read: unknown field "cal"`},
		{"approve", `"1.1"`, "the payload could not be read: it is of type string; give a JSON object"},
		{"approve", `{"call":1.1}`, "the payload could not be read: `call` must not be of type number"},
		{"answer", ``, "the payload could not be read: it is empty; give a JSON object"},
		{"reconcile", `{"call":"1.1"} {}`, "the payload could not be read: there is more than one JSON value"},
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
		heard, err := activities.New(activities.Deps{Store: activitiestest.StoreOf(store), Tenants: who{}}).Hear(t.Context(), activities.Signal{
			SessionRef: protocol.SessionRef{Tenant: "t", SessionID: "ses_1"}, Name: row.name, Key: "k", Payload: json.RawMessage(row.payload),
		})
		require.NoError(t, err)
		require.Equal(t, []jig.Ruled{{Outcome: jig.DecisionRefused, Reason: row.reason}}, heard.Decisions)
		require.Equal(t, []string{row.reason}, store.reasons)
	}
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
	reason := json.RawMessage(`{"by":"ana","answer":"deny","reason":"not now","decisions":[{"call":"1.1"}]}`)
	require.Equal(t, jig.CallDenied, o.hear(t, "decide", reason).Status)
	require.Equal(t, "not now", o.call(t, c.ID).Result.Error.Message)
}
