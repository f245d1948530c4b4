package worker

import (
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/tools"
)

// executions reads execution specs of all kinds as tools, and computes the moves of compositions.
type executions struct {
	*composition.Engine
	thin *thin.Engine
}

func newExecutions(db *store.DB, temporal sdk.Client, s Settings, registry *tools.Registry) executions {
	return executions{Engine: composition.NewEngine(), thin: thin.NewEngine(thin.Options{
		Records: thin.NewRecords(db, guardedEntities(db)),
		Starter: thin.NewStarter(db, client.New(temporal, client.Options{TaskQueue: s.Temporal.TaskQueue})),
		Tools:   registry, URL: s.EntityURL,
	})}
}

// Load reads an execution spec as a tool.
func (x executions) Load(document string, body []byte) (plan.Tool, error) {
	if tool, ok, err := x.thin.Load(document, body); ok || err != nil {
		return tool, err
	}
	return x.Engine.Load(document, body)
}
