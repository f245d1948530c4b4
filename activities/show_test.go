package activities_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
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
