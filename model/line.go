package model

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// line holds the HTTP client for a model, the limits on its answers (the idle time and the maximum size in bytes), and whether it is asked to
// stream them.
type line struct {
	http   *http.Client
	idle   time.Duration
	max    int64
	stream bool
}

var (
	errIdle    = errors.New("the model's provider sent nothing for too long")
	errTooLong = errors.New("the model's answer is too long")
)

// service holds what differs between the HTTP providers.
type service struct {
	send func(ctx context.Context) (*http.Response, error)
	// refusal returns the HTTP error response behind an error that send returned, or nil if the error has another cause.
	refusal func(err error) *refused
	reader  reader
}

// reader assembles an answer, streamed or not.
type reader interface {
	stream(res *http.Response) error
	document(res *http.Response) error
	turn(names map[string]string, asked int) chat.Turn
}

// ask sends a request once and reads the answer. Errors are *jig.Error.
func (l line) ask(parent context.Context, request chat.Request, s service) (chat.Turn, error) {
	ctx, w := l.watch(parent)
	defer w.stop()
	res, err := s.send(ctx)
	if err != nil {
		return chat.Turn{}, s.failure(parent, ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	w.listen(res)
	read := s.reader.document
	if streams(res) {
		read = s.reader.stream
	}
	if err := read(res); err != nil {
		return chat.Turn{}, s.failure(parent, ctx, err)
	}
	return s.reader.turn(namesOf(request.Tools), askedCalls(request.Exchanges)), nil
}

// failure returns the reason why there is no answer; ctx is the watched context.
func (s service) failure(parent, ctx context.Context, err error) error {
	var known *jig.Error
	if errors.As(err, &known) {
		return known
	}
	if r := s.refusal(err); r != nil {
		return r.jig(time.Now())
	}
	return broken(parent, ctx, err)
}

// watch cancels a request if nothing is received during the idle time.
type watch struct {
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

func (l line) watch(parent context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{idle: l.idle, cancel: cancel}
	w.left.Store(l.max)
	w.timer = time.AfterFunc(l.idle, func() { cancel(errIdle) })
	return ctx, w
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// listen replaces the response's body with a watched one.
func (w *watch) listen(res *http.Response) {
	w.timer.Reset(w.idle)
	res.Body = &watchedBody{ReadCloser: res.Body, watch: w}
}

type watchedBody struct {
	io.ReadCloser
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.watch.timer.Reset(b.watch.idle)
	if b.watch.left.Add(-int64(n)) < 0 {
		b.watch.cancel(errTooLong)
		return 0, errTooLong
	}
	return n, err //nolint:wrapcheck // an io.Reader must return io.EOF unwrapped
}

// broken returns the reason why a request ended before the answer was complete.
func broken(parent, ctx context.Context, cause error) *jig.Error {
	if err := parent.Err(); err != nil {
		code, message := jig.CodeCanceled, "the request to the model was cancelled"
		if errors.Is(err, context.DeadlineExceeded) {
			code, message = jig.CodeTimeout, "the request to the model took too long"
		}
		return &jig.Error{Code: code, Message: message, Cause: err}
	}
	if why := context.Cause(ctx); errors.Is(why, errTooLong) {
		return jig.Errorf(jig.CodeInvalidOutput, "%w", why)
	} else if errors.Is(why, errIdle) {
		return jig.Errorf(jig.CodeUnavailable, "%w", why)
	}
	if cause == nil {
		return jig.Errorf(jig.CodeUnavailable, "the model's answer broke off")
	}
	return jig.Errorf(jig.CodeUnavailable, "the model's provider cannot be reached or broke off: %w", cause)
}

// streams reports whether a response is a stream of server-sent events. Some servers always answer with one JSON document.
func streams(res *http.Response) bool {
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err != nil || media != "application/json"
}
