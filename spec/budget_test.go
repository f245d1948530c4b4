package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/spec"
)

func TestBudget_ReadAndExplained(t *testing.T) {
	t.Parallel()
	doc, problems := spec.Load("spending.yaml", []byte(`kind: budget
name: spending
description: Research.
currency: EUR
prices:
  models: [{model: anthropic/*, input: 3, output: 15, cached_input: 0}]
limits:
  - {name: per-day, level: tenant, window: day, cost: 50}
  - name: large
    level: agent
    tokens: 1000
    cost: 0.5
    when: model.startsWith('anthropic/')
    exhausted: [{when: agent.name == 'a', action: ask}, {action: degrade, model: openai/small}]
`))
	require.Empty(t, problems)
	require.Equal(t, spec.KindBudget, doc.Kind)
	require.NotNil(t, doc.Budget().Prices.Models[0].CachedInput, "a price of 0 is not the default")
	require.Nil(t, doc.Budget().Prices.Models[0].CacheWrite)
	require.Equal(t, `budget spending
Research.
it has prices of 1 models and 0 tools, in EUR
per-day: the tenant may use 50.00 EUR a day
  then: the session stops
large: each agent may use 1000 tokens and 0.50 EUR in total, counting calls for which model.startsWith('anthropic/')
  then: the session waits for a person if agent.name == 'a'; else openai/small answers instead
`, explained(doc))
}

func TestBudget_Problems(t *testing.T) {
	t.Parallel()
	for text, path := range map[string]string{
		"limits: []": "",
		"prices: {models: [{model: openai/a, input: -1}]}":                                                                "prices.models[0].input",
		"prices: {models: [{model: openai/a, cache_write: 2000000}]}":                                                     "prices.models[0].cache_write",
		"prices: {tools: [{tool: a.b, call: 1}, {tool: a.b, call: 2}]}":                                                   "prices.tools[1].tool",
		"limits: [{name: a, level: tenant, cost: 0}]":                                                                     "limits[0].cost",
		"limits: [{name: a, level: tenant, tokens: 0}]":                                                                   "limits[0].tokens",
		"limits: [{name: a, level: tenant, tokens: 1, window: week}]":                                                     "limits[0].window",
		"limits: [{name: a, level: tenant, tokens: 1, when: 'session.owner == 1'}]":                                       "limits[0].when",
		"limits: [{name: a, level: tenant, tokens: 1, exhausted: [{action: ask, when: '1'}]}]":                            "limits[0].exhausted[0].when",
		"limits: [{name: a, level: tenant, tokens: 1, exhausted: [{action: degrade, model: gpt}]}]":                       "limits[0].exhausted[0].model",
		"limits: [{name: a, level: tenant, tokens: 1, exhausted: [{action: ask, when: 'limit.used_tokens > 1', by: x}]}]": "limits[0].exhausted[0].by",
	} {
		_, problems := spec.Load("spending.yaml", []byte("kind: budget\nname: spending\n"+text+"\n"))
		require.Len(t, problems, 1, "%s: %v", text, problems)
		require.Equal(t, path, problems[0].Path, text)
		require.NotEmpty(t, problems[0].Line)
	}
}
