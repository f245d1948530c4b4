package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
)

// Sizes of messages that go through Temporal.
const (
	// inlineBytes bounds the document, input and task that travel with a start; anything larger is uploaded first.
	inlineBytes = 48 << 10
	// chunkBytes is the size of an upload's largest part.
	chunkBytes = 128 << 10
	// listedTaskBytes bounds the task that a list of schedules shows.
	listedTaskBytes = 200
)

// StartOptions say what to start. Agent or Document is required.
type StartOptions struct {
	// Tenant owns the session; default "default".
	Tenant string
	// ID is the client's own id for the session, such as order-7; it must be unique within the tenant. The session's id becomes
	// "<tenant>.<ID>", which is accepted here as well. If ID is empty, jig makes an id with the agent's name in it. See [jig.CheckClientID].
	ID string
	// Key is an idempotency key, which may be given instead of an ID: jig makes an id, and a request with the same key finds it again.
	Key string
	// Agent is the name of a registered agent. With a Document it is only the name that is shown for the session.
	Agent string
	// Document is an agent document (Markdown with front matter). DocumentName is its file name, for messages.
	Document     string
	DocumentName string
	// Task is the first message to the agent.
	Task string
	// Input is the session's input, a JSON object. Pairs are further inputs of the form key=value, which the agent's input schema converts.
	Input json.RawMessage
	Pairs map[string]string
	// Model replaces the agent's model.
	Model string
	// Principal is the principal that the session acts for.
	Principal jig.Principal
	// Source says how the session is started; empty means api.
	Source jig.Source
	// Check makes Start refuse a session that cannot work, such as one of an unknown agent, before anything is started. It takes one more
	// request. If no worker answers, the session is started all the same.
	Check bool
}

// Started is a session that was started, now or by an earlier request.
type Started struct {
	SessionID string
	// ClientID is the id that the client chose; empty if jig made the session's id.
	ClientID string
	// Existing is true if the session already existed, running or ended, and nothing was started.
	Existing bool
}

// Start starts a session. If the id is taken, it returns the existing session if the same request started it, and CONFLICT otherwise.
func (c *Client) Start(ctx context.Context, o StartOptions) (Started, error) {
	var err error
	fresh := o.ID == "" && o.Key == ""
	if o.Tenant, o.ID, err = chosen(o.Tenant, o.ID, o.Key, o.shownAgent()); err != nil {
		return Started{}, err
	}
	request := o.request()
	start, err := c.stage(ctx, o)
	if err != nil {
		return Started{}, err
	}
	if err := c.vouchSession(ctx, protocol.StateStart, o, &start); err != nil {
		return Started{}, err
	}
	options, input := c.sessionStart(o, start)
	if o.Check || !fresh {
		check := protocol.CheckRequest{Tenant: o.Tenant, SessionID: o.ID, Start: &start}
		if options.WorkflowIDReusePolicy, err = c.check(ctx, check, fresh); err != nil {
			return Started{}, err
		}
	}
	options.Memo[memoRequest] = request.Digest()
	started, err := c.startOnce(ctx, options, protocol.PassWorkflow, input)
	if started.Existing && fresh { // an earlier attempt of this request started it
		started.Existing = false
	} else if started.Existing {
		_, err = c.sameRequest(ctx, o.Tenant, started.SessionID, request)
	}
	if err != nil {
		return Started{}, err
	}
	c.owned.Put(ownKey{o.Tenant, started.SessionID}, struct{}{})
	return started, nil
}

// request returns the request that the options describe.
func (o StartOptions) request() jig.SessionRequest {
	r := jig.SessionRequest{
		Document: o.Document, Task: o.Task, Input: o.Input, Pairs: o.Pairs, Model: o.Model, Principal: o.Principal.ID,
	}
	if o.Document == "" {
		r.Agent = o.Agent
	}
	return r
}

// startOnce starts a workflow unless one with the same id exists, running or ended.
func (c *Client) startOnce(ctx context.Context, options sdk.StartWorkflowOptions, workflow string, input any) (Started, error) {
	options.WorkflowIDReusePolicy = cmp.Or(options.WorkflowIDReusePolicy, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	// Both policies refuse an id that is taken, so that the caller learns that the session already existed. With USE_EXISTING the SDK does not
	// say whether it started anything.
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	options.EnableEagerStart = true
	err := c.repeat(ctx, func(ctx context.Context) error {
		_, err := c.temporal.ExecuteWorkflow(ctx, options, workflow, input)
		return err
	}, busy)
	started := Started{SessionID: options.ID, ClientID: jig.ClientID(options.ID)}
	if started.Existing = alreadyStarted(err); started.Existing {
		return started, nil
	}
	if err != nil {
		return Started{}, translate(err)
	}
	return started, nil
}

func alreadyStarted(err error) bool {
	var taken *serviceerror.WorkflowExecutionAlreadyStarted
	return errors.As(err, &taken)
}

// sessionStart returns the options and the input of a session's workflow, which is started now or by a schedule.
func (c *Client) sessionStart(o StartOptions, start protocol.StartSession) (sdk.StartWorkflowOptions, protocol.PassInput) {
	agent := o.shownAgent()
	whole := protocol.StartSession{Task: o.Task, Pairs: o.Pairs, Input: o.Input}
	summary := protocol.Summary(agent, whole.Asked())
	return c.workflowOptions(o.ID, o.Tenant, agent, summary), protocol.PassInput{Tenant: o.Tenant, Start: &start}
}

// stage builds the start message. It uploads values that are too large for the message as artifacts, the largest first.
func (c *Client) stage(ctx context.Context, o StartOptions) (protocol.StartSession, error) {
	s := protocol.StartSession{
		Document: o.Document, DocumentName: o.DocumentName, Task: o.Task, Input: o.Input, Pairs: o.Pairs, Model: o.Model,
		Principal: o.Principal, Source: o.Source,
	}
	if err := sendable("task", o.Task, o.Input, o.Pairs); err != nil {
		return s, err
	}
	if err := sendable("document", o.Document, nil, nil); err != nil {
		return s, err
	}
	if o.Document == "" {
		s.Agent = o.Agent
	}
	if s.Agent == "" && s.Document == "" {
		return s, jig.Errorf(jig.CodeInvalidInput, "give an agent or an agent document").WithField("agent")
	}
	if size := len(s.Task) + pairsSize(s.Pairs); size > inlineBytes {
		return s, jig.Errorf(jig.CodeInvalidInput, "the task and the key=value inputs have %d bytes; at most %d are allowed", size, inlineBytes).
			WithField("task").WithHint("pass large values as a JSON document")
	}
	for len(s.Task)+pairsSize(s.Pairs)+len(s.Document)+len(s.Input) > inlineBytes {
		var err error
		if len(s.Document) >= len(s.Input) {
			s.DocumentArtifact, err = c.upload(ctx, o.Tenant, []byte(s.Document))
			s.Document = ""
		} else {
			s.InputArtifact, err = c.upload(ctx, o.Tenant, s.Input)
			s.Input = nil
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// sendable returns an error if a text is not UTF-8, which JSON would change, or if the input is not acceptable JSON.
func sendable(name, text string, input json.RawMessage, pairs map[string]string) error {
	for key, value := range pairs {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return notUTF8("input")
		}
	}
	switch err := strictjson.Check(input); {
	case !utf8.ValidString(text):
		return notUTF8(name)
	case len(input) > 0 && err != nil:
		return err
	}
	return nil
}

func notUTF8(name string) error {
	return jig.Errorf(jig.CodeInvalidInput, "the %s is not valid UTF-8", jig.Known(name)).WithField(name).WithHint("encode the text as UTF-8")
}

func pairsSize(pairs map[string]string) int {
	size := 0
	for k, v := range pairs {
		size += len(k) + len(v) + len(`"":"",`)
	}
	return size
}

// shownAgent returns the agent's name as lists of sessions show it.
func (o StartOptions) shownAgent() string {
	if o.Agent != "" || o.DocumentName == "" {
		return o.Agent
	}
	base := path.Base(strings.ReplaceAll(o.DocumentName, `\`, "/"))
	return strings.TrimSuffix(base, path.Ext(base))
}

// workflowOptions returns the start options that all session workflows share. The summary is in the memo, too: Temporal keeps the memo of a
// workflow when it continues as new, but not its summary.
func (c *Client) workflowOptions(id, tenant, agent, summary string) sdk.StartWorkflowOptions {
	attributes := []sdktemporal.SearchAttributeUpdate{
		sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant).ValueSet(tenant),
		sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrStatus).ValueSet(string(jig.StatusWorking)),
		sdktemporal.NewSearchAttributeKeyInt64(protocol.AttrPass).ValueSet(1),
		sdktemporal.NewSearchAttributeKeyInt64(protocol.AttrPending).ValueSet(0),
	}
	if agent != "" {
		attributes = append(attributes, sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrAgent).ValueSet(agent))
	}
	return sdk.StartWorkflowOptions{
		ID:                    id,
		TaskQueue:             c.queue,
		StaticSummary:         summary,
		Memo:                  map[string]any{protocol.MemoSummary: summary},
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(attributes...),
		// Activities, child workflows and later runs inherit the key, so that the backlog of one tenant does not delay the others.
		Priority: sdktemporal.Priority{FairnessKey: tenant},
	}
}

// definite lists the errors of a check that a retry does not change, so that nothing is started.
var definite = []jig.Code{
	jig.CodeToolNotFound, jig.CodeNotFound, jig.CodeNotPermitted, jig.CodeMissingParam, jig.CodeInvalidInput, jig.CodeConflict,
}

// check returns the error with which a session or a call would fail to start. fresh reports that its id is new; otherwise a session with that
// id may exist, and is not started again. Any other failure is not an error: the start is durable, and the worker that picks it up checks
// it again. reuse allows the id to be used again if the earlier start was refused.
func (c *Client) check(ctx context.Context, in protocol.CheckRequest, fresh bool) (reuse enumspb.WorkflowIdReusePolicy, err error) {
	if !fresh {
		sighted, err := c.look(ctx, in.Tenant, in.SessionID)
		if err == nil && !c.refused(ctx, in.Tenant, in.SessionID, sighted) {
			return reuse, nil
		}
		if err == nil {
			reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
		}
	}
	_, err = ask(ctx, c, protocol.CheckStart, in)
	if ctx.Err() != nil || slices.Contains(definite, jig.CodeOf(err)) {
		return reuse, err
	}
	return reuse, nil
}

// refused reports whether a start was refused, so that its session was never opened: neither the store nor Temporal has a result for it. It asks
// Temporal too, because the store may have been restored from a backup.
func (c *Client) refused(ctx context.Context, tenant, id string, sighted sighting) bool {
	if sighted.status != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		return false
	}
	if _, err := c.Status(ctx, tenant, id); !isNotFound(err) {
		return false
	}
	var ended protocol.PassResult
	err := c.outcome(ctx, id, &ended)
	return err != nil && ctx.Err() == nil && ended.Passes == 0
}

// memoRequest is the field of a workflow's memo that holds a digest of the request that started the session, so that a repeated start can be
// distinguished from a different request under the same id.
const memoRequest = "jig_request"

// chosen checks the id that a client chose for a session and returns the tenant and the session's id. Without an id it makes one, from the
// idempotency key if there is one, or one with the name of what the session runs; the default tenant is "default".
func chosen(tenant, id, key, name string) (owner, session string, err error) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	if err := jig.CheckTenant(tenant); err != nil {
		return tenant, id, translate(err)
	}
	switch {
	case key != "" && id != "":
		return tenant, id, jig.Errorf(jig.CodeInvalidInput, "give an id or an idempotency key, not both").WithField("id")
	case key != "":
		return tenant, jig.KeyedSessionID(tenant, key), nil
	case id == "":
		return tenant, jig.NewSessionIDFor(name), nil
	}
	return tenant, jig.SessionID(tenant, id), CheckID(tenant, id)
}

// CheckID returns an error if a client cannot choose id for a session of the tenant. The id may be given with or without the tenant prefix.
func CheckID(tenant, id string) error {
	if client := jig.ClientID(jig.SessionID(tenant, id)); client != "" {
		id = client
	}
	return translate(jig.CheckClientID(id))
}

// named returns a session's tenant and id. The id may be given with or without the tenant prefix; the default tenant is "default".
func named(tenant, id string) (owner, session string) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	return tenant, jig.SessionID(tenant, id)
}

// sameRequest looks up the session with the given id. It returns CONFLICT if another request started it.
func (c *Client) sameRequest(ctx context.Context, tenant, session string, r jig.SessionRequest) (sighting, error) {
	sighted, err := c.look(ctx, tenant, session)
	switch {
	case errors.Is(err, &jig.Error{Code: jig.CodeNotFound}), err == nil && sighted.request != r.Digest():
		return sighted, jig.Errorf(jig.CodeConflict, "the id %s was used for another request", session).WithField("id").
			WithHint("repeat the first request exactly, or choose another id")
	}
	return sighted, err
}
