package thin

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/protocol"
)

// Starter starts extractions.
type Starter interface {
	// Start begins a session for a call of entities.extract with this input, on behalf of the invocation's principal, and returns at once.
	// If the session already exists, Start does nothing, even if the session has ended.
	Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) error
	// Begun reports whether a session exists. The session that a call was meant to begin does not exist if that call failed first.
	Begun(ctx context.Context, tenant, session string) (bool, error)
}

// Sessions is the database access that [NewStarter] needs.
type Sessions interface {
	// NameChild records which session a running call starts. It returns CONFLICT if the call has started another session.
	NameChild(ctx context.Context, tenant, id, callID, child string) error
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

func (s starter) Start(ctx context.Context, inv jig.Invocation, session string, input json.RawMessage) (err error) {
	if err := s.sessions.NameChild(ctx, inv.Tenant, inv.SessionID, inv.CallID, session); err != nil {
		return err
	}
	call := protocol.CallInput{
		Tenant: inv.Tenant, Tool: entities.ExtractTool, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	}
	if len(input) > protocol.MaxChildInput {
		if call.InputArtifact, err = s.sessions.PutArtifact(ctx, inv.Tenant, inv.SessionID, "application/json", input); err != nil {
			return err
		}
		call.Input = nil
	}
	return s.client.StartChild(ctx, call, session)
}

func (s starter) Begun(ctx context.Context, tenant, session string) (bool, error) {
	_, err := s.sessions.Session(ctx, tenant, session)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}
