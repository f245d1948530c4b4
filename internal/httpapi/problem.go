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
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/strictjson"
)

// problem is an error as a client sees it.
type problem = api.Problem

// maxPlaces bounds how many places of a request an error lists. Hiding the values of a request in each of them takes time.
const maxPlaces = 50

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
		Hint: e.Hint, Headers: http.Header{},
	}
	for _, v := range e.Violations {
		p.Errors = append(p.Errors, api.ProblemPlace{Location: v.Pointer, Message: v.Message})
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		wait := max(e.RetryAfter, retryAfter)
		p.Headers.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
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
	return within(exchangeOf(ctx), p)
}

// within returns a copy of a problem for one request: with the request's id, and without the request's values.
func within(x *exchange, p *problem) *problem {
	c := *p
	c.RequestID = x.id
	places := p.Errors[:min(len(p.Errors), maxPlaces)]
	texts := []string{p.Detail, p.Hint}
	for _, place := range places {
		texts = append(texts, place.Message)
	}
	hide := x.concealer(texts)
	c.Detail, c.Hint = hide(p.Detail), hide(p.Hint)
	c.Errors = make([]api.ProblemPlace, len(places))
	for i, place := range places {
		c.Errors[i] = api.ProblemPlace{Location: place.Location, Message: hide(place.Message)}
	}
	return &c
}

// refuse writes a problem outside of an operation.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	for name, values := range p.Headers {
		w.Header()[name] = values
	}
	writeJSON(w, p.Status, api.ProblemJSON, within(exchangeOf(r.Context()), p))
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
			return within(x, malformed(status, places, x.body.Bytes()))
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
			p.Errors = append(p.Errors, api.ProblemPlace{Location: d.Location, Message: d.Message})
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
