package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// maxEvents is the largest number of events that are read at once.
	maxEvents = 500
	// heartbeat is the time between two comments of a stream on which nothing else happens, so that proxies keep it open.
	heartbeat = 15 * time.Second
	// reconnect is how long a client should wait before it connects again, and reconnectElsewhere the same when this server stops.
	reconnect          = 2 * time.Second
	reconnectElsewhere = 500 * time.Millisecond
	// lineTimeout is how long a client may take to accept what is written to its stream.
	lineTimeout = 30 * time.Second
)

func (a *API) getEvents(ctx context.Context, in *api.EventsRequest) (*written, error) {
	tenant, _ := callerOf(ctx)
	session, after := jig.SessionID(tenant, in.Session), in.After
	if in.Last > 0 {
		after = in.Last
	}
	status, pass, err := a.progress(ctx, tenant, session)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(in.Accept, api.EventStream) {
		return a.eventsPage(ctx, tenant, in, status)
	}
	first, err := a.options.Log.Events(ctx, tenant, session, after, 1)
	if err != nil {
		return nil, err
	}
	if len(first) == 0 && status.Final() {
		return &written{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}, nil
	}
	if err := a.enterStream(ctx); err != nil {
		return nil, err
	}
	return &written{Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		a.serveStream(c, func(ctx context.Context, s *stream) {
			s.after = after
			a.stream(ctx, s, tenant, session, pass)
		})
	}}, nil
}

// serveStream begins a stream and calls send with it. The context of send ends with the request, and when the credential loses its validity.
func (a *API) serveStream(c huma.Context, send func(ctx context.Context, s *stream)) {
	_, w := humago.Unwrap(c)
	x := exchangeOf(c.Context())
	a.requests.leave(x.place)
	ctx, over := a.streams.hold(c.Context(), x.stream)
	defer over()
	x.streams, x.body = true, bytes.Buffer{} // no error follows that could repeat the body
	a.options.Observer.StreamOpened()
	defer a.options.Observer.StreamClosed()
	s := &stream{w: w, control: http.NewResponseController(w)}
	s.begin()
	if send(ctx, s); errors.Is(context.Cause(ctx), errYielded) {
		s.send("retry: " + milliseconds(crowded) + "\n\n")
	}
}

// eventsPage answers with a page. If the request says so, it waits for the first event or for text.
func (a *API) eventsPage(ctx context.Context, tenant string, in *api.EventsRequest, status jig.Status) (*written, error) {
	request := protocol.EventsRequest{
		Tenant: tenant, SessionID: jig.SessionID(tenant, in.Session), After: in.After, Limit: in.Limit, Wait: time.Duration(in.Wait) * time.Second,
	}
	if in.Wait > 0 && in.Text != "" {
		var err error
		if request.Text, err = textPosition(in.Text); err != nil {
			return nil, err
		}
	}
	waiting, over := a.patiently(ctx, request.Wait+answerTimeout/2)
	defer over()
	found, err := a.options.Engine.NextEvents(waiting, request)
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound && waiting.Err() == nil { // no worker may have picked the session up yet
		return nil, err
	}
	if err := a.outlived(waiting); err != nil {
		return nil, err
	}
	page := api.EventsPage{Events: append([]jig.Event{}, found.Events...), Status: cmp.Or(found.Status, status), Draft: found.Draft}
	if request.Text != nil {
		page.Position = in.Text
		if found.Draft != nil {
			page.Position = positionText(found.Draft.End())
		}
	}
	return &written{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		writeJSON(w, http.StatusOK, "application/json", page)
	}}, nil
}

// textStart is the position at which nothing of a text is known.
const textStart = "start"

// textPosition returns the position that a client has in the text of a model.
func textPosition(text string) (*protocol.TextPosition, error) {
	at := &protocol.TextPosition{}
	if text == textStart {
		return at, nil
	}
	encoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(encoded, at) != nil {
		return nil, invalid("this is not a position in a text").WithField("text").WithHint("use start, or text_position of the previous page")
	}
	return at, nil
}

// positionText is the opposite of textPosition.
func positionText(at protocol.TextPosition) string {
	encoded, err := json.Marshal(at)
	if err != nil { // cannot happen: it consists of numbers and a string
		return textStart
	}
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// stream is a connection to which events are sent. Writing to one that is broken does nothing.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// after is the sequence number of the last event that was sent.
	after int64
	// only selects the events to send; nil sends all of them, and the text of models.
	only   func(e jig.Event) bool
	broken bool
}

// stream sends events until the session has ended and its last event was sent, the client goes, its credential ends, or the server stops. It
// reports whether the session has ended.
func (a *API) stream(ctx context.Context, s *stream, tenant, session string, pass int) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := a.options.Log.Follow(ctx, tenant, session, s.after, pass)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var again <-chan time.Time
	for check := true; !s.broken; {
		if check {
			ended, err := a.ended(ctx, s, tenant, session)
			if ended {
				return true
			}
			if check, again = false, nil; err != nil { // the database may be back soon
				again = time.After(retryAfter)
			}
		}
		select {
		case page, open := <-news:
			if !open {
				return false
			}
			s.draft(page.Draft)
			s.events(page.Events)
			check = slices.ContainsFunc(page.Events, endsSession)
		case <-again:
			check = true
		case <-ticker.C:
			s.send(": ping\n\n")
		case <-a.drained:
			s.send("retry: " + milliseconds(reconnectElsewhere) + "\n\n")
			return false
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// begin sends the headers of a stream, and how long a client should wait before it connects again.
func (s *stream) begin() {
	h := s.w.Header()
	h.Set("Content-Type", api.EventStream)
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	s.w.WriteHeader(http.StatusOK)
	s.send("retry: " + milliseconds(reconnect) + "\n\n")
}

// endsSession reports whether a session ends with an event. A message may continue it afterwards.
func endsSession(e jig.Event) bool {
	return e.Type == jig.EventSessionCompleted || e.Type == jig.EventSessionFailed || e.Type == jig.EventSessionCanceled
}

// ended reports whether a session has ended. Then it sends the events that are left. An error means that it cannot be known.
func (a *API) ended(ctx context.Context, s *stream, tenant, session string) (bool, error) {
	status, err := a.standing(ctx, tenant, session)
	if err != nil || !status.Final() {
		return false, err
	}
	for !s.broken {
		rest, err := a.options.Log.Events(ctx, tenant, session, s.after, maxEvents)
		if err != nil {
			return false, err
		}
		if len(rest) == 0 {
			return true, nil
		}
		s.events(rest)
	}
	return true, nil
}

// events sends the events that were not sent yet.
func (s *stream) events(list []jig.Event) {
	var b strings.Builder
	for _, e := range list {
		if e.Seq <= s.after || s.only != nil && !s.only(e) {
			s.after = max(s.after, e.Seq)
			continue
		}
		data, err := jsontext.Encode(e)
		if err != nil {
			s.broken = true // the client connects again, and somebody finds the reason in the log
			return
		}
		s.after = e.Seq
		name := strings.Map(func(r rune) rune { // the names of custom events come from outside; a line break would begin another field
			if r < ' ' {
				return ' '
			}
			return r
		}, string(e.Type))
		_, _ = fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, name, data)
	}
	if b.Len() > 0 {
		s.send(b.String())
	}
}

// draft sends a piece of the text that a model is writing. It has no id, because it is not in the log: who connects again may miss it.
func (s *stream) draft(d *protocol.Draft) {
	if d != nil && s.only == nil {
		s.unnumbered("delta", d)
	}
}

// unnumbered sends an event that is not in the log, so that it has no id and does not change where a client continues.
func (s *stream) unnumbered(name string, value any) {
	if data, err := jsontext.Encode(value); err == nil {
		s.send("event: " + name + "\ndata: " + string(data) + "\n\n")
	}
}

// send writes text, which must consist of whole messages.
func (s *stream) send(text string) {
	if s.broken {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(lineTimeout)) //nolint:errcheck // not every writer has deadlines
	_, err := s.w.Write([]byte(text))
	if err == nil {
		err = s.control.Flush()
	}
	s.broken = err != nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
