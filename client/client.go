// Package client lets programs start sessions and single calls, decide about calls that wait, and read what happened. It talks only to
// Temporal: it changes a session with a signal or an update, and reads with a standalone activity that a worker executes. It does not
// depend on the store.
//
// A session is a workflow, whose id is the session's id. [Client.Start] and [Client.StartCall] start one under an id that the client chooses, so that
// a repeated request finds the first one. Before a signal, the client asks Temporal whether the session exists, belongs to the tenant and still runs.
// Decisions are updates, which return what became of each of them; the answer of one that got lost is read from the store. Each read has a name and
// types in internal/protocol. A program with a [Reader], such as the server, answers some of them itself. Large values travel in pieces.
//
// Begin with [Dial], then [Client.Start] in start.go and ask in read.go. Schedules are Temporal's own schedules, whose memo says what they start.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"time"

	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/protocol"
)

// Options say how to reach jig. The zero value of each field means its default.
type Options struct {
	// Temporal are the options of Temporal's own client (address, namespace, TLS, credentials); see [LoadSettings]. Only [Dial] uses them.
	// Default: the address 127.0.0.1:7233 and the namespace default. Without a Logger nothing is logged.
	Temporal sdk.Options
	// TaskQueue is the queue that the workers poll; default jig.
	TaskQueue string
	// ConnectTimeout bounds Dial; default 3 s.
	ConnectTimeout time.Duration
	// WorkerTimeout is how long a request waits for a worker to pick it up before it fails with the reason [ReasonNoWorker]; default 5 s.
	WorkerTimeout time.Duration
	// RetryFor is how long a request is retried while the server is busy or a session moves from one pass to the next; default 30 s.
	RetryFor time.Duration
	// Reader answers requests that read, without a worker. May be nil: then workers answer all of them.
	Reader Reader
	// Voucher signs statements about the principals for whom requests are sent. The server has one. May be nil: then principals are claimed.
	Voucher protocol.Voucher
}

// Reader answers a client's requests from the store that the workers use. The server has one.
type Reader interface {
	// Read answers the request with a name into answer, a pointer. It returns false if it does not answer this request, which then goes to a
	// worker.
	Read(ctx context.Context, name string, request, answer any) (answered bool, err error)
}

// signals sends signals to workflows.
type signals interface {
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any, options sdk.StartWorkflowOptions,
		workflow any, workflowArgs ...any) (sdk.WorkflowRun, error)
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
}

// temporal is the part of Temporal's client that a [Client] uses.
type temporal interface {
	ExecuteWorkflow(ctx context.Context, options sdk.StartWorkflowOptions, workflow any, args ...any) (sdk.WorkflowRun, error)
	GetWorkflow(ctx context.Context, workflowID, runID string) sdk.WorkflowRun
	CancelWorkflowWithOptions(ctx context.Context, options sdk.CancelWorkflowOptions) error
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservicepb.DescribeWorkflowExecutionResponse, error)
	UpdateWorkflow(ctx context.Context, options sdk.UpdateWorkflowOptions) (sdk.WorkflowUpdateHandle, error)
	NewWithStartWorkflowOperation(options sdk.StartWorkflowOptions, workflow any, args ...any) sdk.WithStartWorkflowOperation
	UpdateWithStartWorkflow(ctx context.Context, options sdk.UpdateWithStartWorkflowOptions) (sdk.WorkflowUpdateHandle, error)
	ExecuteActivity(ctx context.Context, options sdk.StartActivityOptions, activity any, args ...any) (sdk.ActivityHandle, error)
	ScheduleClient() sdk.ScheduleClient
}

// Client starts, changes and reads sessions. It is safe for concurrent use. Its errors are a [*jig.Error], or wrap the error of a context
// that ended.
type Client struct {
	temporal      temporal
	signals       signals
	queue         string
	workerTimeout time.Duration
	retryFor      time.Duration
	reader        Reader
	voucher       protocol.Voucher
	// owned holds the sessions that are known to belong to a tenant.
	owned *cache.Cache[ownKey, struct{}]
	// close closes a connection that this client opened; nil if the caller opened it.
	close func()
}

// New returns a client that uses the caller's Temporal client. The caller remains responsible for closing that Temporal client.
func New(temporalClient sdk.Client, o Options) *Client {
	return newClient(temporalClient, temporalClient, o)
}

func newClient(t temporal, s signals, o Options) *Client {
	c := &Client{temporal: t, signals: s, queue: o.TaskQueue, workerTimeout: o.WorkerTimeout, retryFor: o.RetryFor, reader: o.Reader, voucher: o.Voucher, owned: cache.New[ownKey, struct{}](ownFor, maxOwn)}
	if c.queue == "" {
		c.queue = protocol.TaskQueue
	}
	if c.workerTimeout <= 0 {
		c.workerTimeout = 5 * time.Second
	}
	if c.retryFor <= 0 {
		c.retryFor = 30 * time.Second
	}
	return c
}

// Dial connects to Temporal. If nothing answers within ConnectTimeout, the error is UNAVAILABLE and names the address.
func Dial(ctx context.Context, o Options) (*Client, error) {
	t, err := DialTemporal(ctx, o.Temporal, o.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	c := newClient(t, t, o)
	c.close = t.Close
	return c, nil
}

// DialTemporal connects like [Dial], for programs that need Temporal's client itself. A timeout of 0 means 3 s. If the options do not say
// whether requests are compressed, they are compressed unless the server is on this machine.
func DialTemporal(ctx context.Context, options sdk.Options, timeout time.Duration) (sdk.Client, error) {
	if timeout <= 0 {
		timeout = 3 * time.Second
	}
	if options.Logger == nil {
		options.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	}
	if options.ConnectionOptions.GetSystemInfoTimeout == 0 {
		options.ConnectionOptions.GetSystemInfoTimeout = timeout
	}
	if options.ConnectionOptions.GrpcCompression == nil && loopback(options.HostPort) {
		options.ConnectionOptions.GrpcCompression = &sdk.GrpcCompressionNone{}
	}
	dialCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	t, err := sdk.DialContext(dialCtx, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to Temporal: %w", ctx.Err())
		}
		return nil, unreachable(options.HostPort, err)
	}
	return t, nil
}

func unreachable(address string, err error) error {
	if address == "" {
		address = DefaultAddress
	}
	e := jig.Errorf(jig.CodeUnavailable, "no Temporal server answers at %s", address).WithReason(ReasonNoTemporal).
		WithHint("start one with `jig-dev`, or give its address with --temporal-address or JIG_TEMPORAL_ADDRESS; " +
			"if it was started in another folder, set " + EnvDevEnv + " to the path of its " + DevEnvFile)
	if translated := jig.AsError(translate(err)); translated.Code != jig.CodeUnavailable && !errors.Is(err, context.DeadlineExceeded) {
		e = e.WithHint(translated.Message).WithReason(ReasonTemporalRefused)
		e.Message = "the Temporal server at " + address + " refuses the connection"
	}
	e.Cause = err
	return e
}

// Close closes the connection that [Dial] opened. It does nothing for a client made by [New].
func (c *Client) Close() {
	if c.close != nil {
		c.close()
	}
}

// TaskQueue returns the task queue that this client sends requests to.
func (c *Client) TaskQueue() string { return c.queue }

// EnvCompression says whether requests to Temporal are compressed: auto, on or off. Automatically, they are compressed unless the server is
// on this machine, where compressing costs both sides more than sending.
const EnvCompression = "JIG_TEMPORAL_COMPRESSION"

// compression returns the option for a value of [EnvCompression]. It returns nil for auto, which [DialTemporal] decides by the address.
func compression(value string) (sdk.GrpcCompression, error) {
	switch value {
	case "", "auto":
		return nil, nil // nil means that the setting does not decide
	case "on":
		return &sdk.GrpcCompressionGzip{}, nil
	case "off":
		return &sdk.GrpcCompressionNone{}, nil
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%s is not auto or on or off", EnvCompression).WithField(EnvCompression)
	}
}

// loopback reports whether an address, host:port, is on this machine. The empty address means [DefaultAddress].
func loopback(address string) bool {
	if address == "" {
		address = DefaultAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}

// The messages that a client sends and receives. They have names in this package so that its users need not import another one.
type (
	// CallInput says which tool to run with which input; see [Client.Trigger].
	CallInput = protocol.CallInput
	// CallResult is the state of a single call.
	CallResult = protocol.CallResult
	// DecideResult is the outcome of decisions.
	DecideResult = protocol.DecideResult
	// EventsPage is a part of a session's log, with the session's status.
	EventsPage = protocol.EventsPage
	// PassResult is the outcome of a session.
	PassResult = protocol.PassResult
)

// Signals that the stock Temporal CLI can send to a session.
const (
	SignalApprove   = protocol.SignalApprove
	SignalReconcile = protocol.SignalReconcile
)

// vouch returns the signed statement about a request, or "" if nobody vouches for this client's principals.
func (c *Client) vouch(ctx context.Context, s protocol.Statement) (string, error) {
	if c.voucher == nil {
		return "", nil
	}
	text, err := c.voucher.Vouch(ctx, s)
	return text, translate(err)
}

// vouchSession adds the statement about a session that is started now or, with kind [protocol.StateSchedule], by a schedule.
func (c *Client) vouchSession(ctx context.Context, kind protocol.StatementKind, o StartOptions, start *protocol.StartSession) (err error) {
	start.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: kind, Tenant: o.Tenant, Principal: o.Principal, Session: o.ID, Content: o.request().Digest(), Source: o.Source, Mandate: mandateOf(start.Mandate),
	})
	return err
}

// vouchCall does the same for a single call.
func (c *Client) vouchCall(ctx context.Context, kind protocol.StatementKind, id string, input *protocol.CallInput) (err error) {
	input.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: kind, Tenant: input.Tenant, Principal: input.Principal, Session: id, Content: callRequest(*input).Digest(), Source: input.Source, Mandate: mandateOf(input.Mandate),
	})
	return err
}

func mandateOf(m *protocol.Mandate) protocol.Mandate {
	if m == nil {
		return protocol.Mandate{}
	}
	return *m
}

// vouchMessage adds the statement about a message, which counts once, by its id.
func (c *Client) vouchMessage(ctx context.Context, tenant, id string, m *protocol.Message) (err error) {
	if c.voucher == nil || m.Parent != "" {
		return nil
	}
	if m.ID == "" {
		m.ID = rand.Text()
	}
	m.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateMessage, Tenant: tenant, Principal: jig.Principal{ID: m.By}, Session: id, Content: m.Content(), ID: m.ID,
	})
	return err
}

// vouchEvent does the same for an event.
func (c *Client) vouchEvent(ctx context.Context, tenant, id string, e *protocol.Event) (err error) {
	e.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateEvent, Tenant: tenant, Principal: jig.Principal{ID: e.By}, Session: id, Content: e.Content(), ID: e.ID,
	})
	return err
}

// vouchDecision returns the statement about decisions, an answer or an outcome with a content.
func (c *Client) vouchDecision(ctx context.Context, tenant, id, by, content string) (string, error) {
	tenant, id = named(tenant, id)
	return c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateDecide, Tenant: tenant, Principal: jig.Principal{ID: by}, Session: id, Content: content,
	})
}

// askedWith returns the arguments of an activity that answers a request: the request and, if there is one, the statement about it.
func (c *Client) askedWith(ctx context.Context, name string, request any) ([]any, error) {
	tenant := reflect.ValueOf(request).FieldByName("Tenant") // every request has one
	if c.voucher == nil || !tenant.IsValid() {
		return []any{request}, nil
	}
	proof, err := c.vouch(ctx, protocol.Statement{Kind: protocol.StateRead, Tenant: tenant.String(), Content: protocol.ContentOf(name, request)})
	return []any{request, proof}, err
}
