package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	jigplan "github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

func guardedEntities(db *store.DB) guarded.Entities {
	return guarded.Entities{Store: db, Types: extractor.NewTypes(db, nil).Of, Check: spec.CheckContent}
}

// executions reads execution specs as tools, and computes the moves of compositions.
type executions struct {
	*composition.Engine
	thin *thin.Engine
}

// Load reads an execution spec as a tool.
func (x executions) Load(document string, body []byte) (jigplan.Tool, error) {
	if spec.KindOf("", body).HasBackend() {
		return x.thin.Load(document, body)
	}
	return x.Engine.Load(document, body)
}

// records creates the entities of the thin tool. The tool reads no other entities and belongs to no bundle, so the other methods of the
// interface are never called.
type records struct {
	thin.Records
	store    *store.DB
	entities guarded.Entities
}

// Made returns the entity under a key. Each call has a different key, so entities are not shared.
func (r records) Made(ctx context.Context, tenant, key string) (entity.Entity, bool, error) {
	return r.store.LatestByKey(ctx, tenant, key)
}

// Create creates the entity of a call, once.
func (r records) Create(ctx context.Context, inv jig.Invocation, c thin.Creation) (entity.Entity, bool, []string, error) {
	n, missing, err := r.entities.New(ctx, inv, guarded.Draft{Type: c.Type, Title: c.Title, Content: c.Content, Relations: c.Relations})
	if err != nil || len(missing) > 0 {
		return entity.Entity{}, false, missing, err
	}
	n.Key, n.SessionID, n.Call = c.Key, c.SessionID, c.Call
	e, created, err := r.store.CreateEntity(ctx, n)
	return e, created, nil, err
}

// starter starts the extractions of thin tools. Its client is set before the worker polls.
type starter struct {
	store  *store.DB
	client *client.Client
}

// Start implements thin.Starter.
func (s *starter) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error {
	return thin.NewStarter(s.store, s.client).Start(ctx, inv, session, input)
}

// Begun is never called, because entities are not shared.
func (s *starter) Begun(context.Context, string, string) (bool, error) { return true, nil }

// filler returns the principal on whose behalf entities are filled.
func filler() jig.Principal { return jig.Principal{ID: "bench", Permissions: []string{"*"}} }

// pageType is the entity type of P3 and P11. Its tasks compute values; documents with different numbers of tasks define it.
const pageType = "page"

const sevenTasks = `kind: entity_type
name: page
fields:
  - {name: path, type: text, required: true}
  - {name: host, type: text, task: host}
  - {name: owner, type: text, task: owner}
  - {name: short, type: text, task: short}
  - {name: depth, type: number, integer: true, task: depth}
  - {name: public, type: boolean, task: public}
  - {name: label, type: text, task: label}
  - {name: risk, type: enum, options: [low, high], task: risk}
tasks:
  - {id: host, compute: "entity.content.path.split('/')[0]"}
  - {id: owner, compute: "entity.content.path.split('/')[1]"}
  - {id: short, compute: "entity.content.path.split('/')[2]"}
  - {id: depth, compute: "size(entity.content.path.split('/'))"}
  - {id: public, depends_on: [host], compute: "tasks.host == 'github.com'"}
  - {id: label, depends_on: [owner, short], compute: "tasks.owner + ' ' + tasks.short"}
  - {id: risk, depends_on: [public, depth], compute: "tasks.public && tasks.depth < 4 ? 'low' : 'high'"}
`

const oneTask = `kind: entity_type
name: page
fields:
  - {name: path, type: text, required: true}
  - {name: host, type: text, task: host}
tasks:
  - {id: host, compute: "entity.content.path.split('/')[0]"}
`

// graphDocument returns the entity type with a graph of the given number of tasks. Each task adds the values of two earlier ones, and the last
// task adds the remaining values. With a thousand tasks, the longest chain has 90 tasks.
func graphDocument(tasks int) string {
	var b strings.Builder
	b.WriteString("kind: entity_type\nname: page\nfields:\n  - {name: path, type: text, required: true}\n")
	fmt.Fprintf(&b, "  - {name: total, type: number, task: t%d}\ntasks:\n", tasks-1)
	var last []string
	for i := range tasks - 1 {
		if i >= tasks-21 {
			last = append(last, fmt.Sprintf("t%d", i))
		}
		if i < 20 {
			fmt.Fprintf(&b, "  - {id: t%d, compute: \"%d\"}\n", i, i)
			continue
		}
		x, y := i-11-i*7%9, i-20
		fmt.Fprintf(&b, "  - {id: t%d, depends_on: [t%d, t%d], compute: \"(tasks.t%d + tasks.t%d) %% 1000003\"}\n", i, x, y, x, y)
	}
	fmt.Fprintf(&b, "  - {id: t%d, depends_on: [%s], compute: tasks.%s}\n", tasks-1, strings.Join(last, ", "), strings.Join(last, " + tasks."))
	return b.String()
}

// fillTenant registers the entity type in a tenant, creates n entities, and returns their ids.
func (b *bench) fillTenant(ctx context.Context, tenant, document string, n int) ([]string, error) {
	t, err := spec.LoadEntityType(pageType, []byte(document))
	if err != nil {
		return nil, fmt.Errorf("the entity type: %w", err)
	}
	if err := b.engine.store.PutDocument(ctx, tenant, activities.DocumentEntityType, t.Name, t.Version, []byte(document)); err != nil {
		return nil, fmt.Errorf("register the entity type: %w", err)
	}
	ids := make([]string, n)
	err = atOnce(ctx, n, 4, func(ctx context.Context, i int) error {
		e, _, err := b.engine.store.CreateEntity(ctx, entity.NewEntity{Entity: entity.Entity{
			Tenant: tenant, Type: t.Name, TypeVersion: t.Version, Title: fmt.Sprintf("page %d", i),
			Content: fmt.Appendf(nil, `{"path":"github.com/owner%d/page%d"}`, i%17, i),
		}})
		ids[i] = e.ID
		return err
	})
	return ids, err
}
