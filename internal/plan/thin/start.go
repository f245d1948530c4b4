package thin

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// Starter starts extractions.
type Starter interface {
	// Start begins a session for a call of entities.extract with this input, on behalf of the invocation's principal, and returns at once.
	// If the session already exists, Start does nothing, even if the session has ended.
	Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error
	// Begun reports whether a session exists. The session that a call was meant to begin does not exist if that call failed first.
	Begun(ctx context.Context, tenant, session string) (bool, error)
}

// Sessions is the database access that [StartChild] and [NewStarter] need.
type Sessions interface {
	// NameChild records which session a running call starts, with the hash of what it asks of it. It returns CONFLICT if the call has started
	// another session.
	NameChild(ctx context.Context, tenant, id, callID, child, request string) error
	// PutArtifact stores a value and returns its id.
	PutArtifact(ctx context.Context, tenant, sessionID, mediaType string, value []byte) (string, error)
	// Session returns a session, or NOT_FOUND if the tenant has no session with that id.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
}

// Client starts workflows.
type Client interface {
	// StartChild starts the session that answers a call of another session. If it already exists, it is left alone.
	StartChild(ctx context.Context, input protocol.CallInput, session string) error
}

// starter starts extractions as children of the calling session.
type starter struct {
	sessions Sessions
	client   Client
}

// NewStarter returns a Starter that starts extractions with client, as children of the calling sessions.
func NewStarter(db Sessions, client Client) Starter { return starter{sessions: db, client: client} }

func (s starter) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error {
	return StartChild(ctx, s.sessions, s.client, session, protocol.CallInput{
		Tenant: inv.Tenant, Tool: toolname.EntitiesExtract, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	})
}

// StartChild starts the session of a call that another call makes. An input that is too large for a message is passed as an artifact, and so
// is the document of a call that names no tool.
func StartChild(ctx context.Context, db Sessions, client Client, session string, call protocol.CallInput) (err error) {
	request := jig.SessionRequest{Tool: call.Tool, Document: call.Document, Input: call.Input}.Digest()
	if err := db.NameChild(ctx, call.Tenant, call.Parent, call.ParentCall, session, request); err != nil {
		return err
	}
	if call.Document != "" {
		if call.DocumentArtifact, err = db.PutArtifact(ctx, call.Tenant, call.Parent, "text/plain", []byte(call.Document)); err != nil {
			return err
		}
		call.Document = ""
	}
	if len(call.Input) > protocol.MaxChildInput {
		if call.InputArtifact, err = db.PutArtifact(ctx, call.Tenant, call.Parent, "application/json", call.Input); err != nil {
			return err
		}
		call.Input = nil
	}
	return client.StartChild(ctx, call, session)
}

func (s starter) Begun(ctx context.Context, tenant, session string) (bool, error) {
	_, err := s.sessions.Session(ctx, tenant, session)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
