package client

import (
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestLocate_FindsSessions(t *testing.T) {
	t.Parallel()
	f := &fake{activity: func(_ sdk.StartActivityOptions, activity string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadApprovals), activity)
		require.Equal(t, protocol.ApprovalsRequest{Tenant: "acme", SessionID: "acme.order-7"}, request)
		return protocol.ApprovalList{Approvals: []jig.Pending{
			{SessionID: "acme.order-7", Call: "2.1", Digest: "own"},
			{SessionID: "ses_child", Call: "1.1", Via: "2.2", Digest: "below"},
			{SessionID: "ses_a", Call: "1.1", Via: "2.3"},
			{SessionID: "ses_b", Call: "4.1", Via: "2.3"},
		}}, nil
	}}
	c := newTestClient(f)
	found, err := c.Locate(t.Context(), "acme", "order-7", []string{"2.1", "2.2", "9.9"})
	require.NoError(t, err)
	require.Equal(t, []protocol.WaitingCall{
		{SessionID: "acme.order-7", Call: "2.1", Digest: "own"},
		{SessionID: "ses_child", Call: "1.1", Via: "2.2", Digest: "below"},
		{SessionID: "acme.order-7", Call: "9.9"},
	}, found)
	_, err = c.Locate(t.Context(), "acme", "order-7", []string{"2.3"})
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))
	require.Contains(t, jig.AsError(err).Hint, "ses_a 1.1, ses_b 4.1")
}
