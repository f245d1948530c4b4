// Package remote reaches jig over its HTTP API. Its [Client] has the methods of a [client.Client], so that programs work with either. It knows
// the operations of the API, and neither Temporal nor the database.
//
// A method names an operation of internal/api and fills in its request; requestOf turns the tags of the request into an address, headers and a body.
// A request is repeated while the server is busy if that is safe: reads, and starts that carry an id or an idempotency key. No redirect is followed,
// so that the credential reaches only the address that the user named. The server determines the tenant and the principal by the credential.
// Begin with [Dial], then call. How people log in is in the package signin.
package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/remote/signin"
)

// ReasonNoServer is the reason of UNAVAILABLE if nothing answers at the server's address.
const ReasonNoServer = "no_server"

// ReasonCredential is the reason of the server's error for an invalid credential.
const ReasonCredential = "unauthenticated"

const (
	// patience is how long a request is repeated while the server is busy.
	patience = 20 * time.Second
	// maxProblem bounds how much of an error's body is read.
	maxProblem = 1 << 20
)

// Options say how to reach a server.
type Options struct {
	// URL is the address of the server, e.g. https://jig.example.com. http is allowed only for a server on this machine.
	URL string
	// Token returns the credential of each request: an API key or an access token.
	Token func(ctx context.Context) (string, error)
	// Tenant and Principal are those that the user named; Dial refuses a credential of another one. Empty: any.
	Tenant, Principal string
}

// Client reaches jig through a server. Its tenant and its principal are those of the credential, whatever its methods are given. It is safe for
// concurrent use.
type Client struct {
	options Options
	base    string
	http    *http.Client
	// Tenant and Principal are those of the credential, and Me is all that the server says about it.
	Tenant, Principal string
	Me                api.Me
}

// Dial asks the server who the credential belongs to.
func Dial(ctx context.Context, o Options) (*Client, error) {
	address, err := signin.ServerAddress(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, base: address, http: &http.Client{CheckRedirect: stay}}
	if c.Me, err = call(ctx, c, api.GetMe, struct{}{}); err != nil {
		return nil, err
	}
	c.Tenant, c.Principal = c.Me.Tenant, c.Me.Principal
	if o.Tenant != "" && o.Tenant != c.Tenant {
		return nil, jig.Errorf(jig.CodeNotPermitted, "the credential belongs to the tenant %s, not to %s", c.Tenant, o.Tenant).WithField("tenant").
			WithHint("leave out --tenant and JIG_TENANT, or use a credential of that tenant")
	}
	if o.Principal != "" && o.Principal != c.Principal {
		return nil, jig.Errorf(jig.CodeNotPermitted, "the credential belongs to %s, not to %s", c.Principal, o.Principal).WithField("as").
			WithHint("leave out --as and JIG_PRINCIPAL, or use a credential of that principal")
	}
	return c, nil
}

// stay keeps a client from following redirects. A jig server sends none, and the credential must not reach another address or travel without TLS.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is a request to the API.
type request struct {
	method, path string
	query        url.Values
	body         any
	headers      map[string]string
	// inPath are the values in the path by the names of its parameters.
	inPath map[string]string
	// repeatable reports that a request may be sent again, because its repetition changes nothing.
	repeatable bool
}

// values returns the values of the request, which errors of the server name by their places.
func (r request) values() *api.Values {
	v := &api.Values{Parameters: map[string]string{}}
	for name := range r.query {
		v.Parameters[name] = r.query.Get(name)
	}
	maps.Copy(v.Parameters, r.headers)
	maps.Copy(v.Parameters, r.inPath)
	if r.body != nil {
		v.Body, _ = jsontext.Encode(r.body) //nolint:errcheck // it was encoded when it was sent
	}
	return v
}

// reply is an answer with its body.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// send makes a request, again and again if that is safe and the server is busy.
func (c *Client) send(ctx context.Context, r request) (reply, error) {
	deadline := time.Now().Add(patience)
	for pause := 200 * time.Millisecond; ; pause *= 2 {
		got, err := c.once(ctx, r)
		if err == nil {
			return got, nil
		}
		e := jig.AsError(err)
		busy := e.Code == jig.CodeRateLimited || e.Code == jig.CodeUnavailable && e.Reason == ""
		wait := max(pause, e.RetryAfter)
		if !busy || !r.repeatable || time.Now().Add(wait).After(deadline) {
			return got, err
		}
		if !sleep(ctx, wait) {
			return got, fmt.Errorf("wait for the server: %w", ctx.Err())
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// once makes a request once.
func (c *Client) once(ctx context.Context, r request) (reply, error) {
	answer, err := c.open(ctx, r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{}, c.unreachable(ctx, err)
	}
	return reply{answer.StatusCode, answer.Header, body}, nil
}

// open makes a request and returns the answer, whose body is still to be read. An answer that reports an error is returned as one.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	var content io.Reader
	if r.body != nil {
		encoded, err := jsontext.Encode(r.body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	made, err := http.NewRequestWithContext(ctx, r.method, address, content)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the request cannot be made: %w", err)
	}
	token, err := c.options.Token(ctx)
	if err != nil {
		return nil, err
	}
	made.Header.Set("Authorization", "Bearer "+token)
	made.Header.Set("Accept", "application/json")
	if content != nil {
		made.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.headers {
		made.Header.Set(name, value)
	}
	answer, err := c.http.Do(made)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, problemIn(answer, r)
}

func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the server: %w", ctx.Err())
	}
	var inURL *url.Error
	if errors.As(err, &inURL) { // its text repeats the whole address
		err = inURL.Err
	}
	return jig.Errorf(jig.CodeUnavailable, "the server at %s does not answer: %w", c.base, err).WithReason(ReasonNoServer).
		WithHint("check JIG_URL, and whether `jig server` runs there")
}

// problemIn returns the error that an answer reports about a request.
func problemIn(answer *http.Response, r request) error {
	if answer.StatusCode < http.StatusBadRequest {
		return jig.Errorf(jig.CodeUnavailable, "the server answered %s, and redirects to another address", answer.Status).WithReason(ReasonNoServer).WithField("url").
			WithHint("set JIG_URL to the server's own address")
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	var p api.Problem
	if err != nil || json.Unmarshal(body, &p) != nil || p.Code == "" {
		return jig.Errorf(jig.CodeUnavailable, "the server answered %s, but not as a jig server does", answer.Status).WithReason(ReasonNoServer).
			WithHint("is JIG_URL the address of a jig server?")
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil {
		seconds = 0
	}
	return p.Err(r.values(), time.Duration(seconds)*time.Second)
}

// call calls an operation.
func call[Q, R any](ctx context.Context, c *Client, op api.Op[Q, R], in Q) (response R, err error) {
	_, err = c.do(ctx, requestOf(op.Describe(), in), &response)
	return response, err
}

// Ask makes a plain read, like [client.Client.Ask]: it calls the operation that the read answers.
func (c *Client) Ask(ctx context.Context, name string, in, response any) error {
	all := api.All()
	at := slices.IndexFunc(all, func(op api.Any) bool { return op.Read() == name })
	if at < 0 {
		return jig.Errorf(jig.CodeInternal, "the API has no operation for the read %s", name)
	}
	_, err := c.do(ctx, requestOf(all[at].Describe(), in), response)
	return err
}

// do sends a request, and decodes the body of the reply unless it is empty.
func (c *Client) do(ctx context.Context, r request, response any) (reply, error) {
	got, err := c.send(ctx, r)
	if err != nil || len(got.body) == 0 {
		return got, err
	}
	if err := json.Unmarshal(got.body, response); err != nil {
		return got, jig.Errorf(jig.CodeInternal, "the server's answer cannot be read: %w", err).WithHint("is it another version than this program?")
	}
	return got, nil
}

// headerKey is the header that makes the request to start something repeatable.
const headerKey = "Idempotency-Key"

// newKey returns a new idempotency key, which gives the id of the session a name; see [jig.KeyedSessionID].
func newKey(name string) string { return jig.IDName(name) + "/" + rand.Text() }

// requestOf returns the HTTP request of an operation, as the tags of its request say. Members with zero values are left out.
func requestOf(o api.Operation, in any) request {
	r := request{method: o.Method, path: o.Path, query: url.Values{}, headers: map[string]string{}, inPath: map[string]string{}}
	value := reflect.ValueOf(in)
	for _, field := range reflect.VisibleFields(value.Type()) {
		if field.Anonymous {
			continue
		}
		member := value.FieldByIndex(field.Index)
		if field.Name == "Body" {
			if member.Kind() != reflect.Pointer || !member.IsNil() {
				r.body = member.Interface()
			}
			continue
		}
		if name, ok := field.Tag.Lookup("path"); ok {
			r.path = strings.ReplaceAll(r.path, "{"+name+"}", url.PathEscape(member.String()))
			r.inPath[name] = member.String()
		}
		if member.IsZero() {
			continue
		}
		if name, ok := field.Tag.Lookup("query"); ok {
			r.query.Set(name, parameter(member))
		}
		if name, ok := field.Tag.Lookup("header"); ok {
			r.headers[name] = parameter(member)
		}
	}
	r.repeatable = o.Method == http.MethodGet || r.headers[headerKey] != ""
	return r
}

// parameter returns a value as a parameter of a request.
func parameter(v reflect.Value) string {
	switch of := v.Interface().(type) {
	case time.Time:
		return of.UTC().Format(time.RFC3339Nano)
	case []string:
		return strings.Join(of, ",")
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// value returns a JSON value as a member of a body: a text for what is not JSON, which the server refuses.
func value(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return nil // cannot happen: it is a text
	}
	return text
}
