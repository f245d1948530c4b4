package worker

import (
	"slices"

	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/internal/budget/meter"
	"github.com/jig-run/jig/internal/builtin/artifact"
	audittool "github.com/jig-run/jig/internal/builtin/audit"
	bundletools "github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/internal/builtin/web"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy/current"
	"github.com/jig-run/jig/tools"
)

// builtins returns most of the tools that ship with jig; taskTools has the others.
func builtins(
	s Settings, db *store.DB, names *bundle.Names, known *current.Catalog, tenants *current.Tenants, models *meter.Meter,
) []tools.Tool {
	return slices.Concat(
		file.Tools(file.Options{Dirs: s.dirs()}),
		deps.Tools(deps.Options{Dirs: s.dirs()}),
		todo.Tools(todo.Options{Store: db}),
		artifact.Tools(artifact.Options{Store: activities.Values{Store: db}}),
		web.Tools(web.Options{AllowLoopback: s.AllowLoopback, AllowHosts: s.AllowHosts}),
		prompt.Tools(prompt.Options{Model: models, Skills: known, DefaultModel: s.Model}),
		person.Tools(),
		entities.Tools(entityOptions(db, models, s.Model)),
		audittool.Tools(audittool.Options{Rows: db.AuditRows, Head: db.AuditHead}),
		grants.Tools(grants.Options{New: newGrant(tenants, known), Approved: db.Approved, Put: db.PutGrant, ID: activities.GrantID}),
		catalog.Tools(catalog.Options{Store: db, Known: known.Known, Check: checkDocument, TypeOf: extractor.TypeInUse(db)}),
		bundletools.Tools(bundleOptions(db, names, known)),
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

// newSchemas returns the checker of inputs that belong to no tool, such as the inputs of agents.
func newSchemas() schema.Checker {
	return schema.NewChecker(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true})
}
