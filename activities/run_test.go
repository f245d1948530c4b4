package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

func TestVerdictOnOutcome(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	idempotent := jig.Tool{Idempotent: true, MaxAttempts: 3}
	effect := jig.Tool{MaxAttempts: 3}
	fail := func(code jig.Code) jig.ToolResult { return jig.Failure(&jig.Error{Code: code, Message: "x"}) }
	notExecuted := jig.Failure(&jig.Error{Code: jig.CodeUnavailable, Message: "x", NotExecuted: true})
	for name, row := range map[string]struct {
		ctx     context.Context //nolint:containedctx // a test's row
		tool    jig.Tool
		outcome jig.ToolResult
		fence   int
		want    jig.CallStatus
	}{
		"success":                                     {t.Context(), effect, jig.ToolResult{Success: true}, 1, jig.CallSucceeded},
		"idempotent time-out is tried again":          {t.Context(), idempotent, fail(jig.CodeTimeout), 1, jig.CallReserved},
		"the last attempt fails":                      {t.Context(), idempotent, fail(jig.CodeTimeout), 3, jig.CallFailed},
		"a wrong input is not tried again":            {t.Context(), idempotent, fail(jig.CodeInvalidInput), 1, jig.CallFailed},
		"a tool's own bug is not tried again":         {t.Context(), idempotent, fail(jig.CodeInternal), 1, jig.CallFailed},
		"an effect's time-out is unknown":             {t.Context(), effect, fail(jig.CodeTimeout), 1, jig.CallUnknown},
		"an effect's broken connection is unknown":    {t.Context(), effect, fail(jig.CodeUnavailable), 1, jig.CallUnknown},
		"an effect that says it did not happen":       {t.Context(), effect, notExecuted, 1, jig.CallReserved},
		"an effect that was rate-limited":             {t.Context(), effect, fail(jig.CodeRateLimited), 1, jig.CallReserved},
		"an effect that says it failed":               {t.Context(), effect, fail(jig.CodeConflict), 1, jig.CallFailed},
		"a cancelled effect is unknown":               {canceled, effect, fail(jig.CodeCanceled), 1, jig.CallUnknown},
		"a cancelled effect that fails is unknown":    {canceled, effect, fail(jig.CodeInternal), 1, jig.CallUnknown},
		"a cancelled idempotent call is canceled":     {canceled, idempotent, fail(jig.CodeCanceled), 1, jig.CallCanceled},
		"a cancelled effect that succeeded, succeeds": {canceled, effect, jig.ToolResult{Success: true}, 1, jig.CallSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, activities.VerdictOn(row.ctx, row.tool, row.outcome, row.fence))
		})
	}
}

func TestCutDownKeepsTheWhole(t *testing.T) {
	t.Parallel()
	big, err := json.Marshal(strings.Repeat("é", 100_000))
	require.NoError(t, err)
	c := jig.Completion{CallID: "1.1", Result: jig.ToolResult{Success: true, Data: big, Summary: "much"}}
	require.NoError(t, activities.CutDown(&c))
	require.LessOrEqual(t, len(c.Result.Data), jig.InlineBytes)
	var whole jig.ToolResult
	require.NoError(t, json.Unmarshal(c.Whole, &whole))
	require.JSONEq(t, string(big), string(whole.Data))

	filled, err := json.Marshal(map[string]any{"values": strings.Repeat("x", 100_000), "counts": map[string]int{"total": 3, "failed": 1}})
	require.NoError(t, err)
	c = jig.Completion{CallID: "1.2", Result: jig.ToolResult{Success: true, Data: filled}}
	require.NoError(t, activities.CutDown(&c))
	var left struct {
		Counts map[string]int `json:"counts"`
	}
	require.NoError(t, json.Unmarshal(c.Result.Data, &left))
	require.Equal(t, map[string]int{"total": 3, "failed": 1}, left.Counts, "what an extraction of many counts by")

	small := jig.Completion{Result: jig.ToolResult{Success: true, Data: json.RawMessage(`{}`)}}
	require.NoError(t, activities.CutDown(&small))
	require.Nil(t, small.Whole)
}
