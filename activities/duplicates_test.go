package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/protocol"
)

// tells sends a message to the session.
func (o *office) tells(t *testing.T, m protocol.Message) {
	t.Helper()
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: "message", Key: jig.NewSessionID(), Payload: raw})
	require.NoError(t, err)
	require.Empty(t, heard.Decisions)
}

// pinned returns the versions of the office's tools and of some others.
func (o *office) pinned(others ...jig.Tool) map[string]string {
	versions := map[string]string{}
	for _, tool := range append(o.Tools(), others...) {
		versions[tool.Name] = tool.Version
	}
	return versions
}

func (o *office) denies(t *testing.T, call string) {
	t.Helper()
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "deny", jig.Decision{Call: call, By: "fay", Reason: "not before ten"}).Outcome)
}

// A denied call stays refused until a person asks for it again; then it opens a new approval.
func TestDuplicate_DeniedCallMayBeAskedForAfterAMessage(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.denies(t, o.asks(t, 1, refundTool, small).ID)
	require.Equal(t, jig.CallDuplicate, o.asks(t, 2, refundTool, small).Status)
	o.tells(t, protocol.Message{Text: "It is ten. Do it now.", By: "ana"})
	require.Equal(t, jig.CallWaiting, o.asks(t, 3, refundTool, small).Status)
	o.denies(t, "3.1")
	require.Equal(t, jig.CallDuplicate, o.asks(t, 4, refundTool, small).Status, "the message was before this denial")
}

// What was said before the call ended, what the model has not read, and what another session said releases nothing.
func TestDuplicate_OnlyLaterWordsOfPeopleCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	o.tells(t, protocol.Message{Text: "Hurry.", By: "ana"})
	o.denies(t, c.ID)
	require.Equal(t, jig.CallDuplicate, o.asks(t, 2, refundTool, small).Status, "said before the denial")

	_, err := o.db.AddMessage(t.Context(), o.tenant, o.session, "k", chat.Message{Role: chat.RoleUser, Text: "Do it.", Sender: "ses_other"})
	require.NoError(t, err)
	require.Equal(t, jig.CallDuplicate, o.asks(t, 3, refundTool, small).Status, "said by another session")

	_, err = o.db.BeginPass(t.Context(), o.tenant, o.session, 4)
	require.NoError(t, err)
	o.tells(t, protocol.Message{Text: "Do it.", By: "ana"}) // while the model writes
	require.Equal(t, jig.CallDuplicate, o.asks(t, 4, refundTool, small).Status, "not read yet")
	require.Equal(t, jig.CallWaiting, o.asks(t, 5, refundTool, small).Status)
}

// The answer to a question is a person's word too.
func TestDuplicate_AnAnswerReleasesADeniedCall(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.denies(t, o.asks(t, 1, refundTool, small).ID)
	q := o.asks(t, 2, person.AskTool, `{"question":"Shall I try again?"}`)
	require.Equal(t, jig.CallSucceeded, o.hear(t, "answer", jig.Reply{Call: q.ID, By: "fay", Value: json.RawMessage(`"yes"`)}).Status)
	require.Equal(t, jig.CallWaiting, o.asks(t, 3, refundTool, small).Status)
}

// A call that ran never runs again, also under the arguments that a person gave it.
func TestDuplicate_WhatRanNeverRunsAgain(t *testing.T) {
	t.Parallel()
	const changed = `{"order":"a","amount":5}`
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallWaiting, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(changed)}).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	o.tells(t, protocol.Message{Text: "Do it again.", By: "ana"})
	require.Equal(t, jig.CallDuplicate, o.asks(t, 2, refundTool, changed).Status)
	require.Equal(t, jig.CallWaiting, o.asks(t, 3, refundTool, small).Status, "with these arguments it never ran")
}

// A read may look again when a person says so, or after a failure that may pass.
func TestDuplicate_ReadsMayLookAgain(t *testing.T) {
	t.Parallel()
	for code, again := range map[jig.Code]jig.CallStatus{
		"": jig.CallDuplicate, jig.CodeInvalidInput: jig.CallDuplicate, jig.CodeTimeout: jig.CallReserved,
		jig.CodeRateLimited: jig.CallReserved, jig.CodeUnavailable: jig.CallReserved, jig.CodeNotFound: jig.CallReserved,
	} {
		look := func(o *office) {
			o.extra = append(o.extra, o.payment(jig.Tool{Permission: jig.PermissionRead, Idempotent: true, MaxAttempts: 1}, func(ctx context.Context, inv jig.Invocation, in json.RawMessage) jig.ToolResult {
				if code != "" {
					return jig.Failure(jig.Errorf(code, "not now"))
				}
				return paid(ctx, inv, in)
			}))
		}
		o := newOffice(t, look)
		require.Equal(t, jig.CallReserved, o.asks(t, 1, payTool, `{"order":"a"}`).Status)
		require.True(t, o.runs(t, "1.1").Final())
		require.Equal(t, again, o.asks(t, 2, payTool, `{"order":"a"}`).Status, code)
		if again == jig.CallReserved {
			require.True(t, o.runs(t, "2.1").Final())
		}
		o.tells(t, protocol.Message{Text: "It is there now.", By: "ana"})
		require.Equal(t, jig.CallReserved, o.asks(t, 3, payTool, `{"order":"a"}`).Status, code)
	}
}

// A composition in which nothing was written may be asked for again; one that has written may not.
func TestDuplicate_CompositionsCountByWhatTheyWrote(t *testing.T) {
	t.Parallel()
	for first, again := range map[string]jig.CallStatus{ordersTool: jig.CallReserved, refundTool: jig.CallDuplicate} {
		o := newOffice(t)
		o.govern(t, "  - {name: all, when: \"tool.name != 'shop.purge'\", verdict: run}\n")
		body := fmt.Sprintf("kind: composition\nname: shop.both\nsteps:\n  - {id: a, tool: %s, input: {order: a, amount: 1}}\n"+
			"  - {id: b, tool: %s, input: {order: a, amount: 1}}\n", first, purgeTool)
		doc, err := composition.NewEngine().Load("both.yaml", []byte(body))
		require.NoError(t, err)
		require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, activities.DocumentSpec, doc.Contract.Name, doc.Contract.Version, []byte(body)))
		session, err := o.db.CreateSession(t.Context(), jig.Session{
			Tenant: o.tenant, ID: jig.NewSessionID(), Task: "help", Catalog: o.pinned(doc.Contract), Principal: jig.Principal{ID: "ana", Claimed: true},
			Agent: jig.Agent{Name: "clerk", Version: "0123456789abcdef", Model: "script/clerk", Tools: []string{"*"}},
		})
		require.NoError(t, err)
		o.session = session.ID
		require.Equal(t, jig.CallReserved, o.asks(t, 1, doc.Contract.Name, `{}`).Status)
		o.composes(t)
		o.denies(t, "1.1/b")
		require.Equal(t, jig.CallFailed, o.composes(t).Ran.State)
		require.Equal(t, jig.CallDuplicate, o.asks(t, 2, doc.Contract.Name, `{}`).Status)
		o.tells(t, protocol.Message{Text: "Now you may.", By: "ana"})
		require.Equal(t, again, o.asks(t, 3, doc.Contract.Name, `{}`).Status, first)
	}
}

// A pass that a message began does not end the session, whatever it asks for: the model reads first that its calls are duplicates.
func TestThink_AnswersAMessageThoughAllCallsAreDuplicates(t *testing.T) {
	t.Parallel()
	o, m := thinking(t, pays("a"))
	require.Len(t, o.thinks(t, 1, 100).Admitted.Calls, 1)
	require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"))
	o.tells(t, protocol.Message{Text: "Pay it again.", By: "ana"})
	thought := o.thinks(t, 2, 100)
	require.Nil(t, thought.Ended)
	require.True(t, thought.Continues)
	require.Equal(t, jig.CallDuplicate, o.call(t, "2.1").Status)
	m.answer = chat.Turn{Stop: chat.StopEnd, Text: "It is paid already."}
	require.Equal(t, jig.ReasonAnswered, o.thinks(t, 3, 100).Ended.Reason)

	o, _ = thinking(t, pays("a"))
	require.Len(t, o.thinks(t, 1, 100).Admitted.Calls, 1)
	require.Equal(t, jig.CallSucceeded, o.runs(t, "1.1"))
	require.Equal(t, jig.ReasonAllToolsDuplicate, o.thinks(t, 2, 100).Ended.Reason, "without a message")
}
