package limiter_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/ratelimit"
	"github.com/jig-run/jig/internal/ratelimit/limiter"
)

// tenant is a tenant with one document, in memory. asked holds what calls asked for.
type tenant struct {
	document string
	reads    int
	asked    []ratelimit.Request
}

func (d *tenant) CurrentDocuments(context.Context, string, string) ([]bundle.DocumentVersion, error) {
	d.reads++
	if d.document == "" {
		return nil, nil
	}
	return []bundle.DocumentVersion{{Kind: "rate_limit", Name: "apis", Version: d.document}}, nil
}

func (d *tenant) DocumentAt(context.Context, string, string, string, string) ([]byte, error) {
	return []byte("kind: rate_limit\nname: apis\n" + d.document), nil
}

func (d *tenant) AskRateLimits(_ context.Context, r ratelimit.Request) (ratelimit.Answer, error) {
	d.asked = append(d.asked, r)
	return ratelimit.Answer{Wait: time.Second}, nil
}

// claims returns the limits and keys that concern a call, e.g. `all "x"`.
func (d *tenant) claims(t *testing.T, l *limiter.Limiter, tool, input string, whole bool) []string {
	t.Helper()
	d.asked = nil
	session := jig.Session{Tenant: "acme", ID: "ses_1", Agent: jig.Agent{Name: "researcher"}, Principal: jig.Principal{ID: "ana"}}
	call := jig.Call{Tenant: "acme", SessionID: "ses_1", ID: "1.1", Tool: tool, Input: []byte(input), Status: jig.CallReserved}
	_, err := l.Ask(t.Context(), session, call, whole)
	require.NoError(t, err)
	var list []string
	for _, r := range d.asked {
		for _, c := range r.Claims {
			list = append(list, strings.TrimSpace(c.Limit+" "+c.Key))
		}
	}
	return list
}

func TestAsk_FindsTheLimitsOfACall(t *testing.T) {
	t.Parallel()
	d := &tenant{document: `limits:
  - {name: all, rate: 100, per: 1s}
  - {name: host, tools: [http.*], key: input.host, rate: 1, per: 1s}
  - {name: person, tools: [http.get], key: "[principal.id, agent.name]", concurrency: 2}
  - {name: large, tools: [http.get], when: input.size > 10, rate: 1, per: 1m}
`}
	l := limiter.New(d, d)
	require.Equal(t, []string{"all"}, d.claims(t, l, "file.read", `{}`, false))
	require.Equal(t, []string{"all", `host "a.example"`}, d.claims(t, l, "http.post", `{"host":"a.example"}`, false))
	require.Equal(t, []string{"all", `host "a"`, `person ["ana","researcher"]`}, d.claims(t, l, "http.get", `{"host":"a","size":1}`, false))
	require.Equal(t, []string{"all", "host 7", `person ["ana","researcher"]`, "large"}, d.claims(t, l, "http.get", `{"host":7,"size":11}`, false))
	require.Equal(t, []string{"all", "host ?", `person ["ana","researcher"]`, "large"}, d.claims(t, l, "http.get", `{}`, false), "what cannot be evaluated concerns the call")
	long := d.claims(t, l, "http.post", `{"host":"`+strings.Repeat("a", 300)+`"}`, false)
	require.Regexp(t, `^host sha256:[0-9a-f]{64}$`, long[1])
	require.Equal(t, []string{"all", `host "a"`}, d.claims(t, l, "http.get", `{"host":"a","size":1}`, true), "a composition occupies no place")
	require.Zero(t, d.asked[0].Claims[0].Concurrency)
}

func TestAsk_StartsOfSessions(t *testing.T) {
	t.Parallel()
	d := &tenant{document: `limits:
  - {name: all, rate: 100, per: 1s}
  - {name: starts, sessions: true, key: "[principal.id, input.region]", rate: 1, per: 1s}
`}
	l := limiter.New(d, d)
	require.Equal(t, []string{"all"}, d.claims(t, l, "file.read", `{"region":"eu"}`, false))
	require.Equal(t, []string{`starts ["ana","eu"]`}, d.claims(t, l, "", `{"region":"eu"}`, false))
	for tool, want := range map[string]bool{"": true, "http.get": false} {
		d.document = "limits: [{name: starts, sessions: true, rate: 1, per: 1s}]"
		limited, err := limiter.New(d, d).Limited(t.Context(), "acme", tool)
		require.NoError(t, err)
		require.Equal(t, want, limited)
	}
}

func TestAsk_WithoutLimitsAsksNobody(t *testing.T) {
	t.Parallel()
	d := &tenant{document: "limits: [{name: a, tools: [http.get], rate: 1, per: 1s}]"}
	l := limiter.New(d, d)
	for tool, want := range map[string]bool{"http.get": true, "http.post": false} {
		limited, err := l.Limited(t.Context(), "acme", tool)
		require.NoError(t, err)
		require.Equal(t, want, limited)
	}
	require.Empty(t, d.claims(t, l, "http.post", `{}`, false))
	require.Empty(t, d.asked)
}

func TestAsk_DocumentsThatCannotBeReadHoldCallsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &tenant{document: "limits: [{name: a, pace: 3}]"}
		l := limiter.New(d, d)
		limited, err := l.Limited(t.Context(), "acme", "http.get")
		require.NoError(t, err)
		require.True(t, limited)
		answer, err := l.Ask(t.Context(), jig.Session{Tenant: "acme"}, jig.Call{Tenant: "acme", Tool: "http.get"}, false)
		require.NoError(t, err)
		require.Positive(t, answer.Wait)
		require.Contains(t, answer.Why, "the rate limit apis (version limits: [{name: a, pace: 3}]) cannot be read")
		require.Empty(t, d.asked)
		answer, err = l.Ask(t.Context(), jig.Session{Tenant: "acme"}, jig.Call{Tenant: "acme", Tool: "catalog.put"}, false)
		require.NoError(t, err)
		require.Zero(t, answer, "otherwise nobody could replace the document")

		d.document = ""
		time.Sleep(2 * time.Second)
		limited, err = l.Limited(t.Context(), "acme", "http.get")
		require.NoError(t, err)
		require.False(t, limited)
		require.Equal(t, 2, d.reads, "documents are read once a second")
	})
}
