package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// longWait is how many seconds a request for a result waits.
	longWait = 60
	// maxEvents is the most events of a page.
	maxEvents = 500
)

// Start starts a session, like [client.Client.Start].
func (c *Client) Start(ctx context.Context, o client.StartOptions) (client.Started, error) {
	var in api.StartSessionRequest
	b := &in.Body
	b.ID, b.Agent, b.Document, b.DocumentName, b.Task, b.Model, b.Source = o.ID, o.Agent, o.Document, o.DocumentName, o.Task, o.Model, o.Source
	b.Input, b.Pairs = value(o.Input), o.Pairs
	if o.Document != "" {
		b.Agent = ""
	}
	if o.ID == "" { // an attempt that is repeated must find what the first one started
		in.Key = newKey(cmp.Or(o.Agent, o.DocumentName))
	}
	r := requestOf(api.StartSession.Describe(), in)
	r.repeatable = true
	var started api.StartedSession
	got, err := c.do(ctx, r, &started)
	return client.Started{SessionID: started.SessionID, ClientID: started.ClientID, Existing: o.ID != "" && got.replayed()}, err
}

// replayed reports whether nothing was started because the same request was made before.
func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// Result waits until a session has ended, like [client.Client.Result].
func (c *Client) Result(ctx context.Context, tenant, id string) (protocol.PassResult, error) {
	r, err := c.ended(ctx, id)
	return protocol.PassResult{SessionID: r.SessionID, Status: r.Status, Answer: r.Answer, Reason: r.Reason, Passes: r.Passes, Error: r.Error}, err
}

// ended waits until a session has ended.
func (c *Client) ended(ctx context.Context, id string) (r protocol.SessionResult, err error) {
	for err == nil && !r.Status.Final() {
		r, err = call(ctx, c, api.GetResult, api.ResultRequest{SessionPath: api.SessionPath{Session: id}, Wait: longWait})
	}
	return r, err
}

// SessionResult returns what a session has come to, like [client.Client.SessionResult].
func (c *Client) SessionResult(ctx context.Context, tenant, id string) (protocol.SessionResult, error) {
	return call(ctx, c, api.GetResult, api.ResultRequest{SessionPath: api.SessionPath{Session: id}})
}

// Status returns a session's state, like [client.Client.Status].
func (c *Client) Status(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	return call(ctx, c, api.GetSession, api.SessionPath{Session: id})
}

// Message sends a message to a session, like [client.Client.Message].
func (c *Client) Message(ctx context.Context, tenant, id, text, by string) error {
	in := api.MessageRequest{SessionPath: api.SessionPath{Session: id}}
	in.Body.Text, in.Body.ID = text, rand.Text()
	return c.repeat(ctx, requestOf(api.SendMessage.Describe(), in))
}

// Event sends an event to a session, like [client.Client.Event]. The server names the principal of the credential.
func (c *Client) Event(ctx context.Context, tenant, id string, e protocol.Event) error {
	in := api.EventRequest{SessionPath: api.SessionPath{Session: id}}
	in.Body.Name, in.Body.Data, in.Body.ID = e.Name, e.Data, cmp.Or(e.ID, rand.Text())
	return c.repeat(ctx, requestOf(api.SendEvent.Describe(), in))
}

// repeat sends a request that may be sent again, because its id makes sure that it takes effect only once.
func (c *Client) repeat(ctx context.Context, r request) error {
	r.repeatable = true
	_, err := c.send(ctx, r)
	return err
}

// CancelBecause asks a session to stop, like [client.Client.CancelBecause]. The server names the principal of the credential.
func (c *Client) CancelBecause(ctx context.Context, tenant, id, reason, _ string) error {
	in := api.CancelRequest{SessionPath: api.SessionPath{Session: id}, Body: &api.Cancel{Reason: reason}}
	_, err := call(ctx, c, api.CancelSession, in)
	return err
}

// Events returns a session's events, like [client.Client.Events].
func (c *Client) Events(ctx context.Context, tenant, id string, after int64) ([]jig.Event, error) {
	list := []jig.Event{}
	for {
		page, err := call(ctx, c, api.GetEvents, api.EventsRequest{SessionPath: api.SessionPath{Session: id}, After: after, Limit: maxEvents})
		if err != nil || len(page.Events) == 0 {
			return list, err
		}
		list = append(list, page.Events...)
		after = page.Events[len(page.Events)-1].Seq
	}
}

// Answer returns a session's whole answer, like [client.Client.Answer].
func (c *Client) Answer(ctx context.Context, tenant string, view jig.SessionView) (string, error) {
	if view.AnswerArtifact == "" {
		return view.Answer, nil
	}
	whole, err := c.Artifact(ctx, tenant, view.AnswerArtifact)
	return string(whole), err
}

// Artifact returns a whole artifact, like [client.Client.Artifact].
func (c *Client) Artifact(ctx context.Context, tenant, id string) ([]byte, error) {
	r := requestOf(api.GetArtifact.Describe(), api.ArtifactPath{Artifact: id})
	r.headers["Accept"] = "*/*"
	got, err := c.send(ctx, r)
	return got.body, err
}

// callRequest returns the request that starts a call. It may be repeated: then it finds the call that the first one started.
func callRequest(input protocol.CallInput, id, prefer string) request {
	var in api.RunRequest
	in.Prefer = prefer
	b := &in.Body
	b.ID, b.Name, b.Document, b.DocumentName, b.Source, b.Unchecked = id, input.Tool, input.Document, input.DocumentName, input.Source, !input.Check
	b.Input, b.Pairs = value(input.Input), input.Pairs
	if id == "" {
		in.Key = newKey(cmp.Or(input.Tool, input.DocumentName))
	}
	r := requestOf(api.RunComposition.Describe(), in)
	r.repeatable = true
	return r
}

// StartCall starts one call, like [client.Client.StartCall].
func (c *Client) StartCall(ctx context.Context, input protocol.CallInput, id string) (client.Started, error) {
	var started api.CalledCall
	got, err := c.do(ctx, callRequest(input, id, ""), &started)
	return client.Started{SessionID: started.SessionID, ClientID: started.ClientID, Existing: id != "" && got.replayed()}, err
}

// Trigger runs one call and returns as soon as it has its result or waits for a person, like [client.Client.Trigger].
func (c *Client) Trigger(ctx context.Context, input protocol.CallInput, id string) (protocol.CallResult, error) {
	r := callRequest(input, id, "wait="+strconv.Itoa(longWait))
	for {
		var got api.CalledCall
		if _, err := c.do(ctx, r, &got); err != nil {
			return protocol.CallResult{}, err
		}
		switch {
		case got.Status.Final(), len(got.Pending) > 0, got.Status == jig.CallWaiting, got.Status == jig.CallUnknown:
			return got.CallResult, nil
		case got.Held != "":
			return got.CallResult, jig.Errorf(jig.CodeUnavailable, "no worker is answering").WithReason(got.Held).WithHint("start one with `jig worker`")
		}
	}
}

// WaitCall waits until a single call has its result, like [client.Client.WaitCall].
func (c *Client) WaitCall(ctx context.Context, tenant, id string) (protocol.CallResult, error) {
	ended, err := c.ended(ctx, id)
	if err != nil {
		return protocol.CallResult{}, err
	}
	call := jig.CallID(1, 1)
	record, err := c.Record(ctx, tenant, id, call)
	if isNotFound(err) && ended.Error != nil {
		return protocol.CallResult{}, ended.Error
	}
	if err != nil {
		return protocol.CallResult{}, err
	}
	if ended.Status == jig.StatusCanceled {
		return protocol.CallResult{}, jig.Errorf(jig.CodeCanceled, "the session was canceled")
	}
	return protocol.CallResult{SessionID: ended.SessionID, ClientID: ended.ClientID, Call: call, Status: record.Status, Result: record.Result}, nil
}

// WholeResult returns a call's result with all of its data, like [client.Client.WholeResult].
func (c *Client) WholeResult(ctx context.Context, tenant string, r protocol.CallResult) (*jig.ToolResult, error) {
	return r.Whole(func(artifact string) ([]byte, error) { return c.Artifact(ctx, tenant, artifact) })
}

// Record returns a call with its whole input and result, like [client.Client.Record].
func (c *Client) Record(ctx context.Context, tenant, session, id string) (protocol.CallRecord, error) {
	return call(ctx, c, api.GetCall, api.CallPath{SessionPath: api.SessionPath{Session: session}, Call: id})
}

// isNotFound reports whether what was asked for does not exist.
func isNotFound(err error) bool { return errors.Is(err, &jig.Error{Code: jig.CodeNotFound}) }

const (
	// longestWait is how long one request waits for events.
	longestWait = 20 * time.Second
	// firstPause is the time between two requests if the server did not wait, for example because no worker has picked the session up.
	firstPause = 100 * time.Millisecond
)

// Follow calls fn with page after page of events, like [client.Client.Follow].
func (c *Client) Follow(ctx context.Context, o client.FollowOptions, fn func(protocol.EventsPage) error) error {
	wait := min(longestWait, o.Wait)
	if wait <= 0 {
		wait = longestWait
	}
	text := ""
	if o.Text {
		text = "start"
	}
	after, pause := o.After, firstPause
	for {
		began := time.Now()
		page, err := call(ctx, c, api.GetEvents, api.EventsRequest{
			SessionPath: api.SessionPath{Session: o.SessionID}, After: after, Wait: max(1, int(wait/time.Second)), Text: text,
		})
		if err != nil {
			if err := c.trouble(ctx, o, err); err != nil {
				return err
			}
			if !sleep(ctx, pause) {
				return ctx.Err() //nolint:wrapcheck // the caller's own
			}
			pause = min(2*pause, time.Second)
			continue
		}
		got := protocol.EventsPage{Events: page.Events, Status: page.Status, Draft: page.Draft}
		if err := fn(got); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 {
			after = page.Events[n-1].Seq
		}
		if page.Position != "" {
			text = page.Position
		}
		if got.Last() {
			return nil
		}
		if len(page.Events) > 0 || page.Draft != nil || time.Since(began) > wait/2 {
			pause = firstPause
			continue
		}
		if !sleep(ctx, pause) {
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
		pause = min(2*pause, time.Second)
	}
}

// trouble decides whether following continues after an error.
func (c *Client) trouble(ctx context.Context, o client.FollowOptions, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the caller's own
	}
	if !jig.CodeOf(err).Retryable() && jig.CodeOf(err) != jig.CodeUnavailable {
		return err
	}
	if o.Trouble == nil {
		return nil
	}
	return o.Trouble(err)
}
