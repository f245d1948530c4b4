package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
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

	eventStream = "text/event-stream"
)

type eventsRequest struct {
	One
	After  int64  `query:"after" minimum:"0" doc:"The sequence number of the last event that is known already"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"200" doc:"The most events of a page; streams have no limit"`
	Last   int64  `header:"Last-Event-Id" minimum:"0" doc:"The id of the last event of an interrupted stream; it counts instead of after"`
	Accept string `header:"Accept" maxLength:"500" doc:"text/event-stream for a stream"`
}

// eventsPage is a page of events. Unlike that of workers, it has no text of a model that still writes.
type eventsPage struct {
	Events []jig.Event `json:"events"`
	Status jig.Status  `json:"status" enum:"working,input_required,completed,failed,canceled" doc:"The status of the session"`
}

// eventsAnswer writes a page or a stream.
type eventsAnswer struct{ Body func(ctx huma.Context) }

func (a *API) getEvents(ctx context.Context, in *eventsRequest) (*eventsAnswer, error) {
	tenant, _ := callerOf(ctx)
	session, after := jig.SessionID(tenant, in.Session), in.After
	if in.Last > 0 {
		after = in.Last
	}
	status, err := a.standing(ctx, tenant, session)
	if err != nil {
		return nil, err
	}
	streams := strings.Contains(in.Accept, eventStream)
	limit := in.Limit
	if streams {
		limit = 1
	}
	first, err := a.options.Log.Events(ctx, tenant, session, after, limit)
	if err != nil {
		return nil, err
	}
	if !streams {
		return &eventsAnswer{Body: func(c huma.Context) {
			_, w := humago.Unwrap(c)
			writeJSON(w, http.StatusOK, "application/json", eventsPage{Events: append([]jig.Event{}, first...), Status: status})
		}}, nil
	}
	if len(first) == 0 && status.Final() {
		return &eventsAnswer{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}, nil
	}
	return &eventsAnswer{Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		_, w := humago.Unwrap(c)
		ctx, over := a.leases.hold(c.Context(), exchangeOf(c.Context()).caller)
		defer over()
		exchangeOf(c.Context()).streams = true
		a.options.Observer.StreamOpened()
		defer a.options.Observer.StreamClosed()
		a.stream(ctx, &stream{w: w, control: http.NewResponseController(w), after: after}, tenant, session)
	}}, nil
}

// stream is a connection to which events are sent. Writing to one that is broken does nothing.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// after is the sequence number of the last event that was sent.
	after  int64
	broken bool
}

// stream sends events until the session has ended and its last event was sent, the client goes, its credential ends, or the server stops.
func (a *API) stream(ctx context.Context, s *stream, tenant, session string) {
	h := s.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // proxies must not collect events
	s.w.WriteHeader(http.StatusOK)
	s.send("retry: " + milliseconds(reconnect) + "\n\n")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := a.options.Log.Subscribe(ctx, tenant, session, s.after)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for ended := a.ended(ctx, s, tenant, session); !ended && !s.broken; {
		select {
		case list, open := <-news:
			if !open {
				return
			}
			s.events(list)
			ended = slices.ContainsFunc(list, endsSession) && a.ended(ctx, s, tenant, session)
		case <-ticker.C:
			s.send(": ping\n\n")
		case <-a.drained:
			s.send("retry: " + milliseconds(reconnectElsewhere) + "\n\n")
			return
		case <-ctx.Done():
			return
		}
	}
}

// endsSession reports whether a session ends with an event. A message may continue it afterwards.
func endsSession(e jig.Event) bool {
	return e.Type == jig.EventSessionCompleted || e.Type == jig.EventSessionFailed || e.Type == jig.EventSessionCanceled
}

// ended reports whether a session has ended. Then it sends the events that are left.
func (a *API) ended(ctx context.Context, s *stream, tenant, session string) bool {
	status, err := a.standing(ctx, tenant, session)
	if err != nil || !status.Final() {
		return false
	}
	for !s.broken {
		rest, err := a.options.Log.Events(ctx, tenant, session, s.after, maxEvents)
		if err != nil {
			return false
		}
		if len(rest) == 0 {
			return true
		}
		s.events(rest)
	}
	return true
}

// events sends the events that were not sent yet.
func (s *stream) events(list []jig.Event) {
	var b strings.Builder
	for _, e := range list {
		if e.Seq <= s.after {
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
