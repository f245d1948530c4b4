package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
)

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

// requestOf returns the HTTP request of an operation, as the tags of its request say. Members with zero values are left out.
func requestOf(o api.Operation, in any) request {
	r := request{method: o.Method, path: o.Path, query: url.Values{}, headers: map[string]string{}}
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
