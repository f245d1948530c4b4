package activities_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

// An approval shows the latest decisions about the tool with the differences of the inputs, and what a token would sign.
func TestShow_EarlierDecisionsAndClaims(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	first := o.asks(t, 1, refundTool, small)
	show := func(call string) protocol.ShowPage {
		t.Helper()
		page, err := o.Show(t.Context(), protocol.ShowRequest{Tenant: o.tenant, SessionID: o.session, Call: call})
		require.NoError(t, err)
		return page
	}
	require.Empty(t, show(first.ID).Similar)
	o.hear(t, "approve", jig.Decision{Call: first.ID, By: "fay"})
	denied := o.asks(t, 2, refundTool, second)
	o.hear(t, "deny", jig.Decision{Call: denied.ID, By: "flo", Reason: "no"})
	waiting := o.asks(t, 3, refundTool, `{"order":"b","amount":12}`)
	page := show(waiting.ID)
	require.Len(t, page.Similar, 2)
	require.Equal(t, []any{denied.ID, jig.AnswerDeny, "flo", o.session}, []any{page.Similar[0].Call, page.Similar[0].Answer, page.Similar[0].By, page.Similar[0].SessionID})
	require.Equal(t, []any{first.ID, jig.AnswerApprove, "fay"}, []any{page.Similar[1].Call, page.Similar[1].Answer, page.Similar[1].By})
	require.Contains(t, page.Similar[0].Difference, "-  \"amount\": 1,\n+  \"amount\": 12,\n   \"order\": \"b\"")
	require.NotContains(t, page.Similar[0].Difference, `-  "order"`)

	for i, answer := range []jig.Answer{jig.AnswerApprove, jig.AnswerDeny} {
		claim, err := token.ForDecision(o.tenant, o.session, jig.Decision{Call: waiting.ID, By: "fay", Answer: answer}, waiting.Digest)
		require.NoError(t, err)
		signed, err := token.Sign(claim, o.signers["fay"], o.now(), 0)
		require.NoError(t, err)
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(signed, ".")[1])
		require.NoError(t, err)
		var members map[string]any
		require.NoError(t, json.Unmarshal(payload, &members))
		for _, own := range []string{"jti", "iat", "nbf", "exp"} {
			require.Contains(t, members, own)
			delete(members, own)
		}
		want, err := json.Marshal(members)
		require.NoError(t, err)
		got, err := json.Marshal(protocol.ShownCall{ToSign: page.ToSign}.By("fay").ToSign[i])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	}
}

// Decided calls are shown with their decisions, their changes and their outcome. Calls that never waited for anybody are not shown.
func TestShow_DecidedCalls(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	show := func(call string) (protocol.ShowPage, error) {
		return o.Show(t.Context(), protocol.ShowRequest{Tenant: o.tenant, SessionID: o.session, Call: call})
	}
	denied := o.asks(t, 1, refundTool, small)
	o.hear(t, "deny", jig.Decision{Call: denied.ID, By: "flo", Reason: "not yet"})
	page, err := show(denied.ID)
	require.NoError(t, err)
	d := page.Pending.Decided
	require.Equal(t, []any{"denied", "flo", "not yet", jig.CallDenied, jig.CodeDenied}, []any{d.Outcome, d.By, d.Reason, d.Status, d.Error.Code})
	require.JSONEq(t, small, string(page.Input))
	require.Equal(t, []any{jig.PendingApproval, refundTool}, []any{page.Pending.Kind, page.Pending.Tool})
	require.Len(t, page.Decisions, 1)
	require.Empty(t, page.ToSign)
	rest, err := o.Show(t.Context(), protocol.ShowRequest{Tenant: o.tenant, SessionID: o.session, Call: denied.ID, Offset: len(page.Input)})
	require.NoError(t, err)
	require.Empty(t, rest.Input)

	edited := o.asks(t, 2, refundTool, second)
	o.hear(t, "approve", jig.Decision{Call: edited.ID, By: "fay", Input: json.RawMessage(`{"order":"b","amount":2}`)})
	page, err = show(edited.ID)
	require.NoError(t, err)
	require.Nil(t, page.Pending.Decided, "the changed call waits for somebody else")
	require.True(t, page.Decisions[0].Edited)
	require.True(t, page.Decisions[0].InPart)
	require.Equal(t, jig.ChangedBy+"fay (claimed): amount: 1 → 2", page.Decisions[0].Reason)

	list, err := o.ListDecisions(t.Context(), protocol.DecisionsRequest{Tenant: o.tenant, Filter: protocol.AuditFilter{By: "flo"}})
	require.NoError(t, err)
	require.Len(t, list.Approvals, 1)
	require.Equal(t, denied.ID, list.Approvals[0].Call)
	_, err = show("9.9")
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(activities.ErrorFrom(err)))
}
