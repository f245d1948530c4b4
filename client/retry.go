package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
)

// missingAttribute recognizes the server's error about a search attribute that the namespace lacks.
func missingAttribute(message string) bool {
	return strings.Contains(message, "search attribute") && strings.Contains(message, "Jig")
}

// busy reports whether an error is transient, so that the same request may succeed a moment later.
func busy(err error) bool {
	var (
		exhausted *serviceerror.ResourceExhausted
		down      *serviceerror.Unavailable
		notReady  *serviceerror.WorkflowNotReady
		deadline  *serviceerror.DeadlineExceeded
		updating  *sdk.WorkflowUpdateServiceTimeoutOrCanceledError
	)
	return errors.As(err, &exhausted) || errors.As(err, &down) || errors.As(err, &notReady) || errors.As(err, &deadline) ||
		errors.As(err, &updating)
}

// cutOff reports whether the workflow run that a request was sent to ended before it answered. Another run of the session may answer it.
func cutOff(err error) bool {
	var notFound *serviceerror.NotFound
	var app *sdktemporal.ApplicationError
	if errors.As(err, &app) {
		return app.Type() == typeUpdateCutOff || app.Type() == typeUpdateUnprocessed
	}
	return errors.As(err, &notFound) || strings.Contains(err.Error(), "continuing as new")
}

// repeat calls try until it succeeds, again returns false for its error, ctx ends, or RetryFor has passed. It returns the last error.
// RetryFor starts over if a session worked on an update for more than a second before its run ended.
func (c *Client) repeat(ctx context.Context, try func(context.Context) error, again func(error) bool) error {
	deadline := time.Now().Add(c.retryFor)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		began := time.Now()
		err := try(ctx)
		if err == nil || ctx.Err() != nil || !again(err) {
			return err
		}
		if cutOff(err) && time.Since(began) > time.Second {
			deadline, pause = time.Now().Add(c.retryFor), 50*time.Millisecond
		}
		if time.Now().Add(pause).After(deadline) {
			return err
		}
		if !sleep(ctx, pause/2+rand.N(pause)) { //nolint:gosec // jitter needs no secrecy
			return err
		}
	}
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// watchWorker runs do, and cancels it if no worker answers. It is needed for updates: the server accepts an update only when a worker has
// seen it, and would otherwise wait silently. When watchWorker returns, nothing that it started is still running.
func (c *Client) watchWorker(ctx context.Context, sessionID string, do func(context.Context) error) error {
	watched, cancel := context.WithCancelCause(ctx)
	var pinging sync.WaitGroup
	pinging.Go(func() {
		for sleep(watched, c.workerTimeout) {
			if c.ping(watched, sessionID) {
				continue
			}
			cancel(c.noWorker())
		}
	})
	err := do(watched)
	cancel(nil)
	pinging.Wait()
	if err != nil && ctx.Err() == nil && isNoWorker(context.Cause(watched)) {
		return c.noWorker()
	}
	return err
}

// live reports whether a workflow is running, or has continued as a new run that may take a request.
func live(status enumspb.WorkflowExecutionStatus) bool {
	switch status { //nolint:exhaustive // the others have ended
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return true
	default:
		return false
	}
}
