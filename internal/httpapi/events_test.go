package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// log is the log of the session acme.known.
type log struct {
	mu     sync.Mutex
	list   []jig.Event
	status jig.Status
	news   chan struct{}
	// again makes subscriptions send each event twice, as a store may that looks for events that were announced late.
	again bool
	// principal is the one that the session acts for.
	principal string
}

func newLog() *log { return &log{status: jig.StatusWorking, news: make(chan struct{})} }

// add appends events of the given types.
func (l *log) add(types ...jig.EventType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range types {
		l.list = append(l.list, jig.Event{SessionID: "acme.known", Seq: int64(len(l.list) + 1), Type: name, Data: json.RawMessage(`{"text":"a<b"}`)})
		if name == jig.EventSessionCompleted {
			l.status = jig.StatusCompleted
		}
	}
	close(l.news)
	l.news = make(chan struct{})
}

func (l *log) Session(_ context.Context, _, id string) (jig.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id != "acme.known" && id != "known" {
		return jig.Session{}, jig.Errorf(jig.CodeNotFound, "there is no session %s", id)
	}
	return jig.Session{ID: id, Status: l.status, Principal: jig.Principal{ID: l.principal}}, nil
}

func (l *log) Events(_ context.Context, _, _ string, after int64, limit int) ([]jig.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.list[min(after, int64(len(l.list))):]
	return append([]jig.Event{}, rest[:min(limit, len(rest))]...), nil
}

func (l *log) Subscribe(ctx context.Context, tenant, id string, after int64) <-chan []jig.Event {
	out := make(chan []jig.Event)
	go func() {
		defer close(out)
		for {
			l.mu.Lock()
			news := l.news
			l.mu.Unlock()
			list, _ := l.Events(ctx, tenant, id, after, 1000) //nolint:errcheck // it never fails
			if len(list) > 0 {
				if l.again {
					list = append(list, list...)
				}
				select {
				case out <- list:
					after = list[len(list)-1].Seq
				case <-ctx.Done():
					return
				}
				continue
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// stream follows the events.
type stream struct {
	*bufio.Scanner
	answer reply
}

func (s *site) follow(headers ...string) *stream {
	s.t.Helper()
	answer, content := s.open(http.MethodGet, "/v1/sessions/known/events", "", append([]string{"Accept", "text/event-stream"}, headers...)...)
	return &stream{bufio.NewScanner(content), answer}
}

// until reads lines up to one, and returns the others.
func (s *stream) until(t *testing.T, last string) []string {
	t.Helper()
	var lines []string
	for s.Scan() {
		if s.Text() == last {
			return lines
		}
		lines = append(lines, s.Text())
	}
	require.Fail(t, "the stream ended", "before %q: %v", last, lines)
	return nil
}

// rest reads the stream to its end.
func (s *stream) rest(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for s.Scan() {
		b.WriteString(s.Text() + "\n")
	}
	require.NoError(t, s.Err(), "the stream must end")
	return b.String()
}

func TestStream_SendsWhatFollows(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	require.Equal(t, "text/event-stream", stream.answer.Header.Get("Content-Type"))
	require.Equal(t, "no", stream.answer.Header.Get("X-Accel-Buffering"))
	require.Equal(t, []string{"retry: 2000", ""}, stream.until(t, "id: 1"))
	lines := stream.until(t, "")
	require.Equal(t, "event: session.started", lines[0])
	require.Contains(t, lines[1], `"text":"a<b"`)
	s.log.add(jig.EventPassStarted, jig.EventSessionCompleted, jig.EventToolInDoubt)
	stream.until(t, "id: 2")
	stream.until(t, "id: 3")
	require.Contains(t, stream.rest(t), "id: 4\nevent: tool.in_doubt", "what follows the end of the session is not left out")

	require.Equal(t, http.StatusNoContent, s.follow("Last-Event-ID", "4").answer.StatusCode)
	require.Regexp(t, `(?s)^retry: 2000\n\nid: 3\n.*\n\nid: 4\n`, s.follow("Last-Event-ID", "2").rest(t))
	answer, _ := s.open(http.MethodGet, "/v1/sessions/known/events?after=0", "", "Accept", "text/event-stream", "Last-Event-ID", "4")
	require.Equal(t, http.StatusNoContent, answer.StatusCode, "Last-Event-ID counts instead of after")
}

func TestStream_RefusesBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	answer, body := s.send(http.MethodGet, "/v1/sessions/other/events", "", "Accept", "text/event-stream")
	require.Equal(t, http.StatusNotFound, problem(t, answer, body).Status)
	answer, body = s.send(http.MethodGet, "/v1/sessions/known/events", "", "Accept", "text/event-stream", "Last-Event-ID", "soon")
	require.Equal(t, http.StatusUnprocessableEntity, problem(t, answer, body).Status)
}

// A stream ends when the server stops, after telling the client to connect again, and when its key is revoked.
func TestStream_Ends(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "id: 1")
	s.api.Drain()
	require.Contains(t, stream.rest(t), "retry: 500")

	s = newSite(t)
	s.log.add(jig.EventSessionStarted)
	stream = s.follow()
	stream.until(t, "id: 1")
	s.keys.revokeAll()
	require.NotContains(t, stream.rest(t), "id: 2")
}

// A message may continue a session that has ended. Its stream goes on.
func TestStream_OfAContinuedSession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted, jig.EventSessionCompleted, jig.EventMessageAdded)
	s.log.status = jig.StatusWorking
	stream := s.follow()
	stream.until(t, "id: 3")
	s.log.add(jig.EventSessionCompleted)
	require.Contains(t, stream.rest(t), "id: 4\n")
}

// The name of an event comes from outside if it is a custom one.
func TestStream_NamesCannotAddFields(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add("custom.x\n\nid: 9\ndata: forged", jig.EventSessionCompleted)
	text := s.follow().rest(t)
	require.NotContains(t, text, "\nid: 9")
	require.Contains(t, text, "\nid: 2\n")
}

func TestStream_SendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.again = true
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "id: 1")
	s.log.add(jig.EventPassStarted)
	require.NotContains(t, stream.until(t, "id: 2"), "id: 1")
	s.log.add(jig.EventSessionCompleted)
	require.NotContains(t, stream.rest(t), "id: 2")
}

func TestEvents_ArePages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 5 {
		s.log.add(jig.EventPassStarted)
	}
	var page struct {
		Events []jig.Event
		Status jig.Status
	}
	_, body := s.send(http.MethodGet, "/v1/sessions/known/events?after=1&limit=2", "")
	require.NoError(t, json.Unmarshal([]byte(body), &page), body)
	require.Equal(t, jig.StatusWorking, page.Status)
	require.Len(t, page.Events, 2)
	require.Equal(t, "2", strconv.FormatInt(page.Events[0].Seq, 10))
	_, body = s.send(http.MethodGet, "/v1/sessions/known/events?after=9", "")
	require.JSONEq(t, `{"events":[],"status":"working"}`, body)
}
