package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// Wire is the name of a wire format.
type Wire string

// The wire formats.
const (
	Anthropic Wire = "anthropic"
	OpenAI    Wire = "openai"
)

// Request is a request that a client sent.
type Request struct {
	Wire Wire
	// Number counts the requests, from 1.
	Number int
	Header http.Header
	Body   json.RawMessage
	// Model, System, Stream and Tools (the names as sent) are parsed from the body.
	Model  string
	System string
	Stream bool
	Tools  []string
	// Turns are the messages of the conversation, in a form that both wire formats share.
	Turns []Turn
}

// Turn is one message of a request.
type Turn struct {
	// Role is user, assistant or tool.
	Role string
	Text string
	// Calls are the calls that an assistant requested. CallID names the call that a tool message answers, and IsError reports that it
	// failed.
	Calls   []Call
	CallID  string
	IsError bool
}

// Call is a tool call.
type Call struct {
	ID   string
	Name string
	// Args is the input as text. It is JSON unless the call should be malformed.
	Args string
}

// Last returns the last message of the conversation.
func (r Request) Last() Turn {
	if len(r.Turns) == 0 {
		return Turn{}
	}
	return r.Turns[len(r.Turns)-1]
}

// Server is a test server. It is closed when its test ends.
type Server struct {
	// URL is the server's address, which is the base URL for Anthropic clients.
	URL string

	reply func(Request) Reply

	mu       sync.Mutex
	requests []Request
}

// New starts a server that answers with the steps, one for each request. A request after the last step fails the test.
func New(t testing.TB, steps ...Reply) *Server {
	t.Helper()
	return Func(t, func(r Request) Reply {
		if r.Number > len(steps) {
			t.Errorf("request %d has no step", r.Number)
			return Fail(http.StatusNotImplemented, fmt.Sprintf("request %d has no step", r.Number))
		}
		return steps[r.Number-1]
	})
}

// Func starts a server that calls a function for every answer. The function may be called concurrently.
func Func(t testing.TB, reply func(Request) Reply) *Server {
	t.Helper()
	s := &Server{reply: reply}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	return s
}

// OpenAIURL returns the base URL for OpenAI clients.
func (s *Server) OpenAIURL() string { return s.URL + "/v1/" }

// Requests returns the valid requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	request := Request{Header: r.Header.Clone(), Body: body}
	if err := readable(body); err != nil {
		writeError(w, request.Wire, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/v1") {
	case "/messages":
		request.Wire = Anthropic
		err = readAnthropic(&request)
	case "/chat/completions":
		request.Wire = OpenAI
		err = readOpenAI(&request)
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		writeError(w, request.Wire, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	s.mu.Lock()
	request.Number = len(s.requests) + 1
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	s.reply(request).write(w, r, request)
}

func writeError(w http.ResponseWriter, wire Wire, status int, kind, message string) {
	body := map[string]any{"error": map[string]any{"type": kind, "message": message}}
	if wire == Anthropic {
		body["type"] = "error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errcheck // the client may have disconnected
}

// escape matches the escapes that matter to halves: backslashes, which may escape each other, and units of UTF-16.
var escape = regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}`)

// readable returns an error for a body that is not valid Unicode, or that holds a number beyond those of a double. Arguments that are sent as
// a text within the body are checked as well.
func readable(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("the body is not valid UTF-8")
	}
	if err := halves(body); err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return nil
}

// halves returns an error if a JSON text has half a surrogate pair.
func halves(text []byte) error {
	open := -1 // where the first half of a pair ended
	for _, at := range escape.FindAllIndex(text, -1) {
		found := string(text[at[0]:at[1]])
		if len(found) < 6 {
			continue
		}
		var unit int
		if _, err := fmt.Sscanf(found[2:], "%x", &unit); err != nil {
			return fmt.Errorf("%s is no escape", found)
		}
		first, second := unit>>10 == 0xD800>>10, unit>>10 == 0xDC00>>10
		switch {
		case second && open == at[0]:
			open = -1
		case second || open >= 0:
			return fmt.Errorf("no low surrogate in string, or no high one before it: %s", found)
		case first:
			open = at[1]
		}
	}
	if open >= 0 {
		return fmt.Errorf("no low surrogate in string")
	}
	return nil
}

// ids are the ids of calls in a conversation.
type ids map[string]bool

// add returns an error if one of the ids is used already.
func (known ids) add(list []string) error {
	for _, id := range list {
		if known[id] {
			return fmt.Errorf("tool_use ids must be unique: %s", id)
		}
		known[id] = true
	}
	return nil
}
