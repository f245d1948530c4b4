package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// longWait is how many seconds a request for a result waits.
const longWait = "60"

// Start starts a session, like [client.Client.Start].
func (c *Client) Start(ctx context.Context, o client.StartOptions) (client.Started, error) {
	body := struct {
		ID           string            `json:"id,omitempty"`
		Agent        string            `json:"agent,omitempty"`
		Document     string            `json:"document,omitempty"`
		DocumentName string            `json:"document_name,omitempty"`
		Task         string            `json:"task,omitempty"`
		Input        any               `json:"input,omitempty"`
		Pairs        map[string]string `json:"pairs,omitempty"`
		Model        string            `json:"model,omitempty"`
		Source       jig.Source        `json:"source,omitempty"`
	}{o.ID, o.Agent, o.Document, o.DocumentName, o.Task, value(o.Input), o.Pairs, o.Model, o.Source}
	if o.Document != "" {
		body.Agent = ""
	}
	r := request{method: http.MethodPost, path: "/v1/sessions", body: body, repeatable: true}
	if o.ID == "" { // an attempt that is repeated must find what the first one started
		r.headers = map[string]string{"Idempotency-Key": rand.Text()}
	}
	got, err := c.send(ctx, r)
	if err != nil {
		return client.Started{}, err
	}
	var started client.Started
	err = unmarshal(got.body, &struct {
		SessionID *string `json:"session_id"`
		ClientID  *string `json:"client_id"`
	}{&started.SessionID, &started.ClientID})
	started.Existing = o.ID != "" && got.header.Get("Idempotent-Replayed") == "true"
	return started, err
}

// Result waits until a session has ended, like [client.Client.Result].
func (c *Client) Result(ctx context.Context, tenant, id string) (protocol.PassResult, error) {
	r, err := c.ended(ctx, id)
	return protocol.PassResult{SessionID: r.SessionID, Status: r.Status, Answer: r.Answer, Reason: r.Reason, Passes: r.Passes, Error: r.Error}, err
}

// ended waits until a session has ended.
func (c *Client) ended(ctx context.Context, id string) (r protocol.SessionResult, err error) {
	for !r.Status.Final() {
		r = protocol.SessionResult{}
		if err := c.get(ctx, path("sessions", id, "result"), query("wait", longWait), &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// SessionResult returns what a session has come to, like [client.Client.SessionResult].
func (c *Client) SessionResult(ctx context.Context, tenant, id string) (r protocol.SessionResult, err error) {
	err = c.get(ctx, path("sessions", id, "result"), nil, &r)
	return r, err
}

// Status returns a session's state, like [client.Client.Status].
func (c *Client) Status(ctx context.Context, tenant, id string) (view jig.SessionView, err error) {
	err = c.get(ctx, path("sessions", id), nil, &view)
	return view, err
}

// Message sends a message to a session, like [client.Client.Message].
func (c *Client) Message(ctx context.Context, tenant, id, text, by string) error {
	return c.decode(ctx, request{
		method: http.MethodPost, path: path("sessions", id, "messages"), body: map[string]string{"text": text, "id": rand.Text()}, repeatable: true,
	}, nil)
}

// Event sends an event to a session, like [client.Client.Event]. The server names the principal of the credential.
func (c *Client) Event(ctx context.Context, tenant, id string, e protocol.Event) error {
	return c.decode(ctx, request{
		method: http.MethodPost, path: path("sessions", id, "events"), repeatable: true,
		body: protocol.Event{Name: e.Name, Data: e.Data, ID: cmp.Or(e.ID, rand.Text())},
	}, nil)
}

// CancelBecause asks a session to stop, like [client.Client.CancelBecause]. The server names the principal of the credential.
func (c *Client) CancelBecause(ctx context.Context, tenant, id, reason, _ string) error {
	return c.post(ctx, path("sessions", id, "cancel"), map[string]string{"reason": reason}, nil)
}

// Sessions lists sessions, like [client.Client.Sessions].
func (c *Client) Sessions(ctx context.Context, tenant string, f protocol.SessionFilter, cursor string, limit int) (protocol.SessionsPage, error) {
	var page struct {
		Sessions []protocol.SessionItem `json:"sessions"`
		Next     string                 `json:"next_cursor"`
	}
	err := c.get(ctx, "/v1/sessions", query("status", string(f.Status), "agent", f.Agent, "requested_by", f.RequestedBy, "reason", f.Reason, "parent", f.ParentID,
		"children", flag(!f.Roots), "before", moment(f.Before), "after", moment(f.After), "cursor", cursor, "limit", number(limit)), &page)
	return protocol.SessionsPage{Sessions: page.Sessions, Next: page.Next}, err
}

// Transcript returns a page of a transcript, like [client.Client.Transcript].
func (c *Client) Transcript(ctx context.Context, tenant, id, cursor string) (protocol.TranscriptPage, error) {
	var page struct {
		protocol.TranscriptPage
		Next string `json:"next_cursor"`
	}
	err := c.get(ctx, path("sessions", id, "transcript"), query("cursor", cursor), &page)
	page.TranscriptPage.Next = page.Next
	return page.TranscriptPage, err
}

// eventsPage is a page of events.
type eventsPage struct {
	protocol.EventsPage
	Position string `json:"text_position"`
}

// Events returns a session's events, like [client.Client.Events].
func (c *Client) Events(ctx context.Context, tenant, id string, after int64) ([]jig.Event, error) {
	list := []jig.Event{}
	for {
		var page eventsPage
		if err := c.get(ctx, path("sessions", id, "events"), query("after", number(after), "limit", "500"), &page); err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			return list, nil
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
	got, err := c.send(ctx, request{method: http.MethodGet, path: path("artifacts", id), headers: map[string]string{"Accept": "*/*"}, repeatable: true})
	return got.body, err
}
