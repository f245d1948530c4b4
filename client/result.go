package client

import (
	"context"
	"errors"

	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

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

// Answer returns a session's whole answer. If the view has only a part of it, Answer fetches the rest.
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
