package tooltest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/tooltest"
)

func TestKit(t *testing.T) {
	t.Parallel()
	fake, captured := tooltest.Fake(jig.Tool{Name: "test.fake"}, jig.ToolResult{Success: true})
	chatty := tools.New(jig.Tool{Name: "test.chatty", Description: "Talks."},
		func(_ context.Context, inv jig.Invocation, _ struct{}) (struct{}, error) {
			inv.Progress("half way")
			return struct{}{}, jig.Errorf(jig.CodeConflict, "stopped")
		})
	kit := tooltest.New(t, fake, chatty)
	kit.Succeed("test.fake", map[string]int{"n": 1}, nil)
	require.JSONEq(t, `{"n":1}`, string(captured.Calls()[0].Input))
	require.Equal(t, "ses_test", captured.Calls()[0].Invocation.SessionID)
	require.Equal(t, jig.CodeConflict, kit.Fail("test.chatty", []byte(`{}`)).Code)
	require.Equal(t, []string{"half way"}, kit.Progress())
}
