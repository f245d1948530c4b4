package extractor

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/spec"
)

// Progress reports the state of entities' extractions.
type Progress struct {
	store ProgressStore
	types *Types
	now   func() time.Time
}

// ProgressStore reads the state of extractions.
type ProgressStore interface {
	bundle.Documents
	// EntityProgress returns an entity and the stored outcomes of its tasks, by task. It returns NOT_FOUND if the tenant has no such entity.
	EntityProgress(ctx context.Context, tenant, id string) (entity.Entity, map[string]json.RawMessage, error)
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
	Call(ctx context.Context, tenant, session, call string) (jig.Call, error)
	Frame(ctx context.Context, tenant, session, call string) (plan.Frame, error)
}

// NewProgress returns a reader of the state of extractions of the given types.
func NewProgress(s ProgressStore, types *Types) *Progress {
	return &Progress{store: s, types: types, now: time.Now}
}

// startWithin is how long after the creation of an entity its announced session may start. It exceeds the time that the ten attempts of a
// thin tool take. A session that has not started by then counts as lost: the tool call failed before it could start the session.
const startWithin = 15 * time.Minute

// EntityStatus reports the state of an entity's latest extraction. It returns NOT_FOUND if the tenant has no such entity.
func (p *Progress) EntityStatus(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	e, ended, err := p.store.EntityProgress(ctx, tenant, id)
	if err != nil {
		return jig.EntityStatus{}, err
	}
	if lost, err := p.lost(ctx, e); err != nil {
		return jig.EntityStatus{}, err
	} else if lost {
		e.SessionID, e.Call = "", ""
	}
	out := jig.EntityStatus{EntityID: e.ID, Type: e.Type, Title: e.Title, SessionID: e.SessionID, Call: e.Call, Filled: filled(e)}
	kind, state, err := p.standing(ctx, e)
	if err != nil {
		return out, err
	}
	if out.Tasks, err = extraction.Standing(kind, state, ended); err != nil {
		return out, err
	}
	var call jig.CallStatus
	if out.SessionID != "" {
		if call, err = p.call(ctx, tenant, out); err != nil {
			return out, err
		}
	}
	out.Status = extraction.StatusOf(call, out.Tasks, len(ended) > 0)
	return out, nil
}

// lost reports whether the session that was announced for an entity never started.
func (p *Progress) lost(ctx context.Context, e entity.Entity) (bool, error) {
	if e.SessionID == "" || p.now().Sub(e.CreatedAt) < startWithin {
		return false, nil
	}
	_, err := p.store.Session(ctx, e.Tenant, e.SessionID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return true, nil
	}
	return false, err
}

// standing returns the type of an entity and the state of its latest extraction. If that extraction has not started yet, it returns the
// current type and no state.
func (p *Progress) standing(ctx context.Context, e entity.Entity) (entity.Type, json.RawMessage, error) {
	if e.SessionID != "" {
		frame, err := p.store.Frame(ctx, e.Tenant, e.SessionID, e.Call)
		if err == nil && frame.Kind == string(spec.KindEntityType) {
			kind, err := p.types.Read(ctx, e.Tenant, bundle.DocumentVersion{Kind: frame.Kind, Name: frame.Name, Version: frame.Version})
			return kind, frame.State, err
		}
		if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
			return entity.Type{}, nil, err
		}
	}
	all, err := p.types.Of(ctx, e.Tenant)
	for _, kind := range all {
		if kind.Name == e.Type {
			return kind, nil, err
		}
	}
	return entity.Type{Name: e.Type}, nil, err
}

// call returns the status of the extraction's call. A call that is not in the ledger yet counts as reserved, or as failed if its session
// has already ended.
func (p *Progress) call(ctx context.Context, tenant string, s jig.EntityStatus) (jig.CallStatus, error) {
	call, err := p.store.Call(ctx, tenant, s.SessionID, s.Call)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return call.Status, err
	}
	session, err := p.store.Session(ctx, tenant, s.SessionID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return jig.CallReserved, nil
	}
	if err == nil && session.Status.Final() {
		return jig.CallFailed, nil
	}
	return jig.CallReserved, err
}

// filled lists the fields of an entity that a task filled, sorted.
func filled(e entity.Entity) []string {
	return append([]string{}, slices.Sorted(maps.Keys(e.Provenance))...)
}
