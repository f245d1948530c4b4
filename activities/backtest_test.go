package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

func recordedCall(id, tool string, verdict jig.Verdict, write bool) ledger.RecordedCall {
	return ledger.RecordedCall{Call: jig.Call{Tenant: "acme", SessionID: "ses_1", ID: id, Tool: tool, Verdict: verdict, Write: write}}
}

func TestBacktest_ComparesRecordedCalls(t *testing.T) {
	t.Parallel()
	r := &reviewed{calls: []ledger.RecordedCall{
		recordedCall("1.1", "file.read", jig.VerdictRun, false),
		recordedCall("1.2", "file.read", jig.VerdictRun, false),
		recordedCall("1.3", "file.write", jig.VerdictAsk, true),
		recordedCall("1.4", "file.read", jig.VerdictRefuse, false),
		recordedCall("1.5", "gone.tool", jig.VerdictRun, false),
	}}
	since := time.Unix(1000, 0)
	request := protocol.BacktestRequest{Tenant: "acme", Document: "the document", Since: since, Cursor: "c"}
	page, err := r.activities().Backtest(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, since, r.since)
	require.Equal(t, "c", r.cursor)
	require.Equal(t, 500, r.limit)
	require.Len(t, r.tested, 4, "what never reached policy is left out")
	require.Equal(t, "file.read", r.tested[0].Tool.Name)
	require.Nil(t, r.tested[3].Tool)
	changed := protocol.BacktestResult{
		Call: "1.3", Tool: "file.write", Recorded: jig.VerdictAsk, Now: jig.VerdictRun, New: jig.VerdictDeny, Rules: []string{"a/1", "a/2", "a/3", "a/4", "a/5"},
	}
	require.Equal(t, protocol.BacktestPage{
		Results: []protocol.BacktestResult{changed, {Call: "1.5", Tool: "gone.tool", Recorded: jig.VerdictRun}},
		Tally: []protocol.BacktestCount{
			{Recorded: jig.VerdictRun, Now: jig.VerdictRun, New: jig.VerdictRun, Count: 2},
			{Recorded: jig.VerdictAsk, Now: jig.VerdictRun, New: jig.VerdictDeny, Count: 1},
		},
		Refused: 1, Unknown: 1, Next: "next",
	}, page)

	request.All = true
	page, err = r.activities().Backtest(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, page.Results, 4)
}

func TestBacktest_RefusesABadDocument(t *testing.T) {
	t.Parallel()
	_, err := (&reviewed{}).activities().Backtest(t.Context(), protocol.BacktestRequest{Tenant: "acme", Document: "x"})
	require.Equal(t, jig.CodeInvalidInput, failed(t, err))
}
