package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/tools"
)

// An extraction that left something unfilled has completed, and its session says that it did so in part, even if the result is large.
func TestSettleCall_TellsPartlyFailedExtractions(t *testing.T) {
	t.Parallel()
	large := `"values": "` + strings.Repeat("x", 2*jig.InlineBytes) + `"`
	for result, reason := range map[string]string{
		`{"counts": {"total": 2, "completed": 2, "failed": 0}}`:          jig.ReasonAnswered,
		`{"counts": {"total": 2, "completed": 1, "skipped": 1}}`:         jig.ReasonAnswered,
		`{"counts": {"total": 2, "failed": 1}}`:                          jig.ReasonPartial,
		`{"counts": {"total": 2, "canceled": 1}}`:                        jig.ReasonPartial,
		`{` + large + `, "counts": {"total": 2, "failed": 1}}`:           jig.ReasonPartial,
		`{"matched": 3, "completed": 3, "partial": 0}`:                   jig.ReasonAnswered,
		`{"matched": 3, "completed": 2, "partial": 1}`:                   jig.ReasonPartial,
		`{` + large + `, "matched": 3, "failed": 3}`:                     jig.ReasonPartial,
		`{"matched": 3, "completed": 2, "denied": 1}`:                    jig.ReasonPartial,
		`{"entity_id": "ent_1", "task": "words", "status": "completed"}`: jig.ReasonAnswered,
	} {
		t.Run(fmt.Sprintf("%.60s", result), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, reason, settledReason(t, activities.ChildExtraction, result))
		})
	}
	require.Equal(t, jig.ReasonAnswered, settledReason(t, "", `{"failed": 1}`), "it is no extraction: its members mean something else")
}

// settledReason returns the reason of a session that consists of a call with the given result.
func settledReason(t *testing.T, implementation, result string) string {
	t.Helper()
	contract := jig.Tool{
		Name: "entities.fill", Description: "Fills.", Permission: jig.PermissionDraft, Idempotent: true, Implementation: implementation,
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}
	o := newOffice(t, func(o *office) {
		o.extra = []tools.Tool{tools.Raw(contract, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult {
			return jig.ToolResult{Success: true, Summary: "filled", Data: json.RawMessage(result)}
		})}
	})
	c := o.calls(t, contract.Name, `{}`)
	require.Equal(t, jig.CallReserved, c.Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	settled, err := o.SettleCall(t.Context(), o.firstPass())
	require.NoError(t, err)
	require.Equal(t, jig.StatusCompleted, settled.Status)
	return settled.Reason
}
