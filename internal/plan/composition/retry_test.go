package composition_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// trying retries a tool after any failure. The rendered input depends on the time.
const trying = `kind: composition
name: test.trying
input_schema: {type: object, properties: {tool: {type: string}}}
steps:
  - {id: pay, tool: TOOL, input: {at: "${string(now)}"}, retry: {max_attempts: 3, backoff: 10s, when: "true"}}
`

// failsTwice fails twice with an error and then succeeds.
func failsTwice(problem jig.Error) func(*row) (jig.ToolResult, bool) {
	count := 0
	return func(*row) (jig.ToolResult, bool) {
		if count++; count > 2 {
			return succeed(`{}`), true
		}
		return jig.Failure(&problem), true
	}
}

func tryOut(t *testing.T, tool string, problem jig.Error) *world {
	t.Helper()
	w := newWorld(t, strings.Replace(trying, "TOOL", tool, 1), `{}`, failsTwice(problem))
	w.run(t)
	return w
}

func TestRetry_RepeatsTheCallWithTheFirstInput(t *testing.T) {
	t.Parallel()
	w := tryOut(t, "read.it", jig.Error{Code: jig.CodeUnavailable, Message: "down"})
	require.True(t, w.result.Success)
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
