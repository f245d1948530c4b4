package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// callRequest returns the request that starts a call. It may be repeated: then it finds the call that the first one started.
func callRequest(input protocol.CallInput, id, prefer string) request {
	var in api.RunRequest
	in.Prefer = prefer
	b := &in.Body
	b.ID, b.Name, b.Document, b.DocumentName, b.Source, b.Unchecked = id, input.Tool, input.Document, input.DocumentName, input.Source, !input.Check
	b.Input, b.Pairs = value(input.Input), input.Pairs
	if id == "" {
		in.Key = rand.Text()
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
