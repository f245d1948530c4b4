package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// saved is the input of a tool whose arguments are marked.
type saved struct {
	Path  string   `json:"path"            path:"true"`
	Also  []string `json:"also,omitempty"  path:"true"`
	Hosts []string `json:"hosts,omitempty" url:"true"`
}

// saves gives the office the tool notes.save, and rules for two folders and a host.
func saves(t *testing.T) *office {
	t.Helper()
	o := newOffice(t, func(o *office) {
		o.extra = append(o.extra, tools.New(
			jig.Tool{Name: "notes.save", Description: "Saves a note.", Permission: jig.PermissionWrite, Labels: &jig.Labels{}, ConcurrencyKey: "input.path"},
			func(_ context.Context, inv jig.Invocation, in saved) (saved, error) {
				o.did(in.Path, inv)
				return in, nil
			}))
	})
	o.govern(t, `
  - name: free
    when: call.tool == 'notes.save' && call.input.path.startsWith('free/')
    verdict: run
    reason: anybody may write below free
  - name: payroll
    when: call.tool == 'notes.save' && (call.input.path.startsWith('payroll/') || call.input.?also.orValue([]).exists(p, p.startsWith('payroll/')))
    verdict: deny
    reason: nobody writes below payroll
  - name: evil
    when: call.tool == 'notes.save' && call.input.?hosts.orValue([]).exists(u, u.startsWith('https://evil.example/'))
    verdict: deny
    reason: nobody calls evil.example
`)
	return o
}

// What policy judges is what runs, however the arguments are spelled; the turn keeps what the model wrote.
func TestCanonical_PolicySeesWhatRuns(t *testing.T) {
	t.Parallel()
	o := saves(t)
	for i, row := range []struct {
		input  string
		status jig.CallStatus
		want   string
		field  string
	}{
		{`{"path":"free/../payroll/b.txt"}`, jig.CallFailed, "", "/path"},
		{`{"path":"/payroll/e.txt"}`, jig.CallFailed, "", "/path"},
		{`{"path":"free\\..\\payroll"}`, jig.CallFailed, "", "/path"},
		{`{"path":"free/a","also":["b","payroll/../c"]}`, jig.CallFailed, "", "/also/1"},
		{`{"path":"free/a","hosts":["http://0x7f.1/"]}`, jig.CallFailed, "", "/hosts/0"},
		{`{"path":"./payroll/a.txt"}`, jig.CallDenied, `{"path":"payroll/a.txt"}`, ""},
		{`{"path":"payroll//d.txt"}`, jig.CallDenied, `{"path":"payroll/d.txt"}`, ""},
		{`{"path":"free/a","also":["./payroll/x"]}`, jig.CallDenied, `{"also":["payroll/x"],"path":"free/a"}`, ""},
		{`{"path":"free/a","hosts":["HTTPS://EVIL.example:443/x"]}`, jig.CallDenied, `{"hosts":["https://evil.example/x"],"path":"free/a"}`, ""},
		{`{"path":"./free//n.txt/"}`, jig.CallReserved, `{"path":"free/n.txt"}`, ""},
		{`{"path":"FREE/./a.txt"}`, jig.CallWaiting, `{"path":"FREE/a.txt"}`, ""},
	} {
		c := o.asks(t, i+1, "notes.save", row.input)
		require.Equal(t, row.status, c.Status, row.input)
		if row.field != "" {
			require.Equal(t, jig.CodeInvalidInput, c.Result.Error.Code, row.input)
			require.Equal(t, row.field, c.Result.Error.Field, row.input)
			require.NotEmpty(t, c.Result.Error.Hint, row.input)
			continue
		}
		require.JSONEq(t, row.want, string(c.Input), row.input)
		if row.status == jig.CallWaiting {
			require.JSONEq(t, row.want, string(o.pending(t, c.ID).Input), row.input)
		}
	}
	again := o.asks(t, 20, "notes.save", `{"path":"free/./n.txt"}`)
	require.Equal(t, jig.CallDuplicate, again.Status, "the same call in another spelling")
}

// Changed arguments are written in canonical form, too, and judged by it.
func TestCanonical_Edits(t *testing.T) {
	t.Parallel()
	o := saves(t)
	c := o.asks(t, 1, "notes.save", `{"path":"other/a"}`)
	require.Equal(t, jig.CallWaiting, c.Status)
	got := o.sent(t, "decide", "k1", json.RawMessage(`{"call":"1.1","by":"flo","answer":"edit","input":{"path":"free/../payroll/b"}}`))
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	got = o.sent(t, "decide", "k2", json.RawMessage(`{"call":"1.1","by":"flo","answer":"approve","input":{"path":"other/../b"}}`))
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "without . and ..")
	got = o.sent(t, "decide", "k3", json.RawMessage(`{"call":"1.1","by":"flo","answer":"approve","input":{"path":"./other//b"}}`))
	require.Equal(t, jig.DecisionAccepted, got.Outcome, got.Reason)
	require.JSONEq(t, `{"path":"other/b"}`, string(o.call(t, c.ID).Input))
}
