package api

import (
	"cmp"
	"net/http"
	"time"

	"github.com/jig-run/jig"
)

// Problem is an error as a client sees it: problem details (RFC 9457) with the members of a [jig.Error]. It repeats no value of the request.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
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
	Errors    []ProblemPlace `json:"errors,omitempty" doc:"The invalid places of the request, at most 50"`
	// Headers are the headers of the answer.
	Headers http.Header `json:"-"`
}

// ProblemJSON is the media type of errors.
const ProblemJSON = "application/problem+json"

// Error implements error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus returns the status of the answer. It is one of the methods that internal/httpapi's router asks of an error.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers of the answer.
func (p *Problem) GetHeaders() http.Header { return p.Headers }

// ContentType returns the media type of the answer.
func (*Problem) ContentType(string) string { return ProblemJSON }

// ProblemPlace is one place of a request that is wrong.
type ProblemPlace struct {
	Location string `json:"location" doc:"Where, e.g. body.agent, or a JSON pointer into an input"`
	Message  string `json:"message" doc:"What is wrong with it"`
}

// Err returns the error that a problem describes. retryAfter is how long the client should wait before it repeats the request; 0 if unknown.
func (p Problem) Err(retryAfter time.Duration) *jig.Error {
	e := jig.Errorf(p.Code, "%s", cmp.Or(p.Detail, p.Title)).WithReason(p.Reason).WithField(p.Field).WithHint(p.Hint)
	e.RetryAfter = retryAfter
	for _, place := range p.Errors {
		e.Violations = append(e.Violations, jig.Violation{Pointer: place.Location, Message: place.Message})
	}
	return e
}
