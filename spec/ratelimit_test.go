package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

func TestRateLimit_ReadAndExplained(t *testing.T) {
	t.Parallel()
	doc, problems := spec.Load("apis.yaml", []byte(`kind: rate_limit
name: apis
description: What our providers allow.
limits:
  - {name: all, rate: 100, per: 1s, burst: 20}
  - {name: per-person, tools: [http.get, github.*], when: tool != 'github.me', key: principal.id, rate: 30, per: 1m, concurrency: 2, max_wait: 10m}
  - {name: starts, sessions: true, key: principal.id, rate: 10, per: 1s, burst: 50}
`))
	require.Empty(t, problems)
	require.Equal(t, spec.KindRateLimit, doc.Kind)
	require.Equal(t, `rate limit apis
What our providers allow.
all: all calls
  100 may begin per 1s: one every 10ms, up to 20 at once after a quiet time
  others wait, at most 1h, and then fail with RATE_LIMITED
per-person: calls of http.get, github.* for which tool != 'github.me', counted by principal.id
  30 may begin per 1m: one every 2s
  2 may run at the same time
  others wait, at most 10m, and then fail with RATE_LIMITED
starts: sessions, counted by principal.id
  10 may begin per 1s: one every 100ms, up to 50 at once after a quiet time
  others wait, as long as their deadlines allow
`, explained(doc))
}

func TestRateLimit_Problems(t *testing.T) {
	t.Parallel()
	for text, path := range map[string]string{
		"limits: []":                                                            "limits",
		"description: x":                                                        "limits",
		"limits: [{name: a}]":                                                   "limits[0]",
		"limits: [{name: a, rate: 1}]":                                          "limits[0]",
		"limits: [{name: a, per: 1s}]":                                          "limits[0]",
		"limits: [{name: a, concurrency: 1, burst: 2}]":                         "limits[0].burst",
		"limits: [{name: a, concurrency: 0}]":                                   "limits[0].concurrency",
		"limits: [{name: a, rate: 1, per: 10ms}]":                               "limits[0].per",
		"limits: [{name: a, rate: 1, per: minute}]":                             "limits[0].per",
		"limits: [{name: a, concurrency: 1, tools: [A]}]":                       "limits[0].tools[0]",
		"limits: [{name: a, concurrency: 1, key: 'call.input.a'}]":              "limits[0].key",
		"limits: [{name: a, concurrency: 1, when: 'principal.name'}]":           "limits[0].when",
		"limits: [{name: a, concurrency: 1, max_wait: 0s}]":                     "limits[0].max_wait",
		"limits: [{name: a, concurrency: 1}, {name: a, concurrency: 2}]":        "limits[1].name",
		"limits: [{name: a, sessions: true, concurrency: 1, rate: 1, per: 1s}]": "limits[0].concurrency",
		"limits: [{name: a, sessions: true, tools: ['*'], rate: 1, per: 1s}]":   "limits[0].tools",
		"limits: [{name: a, sessions: true, max_wait: 1h, rate: 1, per: 1s}]":   "limits[0].max_wait",
		"limits: [{name: a, sessions: true}]":                                   "limits[0]",
		"limits: [{name: a, concurrency: 1, limit: 3}]":                         "limits[0].limit",
	} {
		_, problems := spec.Load("apis.yaml", []byte("kind: rate_limit\nname: apis\n"+text+"\n"))
		require.Len(t, problems, 1, "%s: %v", text, problems)
		require.Equal(t, path, problems[0].Path, text)
		require.NotEmpty(t, problems[0].Line, text)
	}
}
