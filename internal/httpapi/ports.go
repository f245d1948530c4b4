package httpapi

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// Engine does what the operations ask for. A [client.Client] implements all of it.
type Engine struct {
	// Asker answers plain reads.
	api.Asker
	Sessions
	Calls
	Reviews
	Governance
	Records
	Documents
	Schedules
}

// Sessions starts sessions, sends them messages and reads them.
type Sessions interface {
	Start(ctx context.Context, o client.StartOptions) (client.Started, error)
	Say(ctx context.Context, tenant, id string, m protocol.Message) error
	Event(ctx context.Context, tenant, id string, e protocol.Event) error
	CancelBecause(ctx context.Context, tenant, id, reason, by string) error
	Status(ctx context.Context, tenant, id string) (jig.SessionView, error)
	// Result waits until the session has ended; SessionResult does not wait.
	Result(ctx context.Context, tenant, id string) (protocol.PassResult, error)
	SessionResult(ctx context.Context, tenant, id string) (protocol.SessionResult, error)
	// NextEvents returns a page of events, after waiting for the first one if the request says so.
	NextEvents(ctx context.Context, request protocol.EventsRequest) (protocol.EventsPage, error)
}

// Calls runs single calls and reads them.
type Calls interface {
	StartCall(ctx context.Context, input protocol.CallInput, id string) (client.Started, error)
	// AwaitCall waits until the call has its result or waits for a person.
	AwaitCall(ctx context.Context, tenant, id string) (protocol.CallResult, error)
	Record(ctx context.Context, tenant, session, call string) (protocol.CallRecord, error)
	Artifact(ctx context.Context, tenant, id string) ([]byte, error)
}

// Reviews lists and decides calls that wait for people.
type Reviews interface {
	Pending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (protocol.ApprovalList, error)
	Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error)
	Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error)
	Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (protocol.DecideResult, error)
	Reply(ctx context.Context, tenant, id string, reply jig.Reply) (protocol.DecideResult, error)
	Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (protocol.DecideResult, error)
}

// Governance manages what applies to many calls.
type Governance interface {
	Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error)
	GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error)
	RevokeGrant(ctx context.Context, request protocol.GrantsRequest) (jig.Grant, error)
	Pause(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error)
	Resume(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error)
}

// Records reads what happened, and what policies would make of it.
type Records interface {
	Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error)
	Simulate(ctx context.Context, request protocol.VerdictRequest) (protocol.Verdict, error)
	PolicyCases(ctx context.Context, tenant, document string) (protocol.CasesPage, error)
	BacktestOnce(ctx context.Context, request protocol.BacktestRequest) (protocol.BacktestPage, error)
	AuditOnce(ctx context.Context, request protocol.AuditRequest) (protocol.AuditPage, error)
}

// Documents reads what is registered, and with tools the entities that documents describe.
type Documents interface {
	Catalog(ctx context.Context, tenant string) (client.Catalog, error)
	Documents(ctx context.Context, tenant, kind string) ([]protocol.DocumentState, error)
	// DocumentVersions returns the current version of a document and the latest others, the latest first, or only the given version. The error is
	// NOT_FOUND if there is no such document.
	DocumentVersions(ctx context.Context, tenant, kind, name, version string) ([]protocol.DocumentState, error)
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
	// ReadWithTool returns what a built-in tool that reads entities returns for a principal.
	ReadWithTool(ctx context.Context, request protocol.ToolReadRequest) (json.RawMessage, error)
}

// Bundles reads the bundles that tenants have installed.
type Bundles interface {
	// Bundles lists a tenant's bundles, sorted by name.
	Bundles(ctx context.Context, tenant string) ([]bundle.Bundle, error)
}

// Schedules manages schedules.
type Schedules interface {
	CreateSchedule(ctx context.Context, o client.ScheduleOptions) (client.Schedule, error)
	Schedules(ctx context.Context, tenant string) ([]client.Schedule, error)
	// WholeSchedules returns all schedules with their principals and credentials.
	WholeSchedules(ctx context.Context, tenant string) ([]client.Schedule, error)
	Schedule(ctx context.Context, tenant, name string) (client.Schedule, error)
	PauseSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	ResumeSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	TakeOverSchedule(ctx context.Context, r client.ScheduleRequest) (client.Schedule, error)
	TriggerSchedule(ctx context.Context, r client.ScheduleRequest) (sessionID string, err error)
	DeleteSchedule(ctx context.Context, r client.ScheduleRequest) error
}

// CredentialStore stores API keys, logins and embed tokens. It records in the credential log what changes them.
type CredentialStore interface {
	// Credential returns the valid credential with an id and a hash, or NOT_FOUND.
	Credential(ctx context.Context, id string, hash []byte) (credential.Credential, error)
	// ValidCredentials returns those of the given credentials that are valid now.
	ValidCredentials(ctx context.Context, ids []string) ([]string, error)
	// Credentials lists a tenant's credentials of some kinds, the oldest first, including those that are no longer valid.
	Credentials(ctx context.Context, tenant string, kinds ...string) ([]credential.Credential, error)
	// CreateCredential stores a credential. It lasts as long as its kind allows, or until its ExpiresAt if that comes earlier. A login is a CONFLICT
	// if its attempt had one before.
	CreateCredential(ctx context.Context, n credential.New) (credential.Credential, error)
	// RevokeCredential ends a credential. One that the tenant does not have is NOT_FOUND.
	RevokeCredential(ctx context.Context, tenant string, c identity.CredentialRef, by string) error
	// NotePersons stores who of a key's principals is a person of the tenant.
	NotePersons(ctx context.Context, tenant, id string, persons []string) error
	// TakeOverAPIKey stores who made a key and with which credential, and the hash of its text, all of which are new. A key that is not valid is a
	// CONFLICT.
	TakeOverAPIKey(ctx context.Context, k credential.Credential, hash []byte) error
	// EmbedTokens lists a tenant's embed tokens after a cursor, the newest first.
	EmbedTokens(ctx context.Context, tenant, after string, limit int) (tokens []credential.Credential, next string, err error)
}

// CredentialLog is the record of what happens with credentials.
type CredentialLog interface {
	RecordCredential(ctx context.Context, e identity.CredentialEvent) error
	// EndedCredential returns the credential with an id and a hash if it is no longer valid, and the reason; otherwise NOT_FOUND.
	EndedCredential(ctx context.Context, id string, hash []byte) (ended credential.Credential, reason string, err error)
	// CredentialEvents lists a tenant's events, the newest first. An empty kind or principal means all.
	CredentialEvents(ctx context.Context, tenant, kind, principal, after string, limit int) (identity.CredentialEvents, error)
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

// Providers check what identity providers say about people.
type Providers interface {
	// AccessToken returns what a token says. A token that does not count is NOT_PERMITTED.
	AccessToken(ctx context.Context, raw string) (openid.Identity, error)
	// BeginLogin begins a login with a browser: it returns a cookie for the browser, and the address to which the browser must go. tenant may be
	// empty if there is only one provider.
	BeginLogin(ctx context.Context, tenant, callback, returnTo string) (cookie, address string, err error)
	// CommandLine returns the binding whose people log in with the command line. tenant may be empty if there is only one.
	CommandLine(tenant string) (openid.Binding, error)
	// FinishLogin completes a login. One that does not count is NOT_PERMITTED, reason login.
	FinishLogin(ctx context.Context, cookie string, query url.Values) (openid.LoggedIn, error)
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
	// CallsOf returns a session and those of the given calls that it has, or NOT_FOUND.
	CallsOf(ctx context.Context, tenant, id string, calls []string) (jig.Session, []jig.Call, error)
	// Follow sends the events after a sequence number as they are committed, and the text that models write from a pass on, until ctx ends. A
	// page has events or a draft.
	Follow(ctx context.Context, tenant, id string, after int64, pass int) <-chan protocol.EventsPage
	// TenantEvents returns the events of all sessions of a tenant after a cursor. Without a cursor it returns none, and the present cursor.
	TenantEvents(ctx context.Context, tenant, after string, limit int) (protocol.TenantEvents, error)
	// WatchTenant returns a channel that receives a value when there may be more of them, until ctx ends.
	WatchTenant(ctx context.Context, tenant string) <-chan struct{}
}
