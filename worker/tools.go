package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/bundles/deps"
	"github.com/jig-run/jig/client"
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
	"github.com/jig-run/jig/internal/builtin/tasks"
	"github.com/jig-run/jig/internal/builtin/todo"
	"github.com/jig-run/jig/internal/builtin/usage"
	"github.com/jig-run/jig/internal/builtin/web"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy/current"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// builtins returns most of the tools that ship with jig; taskTools has the others.
func builtins(
	s Settings, db *store.DB, names *bundle.Names, docs documents, tenants *current.Tenants, models *meter.Meter,
) []tools.Tool {
	return slices.Concat(
		file.Tools(file.Options{Dirs: s.dirs()}),
		deps.Tools(deps.Options{Dirs: s.dirs()}),
		todo.Tools(todo.Options{Store: db}),
		artifact.Tools(artifact.Options{Store: activities.Values{Store: db}}),
		web.Tools(web.Options{AllowLoopback: s.AllowLoopback, AllowHosts: s.AllowHosts}),
		prompt.Tools(prompt.Options{Model: models, Skills: docs.catalog, DefaultModel: s.Model}),
		person.Tools(),
		entities.Tools(entityOptions(db, docs.entities, models, s.Model)),
		usage.Tools(usage.Options{Usage: func(ctx context.Context, r protocol.UsageRequest) (protocol.Usage, error) {
			return activities.ReadUsage(ctx, db, models, r)
		}}),
		audittool.Tools(audittool.Options{Rows: db.AuditRows, Head: db.AuditHead}),
		grants.Tools(grants.Options{New: newGrant(tenants, docs.catalog), Approved: db.Approved, Put: db.PutGrant, ID: activities.GrantID}),
		catalog.Tools(catalog.Options{
			Store: db, Loaded: docs.loaded, Known: docs.catalog.Known, Check: checkDocument, TypeOf: extractor.TypeInUse(db, docs.types),
		}),
		bundletools.Tools(bundleOptions(db, names, docs)),
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

// bundleStore stores bundles. It clears the cache of bundle names, so a change takes effect at once on the worker that made it.
type bundleStore struct {
	*store.DB
	names *bundle.Names
}

// InstallBundle installs a bundle for a tenant.
func (s bundleStore) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	defer s.names.Forget(by.Tenant)
	return s.DB.InstallBundle(ctx, by, b)
}

// RemoveBundle takes a tenant's bundle out of use.
func (s bundleStore) RemoveBundle(
	ctx context.Context, by jig.Invocation, name, shown string,
) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error) {
	defer s.names.Forget(by.Tenant)
	return s.DB.RemoveBundle(ctx, by, name, shown)
}

// bundleOptions returns the options of the tools that install bundles.
func bundleOptions(db *store.DB, names *bundle.Names, docs documents) bundletools.Options {
	return bundletools.Options{
		Store: bundleStore{DB: db, names: names}, Loaded: docs.loaded, Known: docs.catalog.KnownWith, Check: checkDocument,
		TypeOf: extractor.TypeInUse(db, docs.types),
	}
}

// shipper is the principal that installs the bundles shipped with jig.
const shipper = "worker"

// installBundles installs the shipped bundles for the default tenant.
func installBundles(ctx context.Context, db *store.DB, o bundletools.Options, logger *slog.Logger) error {
	shipped, err := bundles.Bundles()
	if err != nil {
		return err
	}
	by := jig.Invocation{Tenant: jig.DefaultTenant, Principal: jig.Principal{ID: shipper}, Attempt: 1, Logger: logger}
	for _, b := range shipped {
		if err := o.InstallShipped(ctx, db, by, b); err != nil {
			return err
		}
	}
	return nil
}

// newGrant returns the function with which the tool grants.create creates grants.
func newGrant(tenants *current.Tenants, known *current.Catalog) func(context.Context, string, jig.GrantRequest, time.Time) (jig.Grant, error) {
	return func(ctx context.Context, tenant string, request jig.GrantRequest, now time.Time) (jig.Grant, error) {
		settings, err := tenants.Settings(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		exists, err := known.Known(ctx, tenant)
		if err != nil {
			return jig.Grant{}, err
		}
		return policy.GrantFor(tenant, exists.Tools, request, settings.Grants, now)
	}
}

// checkDocument reports why a document cannot be registered for a tenant. tools are the tenant's tools.
func checkDocument(ctx context.Context, tenant string, doc spec.Document, tools []jig.Tool) error {
	if err := current.Check(tenant, doc); err != nil {
		return err
	}
	return policy.CheckDocument(ctx, doc, tools)
}

// taskTools returns the tools that run the tasks of entities, show their state, and retry sessions.
func taskTools(db *store.DB, docs documents, temporal sdk.Client, s Settings) []tools.Tool {
	return tasks.Tools(tasks.Options{
		Readable: docs.entities.Readable,
		CheckTask: func(ctx context.Context, inv jig.Invocation, input json.RawMessage) error {
			_, err := docs.entities.TaskExtraction(ctx, inv, input)
			return err
		},
		Status: extractor.NewProgress(db, docs.types).EntityStatus, Session: db.Session, Call: db.Call, Doubtful: db.DoubtfulCalls, Said: db.HasMessage,
		Starter: sessions{db: db, client: client.New(temporal, client.Options{TaskQueue: s.Temporal.TaskQueue})},
	})
}

// sessions sends messages to sessions and starts new ones for calls.
type sessions struct {
	db     *store.DB
	client *client.Client
}

// Message sends a message to an agent's session.
func (s sessions) Message(ctx context.Context, tenant, session string, m tasks.Message) error {
	message := protocol.Message{Text: m.Text, By: m.By, ID: m.ID, Parent: m.Parent, ParentCall: m.ParentCall}
	if err := s.db.NameRequest(ctx, tenant, m.Parent, m.ParentCall, message.Woken().Request(session)); err != nil {
		return err
	}
	return s.client.Say(ctx, tenant, session, message)
}

// StartCall starts a session for a single call. If the call runs a document that was sent along with the original call and is not
// registered, the document is sent along with this call too.
func (s sessions) StartCall(ctx context.Context, tenant, session string, c tasks.Start) error {
	call := protocol.CallInput{Tenant: tenant, Tool: c.Tool, Input: c.Input, Parent: c.Parent, ParentCall: c.ParentCall}
	body, err := s.brought(ctx, tenant, c)
	if err != nil {
		return err
	}
	if body != nil {
		call.Tool, call.DocumentName, call.Document = "", c.Tool, string(body)
	}
	return thin.StartChild(ctx, s.db, s.client, session, call)
}

// brought returns the document that was sent along with a call. It returns nil if the call's tool is written in Go or registered.
func (s sessions) brought(ctx context.Context, tenant string, c tasks.Start) ([]byte, error) {
	_, err := s.db.Document(ctx, tenant, bundle.KindSpec, c.Tool)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return nil, err
	}
	body, err := s.db.DocumentAt(ctx, tenant, bundle.KindSpec, c.Tool, c.Version)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil, nil
	}
	return body, err
}

// documents is what reads the documents of tenants. Its parts share what they have read.
type documents struct {
	loaded   *loaded.Documents
	types    *extractor.Types
	entities guarded.Entities
	catalog  *current.Catalog
}

// newDocuments returns readers of the documents in a store. goTools lists the worker's Go tools.
func newDocuments(db *store.DB, names *bundle.Names, goTools func() []jig.Tool) documents {
	d := documents{loaded: loaded.New()}
	d.types = extractor.NewTypes(db, d.loaded)
	d.entities = guarded.Entities{Store: db, Types: d.types.Of, Check: spec.CheckContent}
	d.catalog = current.NewCatalog(db, names, d.loaded, goTools)
	return d
}

// entityOptions returns the settings of the entity tools. A model's claims must pass the same checks as the claims of extractions.
func entityOptions(db *store.DB, guarded guarded.Entities, model entities.Model, byDefault string) entities.Options {
	return entities.Options{
		Entities: guarded, Store: entities.Store{Records: db, Texts: db, Finder: db},
		Model: model, DefaultModel: byDefault, CheckClaims: extractor.CheckClaims,
	}
}

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

func newExecutions(db *store.DB, entities guarded.Entities, temporal sdk.Client, s Settings, registry *tools.Registry) executions {
	return executions{Engine: composition.NewEngine(), backends: map[spec.Kind]backend{
		spec.KindThinTool: thin.NewEngine(thin.Options{
			Records: thin.NewRecords(db, entities),
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

// advise logs a warning for each part of a tool's contract that a model may misunderstand, such as a description that contradicts the
// schema or a name that is easily confused with another. The tools that ship with jig cause no warnings, so every warning concerns a Go
// tool that was added to this worker. `jig validate` gives the same advice on documents.
func advise(ctx context.Context, logger *slog.Logger, registry *tools.Registry) {
	for _, p := range spec.AdviseTools(registry.Tools()) {
		logger.WarnContext(ctx, "a tool may be misunderstood: "+p.Message, "tool", p.Document, "field", p.Path, "hint", p.Hint) //nolint:sloglint // the message is the advice itself
	}
}
