package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Reasons ([jig.Error.Reason]) of UNAVAILABLE.
const (
	// ReasonNoTemporal means that nothing answers at the address.
	ReasonNoTemporal = "no_temporal"
	// ReasonTemporalRefused means that a server answers at the address and refuses the connection, e.g. because of a wrong key.
	ReasonTemporalRefused = "temporal_refused"
	// ReasonNoWorker means that Temporal answers, but no worker picked up the request in time.
	ReasonNoWorker = "no_worker"
)

// Failure types that Temporal gives to an update whose run ended before the update did.
const (
	typeUpdateCutOff      = protocol.TypeUpdateCutOff
	typeUpdateUnprocessed = "UnprocessedUpdate"
)

func (c *Client) noWorker() *jig.Error {
	return jig.Errorf(jig.CodeUnavailable, "no worker is answering on task queue %s", jig.Known(c.queue)).WithReason(ReasonNoWorker).
		WithHint("start one with `jig worker`")
}

func isNoWorker(err error) bool {
	var e *jig.Error
	return errors.As(err, &e) && e.Reason == ReasonNoWorker
}

// translate turns an error of Temporal's client into a [*jig.Error]. The error of an ended context is only wrapped.
func translate(err error) error {
	var known *jig.Error
	var app *sdktemporal.ApplicationError
	var timeout *sdktemporal.TimeoutError
	var canceled *sdktemporal.CanceledError
	var terminated *sdktemporal.TerminatedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return jig.Errorf(jig.CodeUnavailable, "no worker accepted the request in time").WithReason(ReasonNoWorker).CausedBy(err)
	case errors.As(err, &app):
		return fromApplication(app, err)
	case errors.As(err, &canceled):
		return jig.Errorf(jig.CodeCanceled, "the session was canceled").CausedBy(err)
	case errors.As(err, &terminated):
		return jig.Errorf(jig.CodeCanceled, "the session's workflow was terminated externally").WithReason(jig.ReasonTerminated).CausedBy(err)
	case errors.As(err, &timeout):
		return jig.Errorf(jig.CodeTimeout, "the worker did not answer in time").CausedBy(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !isService(err):
		return fmt.Errorf("wait for an answer: %w", err)
	}
	return fromService(err)
}

// fromApplication converts the failure of an activity or an update handler. The failure's type is the code and its first detail the error.
func fromApplication(app *sdktemporal.ApplicationError, cause error) error {
	e := &jig.Error{}
	words, err := protocol.ReadFailure(app.Details, e)
	if err != nil || e.Code == "" {
		e = &jig.Error{Code: jig.Code(app.Type()), Message: app.Message()}
	}
	words.Apply(e)
	if !slices.Contains(jig.Codes(), e.Code) {
		e.Code = jig.CodeInternal
	}
	e.Cause = cause
	return e
}

func isService(err error) bool {
	var s serviceerror.ServiceError
	return errors.As(err, &s)
}

func fromService(err error) error {
	var (
		namespace *serviceerror.NamespaceNotFound
		notFound  *serviceerror.NotFound
		exhausted *serviceerror.ResourceExhausted
		down      *serviceerror.Unavailable
		deadline  *serviceerror.DeadlineExceeded
		notReady  *serviceerror.WorkflowNotReady
		updating  *sdk.WorkflowUpdateServiceTimeoutOrCanceledError
		denied    *serviceerror.PermissionDenied
		argument  *serviceerror.InvalidArgument
		missing   *serviceerror.Unimplemented
	)
	e := &jig.Error{Code: jig.CodeInternal, Message: err.Error(), Cause: err}
	switch {
	case errors.As(err, &namespace):
		e = e.Reworded("Temporal has no namespace %s", jig.Known(namespace.Namespace))
		e.Code, e.Hint = jig.CodeNotFound, "create it with `temporal operator namespace create`, or name another with --namespace"
	case errors.As(err, &notFound):
		e.Code = jig.CodeNotFound
	case errors.As(err, &exhausted):
		e.Code = jig.CodeRateLimited
	case errors.As(err, &down), errors.As(err, &deadline), errors.As(err, &updating):
		e.Code = jig.CodeUnavailable
	case errors.As(err, &notReady):
		e = e.Reworded("the worker fails on this session: %s", notReady.Message)
		e.Code, e.Hint = jig.CodeUnavailable, "see the worker's log; signals sent with `temporal workflow signal` wait until it is fixed"
	case errors.As(err, &denied):
		e.Code = jig.CodeNotPermitted
	case errors.As(err, &argument):
		e.Code = jig.CodeInvalidInput
		if attr := missingAttribute(argument.Message); attr {
			e.Hint = "create the search attributes that docs/operations.md names, or use `jig-dev`, which creates them"
		}
	case errors.As(err, &missing):
		e.Code = jig.CodeUnavailable
		e.Hint = "jig needs a Temporal server 1.31 or later with standalone activities (activity.enableStandalone)"
	}
	return e
}

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
