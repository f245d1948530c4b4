package starter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestUsage_PrintsRowsAndBudgets(t *testing.T) {
	t.Parallel()
	f := &fake{reviewFakes: reviewFakes{usage: protocol.Usage{
		Currency: "EUR",
		Rows: []protocol.UsageRow{
			{Model: "anthropic/large", Requests: 2, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 900, CacheCreateTokens: 30, Cost: "0.0015"},
			{Calls: 3, Cost: "0.00"},
		},
		Budgets: []protocol.BudgetState{
			{Budget: "spending", Limit: "per-day", Level: "tenant", Day: "2026-03-31", Cost: "5.00", UsedCost: "1.25", ReservedCost: "0.50", ReservedTokens: 9},
			{Budget: "spending", Limit: "one", Level: "agent", Scope: "researcher", Tokens: 1000, UsedTokens: 150, UsedCost: "0.00", ReservedCost: "0.00"},
		},
	}}}
	got, now := jigCLIAt(t, f, "usage", "--since", "2d", "--agent", "researcher", "--session", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, `MODEL            REQUESTS  CALLS  INPUT  CACHE READ  CACHE WRITE  OUTPUT  COST EUR
anthropic/large  2         0      100    900         30           20      0.0015
–                0         3      0      0           0            0       0.00

BUDGET    LIMIT    OF                DAY         TOKENS       COST EUR
spending  per-day  tenant            2026-03-31  –            1.25 of 5.00 (0.50 reserved)
spending  one      agent researcher  –           150 of 1000  –
`, got.stdout)
	require.WithinDuration(t, now.Add(-48*time.Hour), f.asked.Since, 0)
	require.Equal(t, []string{"model"}, f.asked.By)
	require.Equal(t, []string{"researcher", "ses_1"}, []string{f.asked.Agent, f.asked.SessionID})

	got = jigCLI(t, f, nil, "usage", "--by", "day,tool", "--output", "json")
	require.Contains(t, got.stdout, `"cache_read_tokens":900`)
	require.Contains(t, got.stdout, `"cost":0.0015`)
	require.Equal(t, []string{"day", "tool"}, f.asked.By)

	require.Equal(t, exitUsage, jigCLI(t, f, nil, "usage", "--by", "month").code)
	require.Equal(t, exitUsage, jigCLI(t, f, nil, "usage", "--since", "yesterday").code)
	f.failing = jig.Errorf(jig.CodeUnavailable, "down")
	require.Equal(t, exitFailed, jigCLI(t, f, nil, "usage").code)
}
