package server

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/internal/builtin/tasks"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy/current"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/workflows"
)

// workers answer what clients ask of workers, with the engine's own activities on the role of workers.
type workers struct {
	sdkworker.Registry

	does map[string]any
}

func newWorkers(t *testing.T, db *store.DB) *workers {
	t.Helper()
	types := extractor.NewTypes(db, nil)
	guard := guarded.Entities{Store: db, Types: types.Of, Check: spec.CheckContent}
	registry, err := tools.NewRegistry(slices.Concat(todo.Tools(todo.Options{Store: db}), grants.Tools(grants.Options{}), tasks.Tools(tasks.Options{
		Readable: guard.Readable, Status: extractor.NewProgress(db, types).EntityStatus,
	}), entities.Tools(entities.Options{Entities: guard, Store: entities.Store{Records: db, Texts: db, Finder: db}}), catalog.Tools(catalog.Options{}))...)
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	tenants := current.NewTenants(current.Options{Documents: db, Environ: func(string) string { return "" }, Everybody: []string{"*"}, Logger: quiet})
	w := &workers{does: map[string]any{}}
	workflows.Register(w, activities.New(activities.Deps{
		Store: db, Catalog: registry, Tenants: tenants, Composer: composition.NewEngine(), ParseAgent: spec.ParseAgent,
		Model: silent{}, Schemas: schema.NewChecker(schema.Options{}),
		Policy:       policy.NewEngine(policy.EngineOptions{Documents: db, Settings: tenants.Settings}),
		EntityStatus: extractor.NewProgress(db, types).EntityStatus, Logger: quiet,
	}), nil, "")
	return w
}

// do runs an activity.
func (w *workers) do(name string, args []any) done {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(w.does[name], activity.RegisterOptions{Name: name})
	answer, err := env.ExecuteActivity(name, args...)
	return done{answer: answer, err: err}
}

func (w *workers) RegisterActivityWithOptions(fn any, o activity.RegisterOptions) {
	w.does[o.Name] = fn
}
func (w *workers) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}
func (w *workers) RegisterWorkflowWithOptions(any, workflow.RegisterOptions)    {}

// silent is a model that every agent may use, and that never answers.
type silent struct{}

func (silent) Check(string) error { return nil }

func (silent) Answer(ctx context.Context, _ chat.Request, _ func(string)) (chat.Turn, error) {
	<-ctx.Done()
	return chat.Turn{}, ctx.Err()
}

// done is an activity that has ended.
type done struct {
	sdk.ActivityHandle

	answer converter.EncodedValue
	err    error
}

func (d done) Get(_ context.Context, ptr any) error {
	if d.err != nil || ptr == nil || !d.answer.HasValue() {
		return d.err
	}
	return d.answer.Get(ptr)
}
