package client

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// waiting returns a fake worker with n waiting approvals, at most 3 per page. A cursor is the index at which a page ended.
func waiting(t *testing.T, n int, filter jig.PendingFilter) *fake {
	t.Helper()
	return &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadPending), name)
		r := as[protocol.PendingRequest](t, request)
		require.Equal(t, "acme", r.Tenant)
		require.Equal(t, filter, r.Filter)
		from := 0
		if r.Cursor != "" {
			var err error
			from, err = strconv.Atoi(r.Cursor)
			require.NoError(t, err)
		}
		size := 3
		if r.Limit > 0 {
			size = min(size, r.Limit)
		}
		to := min(n, from+size)
		page := protocol.ApprovalList{}
		for i := from; i < to; i++ {
			page.Approvals = append(page.Approvals, jig.Pending{Call: jig.CallID(1, i+1)})
		}
		if to < n {
			page.Next = strconv.Itoa(to)
		}
		return page, nil
	}}
}

func TestPending_ReadsAllPages(t *testing.T) {
	t.Parallel()
	filter := jig.PendingFilter{Tool: "file.*"}
	for name, row := range map[string]struct {
		cursor string
		limit  int
		first  string
		count  int
		next   string
	}{
		"all":           {"", 0, "1.1", 8, ""},
		"some":          {"", 4, "1.1", 4, "4"},
		"from a cursor": {"4", 2, "1.5", 2, "6"},
		"the rest":      {"6", 5, "1.7", 2, ""},
	} {
		page, err := newTestClient(waiting(t, 8, filter)).Pending(t.Context(), "acme", filter, row.cursor, row.limit)
		require.NoError(t, err, name)
		require.Len(t, page.Approvals, row.count, name)
		require.Equal(t, row.first, page.Approvals[0].Call, name)
		require.Equal(t, row.next, page.Next, name)
	}
	page, err := newTestClient(waiting(t, 0, filter)).Pending(t.Context(), "acme", filter, "", 0)
	require.NoError(t, err)
	require.NotNil(t, page.Approvals)
	_, err = newTestClient(&fake{activity: noWorkerAnswers}).Pending(t.Context(), "acme", filter, "", 0)
	require.True(t, isNoWorker(err))
}

func TestStatistics_AreAskedFor(t *testing.T) {
	t.Parallel()
	since := time.Unix(1000, 0).UTC()
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadStatistics), name)
		require.Equal(t, protocol.StatisticsRequest{Tenant: "acme", Since: since}, request)
		return protocol.ApprovalStats{Open: protocol.OpenStats{Count: 3}}, nil
	}}
	got, err := newTestClient(f).Statistics(t.Context(), "acme", since)
	require.NoError(t, err)
	require.Equal(t, 3, got.Open.Count)
}

func TestBacktest_ReadsAllPages(t *testing.T) {
	t.Parallel()
	since := time.Unix(1000, 0).UTC()
	f := &fake{activity: func(_ sdk.StartActivityOptions, name string, request any) (any, error) {
		require.Equal(t, string(protocol.ReadBacktest), name)
		r := as[protocol.BacktestRequest](t, request)
		require.Equal(t, protocol.BacktestRequest{Tenant: "acme", Document: "kind: policy", Since: since, All: true, Cursor: r.Cursor}, r)
		if r.Cursor == "" {
			return protocol.BacktestPage{Refused: 1, Next: "n"}, nil
		}
		return protocol.BacktestPage{Refused: 2}, nil
	}}
	var refused []int
	err := newTestClient(f).Backtest(t.Context(), "acme", []byte("kind: policy"), since, true, func(p BacktestPage) error {
		refused = append(refused, p.Refused)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, refused)
	enough := errors.New("enough")
	require.ErrorIs(t, newTestClient(f).Backtest(t.Context(), "acme", []byte("kind: policy"), since, true, func(BacktestPage) error { return enough }), enough)
}
