package remote

import (
	"cmp"
	"context"
	"crypto/rand"

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
		in.Key = rand.Text()
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

// Sessions lists sessions, like [client.Client.Sessions].
func (c *Client) Sessions(ctx context.Context, tenant string, f protocol.SessionFilter, cursor string, limit int) (protocol.SessionList, error) {
	return call(ctx, c, api.ListSessions, protocol.SessionsRequest{SessionFilter: f, Cursor: cursor, Limit: limit})
}

// Transcript returns a page of a transcript, like [client.Client.Transcript].
func (c *Client) Transcript(ctx context.Context, tenant, id, cursor string) (protocol.Transcript, error) {
	return call(ctx, c, api.GetTranscript, protocol.TranscriptRequest{SessionID: id, Cursor: cursor})
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
