package composition_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

func TestCompile_RefusesInvalidSpecs(t *testing.T) {
	t.Parallel()
	deep := spec.Step{ID: "x", Tool: "x.a"}
	for i := range 40 {
		deep = spec.Step{ID: fmt.Sprintf("b%d", i), Steps: []spec.Step{deep}}
	}
	for name, c := range map[string]struct {
		steps   []spec.Step
		message string
	}{
		"no action":      {[]spec.Step{{ID: "a"}}, "exactly one action"},
		"two actions":    {[]spec.Step{{ID: "a", Tool: "x.a", Wait: "1s"}}, "exactly one action"},
		"no id":          {[]spec.Step{{Tool: "x.a"}}, "needs an id"},
		"an id twice":    {[]spec.Step{{ID: "a", Tool: "x.a"}, {ID: "a", Tool: "x.a"}}, `a step "a" already`},
		"no tool name":   {[]spec.Step{{ID: "a", Tool: "nonsense"}}, "not a tool name"},
		"a bad if":       {[]spec.Step{{ID: "a", If: "1 +", Tool: "x.a"}}, "steps[0].if"},
		"a bad template": {[]spec.Step{{ID: "a", Tool: "x.a", Input: json.RawMessage(`{"n":"${nothing}"}`)}}, "steps[0].input.n"},
		"a retried wait": {[]spec.Step{{Wait: "1s", Retry: &spec.Retry{MaxAttempts: 2}}}, "only calls can have retry"},
		"an empty case":  {[]spec.Step{{Switch: []spec.Case{{Steps: []spec.Step{{Wait: "1s"}}}}}}, "either when or else"},
		"a bad mode":     {[]spec.Step{{ID: "a", Prompt: &spec.Prompt{Mode: "sing"}}}, "not a prompt mode"},
		"a list to set":  {[]spec.Step{{Set: json.RawMessage(`[1]`)}}, "a mapping"},
		"too deep":       {[]spec.Step{deep}, "nest deeper"},
		"too many":       {waits(1_001), "more than 1000 steps"},
	} {
		_, err := composition.Compile(spec.Execution{Kind: spec.KindComposition, Name: "test.bad", Steps: c.steps})
		require.ErrorContains(t, err, c.message, name)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), name)
	}
}

func waits(n int) []spec.Step {
	steps := make([]spec.Step, n)
	for i := range steps {
		steps[i] = spec.Step{Wait: "1s"}
	}
	return steps
}

// FuzzCompile compiles arbitrary documents. A document that spec accepts either compiles or is refused, and a plan that compiles can begin.
func FuzzCompile(f *testing.F) {
	f.Add(everything)
	for _, one := range []string{
		`{"kind":"composition","name":"x.y","steps":[{"wait":"1s"}]}`,
		"kind: prompt\nname: x.y\nmodel: openai/x\nprompt: ${input.a}\n",
		"kind: task\nname: x.y\ntask: t\nentity: ${input.id}\n",
		"kind: composition\nname: x.y\nsteps:\n  - {id: a, for_each: '[1]', tool: x.a, on_error: {catch: [{set: {a: '${error.code}'}}]}}\n",
	} {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, document string) {
		x, err := spec.LoadExecution("fuzz.yaml", []byte(document))
		if err != nil {
			return
		}
		plan, err := composition.Compile(x)
		if err != nil {
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
			require.NotContains(t, err.Error(), "%!")
			return
		}
		at := composition.Situation{Now: start, Input: json.RawMessage(`{"n":1,"list":["x"]}`)}
		state := json.RawMessage(nil)
		for range 5 {
			move, err := plan.Advance(t.Context(), state, always{true}, at)
			if err != nil {
				require.Equal(t, jig.CodeInternal, jig.CodeOf(err), "%v", err)
				return
			}
			state, at.Now = move.State, move.Wake
		}
	})
}

func TestCompile_RefusesThinTools(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("a.yaml", []byte("{kind: thin_tool, name: review.start, creates: {type: review}}"))
	require.NoError(t, err)
	_, err = composition.Compile(x)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.ErrorContains(t, err, "review.start is a thin tool")
	require.Equal(t, "kind", jig.AsError(err).Field)
	require.NotEmpty(t, jig.AsError(err).Hint)
}
