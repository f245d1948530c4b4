package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/strictjson"
)

// problem is an error as a client sees it: problem details (RFC 9457) with the members of a [jig.Error]. It repeats no value of the request.
type problem struct {
	Type   string   `json:"type" doc:"Always about:blank; the code says what is wrong"`
	Title  string   `json:"title" doc:"The text of the HTTP status"`
	Status int      `json:"status" doc:"The HTTP status"`
	Code   jig.Code `json:"code" doc:"The error code, the same as on the command line"`
	Detail string   `json:"detail,omitempty" doc:"What is wrong, in one sentence"`
	Reason string   `json:"reason,omitempty" doc:"A more specific code"`
	Field  string   `json:"field,omitempty" doc:"The member or parameter that is wrong"`
	Hint   string   `json:"hint,omitempty" doc:"How to fix it"`
	// RequestID is the id of the request, which the server's log contains.
	RequestID string         `json:"request_id" doc:"The id of the request, as in the server's log"`
	Errors    []problemPlace `json:"errors,omitempty" doc:"The invalid places of the request, at most 50"`

	headers http.Header
}

// problemPlace is one place of a request that is wrong.
type problemPlace struct {
	Location string `json:"location" doc:"Where, e.g. body.agent, or a JSON pointer into an input"`
	Message  string `json:"message" doc:"What is wrong with it"`
}

// The methods that huma asks of an error.

func (p *problem) Error() string             { return string(p.Code) + ": " + p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) GetHeaders() http.Header   { return p.headers }
func (p *problem) ContentType(string) string { return problemJSON }

// maxPlaces bounds how many places of a request an error lists. Hiding the values of a request in each of them takes time.
const maxPlaces = 50

// problemJSON is the media type of errors.
const problemJSON = "application/problem+json"

// statusOf returns the HTTP status of an error with a code.
func statusOf(code jig.Code) int {
	switch code {
	case jig.CodeToolNotFound, jig.CodeNotFound:
		return http.StatusNotFound
	case jig.CodeNotPermitted, jig.CodeDenied:
		return http.StatusForbidden
	case jig.CodeMissingParam, jig.CodeInvalidInput:
		return http.StatusUnprocessableEntity
	case jig.CodeConflict, jig.CodeDuplicate, jig.CodeCanceled, jig.CodeOutcomeUnknown:
		return http.StatusConflict
	case jig.CodeExpired:
		return http.StatusGone
	case jig.CodeBudgetExhausted:
		return http.StatusPaymentRequired
	case jig.CodeRateLimited:
		return http.StatusTooManyRequests
	case jig.CodeUnavailable:
		return http.StatusServiceUnavailable
	case jig.CodeTimeout:
		return http.StatusGatewayTimeout
	case jig.CodeInvalidOutput:
		return http.StatusBadGateway
	case jig.CodeInternal:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}

// retryAfter is how long a client should wait before it repeats a request that failed with 429 or 503, unless the error says.
const retryAfter = time.Second

// failed returns the problem for an error, with a status.
func failed(status int, e *jig.Error) *problem {
	p := &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: e.Code, Detail: e.Message, Reason: e.Reason, Field: e.Field,
		Hint: e.Hint, headers: http.Header{},
	}
	for _, v := range e.Violations {
		p.Errors = append(p.Errors, problemPlace{Location: v.Pointer, Message: v.Message})
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		wait := max(e.RetryAfter, retryAfter)
		p.headers.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	return p
}

func invalid(message string) *jig.Error     { return jig.Errorf(jig.CodeInvalidInput, "%s", message) }
func unavailable(message string) *jig.Error { return jig.Errorf(jig.CodeUnavailable, "%s", message) }
func notFound() *jig.Error                  { return jig.Errorf(jig.CodeNotFound, "there is nothing at this address") }

// problemOf returns the problem for the error of an operation. It hides the message of an INTERNAL error, which only the log gets.
func (a *API) problemOf(ctx context.Context, err error) *problem {
	var p *problem
	if !errors.As(err, &p) {
		e := jig.AsError(err)
		if ctx.Err() != nil { // whatever failed, it did because nobody waits for it anymore
			e = jig.Errorf(jig.CodeTimeout, "the client has closed the connection")
		}
		if e.Code == jig.CodeInternal && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
			e = jig.Errorf(jig.CodeTimeout, "the request took too long")
		}
		if e.Code == jig.CodeInternal {
			a.options.Logger.ErrorContext(ctx, "a request failed", slog.String("request_id", exchangeOf(ctx).id), slog.Any("error", err))
			e = jig.Errorf(jig.CodeInternal, "the server failed; its log has the reason under the request's id")
		}
		p = failed(statusOf(e.Code), e)
	}
	return p.within(exchangeOf(ctx))
}

// within returns a copy for one request: with the request's id, and without the request's values.
func (p *problem) within(x *exchange) *problem {
	c := *p
	c.RequestID = x.id
	places := p.Errors[:min(len(p.Errors), maxPlaces)]
	texts := []string{p.Detail, p.Hint}
	for _, place := range places {
		texts = append(texts, place.Message)
	}
	hide := x.concealer(texts)
	c.Detail, c.Hint = hide(p.Detail), hide(p.Hint)
	c.Errors = make([]problemPlace, len(places))
	for i, place := range places {
		c.Errors[i] = problemPlace{Location: place.Location, Message: hide(place.Message)}
	}
	return &c
}

// refuse writes a problem outside of an operation.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	for name, values := range p.headers {
		w.Header()[name] = values
	}
	writeJSON(w, p.Status, problemJSON, p.within(exchangeOf(r.Context())))
}

func writeJSON(w http.ResponseWriter, status int, media string, body any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) //nolint:errcheck // the client is gone
}

// replaced makes sure that huma's constructors of errors are replaced once. They are variables of that package.
var replaced sync.Once

// replaceErrors makes huma report what is wrong with a request as a problem.
func replaceErrors() {
	replaced.Do(func() {
		huma.ValidateStrictCasing = true
		huma.NewError = func(status int, _ string, places ...error) huma.StatusError { return malformed(status, places, nil) }
		huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, places ...error) huma.StatusError {
			if message == "cannot read request body" { // huma takes a body that ends early for its own failure
				status = http.StatusBadRequest
			}
			x := exchangeOf(ctx.Context())
			return malformed(status, places, x.body.Bytes()).within(x)
		}
	})
}

// malformed returns the problem for a request that huma refuses. Huma's own message may repeat the request, so it is not used.
func malformed(status int, places []error, body []byte) *problem {
	var e *jig.Error
	switch status {
	case http.StatusBadRequest:
		e, places = unreadable(body), nil
	case http.StatusRequestTimeout:
		e, places = jig.Errorf(jig.CodeTimeout, "the body of the request did not arrive in time"), nil
	case http.StatusRequestEntityTooLarge:
		e, places = invalid("the body of the request is too large").WithHint("the limit is 1 MiB"), nil
	case http.StatusUnsupportedMediaType:
		e, places = invalid("the body of the request must be JSON").WithHint("send Content-Type: application/json"), nil
	case http.StatusUnprocessableEntity:
		e = invalid("the request does not have the form that the operation needs").
			WithHint("see /openapi.json for the members of the request; the case of names counts")
	default:
		e, places = jig.Errorf(jig.CodeInternal, "the server failed; its log has the reason under the request's id"), nil
	}
	p := failed(status, e)
	for _, err := range places {
		var place huma.ErrorDetailer
		if errors.As(err, &place) {
			d := place.ErrorDetail()
			p.Errors = append(p.Errors, problemPlace{Location: d.Location, Message: d.Message})
		}
	}
	if len(p.Errors) > 0 {
		p.Field = p.Errors[0].Location
	}
	return p
}

// unreadable returns the error for a body that is not JSON, is not JSON that everybody reads in the same way, or ended early.
func unreadable(body []byte) *jig.Error {
	if !json.Valid(body) {
		return invalid("the body of the request is not valid JSON")
	}
	err := strictjson.Check(body)
	if err == nil {
		return invalid("the body of the request ended early").WithHint("send as many bytes as Content-Length says")
	}
	e := jig.AsError(err)
	return invalid("the body of the request is ambiguous: " + e.Message).WithHint(e.Hint).WithField("body" + strings.ReplaceAll(e.Field, "/", "."))
}

// jsonFormat reads bodies with internal/strictjson.
func jsonFormat() huma.Format {
	return huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(body []byte, v any) error {
		if document, ok := v.(*any); ok { // huma checks it against the operation's schema, with numbers as float64
			if err := strictjson.Check(body); err != nil {
				return err
			}
			return json.Unmarshal(body, document)
		}
		return strictjson.Unmarshal(body, v)
	}}
}
