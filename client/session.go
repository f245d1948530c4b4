package client

import (
	"context"
	"errors"
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Sessions returns a page of a tenant's sessions that match a filter, the newest first, at most limit (default 50, at most 100). The cursor
// is Next of the previous page with the same filter; "" means the first page. A page may have fewer sessions although more follow.
func (c *Client) Sessions(
	ctx context.Context, tenant string, filter protocol.SessionFilter, cursor string, limit int,
) (protocol.SessionList, error) {
	tenant, filter.ParentID = namedOrNone(tenant, filter.ParentID)
	return ask(ctx, c, protocol.ReadSessions, protocol.SessionsRequest{Tenant: tenant, SessionFilter: filter, Cursor: cursor, Limit: limit})
}

// namedOrNone is like named, but leaves an empty id empty.
func namedOrNone(tenant, id string) (owner, session string) {
	owner, session = named(tenant, id)
	if id == "" {
		session = ""
	}
	return owner, session
}

// Transcript returns a page of what was asked, said and done in a session, oldest first. The cursor is Next of the previous page; "" means
// the first page, which also says what the session was started with.
func (c *Client) Transcript(ctx context.Context, tenant, id, cursor string) (protocol.Transcript, error) {
	tenant, id = named(tenant, id)
	return ask(ctx, c, protocol.ReadTranscript, protocol.TranscriptRequest{Tenant: tenant, SessionID: id, Cursor: cursor})
}

// Result waits until a session has ended, across all its runs, and returns how it ended, with the whole answer. If the session failed,
// Result returns no error; the PassResult contains the failure.
func (c *Client) Result(ctx context.Context, tenant, id string) (protocol.PassResult, error) {
	tenant, id = named(tenant, id)
	if _, err := c.look(ctx, tenant, id); err != nil {
		if !isNotFound(err) {
			return protocol.PassResult{}, err
		}
		return c.resultFromStore(ctx, tenant, id, err)
	}
	result := protocol.PassResult{SessionID: id}
	if err := c.outcome(ctx, id, &result); err != nil {
		var ended *jig.Error
		if result.Status == "" || !errors.As(err, &ended) {
			return protocol.PassResult{}, err
		}
		result.Error = ended
	}
	if !result.Truncated {
		return result, nil
	}
	view, err := c.Status(ctx, tenant, id)
	if err != nil {
		return result, err
	}
	if result.Answer, err = c.Answer(ctx, tenant, view); err != nil {
		return result, err
	}
	result.Truncated = false
	return result, nil
}

// outcome waits until the workflow ends. If the workflow failed or was canceled or terminated, outcome fills in result's status and, for a
// termination, its reason, and returns the workflow's error.
func (c *Client) outcome(ctx context.Context, id string, result *protocol.PassResult) error {
	err := c.repeat(ctx, func(ctx context.Context) error {
		return c.temporal.GetWorkflow(ctx, id, "").Get(ctx, result)
	}, busy)
	var failed *sdktemporal.WorkflowExecutionError
	var canceled *sdktemporal.CanceledError
	var terminated *sdktemporal.TerminatedError
	var app *sdktemporal.ApplicationError
	id = result.SessionID
	switch {
	case !errors.As(err, &failed):
		return translate(err)
	case errors.As(err, &canceled):
		if canceled.HasDetails() && canceled.Details(result) != nil {
			*result = protocol.PassResult{SessionID: id}
		}
		result.Status = jig.StatusCanceled
		return translate(err)
	case errors.As(err, &terminated):
		result.Reason = jig.ReasonTerminated
	case errors.As(err, &app) && app.HasDetails():
		var e jig.Error
		if app.Details(&e, result) != nil {
			*result = protocol.PassResult{SessionID: id}
		}
	}
	result.Status = jig.StatusFailed
	return translate(err)
}

// resultFromStore reads the result of a session that Temporal has forgotten.
func (c *Client) resultFromStore(ctx context.Context, tenant, id string, notFound error) (protocol.PassResult, error) {
	view, err := c.Status(ctx, tenant, id)
	if isNotFound(err) {
		return protocol.PassResult{}, notFound
	}
	if err != nil {
		return protocol.PassResult{}, err
	}
	result := protocol.PassResult{SessionID: id, Status: view.Status, Reason: view.Reason, Passes: view.Pass, Error: view.Error}
	result.Answer, err = c.Answer(ctx, tenant, view)
	return result, err
}

// Answer returns a session's whole answer. It fetches an answer that the view shows only in part.
func (c *Client) Answer(ctx context.Context, tenant string, view jig.SessionView) (string, error) {
	if view.AnswerArtifact == "" {
		return view.Answer, nil
	}
	whole, err := c.Artifact(ctx, tenant, view.AnswerArtifact)
	return string(whole), err
}

// Wait waits until a session has ended and returns its state.
func (c *Client) Wait(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	if _, err := c.Result(ctx, tenant, id); err != nil {
		return jig.SessionView{}, err
	}
	return c.Status(ctx, tenant, id)
}

// longPoll is how long a request of [Client.Follow] waits for the next event.
const longPoll = 20 * time.Second

// Events returns a session's events so far with a sequence number greater than after, oldest first.
func (c *Client) Events(ctx context.Context, tenant, id string, after int64) ([]jig.Event, error) {
	tenant, id = named(tenant, id)
	list := []jig.Event{}
	for {
		request := protocol.EventsRequest{Tenant: tenant, SessionID: id, After: after}
		page, err := ask(ctx, c, protocol.ReadEvents, request)
		if err != nil {
			return nil, err
		}
		if len(page.Events) == 0 {
			return list, nil
		}
		list = append(list, page.Events...)
		after = page.Events[len(page.Events)-1].Seq
	}
}

// NextEvents returns one page of a session's events. If the request has a Wait, it waits that long for the first event, or for text that a
// model writes if the request asks for it.
func (c *Client) NextEvents(ctx context.Context, request protocol.EventsRequest) (protocol.EventsPage, error) {
	request.Tenant, request.SessionID = named(request.Tenant, request.SessionID)
	var page protocol.EventsPage
	err := c.ask(ctx, string(protocol.ReadEvents), request.Wait, request, &page)
	return page, err
}

// Watch calls fn for each event with a sequence number greater than after, in order. It returns when the session has ended and its last
// event was delivered, when fn returns an error, or when ctx ends. It waits for a session that was just started, and for a worker if no
// worker answers.
func (c *Client) Watch(ctx context.Context, tenant, id string, after int64, fn func(jig.Event) error) error {
	return c.Follow(ctx, FollowOptions{Tenant: tenant, SessionID: id, After: after}, func(page protocol.EventsPage) error {
		for _, event := range page.Events {
			if err := fn(event); err != nil {
				return err
			}
		}
		return nil
	})
}

// FollowOptions configure [Client.Follow].
type FollowOptions struct {
	Tenant    string
	SessionID string
	// After is the sequence number of the last event that the caller already has.
	After int64
	// Wait is the longest time between two pages; default 20 s.
	Wait time.Duration
	// Text asks also for the text that a model is writing: pages then come several times a second while it writes, with a Draft instead of
	// events. A draft is only a preview of the turn, which is stored when it is complete.
	Text bool
	// Trouble is called when a request fails and will be retried, because no worker answers or the server is unavailable. If it returns an
	// error, Follow returns that error. If Trouble is nil, Follow keeps trying.
	Trouble func(error) error
}

// Follow calls fn with page after page of events until the session has ended and its last event was delivered. A page without events may
// still report a new status.
func (c *Client) Follow(ctx context.Context, o FollowOptions, fn func(protocol.EventsPage) error) error {
	o.Tenant, o.SessionID = named(o.Tenant, o.SessionID)
	wait := o.Wait
	if wait <= 0 {
		wait = longPoll
	}
	request := protocol.EventsRequest{Tenant: o.Tenant, SessionID: o.SessionID, After: o.After, Wait: wait}
	if o.Text {
		request.Text = &protocol.TextPosition{}
	}
	ended, pause := false, firstPause
	for {
		var page protocol.EventsPage
		err := c.ask(ctx, string(protocol.ReadEvents), request.Wait, request, &page)
		if err != nil {
			if ended, err = c.forgive(ctx, o, ended, err); err != nil {
				return err
			}
			if !sleep(ctx, pause) {
				return translate(ctx.Err())
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = firstPause
		if err := fn(page); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 {
			request.After = page.Events[n-1].Seq
		}
		if page.Draft != nil && o.Text {
			request.Text = new(page.Draft.End())
		}
		if page.Last() {
			return nil
		}
		request.Wait = wait
		if page.Status.Final() { // the remaining events already exist
			request.Wait = 0
		}
	}
}

const firstPause = 100 * time.Millisecond

// forgive decides whether following continues after an error. A session that the store does not know yet is still starting, as long as its
// workflow runs. ended reports that at the previous attempt the store did not know the session either and its workflow had already ended.
func (c *Client) forgive(ctx context.Context, o FollowOptions, ended bool, err error) (nowEnded bool, fatal error) {
	if ctx.Err() != nil {
		return ended, translate(ctx.Err())
	}
	switch jig.CodeOf(err) { //nolint:exhaustive // default returns all other codes, which are not transient
	case jig.CodeNotFound:
		session, lookErr := c.look(ctx, o.Tenant, o.SessionID)
		if lookErr != nil || ended {
			return ended, err
		}
		return !session.live, nil
	case jig.CodeUnavailable, jig.CodeTimeout, jig.CodeRateLimited:
		if o.Trouble == nil {
			return ended, nil
		}
		return ended, o.Trouble(err)
	default:
		return ended, err
	}
}
