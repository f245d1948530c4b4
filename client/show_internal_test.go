package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestShow_ComparesTheCall(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	same := protocol.Comparison{Status: protocol.ComparisonSame, At: now}
	for name, row := range map[string]struct {
		page   protocol.ShowPage
		worker protocol.Comparison
		failed error
		want   *protocol.Comparison
		asked  int
	}{
		"by a worker": {protocol.ShowPage{Pending: jig.Pending{Kind: jig.PendingApproval}}, same, nil, &same, 1},
		"as stored":   {protocol.ShowPage{Pending: jig.Pending{Kind: jig.PendingApproval}, Comparison: &same}, protocol.Comparison{}, nil, &same, 0},
		"a question":  {protocol.ShowPage{Pending: jig.Pending{Kind: jig.PendingQuestion}}, same, nil, nil, 0},
		"no worker": {
			protocol.ShowPage{Pending: jig.Pending{Kind: jig.PendingApproval}},
			same, &jig.Error{Code: jig.CodeUnavailable, Reason: ReasonNoWorker},
			&protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "no worker answered in time"}, 1,
		},
		"a worker that fails": {
			protocol.ShowPage{Pending: jig.Pending{Kind: jig.PendingApproval}},
			same, jig.Errorf(jig.CodeInternal, "it is broken"),
			&protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "it is broken"}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := newTestClient(&fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
				if name == string(protocol.ReadCall) {
					page := row.page
					page.Input, page.Size = []byte(`{}`), 2
					return page, nil
				}
				asked++
				require.Equal(t, protocol.CompareRequest{Tenant: "default", SessionID: "ses_1", Call: "1.1"}, request)
				return row.worker, row.failed
			}})
			shown, err := c.Show(t.Context(), "", "ses_1", "1.1")
			require.NoError(t, err)
			require.Equal(t, row.want, shown.Comparison)
			require.Equal(t, row.asked, asked)
		})
	}
}
