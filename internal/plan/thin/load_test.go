package thin_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

func TestLoad_RefusesBadDocuments(t *testing.T) {
	t.Parallel()
	engine := newWorld().engine(t)
	x, err := spec.LoadExecution("tool.yaml", []byte(document))
	require.NoError(t, err)
	tool, err := engine.Load("tool.yaml", []byte(document))
	require.NoError(t, err)
	require.NotNil(t, tool.Run)
	require.Equal(t, []string{x.Version, x.Tool.Meaning}, []string{tool.Contract.Version, tool.Contract.Meaning}, "those of the document")
	require.Equal(t, []any{30 * time.Second, 10}, []any{tool.Contract.Timeout, tool.Contract.MaxAttempts})

	var problems spec.Problems
	for _, body := range []string{"kind: thin_tool\nname: a.b\nentities: 7\n", "kind: thin_tool\nname: a.b\nstarts: {}\n"} {
		_, err = engine.Load("x.yaml", []byte(body))
		require.ErrorAs(t, err, &problems, body)
	}
}

// slow is a world whose reads last until the attempt ends, and broken one whose reads panic.
type (
	slow   struct{ *world }
	broken struct{ *world }
)

func (slow) HasBundle(ctx context.Context, _, _ string) (bool, error) {
	<-ctx.Done()
	return false, context.Cause(ctx)
}

func (broken) HasBundle(context.Context, string, string) (bool, error) { panic("secret") }

// A thin tool runs like a tool in code: its time-out, its panics, its input and its output are handled in the same place.
func TestThinTool_RunsLikeEveryTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		registry, err := tools.NewRegistry()
		require.NoError(t, err)
		run := func(records thin.Records, body, input string) jig.ToolResult {
			tool, err := thin.NewEngine(thin.Options{Records: records, Starter: w, Tools: registry}).Load("tool.yaml", []byte(body))
			require.NoError(t, err)
			return tool.Run(t.Context(), []byte(input), invocation(1))
		}
		const input = `{"engagement_id":"ent_acme","module":"m"}`
		began := time.Now()
		result := run(slow{w}, document, input)
		require.Equal(t, []any{jig.CodeTimeout, true}, []any{result.Error.Code, result.Error.NotExecuted})
		require.Equal(t, 30*time.Second, time.Since(began), "in the bubble's time")
		result = run(broken{w}, document, input)
		require.Equal(t, []any{jig.CodeInternal, "panic", false}, []any{result.Error.Code, result.Error.Reason, result.Error.NotExecuted})
		require.NotContains(t, result.Error.Message, "secret")
		result = run(w, document, `{"engagement_id":"ent_acme","module":7}`)
		require.Equal(t, []any{jig.CodeInvalidInput, "/module", true}, []any{result.Error.Code, result.Error.Field, result.Error.NotExecuted})
		require.Empty(t, w.created)

		narrow := document + "output_schema: {type: object, properties: {created: {type: string}}}\n"
		result = run(w, narrow, input)
		require.True(t, result.Success, "the entity was created: %+v", result.Error)
		require.Len(t, result.Warnings, 1)
		require.Contains(t, result.Warnings[0], "its output schema does not allow")
		require.Len(t, w.created, 1)
	})
}
