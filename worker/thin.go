package worker

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools/builtin/entities"
)

func newThin(db *store.DB, temporal sdk.Client, s Settings) *thin.Engine {
	return thin.NewEngine(thin.Options{
		Records: records{db: db, entities: entityOptions(db)},
		Starter: extractions{db: db, client: client.New(temporal, client.Options{TaskQueue: s.Temporal.TaskQueue})},
		URL:     s.EntityURL,
	})
}

// contracts reads execution specs of all kinds as tool contracts, and runs compositions.
type contracts struct {
	*composition.Engine
	thin *thin.Engine
}

// Contract returns the tool contract of an execution spec.
func (c contracts) Contract(document string, body []byte) (jig.Tool, error) {
	if tool, ok, err := c.thin.Contract(document, body); ok || err != nil {
		return tool, err
	}
	return c.Engine.Contract(document, body)
}

// records gives thin tools access to the entities they read and create, within what the calling session may see.
type records struct {
	db       *store.DB
	entities entities.Options
}

func (r records) HasBundle(ctx context.Context, tenant, bundle string) (bool, error) {
	names, err := r.db.BundleNames(ctx, tenant)
	return slices.Contains(names, bundle), err
}

func (r records) Readable(ctx context.Context, inv jig.Invocation, id string) (entity.Entity, bool, error) {
	return r.entities.Readable(ctx, inv, id)
}

func (r records) InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error) {
	in, err := r.db.InWorkspace(ctx, tenant, workspace, []string{id})
	return len(in) == 1, err
}

// Connected lists the connected entities of the requested types that the caller may read.
func (r records) Connected(ctx context.Context, inv jig.Invocation, id string, which spec.ThinConnected) ([]entity.Entity, error) {
	types, err := r.entities.ReadableTypes(ctx, inv)
	if err != nil {
		return nil, err
	}
	if len(which.Types) > 0 {
		types = slices.DeleteFunc(types, func(name string) bool { return !slices.Contains(which.Types, name) })
	}
	if len(types) == 0 { // the store takes an empty list for all types
		return nil, nil
	}
	return r.db.ConnectedEntities(ctx, inv.Tenant, id, which.Depth, types, "", entity.MaxConnected)
}

// maxTrespasses bounds the audit rows that one call can cause. Writing more would take so long that the response time could reveal which
// ids exist in other tenants.
const maxTrespasses = 20

func (r records) Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error {
	foreign, err := r.db.EntitiesElsewhere(ctx, inv.Tenant, ids)
	if err != nil {
		return err
	}
	return r.db.RecordViolation(ctx, inv, foreign[:min(len(foreign), maxTrespasses)])
}

// maxDeleted bounds how often the entity of one key may be deleted and created again.
const maxDeleted = 1 << 20

// keyAfter returns the key to use after the given number of entities with a shared key were deleted. It cannot collide with another
// tool's key, because no tool name begins with a digit.
func keyAfter(key string, deleted int) string {
	if deleted == 0 {
		return key
	}
	return strconv.Itoa(deleted+1) + "~" + key
}

// last returns the largest n for which there returns true, or -1 if there is none. It assumes that there is true from 0 up to that n
// without gaps, and calls it O(log n) times.
func last(there func(n int) (bool, error)) (int, error) {
	low, high := -1, 0 // there(low) is true, there(high) is false once it was checked
	for high < maxDeleted {
		ok, err := there(high)
		if err != nil {
			return low, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high+1
	}
	for low+1 < high {
		middle := (low + high) / 2
		ok, err := there(middle)
		if err != nil {
			return low, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// latest returns the latest entity of a key, deleted or not, and the number of entities before it. deleted is -1 if the key has no
// entity.
func (r records) latest(ctx context.Context, tenant, key string) (e entity.Entity, deleted int, err error) {
	deleted, err = last(func(n int) (bool, error) {
		found, ok, err := r.db.EntityByKey(ctx, tenant, keyAfter(key, n))
		if ok {
			e = found
		}
		return ok, err
	})
	return e, deleted, err
}

// Made returns the latest entity of a key, which may be deleted.
func (r records) Made(ctx context.Context, tenant, key string) (made entity.Entity, found bool, err error) {
	made, deleted, err := r.latest(ctx, tenant, key)
	return made, deleted >= 0, err
}

func (r records) there(ctx context.Context, e entity.Entity) (bool, error) {
	found, err := r.db.Entities(ctx, e.Tenant, []string{e.ID})
	return len(found) == 1, err
}

// Create creates an entity, or returns the existing one of its key.
func (r records) Create(ctx context.Context, inv jig.Invocation, c thin.Creation) (e entity.Entity, created bool, missing []string, err error) {
	n, missing, err := r.entities.New(ctx, inv, entities.Draft{
		Type: c.Type, Title: c.Title, Content: c.Content, Relations: c.Relations, At: "creates.fields", RelationsAt: "creates.relations",
	})
	if err != nil || len(missing) > 0 {
		return e, false, missing, err
	}
	n.Workspaces, n.Bundle, n.SessionID, n.Call = c.Workspaces, c.Bundle, c.SessionID, c.Call
	for deleted := 0; deleted < maxDeleted; {
		n.Key = keyAfter(c.Key, deleted)
		if e, created, err = r.create(ctx, n); created || err != nil || !c.Shared {
			return e, created, nil, err
		}
		if there, err := r.there(ctx, e); there || err != nil {
			return e, false, nil, err
		}
		_, latest, err := r.latest(ctx, inv.Tenant, c.Key)
		if err != nil {
			return e, false, nil, err
		}
		deleted = max(latest, deleted+1)
	}
	return e, false, nil, jig.Errorf(jig.CodeConflict, "%d entities of this key were deleted", maxDeleted).WithField("creates.key").
		WithHint("use another key")
}

// create stores an entity. If a concurrent request has already used the key, it returns that request's entity.
func (r records) create(ctx context.Context, n entity.NewEntity) (entity.Entity, bool, error) {
	e, created, err := r.db.CreateEntity(ctx, n)
	if jig.CodeOf(err) != jig.CodeConflict {
		return e, created, err
	}
	other, found, lookup := r.db.EntityByKey(ctx, n.Tenant, n.Key)
	if lookup != nil || !found || other.Type != n.Type {
		return e, false, err
	}
	return other, false, nil
}

// extractions starts sessions that fill entities.
type extractions struct {
	db     *store.DB
	client *client.Client
}

// maxInline bounds the input, in bytes, that a start request carries itself. A larger input is stored as an artifact first.
const maxInline = 32 << 10

// Start starts a session for a call of entities.extract, as a child of the calling session.
func (x extractions) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) (err error) {
	if err := x.db.NameChild(ctx, inv.Tenant, inv.SessionID, inv.CallID, session); err != nil {
		return err
	}
	call := protocol.CallInput{
		Tenant: inv.Tenant, Tool: entities.ExtractTool, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	}
	if len(input) > maxInline {
		if call.InputArtifact, err = x.db.PutArtifact(ctx, inv.Tenant, inv.SessionID, "application/json", input); err != nil {
			return err
		}
		call.Input = nil
	}
	return x.client.StartChild(ctx, call, session)
}

// Begun reports whether a session exists.
func (x extractions) Begun(ctx context.Context, tenant, session string) (bool, error) {
	_, err := x.db.Session(ctx, tenant, session)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

var (
	_ thin.Records = records{}
	_ thin.Starter = extractions{}
)
