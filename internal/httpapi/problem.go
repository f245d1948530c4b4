package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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

// maxPlaces bounds how many places of a request an error lists.
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

// failed returns the problem for an error, with a status. Its texts are templates until [within] puts the places of the values into them.
func failed(status int, e *jig.Error) *problem {
	p := &problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Code: e.Code, Detail: jig.Templatef("%s", e.Words()), Reason: e.Reason, Field: e.Field,
		Hint: cmp.Or(e.HintTemplate, e.Hint), Headers: http.Header{},
	}
	for _, v := range e.Violations {
		p.Errors = append(p.Errors, api.ProblemPlace{Location: v.Pointer, Message: jig.Templatef("%s", v.Words())})
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		wait := max(e.RetryAfter, retryAfter)
		p.Headers.Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}
	return p
}

func invalid(format string, args ...any) *jig.Error {
	return jig.Errorf(jig.CodeInvalidInput, format, args...)
}

func unavailable(message string) *jig.Error {
	return jig.Errorf(jig.CodeUnavailable, "%s", jig.Known(message))
}
func notFound() *jig.Error { return jig.Errorf(jig.CodeNotFound, "there is nothing at this address") }

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

// within returns a copy of a problem for one request: with the request's id, and with the places of values in the request instead of the values.
func within(x *exchange, p *problem) *problem {
	c := *p
	c.RequestID = x.id
	values := x.values()
	place := func(value string, isNumber bool) string { return x.placeOf(values, value, isNumber) }
	c.Detail = jig.Fill(p.Detail, place)
	c.Hint, c.Reason = jig.Fill(p.Hint, place), jig.Fill(p.Reason, place)
	c.Errors = slices.Clone(p.Errors[:min(len(p.Errors), maxPlaces)])
	for i := range c.Errors {
		c.Errors[i].Message = jig.Fill(c.Errors[i].Message, place)
	}
	return &c
}

// unknown stands for a value of an error that the request has nowhere.
const unknown = "…"

// placeOf returns where the request has a value of an error, or what stands for it. The tenant before the id of a session is that of the caller, and
// messages cut long values.
func (x *exchange) placeOf(values *api.Values, value string, isNumber bool) string {
	raw, err := strconv.Unquote(`"` + value + `"`)
	if err != nil {
		raw = value
	}
	whole := strings.TrimSuffix(raw, unknown)
	if place := values.Place(whole); place != "" {
		return place + raw[len(whole):]
	}
	if id, ok := strings.CutPrefix(whole, x.caller.tenant+"."); ok && x.caller.tenant != "" {
		if place := values.Place(id); place != "" {
			return x.caller.tenant + "." + place + raw[len(whole):]
		}
	}
	if isNumber {
		return value
	}
	return unknown
}

// values returns the values of the request.
func (x *exchange) values() *api.Values {
	v := &api.Values{Parameters: map[string]string{}, Body: x.body.Bytes()}
	if x.request == nil {
		return v
	}
	for name, list := range x.request.URL.Query() {
		v.Parameters[name] = list[0]
	}
	for _, name := range []string{headerKey, headerLastEvent} {
		if value := x.request.Header.Get(name); value != "" {
			v.Parameters[name] = value
		}
	}
	_, pattern, _ := strings.Cut(x.request.Pattern, " ")
	for part := range strings.SplitSeq(pattern, "/") {
		if name := strings.Trim(part, "{}"); name != part {
			v.Parameters[name] = x.request.PathValue(name)
		}
	}
	return v
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
		huma.ErrorFormatter = func(format string, args ...any) string {
			if len(args) == 1 {
				if _, ok := args[0].(error); ok { // it repeats the value
					return strings.TrimSuffix(format, ": %v")
				}
			}
			return fmt.Sprintf(format, args...)
		}
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
			if raw, ok := d.Value.(string); ok && d.Location == "body" && raw == string(body) { // the error of a decoder, which may repeat values
				d.Message = "cannot be decoded"
			}
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
	return invalid("the body of the request is ambiguous: %s", e.Words()).WithHint(e.Hint).WithField("body" + strings.ReplaceAll(e.Field, "/", "."))
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
