package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/remote"
	"github.com/jig-run/jig/internal/remote/signin"
)

// sessions starts sessions, follows them, and sends them messages.
type sessions interface {
	Start(ctx context.Context, o client.StartOptions) (client.Started, error)
	Result(ctx context.Context, tenant, id string) (client.PassResult, error)
	Follow(ctx context.Context, o client.FollowOptions, fn func(client.EventsPage) error) error
	Message(ctx context.Context, tenant, id, text, by string) error
	Event(ctx context.Context, tenant, id string, e client.Event) error
	CancelBecause(ctx context.Context, tenant, id, reason, by string) error
}

// calls runs single tool calls.
type calls interface {
	StartCall(ctx context.Context, input client.CallInput, id string) (client.Started, error)
	WholeResult(ctx context.Context, tenant string, r client.CallResult) (*jig.ToolResult, error)
	Trigger(ctx context.Context, input client.CallInput, id string) (client.CallResult, error)
	WaitCall(ctx context.Context, tenant, id string) (client.CallResult, error)
}

// decisions lists and answers calls that wait for a person.
type decisions interface {
	Approvals(ctx context.Context, tenant, sessionID string) ([]jig.Pending, error)
	Locate(ctx context.Context, tenant, session string, calls []string) ([]protocol.WaitingCall, error)
	Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (client.DecideResult, error)
	Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (client.DecideResult, error)
	Reply(ctx context.Context, tenant, id string, reply jig.Reply) (client.DecideResult, error)
}

// operations manages grants and pauses, which apply to many calls.
type operations interface {
	Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error)
	RevokeGrant(ctx context.Context, request client.GrantsRequest) (jig.Grant, error)
	GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error)
	Pause(ctx context.Context, request client.PauseRequest) (client.PauseResult, error)
	Resume(ctx context.Context, request client.PauseRequest) (client.PauseResult, error)
	Installation(ctx context.Context, tenant string) (string, error)
}

// reviews reads approvals, statistics and recorded calls.
type reviews interface {
	Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error)
	Pending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (client.PendingPage, error)
	Decisions(ctx context.Context, request protocol.DecisionsRequest) (protocol.ApprovalList, error)
	Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error)
	Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error)
	Backtest(ctx context.Context, tenant string, document []byte, since time.Time, all bool, fn func(client.BacktestPage) error) error
}

// readings reads sessions and entities.
type readings interface {
	Status(ctx context.Context, tenant, id string) (jig.SessionView, error)
	Answer(ctx context.Context, tenant string, view jig.SessionView) (string, error)
	SessionResult(ctx context.Context, tenant, id string) (protocol.SessionResult, error)
	Record(ctx context.Context, tenant, session, call string) (protocol.CallRecord, error)
	Events(ctx context.Context, tenant, id string, after int64) ([]jig.Event, error)
	Entity(ctx context.Context, tenant, id string) (jig.EntityStatus, error)
	ReadWithTool(ctx context.Context, request protocol.ToolReadRequest) (json.RawMessage, error)
}

// documents reads what is registered.
type documents interface {
	Catalog(ctx context.Context, tenant string) (client.Catalog, error)
	Document(ctx context.Context, tenant, kind, name string) ([]byte, error)
	DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error)
	DocumentVersions(ctx context.Context, tenant, kind, name, version string) ([]protocol.DocumentState, error)
}

// engine is the part of the client that the commands use, grouped by subject.
type engine struct {
	// Asker makes plain reads; see [ask].
	api.Asker
	sessions
	calls
	decisions
	operations
	reviews
	readings
	documents
	schedules
	audits
	// Close closes the connection.
	Close func()
}

// ask makes a plain read in the user's tenant. Ids of sessions in the request may lack the tenant's prefix.
func ask[Request, Response any](ctx context.Context, a *app, e engine, op api.Op[Request, Response], in Request) (Response, error) {
	api.Bind(&in, a.flags.tenant, a.principal())
	return api.Ask(ctx, e, op, in)
}

// dial connects to the real engine. If nothing answers, its error says where the address came from.
func dial(ctx context.Context, s client.Settings) (engine, error) {
	c, err := client.Dial(ctx, client.Options{Temporal: s.Temporal, TaskQueue: s.TaskQueue})
	if err != nil {
		if e := jig.AsError(err); e.Reason == client.ReasonNoTemporal || e.Reason == client.ReasonTemporalRefused {
			return engine{}, &jig.Error{
				Code: e.Code, Message: fmt.Sprintf("%s (address from: %s)", e.Message, s.Source), Hint: e.Hint, Reason: e.Reason, Cause: err,
			}
		}
		return engine{}, err
	}
	return engine{
		Asker: c, sessions: c, calls: c, decisions: c, operations: c, reviews: c, readings: c, documents: c, schedules: c, audits: c, Close: c.Close,
	}, nil
}

// Environment variables with which the command line reaches a server instead of Temporal.
const (
	envURL    = "JIG_URL"
	envAPIKey = "JIG_API_KEY" //nolint:gosec // the name of a variable
)

// meetTimeout is how long a server may take to say who a credential belongs to.
const identifyTimeout = 10 * time.Second

// processesTitle is the title of the commands that run jig itself. They reach Temporal and the database directly.
const processesTitle = "Run jig itself:"

// serverURL returns the address of the server that the command line uses; empty if it talks to Temporal.
func (a *app) serverURL() string {
	if a.flags.address != "" {
		return ""
	}
	return cmp.Or(a.flags.url, a.env[envURL])
}

// identify asks the server who the user's credential belongs to, so that commands act in that tenant and as that principal. Commands that need no
// engine do not ask. If the server does not answer, the commands that need it say so.
func (a *app) identify(ctx context.Context, cmd *cobra.Command) error {
	apart := cmd.Name() == "new" // `key new` reaches nothing, nor do the commands below
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	switch {
	case a.flags.url != "" && a.flags.address != "":
		return usagef("--url and --temporal-address cannot be combined: one is a jig server, the other Temporal")
	case cmd.GroupID == processesTitle && a.flags.url != "":
		return usagef("--url: `%s` does not work over HTTP: it reaches Temporal and the database directly", cmd.CommandPath())
	case a.serverURL() == "", cmd.GroupID == processesTitle, slices.Contains([]string{"init", "login", "logout", "version", "completion", "help"}, cmd.Name()), apart:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	o := remote.Options{URL: a.serverURL(), Token: a.credential, Principal: cmp.Or(a.flags.as, a.env["JIG_PRINCIPAL"]), Tenant: cmp.Or(a.flags.tenant, a.env["JIG_TENANT"])}
	if a.server, a.serverErr = remote.Dial(ctx, o); a.serverErr == nil {
		a.flags.tenant, a.flags.as = a.server.Tenant, a.server.Principal
	}
	if e := jig.AsError(a.serverErr); a.serverErr != nil && e.Reason == remote.ReasonCredential && a.env[envAPIKey] == "" {
		a.serverErr = e.WithHint("the server does not accept the login; run `jig login` again")
	}
	return nil
}

// credential returns the credential for the server: the API key in the environment, or the one of a login.
func (a *app) credential(ctx context.Context) (string, error) {
	if key := a.env[envAPIKey]; key != "" {
		return key, nil
	}
	if a.kept == nil {
		store, err := a.logins()
		if err != nil {
			return "", err
		}
		a.kept = signin.NewKeeper(store)
	}
	if token, err := a.kept.Token(ctx, a.serverURL()); err != nil || token != "" {
		return token, err
	}
	return "", usage(jig.Errorf(jig.CodeMissingParam, "there is no credential for the server at %s", a.serverURL()).WithField(envAPIKey).
		WithHint("run `jig login`, or set " + envAPIKey + "; `jig api-key create` makes a key"))
}

// overHTTP returns the engine behind a server.
func overHTTP(c *remote.Client) engine {
	return engine{
		Asker: c, sessions: c, calls: c, decisions: c, operations: c, reviews: c, readings: c, documents: c, schedules: c, audits: c, Close: c.Close,
	}
}

// using returns the function of a command that needs the engine.
func (a *app) using(do func(ctx context.Context, e engine, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.with(ctx, func(e engine) error { return do(ctx, e, args) })
	}
}

// with connects to the engine, calls do, and closes the connection.
func (a *app) with(ctx context.Context, do func(engine) error) error {
	if a.serverErr != nil {
		return a.serverErr
	}
	if a.server != nil {
		defer a.server.Close()
		return do(overHTTP(a.server))
	}
	request, err := a.request()
	if err != nil {
		return err
	}
	if a.settings, err = client.LoadSettings(request); err != nil {
		return usage(err)
	}
	e, err := a.connect(ctx, a.settings)
	if err != nil {
		return err
	}
	defer e.Close()
	return do(e)
}
