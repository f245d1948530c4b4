package wire

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/artifact"
	"github.com/jig-run/jig/tools/deps"
	"github.com/jig-run/jig/tools/file"
	"github.com/jig-run/jig/tools/schema"
	"github.com/jig-run/jig/tools/todo"
	"github.com/jig-run/jig/tools/web"
)

// builtins are the tools that ship with the product.
func builtins(s Settings, db *store.DB) []tools.Tool {
	return slices.Concat(
		file.Tools(file.Options{Dir: s.Workdir}),
		deps.Tools(deps.Options{Dir: s.Workdir}),
		todo.Tools(todo.Options{Store: db}),
		artifact.Tools(artifact.Options{Store: activities.Values{Store: db}}),
		web.Tools(web.Options{AllowLoopback: s.AllowLoopback}),
	)
}

func toolNames(registry *tools.Registry) []string {
	list := registry.Tools()
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	return names
}

// installAgents keeps the agents of the shipped bundles current for the default tenant. Another worker may do so at the
// same time: both write the same.
func installAgents(ctx context.Context, db *store.DB, logger *slog.Logger) error {
	agents, err := bundles.Agents()
	if err != nil {
		return err
	}
	for _, agent := range agents {
		body, err := db.Document(ctx, jig.DefaultTenant, string(agent.Kind), agent.Name)
		if err == nil && string(body) == string(agent.Body) {
			continue
		}
		if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
			return err
		}
		if err := db.PutDocument(ctx, jig.DefaultTenant, string(agent.Kind), agent.Name, agent.Version, agent.Body); err != nil {
			return err
		}
		logger.InfoContext(ctx, "agent installed", slog.String("agent", agent.Name), slog.String("version", agent.Version))
	}
	return nil
}

// schemas checks inputs that no tool owns: those of agents.
type schemas struct{ compiler *schema.Compiler }

func newSchemas() schemas {
	return schemas{compiler: schema.NewCompiler(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true})}
}

// Validate checks a document against a JSON Schema.
func (s schemas) Validate(raw json.RawMessage, document []byte) error {
	compiled, err := s.compiler.Compile(orObject(raw))
	if err != nil {
		return err
	}
	return compiled.Validate(document)
}

// FromPairs converts key=value pairs to a document by a schema.
func (s schemas) FromPairs(raw json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	return schema.FromPairs(orObject(raw), pairs)
}

// orObject stands in for a schema that was left out: any object.
func orObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}
