package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/jsontext"
)

// endpoint holds the HTTP client for a model, the limits on its answers (the idle time and the maximum size in bytes), and whether it is asked to
// stream them.
type endpoint struct {
	http   *http.Client
	idle   time.Duration
	max    int64
	stream bool
}

var (
	errIdle    = errors.New("the model's provider sent nothing for too long")
	errTooLong = errors.New("the model's answer is too long")
)

// providerCall holds what differs between the HTTP providers.
type providerCall struct {
	// base is the configured address of the API; usual is the provider's own, which is used if base is empty. path is what is asked there.
	base, usual, path string
	header            http.Header
	// body is the request, which is sent as JSON.
	body any
	// env is the environment variable that holds the provider's key; key is the key itself.
	env, key string
	reader   reader
}

// reader assembles an answer.
type reader interface {
	// event reads one event of a stream and reports whether the answer is complete. kind is the name of the event, or "".
	event(kind string, data []byte) (done bool, err error)
	// end is called when the stream ends. It returns an error unless the answer is complete.
	end() error
	// document reads an answer that was not streamed.
	document(raw []byte) error
	// turn returns the answer that was read. names maps the names of tools on the wire to their own; used holds the ids of earlier calls.
	turn(names map[string]string, used map[string]bool) (chat.Turn, error)
}

// ask sends a request once and reads the answer. Errors are *jig.Error; the turn then has what was read of the text and of the usage.
func (l endpoint) ask(parent context.Context, request chat.Request, s providerCall) (chat.Turn, error) {
	ctx, w := l.watch(parent)
	defer w.stop()
	res, err := l.send(ctx, s)
	if err != nil {
		return chat.Turn{}, failure(parent, ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	w.listen(res)
	if res.StatusCode >= http.StatusMultipleChoices {
		// An error that breaks off is still an error with this status.
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) //nolint:errcheck // see above
		return chat.Turn{}, errorResponse{status: res.StatusCode, header: res.Header, body: string(body), env: s.env, key: s.key}.jig(time.Now())
	}
	failed := read(res.Body, s.reader)
	turn, err := s.reader.turn(namesOf(request.Tools), idsOf(conversation(request.Exchanges)))
	if failed != nil {
		err = failure(parent, ctx, failed)
	}
	turn.Begun = err != nil
	return turn, err
}

// maxRefusal limits how much of the body of an error is read, in bytes.
const maxRefusal = 1 << 20

// send sends the request. A response with an error status is not an error.
func (l endpoint) send(ctx context.Context, s providerCall) (*http.Response, error) {
	address, err := url.JoinPath(cmp.Or(s.base, s.usual), s.path)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the address of the model's provider is not a URL: %w", err)
	}
	body, err := jsontext.Encode(s.body)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the request to the model cannot be written: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the address of the model's provider is not a URL: %w", err)
	}
	request.Header = s.header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("User-Agent", "jig")
	return l.http.Do(request) //nolint:wrapcheck // failure translates it
}

// maxEvent limits an event of a stream, in bytes.
const maxEvent = 32 << 20

// read reads an answer: a stream of server-sent events, or one JSON document, which some servers send whatever they are asked for. The first
// character decides, because some servers name the wrong media type.
func read(body io.Reader, r reader) error {
	buffered := bufio.NewReader(body)
	switch first, err := firstByte(buffered); {
	case err != nil:
		return err
	case first == '{':
		raw, err := io.ReadAll(buffered)
		if err != nil {
			return err //nolint:wrapcheck // failure translates it
		}
		return r.document(raw)
	case first == '<' || first == '[':
		return unreadable(errors.New("it is neither a JSON object nor a stream of events"))
	}
	for e, err := range sse.Read(buffered, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if errors.Is(err, bufio.ErrTooLong) {
			return jig.Errorf(jig.CodeInvalidOutput, "%w", errTooLong)
		}
		if err != nil {
			return err
		}
		data := strings.TrimSpace(e.Data)
		if data == "" && e.Type != "error" {
			continue
		}
		if done, err := r.event(e.Type, []byte(data)); done || err != nil {
			return err
		}
	}
	return r.end()
}

// firstByte skips white space and a byte order mark, and returns the byte after it without reading it.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		next, err := r.Peek(1)
		switch {
		case err != nil:
			return 0, err //nolint:wrapcheck // failure translates it
		case bytes.IndexByte([]byte("\xEF\xBB\xBF \t\r\n"), next[0]) < 0:
			return next[0], nil
		}
		if _, err := r.Discard(1); err != nil {
			return 0, err //nolint:wrapcheck // failure translates it
		}
	}
}

// watch cancels a request if nothing is received during the idle time.
type watch struct {
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
	left   atomic.Int64
}

func (l endpoint) watch(parent context.Context) (context.Context, *watch) {
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

// failure returns the reason why a request ended before the answer was complete; ctx is the watched context.
func failure(parent, ctx context.Context, cause error) *jig.Error {
	var known *jig.Error
	if errors.As(cause, &known) {
		return known
	}
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
	return jig.Errorf(jig.CodeUnavailable, "the model's provider cannot be reached or broke off: %w", cause)
}
