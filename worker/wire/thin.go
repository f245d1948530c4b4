package wire

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/compose"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/thin"
	"github.com/jig-run/jig/tools/entities"
	"github.com/jig-run/jig/workflows"
)

func newThin(db *store.DB, temporal sdk.Client, s Settings) *thin.Engine {
	return thin.NewEngine(thin.Options{
		Records: records{db: db, entities: entityOptions(db)},
		Starter: extractions{db: db, client: client.New(temporal, client.Options{TaskQueue: s.Temporal.TaskQueue})},
		URL:     s.EntityURL,
	})
}

// contracts reads execution specs of all kinds as the tools they are, and runs compositions.
type contracts struct {
	*compose.Engine
	thin *thin.Engine
}

// Contract reads an execution spec as the tool it is.
func (c contracts) Contract(document string, body []byte) (jig.Tool, error) {
	if tool, ok, err := c.thin.Contract(document, body); ok || err != nil {
		return tool, err
	}
	return c.Engine.Contract(document, body)
}

// records are the entities that thin tools work from and create: what the tools over entities may see of them.
type records struct {
	db       *store.DB
	entities entities.Options
}

func (r records) HasBundle(ctx context.Context, tenant, bundle string) (bool, error) {
	names, err := r.db.BundleNames(ctx, tenant)
	return slices.Contains(names, bundle), err
}

func (r records) Readable(ctx context.Context, inv jig.Invocation, id string) (jig.Entity, bool, error) {
	return r.entities.Readable(ctx, inv, id)
}

func (r records) InWorkspace(ctx context.Context, tenant, workspace, id string) (bool, error) {
	in, err := r.db.InWorkspace(ctx, tenant, workspace, []string{id})
	return len(in) == 1, err
}

// Connected lists those of the types that are asked for and may be read.
func (r records) Connected(ctx context.Context, inv jig.Invocation, id string, which jig.ThinConnected) ([]jig.Entity, error) {
	types, err := r.entities.ReadableTypes(ctx, inv)
	if err != nil {
		return nil, err
	}
	if len(which.Types) > 0 {
		types = slices.DeleteFunc(types, func(name string) bool { return !slices.Contains(which.Types, name) })
	}
	if len(types) == 0 { // none at all, which the store would take for all
		return nil, nil
	}
	return r.db.ConnectedEntities(ctx, inv.Tenant, id, which.Depth, types, "", jig.MaxConnected)
}

// maxTrespasses bounds the rows that one call leaves in the audit: writing them must not take so long that the time tells whose ids are.
const maxTrespasses = 20

func (r records) Trespassed(ctx context.Context, inv jig.Invocation, ids []string) error {
	foreign, err := r.db.EntitiesElsewhere(ctx, inv.Tenant, ids)
	if err != nil {
		return err
	}
	return r.db.RecordViolation(ctx, inv, foreign[:min(len(foreign), maxTrespasses)])
}

// maxDeleted bounds how many entities of one key may have been deleted.
const maxDeleted = 1 << 20

// keyAfter is the key that stands for a shared one after so many entities of it were deleted. No tool's name begins with a digit: it is
// the key of no other.
func keyAfter(key string, deleted int) string {
	if deleted == 0 {
		return key
	}
	return strconv.Itoa(deleted+1) + "~" + key
}

// last is the last number for which there is something, numbers being without gaps from 0; -1 when there is nothing. It takes few
// looks, however many there are.
func last(there func(n int) (bool, error)) (int, error) {
	low, high := -1, 0 // what is known to be there, and what not, once it was looked at
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

// latest returns the latest entity of a key, deleted or not, and how many were deleted before it; -1 when there was none.
func (r records) latest(ctx context.Context, tenant, key string) (e jig.Entity, deleted int, err error) {
	deleted, err = last(func(n int) (bool, error) {
		found, ok, err := r.db.EntityByKey(ctx, tenant, keyAfter(key, n))
		if ok {
			e = found
		}
		return ok, err
	})
	return e, deleted, err
}

// Made returns the entity under a key: the latest one, when those before it were deleted.
func (r records) Made(ctx context.Context, tenant, key string) (made jig.Entity, found bool, err error) {
	made, deleted, err := r.latest(ctx, tenant, key)
	return made, deleted >= 0, err
}

func (r records) there(ctx context.Context, e jig.Entity) (bool, error) {
	found, err := r.db.Entities(ctx, e.Tenant, []string{e.ID})
	return len(found) == 1, err
}

// Create makes an entity, or returns the one of its key.
func (r records) Create(ctx context.Context, inv jig.Invocation, c thin.Creation) (e jig.Entity, created bool, missing []string, err error) {
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

// create stores an entity; when another request was faster with the key, its entity is returned.
func (r records) create(ctx context.Context, n jig.NewEntity) (jig.Entity, bool, error) {
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

// maxInline is how many bytes of input travel with a start; more is kept aside first.
const maxInline = 32 << 10

// Start begins a session for a call of entities.extract, below the call that asks for it.
func (x extractions) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) (err error) {
	if err := x.db.NameChild(ctx, inv.Tenant, inv.SessionID, inv.CallID, session); err != nil {
		return err
	}
	call := workflows.CallInput{
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

// Begun reports whether a session is there.
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
