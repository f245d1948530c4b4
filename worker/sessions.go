package worker

import (
	"context"
	"encoding/json"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/builtin/tasks"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/tools"
)

// taskTools returns the tools that run the tasks of entities, show their state, and retry sessions.
func taskTools(db *store.DB, temporal sdk.Client, s Settings) []tools.Tool {
	entities := guardedEntities(db)
	return tasks.Tools(tasks.Options{
		Readable: entities.Readable,
		CheckTask: func(ctx context.Context, inv jig.Invocation, input json.RawMessage) error {
			_, err := entities.TaskExtraction(ctx, inv, input)
			return err
		},
		Status: extractor.NewProgress(db).EntityStatus, Session: db.Session, Call: db.Call, Doubtful: db.DoubtfulCalls, Said: db.HasMessage,
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
