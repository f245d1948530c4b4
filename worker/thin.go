package worker

import (
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// backend reads the documents of a kind of execution spec that does not run step by step, as tools.
type backend interface {
	Load(document string, body []byte) (plan.Tool, error)
}

// executions reads execution specs of all kinds as tools, and computes the moves of compositions.
type executions struct {
	*composition.Engine
	// backends has one entry for each kind that has a backend; see [spec.Kind.HasBackend].
	backends map[spec.Kind]backend
}

func newExecutions(db *store.DB, temporal sdk.Client, s Settings, registry *tools.Registry) executions {
	return executions{Engine: composition.NewEngine(), backends: map[spec.Kind]backend{
		spec.KindThinTool: thin.NewEngine(thin.Options{
			Records: thin.NewRecords(db, guardedEntities(db)),
			Starter: thin.NewStarter(db, client.New(temporal, client.Options{TaskQueue: s.Temporal.TaskQueue})),
			Tools:   registry, URL: s.EntityURL,
		}),
	}}
}

// Load reads an execution spec as a tool.
func (x executions) Load(document string, body []byte) (plan.Tool, error) {
	if own, has := x.backends[spec.KindOf("", body)]; has {
		return own.Load(document, body)
	}
	return x.Engine.Load(document, body)
}
