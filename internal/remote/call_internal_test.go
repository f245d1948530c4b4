package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// sample returns a value of a type in which nothing is zero.
func sample(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Date(2026, 1, 2, 12, 0, 0, 5, time.UTC)
		return v
	case *json.RawMessage:
		*value = json.RawMessage(`{"n":1}`)
		return v
	case *json.Number:
		*value = "1.5"
		return v
	}
	switch of.Kind() { //nolint:exhaustive // requests and responses have no other types
	case reflect.String:
		v.SetString("a b/ü")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(sample(of.Elem()).Addr())
	case reflect.Slice:
		v.Set(reflect.Append(v, sample(of.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(sample(of.Key()), sample(of.Elem()))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(sample(of.Field(i).Type))
			}
		}
	}
	return v
}

// seen is a request as the server received it.
type seen struct {
	method, path string
	query        url.Values
	header       http.Header
	body         string
}

// serving returns a client of a server that gives the same response to each request.
func serving(t *testing.T, response string) (*Client, *seen) {
	t.Helper()
	got := &seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		*got = seen{r.Method, r.URL.EscapedPath(), r.URL.Query(), r.Header, string(body)}
		if _, err := io.WriteString(w, response); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &Client{
		base: server.URL, http: server.Client(), options: Options{Token: func(context.Context) (string, error) { return "secret", nil }},
	}, got
}

// expected returns the request that the tags of an operation's request describe.
func expected(op api.Operation, in reflect.Value) seen {
	want := seen{method: op.Method, path: op.Path, query: url.Values{}, header: http.Header{}}
	for _, field := range reflect.VisibleFields(in.Type()) {
		member := in.FieldByIndex(field.Index).Interface()
		text, ok := member.(string)
		if field.Anonymous {
			continue
		}
		if at, is := member.(time.Time); is {
			text, ok = at.Format(time.RFC3339Nano), true
		}
		if list, is := member.([]string); is {
			text, ok = strings.Join(list, ","), true
		}
		if !ok {
			raw, _ := json.Marshal(member) //nolint:errcheck // samples can be encoded
			text = strings.Trim(string(raw), `"`)
		}
		switch {
		case field.Name == "Body":
			raw, _ := json.Marshal(member) //nolint:errcheck // samples can be encoded
			want.body = string(raw)
		case field.Tag.Get("path") != "":
			want.path = strings.ReplaceAll(want.path, "{"+field.Tag.Get("path")+"}", url.PathEscape(text))
		case field.Tag.Get("query") != "":
			want.query.Set(field.Tag.Get("query"), text)
		case field.Tag.Get("header") != "":
			want.header.Set(field.Tag.Get("header"), text)
		}
	}
	return want
}

// Each operation is called as it is declared, and its response is read.
func TestCall_SendsWhatTheOperationDeclares(t *testing.T) {
	t.Parallel()
	for _, op := range api.All() {
		o := op.Describe()
		request, response := op.Types()
		in, answer := sample(request), sample(response)
		text, err := json.Marshal(answer.Interface())
		require.NoError(t, err, o.Name)
		c, got := serving(t, string(text))
		decoded := reflect.New(response)
		if op.Read() != "" {
			require.NoError(t, c.Ask(t.Context(), op.Read(), in.Interface(), decoded.Interface()), o.Name)
		} else {
			_, err = c.do(t.Context(), requestOf(o, in.Interface()), decoded.Interface())
			require.NoError(t, err, o.Name)
		}
		want := expected(o, in)
		require.Equal(t, []string{want.method, want.path}, []string{got.method, got.path}, o.Name)
		require.Equal(t, want.query, got.query, o.Name)
		require.NotContains(t, got.path, "{", o.Name)
		for name, values := range want.header {
			require.Equal(t, url.PathEscape(values[0]), url.PathEscape(got.header.Get(name)), o.Name)
		}
		require.Equal(t, "Bearer secret", got.header.Get("Authorization"))
		if want.body == "" {
			require.Empty(t, got.body, o.Name)
		} else {
			require.JSONEq(t, want.body, got.body, o.Name)
		}
		again, err := json.Marshal(decoded.Interface())
		require.NoError(t, err)
		require.JSONEq(t, string(text), string(again), o.Name)
	}
}

// What is not set is not sent, and no client names the tenant.
func TestCall_LeavesOutWhatIsNotSet(t *testing.T) {
	t.Parallel()
	c, got := serving(t, `{"sessions":[],"next_cursor":"c2"}`)
	page, err := api.Ask(t.Context(), c, api.ListSessions, protocol.SessionsRequest{Tenant: "acme", SessionFilter: protocol.SessionFilter{Agent: "writer"}})
	require.NoError(t, err)
	require.Equal(t, "c2", page.Next)
	require.Equal(t, url.Values{"agent": {"writer"}}, got.query)
	require.Equal(t, "/v1/sessions", got.path)
	err = c.Ask(t.Context(), "jig.unknown", protocol.SessionsRequest{}, &page)
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
}

// failing returns a client of a server that answers each request with a problem.
func failing(t *testing.T, status int, p api.Problem) *Client {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ProblemJSON)
		w.WriteHeader(status)
		_, _ = w.Write(text) //nolint:errcheck // the client is there
	}))
	t.Cleanup(server.Close)
	return &Client{
		base: server.URL, http: server.Client(), options: Options{Token: func(context.Context) (string, error) { return "secret", nil }},
	}
}

// The server names the places of values in a request, and the client, which has sent them, fills them in.
func TestCall_FillsInWhatItHasSent(t *testing.T) {
	t.Parallel()
	c := failing(t, http.StatusNotFound, api.Problem{
		Code: jig.CodeNotFound, Detail: `there is no call "{call}" in session acme.{session}; {note[0:4]}… {other}`, Hint: "see {session}",
		Errors: []api.ProblemPlace{{Location: "body.call", Message: "{call} is wrong"}},
	})
	in := api.ReconcileRequest{SessionPath: api.SessionPath{Session: "a/b"}}
	in.Body.Call, in.Body.Note = `1.1"`, "this is long"
	_, err := call(t.Context(), c, api.Reconcile, in)
	e := jig.AsError(err)
	require.Equal(t, `there is no call "1.1\"" in session acme.a/b; this… {other}`, e.Message)
	require.Equal(t, []string{"see a/b", `1.1" is wrong`}, []string{e.Hint, e.Violations[0].Message})
}

// A decision that is refused is an error of the server, and for callers an outcome, as over Temporal.
func TestReconcile_RefusalIsAnOutcome(t *testing.T) {
	t.Parallel()
	c := failing(t, http.StatusGone, api.Problem{
		Code: jig.CodeExpired, Detail: "the call {call} has expired", Reason: "the call {call} has expired", Outcome: jig.DecisionRefused, CallStatus: jig.CallExpired,
	})
	want := []jig.Ruled{{Call: "1.1", Outcome: jig.DecisionRefused, Reason: "the call 1.1 has expired", Code: jig.CodeExpired, Status: jig.CallExpired}}
	got, err := c.Reconcile(t.Context(), "acme", "s", jig.Reconciliation{Call: "1.1"})
	require.NoError(t, err)
	require.Equal(t, want, got.Decisions)
	got, err = c.Reply(t.Context(), "acme", "s", jig.Reply{Call: "1.1", Value: json.RawMessage(`1`)})
	require.NoError(t, err)
	require.Equal(t, want, got.Decisions)
	_, err = failing(t, http.StatusConflict, api.Problem{Code: jig.CodeConflict}).Reconcile(t.Context(), "acme", "s", jig.Reconciliation{Call: "1.1"})
	require.Equal(t, jig.CodeConflict, jig.CodeOf(err))
}
