package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// twoPages returns a worker's answer for a document that denies writes at night and asks about reads.
func twoPages() []client.BacktestPage {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local) // the output is in the user's time zone
	denied := func(n int) protocol.BacktestResult {
		return protocol.BacktestResult{
			SessionID: "ses_1", Call: jig.CallID(1, n), Tool: "file.write", At: at, Recorded: jig.VerdictAsk, Now: jig.VerdictAsk, New: jig.VerdictDeny,
			Status: jig.CallSucceeded, Rules: []string{"shop/late", "shop/many"}, Reason: "at night",
		}
	}
	lost := protocol.BacktestResult{SessionID: "ses_2", Call: "9.1", Tool: "gone.tool", At: at, Recorded: jig.VerdictRun, Status: jig.CallFailed}
	asked := protocol.BacktestResult{
		SessionID: "ses_2", Call: "2.1", Tool: "file.read", At: at, Recorded: jig.VerdictRun, Now: jig.VerdictDeny, New: jig.VerdictRun, Status: jig.CallSucceeded,
	}
	return []client.BacktestPage{
		{
			Results: []protocol.BacktestResult{denied(1), denied(2), denied(3), lost}, Refused: 2, Unknown: 1, Next: "n",
			Tally: []client.BacktestCount{
				{Recorded: jig.VerdictAsk, Now: jig.VerdictAsk, New: jig.VerdictDeny, Count: 3},
				{Recorded: jig.VerdictRun, Now: jig.VerdictRun, New: jig.VerdictRun, Count: 40},
			},
		},
		{
			Results: []protocol.BacktestResult{denied(4), denied(5), denied(6), denied(7), asked},
			Tally: []client.BacktestCount{
				{Recorded: jig.VerdictAsk, Now: jig.VerdictAsk, New: jig.VerdictDeny, Count: 4},
				{Recorded: jig.VerdictRun, Now: jig.VerdictDeny, New: jig.VerdictRun, Count: 1},
			},
		},
	}
}

func TestPolicyBacktest_PrintsWhatChanges(t *testing.T) {
	t.Parallel()
	f := &fake{reviewFakes: reviewFakes{backtest: twoPages()}}
	got, now := jigCLIAt(t, f, "policy", "backtest", writeFile(t, "shop.yaml", shopPolicy), "--since", "7d")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, `48 calls           RUN  ASK  DENY
as recorded        41   7    0
policies in force  40   7    1
with the document  41   0    7

the document changes 8 calls, and leaves 40 as they are
  ask to deny  7
  deny to run  1

file.write: ask to deny, 7 calls (shop/late: at night)
  ses_1  1.1  2030-01-02 03:04:05  recorded: ask, succeeded
  ses_1  1.2  2030-01-02 03:04:05  recorded: ask, succeeded
  ses_1  1.3  2030-01-02 03:04:05  recorded: ask, succeeded
  ses_1  1.4  2030-01-02 03:04:05  recorded: ask, succeeded
  ses_1  1.5  2030-01-02 03:04:05  recorded: ask, succeeded
  … and 2 more

file.read: deny to run, 1 call (no rule applies any more)
  ses_2  2.1  2030-01-02 03:04:05  recorded: run, succeeded
`, got.stdout)
	require.Contains(t, got.stderr, "left out: 2 calls that were refused before policy")
	require.Contains(t, got.stderr, "left out: 1 call of tools that the worker does not have: gone.tool")
	require.Equal(t, shopPolicy, f.document)
	require.False(t, f.all)
	require.WithinDuration(t, now.Add(-7*24*time.Hour), f.since, 0)
}

func TestPolicyBacktest_PrintsJSON(t *testing.T) {
	t.Parallel()
	f := &fake{reviewFakes: reviewFakes{backtest: twoPages()}}
	got := jigCLI(t, f, nil, "policy", "backtest", writeFile(t, "shop.yaml", shopPolicy), "--all", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.True(t, f.all)
	var report backtestReport
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Equal(t, 48, report.Calls)
	require.Equal(t, 2, report.Refused)
	require.Equal(t, 1, report.Unknown)
	require.Equal(t, map[jig.Verdict]int{jig.VerdictRun: 40, jig.VerdictAsk: 7, jig.VerdictDeny: 1}, report.Now)
	require.Equal(t, map[jig.Verdict]int{jig.VerdictRun: 41, jig.VerdictDeny: 7}, report.New)
	require.Equal(t, []backtestMove{{jig.VerdictRun, jig.VerdictRun, 40}, {jig.VerdictAsk, jig.VerdictDeny, 7}, {jig.VerdictDeny, jig.VerdictRun, 1}}, report.Moves)
	require.Len(t, report.Groups, 2)
	require.Len(t, report.Groups[0].Examples, 5)
	require.Equal(t, 7, report.Groups[0].Count)
	require.Len(t, report.Results, 9)

	text := jigCLI(t, f, nil, "policy", "backtest", writeFile(t, "shop.yaml", shopPolicy), "--all").stdout
	require.Contains(t, text, "\nall calls\n  ses_1  1.1")
	require.Regexp(t, `ses_2  9\.1 .* gone\.tool +unknown tool +recorded: run, failed`, text)
}

func TestPolicyBacktest_NoCalls(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, &fake{}, nil, "policy", "backtest", writeFile(t, "shop.yaml", shopPolicy))
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "0 calls")
	require.Contains(t, got.stdout, "the document changes nothing")
}

func TestPolicyBacktest_ReadsStandardInput(t *testing.T) {
	t.Parallel()
	f := &fake{}
	got := jigCLI(t, f, func(a *app) { a.stdin = strings.NewReader(shopPolicy) }, "policy", "backtest", "-")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, shopPolicy, f.document, "standard input is read only once")
}

func TestPolicyBacktest_RefusesMistakes(t *testing.T) {
	t.Parallel()
	good := writeFile(t, "shop.yaml", shopPolicy)
	for name, args := range map[string][]string{
		"no file": {}, "another kind": {writeFile(t, "spec.yaml", specDocument)}, "an odd time": {good, "--since", "ever"}, "none": {good + ".none"},
	} {
		got := jigCLI(t, &fake{}, nil, append([]string{"policy", "backtest"}, args...)...)
		require.Equal(t, exitUsage, got.code, name)
		require.Empty(t, got.stdout, name)
	}
	got := jigCLI(t, &fake{reviewFakes: reviewFakes{backtest: twoPages(), failing: jig.Errorf(jig.CodeUnavailable, "down")}}, nil, "policy", "backtest", good)
	require.Equal(t, exitFailed, got.code)
	require.Empty(t, got.stdout, "no partial report is printed")
}
