package worker

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/tools/builtin/tasks"
)

// progress reports the state of entities' extractions.
type progress struct {
	db    *store.DB
	types *extractor.Types
	now   func() time.Time
}

func newProgress(db *store.DB) progress {
	return progress{db: db, types: extractor.NewTypes(db), now: time.Now}
}

// startWithin is how long after an entity was created its announced session may start. It exceeds the time that the ten attempts of a
// thin tool take. A session that has not started by then counts as lost: the tool call failed before it could start the session.
const startWithin = 15 * time.Minute

// EntityStatus reports the state of an entity's latest extraction. It returns NOT_FOUND if the tenant has no such entity.
func (p progress) EntityStatus(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	e, ended, err := p.db.EntityProgress(ctx, tenant, id)
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
	out.Status, err = p.status(ctx, tenant, out, len(ended) > 0)
	return out, err
}

// lost reports whether the session that was announced for an entity never started.
func (p progress) lost(ctx context.Context, e entity.Entity) (bool, error) {
	if e.SessionID == "" || p.now().Sub(e.CreatedAt) < startWithin {
		return false, nil
	}
	_, err := p.db.Session(ctx, e.Tenant, e.SessionID)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return true, nil
	}
	return false, err
}

// standing returns the type of an entity and the state of its latest extraction. If that extraction has not started yet, it returns the
// current type and no state.
func (p progress) standing(ctx context.Context, e entity.Entity) (entity.Type, json.RawMessage, error) {
	if e.SessionID != "" {
		frame, err := p.db.Frame(ctx, e.Tenant, e.SessionID, e.Call)
		if err == nil && frame.Kind == activities.DocumentEntityType {
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

func (p progress) status(ctx context.Context, tenant string, s jig.EntityStatus, ended bool) (jig.ExtractionStatus, error) {
	if s.SessionID == "" && !ended {
		return jig.ExtractionNone, nil
	}
	if s.SessionID != "" {
		call, err := p.call(ctx, tenant, s)
		if err != nil {
			return "", err
		}
		if !call.Final() {
			return jig.ExtractionRunning, nil
		}
		if call != jig.CallSucceeded {
			return jig.ExtractionFailed, nil
		}
	}
	for _, t := range s.Tasks {
		if t.Status == string(extraction.TaskFailed) || t.Status == string(extraction.TaskCanceled) {
			return jig.ExtractionPartial, nil
		}
	}
	return jig.ExtractionCompleted, nil
}

// call returns the status of the extraction's call. A call that is not in the ledger yet counts as reserved, or as failed if its session
// has already ended.
func (p progress) call(ctx context.Context, tenant string, s jig.EntityStatus) (jig.CallStatus, error) {
	call, err := p.db.Call(ctx, tenant, s.SessionID, s.Call)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return call.Status, err
	}
	session, err := p.db.Session(ctx, tenant, s.SessionID)
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

// taskTools returns the tools that show the state of an entity's tasks and retry sessions.
func taskTools(db *store.DB, temporal sdk.Client, s Settings) []tools.Tool {
	return tasks.Tools(tasks.Options{
		Readable: entityOptions(db).Readable, Status: newProgress(db).EntityStatus, Session: db.Session, Call: db.Call, Doubtful: db.DoubtfulCalls, Said: db.HasMessage,
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
	return s.client.Say(ctx, tenant, session, protocol.Message{Text: m.Text, By: m.By, ID: m.ID})
}

// StartCall starts a session for a single call. If the call runs a document that was sent along with the original call and is not
// registered, the document is sent along with this call too.
func (s sessions) StartCall(ctx context.Context, tenant, session string, c tasks.Start) (err error) {
	if err := s.db.NameChild(ctx, tenant, c.Parent, c.ParentCall, session); err != nil {
		return err
	}
	call := protocol.CallInput{Tenant: tenant, Tool: c.Tool, Input: c.Input, Parent: c.Parent, ParentCall: c.ParentCall}
	if len(c.Input) > maxInline {
		if call.InputArtifact, err = s.db.PutArtifact(ctx, tenant, c.Parent, "application/json", c.Input); err != nil {
			return err
		}
		call.Input = nil
	}
	body, err := s.brought(ctx, tenant, c)
	if err != nil {
		return err
	}
	if body != nil {
		call.Tool, call.DocumentName = "", c.Tool
		if call.DocumentArtifact, err = s.db.PutArtifact(ctx, tenant, c.Parent, "text/plain", body); err != nil {
			return err
		}
	}
	return s.client.StartChild(ctx, call, session)
}

// brought returns the document that was sent along with a call. It returns nil if the call's tool is written in Go or registered.
func (s sessions) brought(ctx context.Context, tenant string, c tasks.Start) ([]byte, error) {
	_, err := s.db.Document(ctx, tenant, activities.DocumentSpec, c.Tool)
	if jig.CodeOf(err) != jig.CodeNotFound {
		return nil, err
	}
	body, err := s.db.DocumentAt(ctx, tenant, activities.DocumentSpec, c.Tool, c.Version)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil, nil
	}
	return body, err
}
