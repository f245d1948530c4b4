package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/policy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/store/storetest"
	"github.com/jig-run/jig/workflows"
)

// ruled compiles a policy document.
func ruled(t *testing.T, document string) policy.Set {
	t.Helper()
	read, err := spec.LoadPolicy("race.yaml", []byte(document))
	require.NoError(t, err)
	rules, err := policy.Compile(read, "v1")
	require.NoError(t, err)
	return policy.NewSet(rules)
}

func asks(tool string, input string) jig.ToolCall {
	return jig.ToolCall{Name: tool, Input: []byte(input)}
}

func approves(call, by string) activities.Decisions {
	return activities.Decisions{Decision: jig.Decision{Call: call, By: by}}
}

func TestWaitSmoke(t *testing.T) {
	t.Parallel()
	a := newArena(t, storetest.New(t))
	p := a.play(t, ruled(t, "kind: policy\nname: race\ndescription: d\nrules:\n  - {name: plain, when: tool.name == 'race.write', verdict: ask, expires: 1h}\n"))
	p.turns = [][]jig.ToolCall{{asks(raceWrite, `{"item":"a","amount":1}`)}}
	l := p.signal(time.Minute, workflows.SignalApprove, approves("1.1", "fay"))
	p.run(workflows.PassWorkflow, p.passInput())
	require.NoError(t, p.ended)
	require.True(t, l.heard)
	require.Len(t, p.effects, 1)
	p.check()
}
