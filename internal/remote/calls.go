package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// called is a call as an operation answers it.
type called struct {
	protocol.CallResult
	// Held is no_worker if no worker answers.
	Held string `json:"held"`
}

// callRequest returns the request that starts a call. It may be repeated: then it finds the call that the first one started.
func callRequest(input protocol.CallInput, id, prefer string) request {
	r := request{
		method: http.MethodPost, path: "/v1/calls", repeatable: true, headers: map[string]string{},
		body: struct {
			ID           string            `json:"id,omitempty"`
			Name         string            `json:"name,omitempty"`
			Document     string            `json:"document,omitempty"`
			DocumentName string            `json:"document_name,omitempty"`
			Input        any               `json:"input,omitempty"`
			Pairs        map[string]string `json:"pairs,omitempty"`
			Source       jig.Source        `json:"source,omitempty"`
			Unchecked    bool              `json:"unchecked,omitempty"`
		}{id, input.Tool, input.Document, input.DocumentName, value(input.Input), input.Pairs, input.Source, !input.Check},
	}
	if id == "" {
		r.headers["Idempotency-Key"] = rand.Text()
	}
	if prefer != "" {
		r.headers["Prefer"] = prefer
	}
	return r
}

// StartCall starts one call, like [client.Client.StartCall].
func (c *Client) StartCall(ctx context.Context, input protocol.CallInput, id string) (client.Started, error) {
	got, err := c.send(ctx, callRequest(input, id, ""))
	if err != nil {
		return client.Started{}, err
	}
	var started called
	err = unmarshal(got.body, &started)
	return client.Started{
		SessionID: started.SessionID, ClientID: started.ClientID, Existing: id != "" && got.header.Get("Idempotent-Replayed") == "true",
	}, err
}

// Trigger runs one call and returns as soon as it has its result or waits for a person, like [client.Client.Trigger].
func (c *Client) Trigger(ctx context.Context, input protocol.CallInput, id string) (protocol.CallResult, error) {
	r := callRequest(input, id, "wait="+longWait)
	for {
		var got called
		if err := c.decode(ctx, r, &got); err != nil {
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
func (c *Client) Record(ctx context.Context, tenant, session, call string) (record protocol.CallRecord, err error) {
	err = c.get(ctx, path("sessions", session, "call"), query("call", call), &record)
	return record, err
}

// value returns a JSON value as a member of a body: nothing for none, and a text for what is not JSON, which the server refuses.
func value(raw json.RawMessage) any {
	switch {
	case len(raw) == 0:
		return nil
	case !json.Valid(raw):
		return string(raw)
	}
	return raw
}

func unmarshal(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return jig.Errorf(jig.CodeInternal, "the server's answer cannot be read: %w", err).WithHint("is it another version than this program?")
	}
	return nil
}

// isNotFound reports whether what was asked for does not exist.
func isNotFound(err error) bool { return errors.Is(err, &jig.Error{Code: jig.CodeNotFound}) }
