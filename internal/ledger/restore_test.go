package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

func TestMarkRestored(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state         ledger.State
		unbegun       bool
		marked, asked bool
	}{
		"a write":             {writing(jig.CallReserved, 0), false, true, true},
		"a write that waits":  {writing(jig.CallWaiting, 0), false, true, true},
		"a write that began":  {writing(jig.CallExecuting, 1), false, true, true},
		"an unknown write":    {writing(jig.CallUnknown, 1), false, true, true},
		"idempotent":          {change(writing(jig.CallReserved, 0), idempotent), false, true, false},
		"idempotent, unknown": {change(writing(jig.CallUnknown, 1), idempotent), false, false, false},
		"composition":         {change(writing(jig.CallReserved, 0), idempotent), true, true, true},
		"a read":              {change(writing(jig.CallReserved, 0), reads), false, false, false},
		"marked before":       {change(writing(jig.CallReserved, 0), inDoubt), false, false, false},
	} {
		got := ledger.MarkRestored(row.state, row.unbegun)
		if !row.marked {
			require.Zero(t, got, name)
			continue
		}
		require.Equal(t, &approval.CallChange{Status: row.state.Call.Status, InDoubt: new(true)}, got.Call, name)
		require.Equal(t, row.asked, got.Raises == ledger.RestoredFence, name)
		require.Equal(t, []string{"event tool.in_doubt", "audit in_doubt"}, told(got), name)
		require.Equal(t, ledger.WhyRestored, got.Audit[0].Reason, name)
	}
}
