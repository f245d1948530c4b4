package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
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
	drafts    chan protocol.EventsPage
	// session and calls are the result of CallsOf.
	session jig.Session
	calls   []jig.Call
	// withheld is how many of the latest events belong to transactions that wait for others.
	withheld int
	// restored says that all cursors are from the time before the database was restored.
	restored bool
	// asked is called when somebody asks for a page, and then pages wait for events that do not come; nil for neither.
	asked func()
	// down is how many times the session cannot be read once it has ended.
	down int
}

func newLog() *log {
	return &log{status: jig.StatusWorking, news: make(chan struct{}), drafts: make(chan protocol.EventsPage)}
}

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
	if l.status.Final() && l.down > 0 {
		l.down--
		return jig.Session{}, jig.Errorf(jig.CodeUnavailable, "the database does not answer")
	}
	return jig.Session{ID: id, Status: l.status, Principal: jig.Principal{ID: l.principal}}, nil
}

func (l *log) CallsOf(_ context.Context, _, _ string, ids []string) (jig.Session, []jig.Call, error) {
	return l.session, slices.DeleteFunc(slices.Clone(l.calls), func(c jig.Call) bool { return !slices.Contains(ids, c.ID) }), nil
}

func (l *log) Events(_ context.Context, _, _ string, after int64, limit int) ([]jig.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.list[min(after, int64(len(l.list))):]
	return append([]jig.Event{}, rest[:min(limit, len(rest))]...), nil
}

func (l *log) Follow(ctx context.Context, tenant, id string, after int64, _ int) <-chan protocol.EventsPage {
	out := make(chan protocol.EventsPage)
	go func() {
		defer close(out)
		for {
			l.mu.Lock()
			news := l.news
			l.mu.Unlock()
			list, _ := l.Events(ctx, tenant, id, after, 1000) //nolint:errcheck // it never fails
			page := protocol.EventsPage{Events: list}
			var ready chan<- protocol.EventsPage
			if len(list) > 0 {
				ready = out
				if l.again {
					page.Events = slices.Concat(list, list)
				}
			}
			select {
			case ready <- page:
				after = list[len(list)-1].Seq
			case page = <-l.drafts:
				out <- page
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// NextEvents answers with a page of the log, or with a draft if the request asks for text.
func (e *engine) NextEvents(ctx context.Context, request protocol.EventsRequest) (protocol.EventsPage, error) {
	if e.log.asked != nil {
		e.log.asked()
		<-ctx.Done()
	}
	list, err := e.log.Events(ctx, request.Tenant, request.SessionID, request.After, request.Limit)
	page := protocol.EventsPage{Events: list, Status: e.log.status}
	if request.Text != nil {
		page.Draft = &protocol.Draft{Pass: 1, Attempt: "a", Offset: request.Text.Offset, Text: "more"}
	}
	return page, err
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

// A stream ends after its last event even if the database did not answer when that event was sent.
func TestStream_EndsAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.down = 2
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "id: 1")
	s.log.add(jig.EventSessionCompleted)
	require.Contains(t, stream.rest(t), "id: 2\nevent: session.completed")
	require.Zero(t, s.log.down)
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
	s.keys.removeAll()
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

// The text of a model comes between the events, without an id: it does not change where a client continues.
func TestStream_SendsText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	stream := s.follow()
	stream.until(t, "id: 1")
	stream.until(t, "")
	s.log.drafts <- protocol.EventsPage{Draft: &protocol.Draft{Pass: 1, Attempt: "a", Text: "Good\n\nid: 9"}}
	require.Equal(t, "event: delta", stream.lines(t, 1)[0])
	require.JSONEq(t, `{"pass":1,"attempt":"a","offset":0,"text":"Good\n\nid: 9"}`, strings.TrimPrefix(stream.lines(t, 1)[0], "data: "))
	s.log.add(jig.EventSessionCompleted)
	require.Contains(t, stream.rest(t), "id: 2\n")
}

// lines reads some lines.
func (s *stream) lines(t *testing.T, n int) (lines []string) {
	t.Helper()
	for range n {
		require.True(t, s.Scan())
		lines = append(lines, s.Text())
	}
	return lines
}

// Clients that cannot read streams ask for pages with text, one after the other.
func TestEvents_PagesHaveText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var page struct {
		Draft    protocol.Draft
		Position string `json:"text_position"`
	}
	_, body := s.send(http.MethodGet, "/v1/sessions/known/events?wait=1&text=start", "")
	require.NoError(t, json.Unmarshal([]byte(body), &page), body)
	require.Equal(t, 0, page.Draft.Offset)
	_, body = s.send(http.MethodGet, "/v1/sessions/known/events?wait=1&text="+page.Position, "")
	require.NoError(t, json.Unmarshal([]byte(body), &page), body)
	require.Equal(t, len("more"), page.Draft.Offset, "the text goes on")
	answer, body := s.send(http.MethodGet, "/v1/sessions/known/events?wait=1&text=nowhere", "")
	require.Equal(t, "text", problem(t, answer, body).Field)
	_, body = s.send(http.MethodGet, "/v1/sessions/known/events?wait=1", "")
	require.NotContains(t, body, "draft")
}

// TenantEvents uses the sequence numbers of the only session as cursors.
func (l *log) TenantEvents(ctx context.Context, tenant, after string, limit int) (protocol.TenantEvents, error) {
	if l.asked != nil {
		l.asked()
	}
	from, err := strconv.ParseInt(after, 10, 64)
	if after != "" && err != nil {
		return protocol.TenantEvents{}, jig.Errorf(jig.CodeInvalidInput, "the cursor is not valid").WithField("cursor")
	}
	l.mu.Lock()
	last, withheld, restored := int64(len(l.list)), l.withheld, l.restored
	l.mu.Unlock()
	if restored && after != "" {
		return protocol.TenantEvents{}, jig.Errorf(jig.CodeExpired, "the database was restored").WithField("after")
	}
	page := protocol.TenantEvents{Events: []protocol.TenantEvent{}, Next: after, Waiting: withheld > 0}
	if after == "" {
		page.Next = strconv.FormatInt(last-int64(withheld), 10)
		return page, nil
	}
	list, _ := l.Events(ctx, tenant, "known", from, limit) //nolint:errcheck // it never fails
	for _, e := range list[:max(0, min(len(list), int(last-from)-withheld))] {
		page.Next = strconv.FormatInt(e.Seq, 10)
		page.Events = append(page.Events, protocol.TenantEvent{Event: e, Cursor: page.Next})
	}
	return page, nil
}

func (l *log) WatchTenant(ctx context.Context, _ string) <-chan struct{} {
	wake := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			l.mu.Lock()
			news := l.news
			l.mu.Unlock()
			select {
			case wake <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}()
	return wake
}

// An inbox takes the cursor, reads its lists, and gets what happens after the cursor. A stream that was interrupted continues by its ids.
func TestTenantEvents_FollowTheCursor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted, jig.EventToolNeedsApproval)
	type page struct {
		Events []struct {
			Type   jig.EventType
			Cursor string
		}
		Next string `json:"next_cursor"`
	}
	read := func(query string) (p page) {
		_, body := s.send(http.MethodGet, "/v1/events"+query, "")
		require.NoError(t, json.Unmarshal([]byte(body), &p), body)
		return p
	}
	begin := read("")
	require.Empty(t, begin.Events, "without a cursor there is only the present one")
	s.log.add(jig.EventToolApproved)
	next := read("?after=" + begin.Next)
	require.Len(t, next.Events, 1)
	require.Equal(t, jig.EventToolApproved, next.Events[0].Type)
	require.Equal(t, next.Next, next.Events[0].Cursor)
	go s.log.add(jig.EventSessionCompleted)
	require.Len(t, read("?wait=30&after="+next.Next).Events, 1)

	answer, content := s.open(http.MethodGet, "/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", begin.Next)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	stream := &stream{bufio.NewScanner(content), answer}
	require.Equal(t, []string{"retry: 2000", "", "id: 2", "event: ready", "data: {}", ""}, stream.until(t, "id: 3"))
	stream.until(t, "id: 4")
	s.log.mu.Lock()
	s.log.withheld = 1
	s.log.mu.Unlock()
	s.log.add(jig.EventSessionStarted)
	go func() {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		s.log.withheld = 0 // nothing announces that an older transaction has ended
	}()
	stream.until(t, "id: 5")
	s.api.Drain()
	require.Contains(t, stream.rest(t), "retry: 500")

	answer, body := s.send(http.MethodGet, "/v1/events?after=nowhere", "", "Accept", "text/event-stream")
	require.Equal(t, http.StatusUnprocessableEntity, problem(t, answer, body).Status, "a wrong cursor is refused before the stream begins")
}

// A stream ends when the database is restored. The client connects again, and learns that it must read its lists again.
func TestTenantEvents_EndWithTheirCursor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	answer, content := s.open(http.MethodGet, "/v1/events?after=1", "", "Accept", "text/event-stream")
	stream := &stream{bufio.NewScanner(content), answer}
	stream.until(t, "event: ready")
	s.log.mu.Lock()
	s.log.restored = true
	s.log.mu.Unlock()
	s.log.add(jig.EventSessionCompleted)
	require.Contains(t, stream.rest(t), "retry: 500")
	refused, body := s.send(http.MethodGet, "/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", "1")
	require.Equal(t, http.StatusGone, problem(t, refused, body).Status)
}
