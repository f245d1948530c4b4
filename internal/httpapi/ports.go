package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// Engine does what the operations ask for. A [client.Client] implements all of it.
type Engine struct {
	Sessions
	Calls
	Reviews
}

// Sessions starts sessions, sends them messages and reads them.
type Sessions interface {
	Start(ctx context.Context, o client.StartOptions) (client.Started, error)
	Say(ctx context.Context, tenant, id string, m protocol.Message) error
	Cancel(ctx context.Context, tenant, id string) error
	Sessions(ctx context.Context, tenant string, filter protocol.SessionFilter, cursor string, limit int) (protocol.SessionsPage, error)
	Status(ctx context.Context, tenant, id string) (jig.SessionView, error)
	// Result waits until the session has ended; SessionResult does not wait.
	Result(ctx context.Context, tenant, id string) (protocol.PassResult, error)
	SessionResult(ctx context.Context, tenant, id string) (protocol.SessionResult, error)
	Transcript(ctx context.Context, tenant, id, cursor string) (protocol.TranscriptPage, error)
}

// Calls runs single calls and lists tools.
type Calls interface {
	StartCall(ctx context.Context, input protocol.CallInput, id string) (client.Started, error)
	// AwaitCall waits until the call has its result or waits for a person.
	AwaitCall(ctx context.Context, tenant, id string) (protocol.CallResult, error)
	Record(ctx context.Context, tenant, session, call string) (protocol.CallRecord, error)
	Catalog(ctx context.Context, tenant string) (client.Catalog, error)
}

// Reviews lists and decides calls that wait for people.
type Reviews interface {
	Pending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (protocol.ApprovalsPage, error)
	Show(ctx context.Context, tenant, session, call string) (jig.Pending, json.RawMessage, error)
	Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (protocol.DecideResult, error)
}

// Keys finds API keys.
type Keys interface {
	// APIKey returns the valid key with an id and a hash, or NOT_FOUND.
	APIKey(ctx context.Context, id string, hash []byte) (apikey.Key, error)
	// ValidAPIKeys returns those of the given keys that are valid now.
	ValidAPIKeys(ctx context.Context, ids []string) ([]string, error)
}

// Observer counts what the server does.
type Observer interface {
	// Requested is called after each request. The operation is empty if there is none at its address. took does not include the time that the
	// client asked to wait, and is 0 for streams.
	Requested(operation string, status int, took time.Duration)
	// Refused is called for each request that is refused because of its credential, its host or a rate limit, with the reason.
	Refused(reason string)
	// StreamOpened and StreamClosed are called for each event stream.
	StreamOpened()
	StreamClosed()
}

// nobody is an observer that counts nothing.
type nobody struct{}

func (nobody) Requested(string, int, time.Duration) {}
func (nobody) Refused(string)                       {}
func (nobody) StreamOpened()                        {}
func (nobody) StreamClosed()                        {}

// Providers check the access tokens of identity providers.
type Providers interface {
	// AccessToken returns what a token says. A token that does not count is NOT_PERMITTED.
	AccessToken(ctx context.Context, raw string) (openid.Identity, error)
}

// Tenants reads the settings of tenants. A change takes effect within a second.
type Tenants interface {
	Settings(ctx context.Context, tenant string) (tenancy.Settings, error)
}

// Log is the event logs of sessions.
type Log interface {
	// Session returns a session, or NOT_FOUND.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
	// Events returns up to limit events after a sequence number, oldest first.
	Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
	// Subscribe sends the events after a sequence number as they are committed, until ctx ends.
	Subscribe(ctx context.Context, tenant, id string, after int64) <-chan []jig.Event
}
