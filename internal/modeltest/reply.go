package modeltest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Reply is an answer and the way in which it is sent.
type Reply struct {
	Text  string
	Calls []Call
	// Thinking is signed reasoning before the text (Anthropic).
	Thinking string
	// Refusal is the text with which the model refuses to answer.
	Refusal string
	// CutOff reports that the answer ended at the token limit.
	CutOff bool
	// Usage overrides the default token counts; see [Usage].
	Usage Usage

	// Status is the HTTP status of an error; 0 means success. Message is the error message; Header holds additional headers.
	Status  int
	Message string
	Header  map[string]string

	// Body, when set, is sent instead of the answer, byte by byte as it is, with Status or 200. ContentType is its media type; default none.
	Body, ContentType string
	// Empty sends no body at all.
	Empty bool

	// Plain answers with one JSON document even if a stream was requested.
	Plain bool
	// ZeroIndex gives every streamed call the index 0, as Ollama does (OpenAI).
	ZeroIndex bool
	// NoIDs omits the ids of calls (OpenAI).
	NoIDs bool
	// Break closes the connection in the middle of the answer, and Truncate ends the stream there as if it were complete.
	Break    bool
	Truncate bool
	// Chop sends a stream byte by byte.
	Chop bool
	// Stall sends the first half of the answer and then nothing until the client disconnects.
	Stall bool
	// StreamError ends the stream with an error event of this type.
	StreamError string
	// Until, when set, delays the second half of the answer, or what happens in the middle of it, until the channel is closed.
	Until <-chan struct{}
	// Piece is the size in bytes of the pieces in which text and arguments are sent; default 16.
	Piece int
}

// Usage counts tokens; the default is 10 input and 5 output tokens.
type Usage struct{ Input, Output, CacheRead, CacheCreate int }

// Text returns a reply with a text.
func Text(text string) Reply { return Reply{Text: text} }

// Calls returns a reply with tool calls. Calls without an ID get toolu_<request>_<n> or call_<request>_<n>.
func Calls(calls ...Call) Reply { return Reply{Calls: calls} }

// Fail returns a reply with an error status.
func Fail(status int, message string) Reply { return Reply{Status: status, Message: message} }

// RateLimited returns a reply with status 429 and a Retry-After header.
func RateLimited(retryAfter string) Reply {
	return Reply{Status: http.StatusTooManyRequests, Message: "too many requests", Header: map[string]string{"Retry-After": retryAfter}}
}

func (r Reply) write(w http.ResponseWriter, in *http.Request, request Request) {
	for k, v := range r.Header {
		w.Header().Set(k, v)
	}
	if r.verbatim(w) {
		return
	}
	if r.Status != 0 {
		writeError(w, request.Wire, r.Status, errorType(r.Status), r.Message)
		return
	}
	r = r.withDefaults(request)
	if r.Plain || !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.document(request)) //nolint:errcheck // the client may have disconnected
		return
	}
	events := r.events(request)
	if r.StreamError != "" {
		events = append(events[:len(events)/2], event{name: "error", data: map[string]any{
			"type": "error", "error": map[string]any{"type": r.StreamError, "message": "the stream failed"},
		}})
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	if r.Chop {
		w = chopped{w}
	}
	for i, e := range events {
		if i == len(events)/2 && !r.hold(in.Context(), w) {
			return
		}
		if err := e.write(w); err != nil {
			return
		}
	}
}

// verbatim sends Body, if it or its media type is set. It reports whether it did.
func (r Reply) verbatim(w http.ResponseWriter) bool {
	if r.Body == "" && r.ContentType == "" && !r.Empty {
		return false
	}
	w.Header()["Content-Type"] = nil // the server would guess one
	if r.ContentType != "" {
		w.Header().Set("Content-Type", r.ContentType)
	}
	w.WriteHeader(cmp.Or(r.Status, http.StatusOK))
	_, _ = io.WriteString(w, r.Body) //nolint:errcheck // the client may have disconnected
	return true
}

// hold applies Break, Stall and Until in the middle of a stream. It reports whether to continue.
func (r Reply) hold(ctx context.Context, w http.ResponseWriter) bool {
	if r.Break || r.Stall || r.Until != nil {
		_ = http.NewResponseController(w).Flush()
	}
	if r.Until != nil {
		select {
		case <-r.Until:
		case <-ctx.Done():
			return false
		}
	}
	switch {
	case r.Break:
		panic(http.ErrAbortHandler)
	case r.Truncate:
		return false
	case r.Stall:
		<-ctx.Done()
		return false
	}
	return true
}

func (r Reply) withDefaults(request Request) Reply {
	if r.Usage == (Usage{}) {
		r.Usage = Usage{Input: 10, Output: 5}
	}
	if r.Piece == 0 {
		r.Piece = 16
	}
	calls := append([]Call(nil), r.Calls...)
	for i := range calls {
		switch {
		case r.NoIDs:
			calls[i].ID = ""
		case calls[i].ID == "" && request.Wire == Anthropic:
			calls[i].ID = fmt.Sprintf("toolu_%d_%d", request.Number, i+1)
		case calls[i].ID == "":
			calls[i].ID = fmt.Sprintf("call_%d_%d", request.Number, i+1)
		}
	}
	r.Calls = calls
	return r
}

func (r Reply) document(request Request) any {
	if request.Wire == Anthropic {
		return r.anthropicDocument(request)
	}
	return r.openaiDocument(request)
}

func (r Reply) events(request Request) []event {
	if request.Wire == Anthropic {
		return r.anthropicEvents(request)
	}
	return r.openaiEvents(request)
}

func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// event is a server-sent event; data is encoded as JSON, except that a string is sent as it is.
type event struct {
	name string
	data any
}

func (e event) write(w http.ResponseWriter) error {
	if e.name != "" {
		if _, err := fmt.Fprintf(w, "event: %s\n", e.name); err != nil {
			return err
		}
	}
	text, ok := e.data.(string)
	if !ok {
		raw, err := json.Marshal(e.data)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	_, err := fmt.Fprintf(w, "data: %s\n\n", text)
	return err
}

// chopped sends what is written byte by byte.
type chopped struct{ http.ResponseWriter }

func (w chopped) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		if _, err = w.ResponseWriter.Write(b[n : n+1]); err == nil {
			n++
			err = http.NewResponseController(w.ResponseWriter).Flush()
		}
	}
	return n, err
}

// pieces splits a text into pieces of at most size bytes.
func pieces(s string, size int) []string {
	var out []string
	for len(s) > size {
		out = append(out, s[:size])
		s = s[size:]
	}
	return append(out, s)
}
