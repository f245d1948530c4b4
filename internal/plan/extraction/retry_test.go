package extraction_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
)

func tryOut(t *testing.T, tool string, problem jig.Error) *world {
	t.Helper()
	kind := kindOf(entity.Task{ID: "pay", Kind: entity.TaskTool, Use: tool, Attempts: 3, Input: json.RawMessage(`{"at":"${string(now)}"}`), Value: "result"})
	count := 0
	w := worldOf(compile(t, kind), extraction.Input{}, func(*row) (jig.ToolResult, bool) {
		if count++; count > 2 {
			return jig.ToolResult{Success: true, Data: json.RawMessage(`{}`)}, true
		}
		return jig.Failure(&problem), true
	})
	w.run(t)
	return w
}

func TestRetry_RepeatsTheCallWithTheFirstInput(t *testing.T) {
	t.Parallel()
	w := tryOut(t, "read.it", jig.Error{Code: jig.CodeUnavailable, Message: "down"})
	require.Equal(t, []string{"pay", "pay~2", "pay~3"}, w.asked)
	require.Equal(t, "pay", w.rows["pay~2"].retryOf)
	require.Equal(t, "pay~2", w.rows["pay~3"].retryOf)
	require.Equal(t, string(w.rows["pay"].input), string(w.rows["pay~3"].input))
}

func TestRetry_OfAWriteOnlyWhenItWasNotExecuted(t *testing.T) {
	t.Parallel()
	for _, code := range jig.Codes() {
		w := tryOut(t, "write.it", jig.Error{Code: code, Message: "no"})
		require.Equal(t, []string{"pay"}, w.asked, "%s: it may have had an effect", code)
	}
	w := tryOut(t, "write.it", jig.Error{Code: jig.CodeUnavailable, Message: "refused", NotExecuted: true})
	require.Equal(t, []string{"pay", "pay~2", "pay~3"}, w.asked)
}
