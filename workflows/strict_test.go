package workflows_test

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/workflows"
)

// registered holds what a worker registers.
type registered struct {
	worker.Registry

	activities, workflows map[string]any
}

func (r registered) RegisterActivityWithOptions(fn any, o activity.RegisterOptions) {
	r.activities[o.Name] = fn
}

func (r registered) RegisterWorkflowWithOptions(fn any, o workflow.RegisterOptions) {
	r.workflows[o.Name] = fn
}
func (registered) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}

// Whatever anybody sends to a worker without jig's own client is refused if two readers could read it differently, before anything happens.
func TestInputs_AreReadStrictly(t *testing.T) {
	t.Parallel()
	all := registered{activities: map[string]any{}, workflows: map[string]any{}}
	workflows.Register(all, activities.New(activities.Deps{Store: new(store.DB)}), nil, "")
	ambiguous := map[string]string{
		`{"tenant":"acme","tenant":"zeta"}`: "appears twice", `{"tenant":"acme","Tenant":"zeta"}`: `unknown field "Tenant"`,
		`{"tenant":"acme","x":"\ud800"}`: "half a surrogate pair",
	}
	read := 0
	for name, fn := range all.activities {
		if !strings.HasPrefix(name, "jig.") || name == protocol.Sweep { // the others are for jig's own workflows, and a sweep takes nothing
			continue
		}
		read++
		for text, why := range ambiguous {
			var suite testsuite.WorkflowTestSuite
			suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
			_, err := env.ExecuteActivity(name, json.RawMessage(text), "")
			require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(activities.ErrorFrom(err)), "%s %s: %v", name, text, err)
			require.ErrorContains(t, err, why, name)
		}
	}
	require.Greater(t, read, 25)
	require.Len(t, all.workflows, 4)
	for name, fn := range all.workflows {
		for text, why := range ambiguous {
			input := reflect.New(reflect.TypeOf(fn).In(1))
			require.ErrorContains(t, json.Unmarshal([]byte(text), input.Interface()), why, name)
		}
	}
}
