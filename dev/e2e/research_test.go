package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/protocol"
)

const placeFields = `title: Place
fields:
  - {name: city, type: text, required: true}
  - {name: risk, type: enum, options: [low, high]}
`

// entityEnvWithModel returns a tenant with entities, whose worker talks to a stand-in for a model.
func entityEnvWithModel(t *testing.T, reply func(modeltest.Request) modeltest.Reply) entityEnv {
	t.Helper()
	s := modeltest.Func(t, reply)
	return newTenantEnv(t, "ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL="+s.URL, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+s.OpenAIURL(),
		"JIG_MODEL=anthropic/m").withEntityType(placeFields)
}

// find calls a tool that reads entities.
func (g entityEnv) find(tool string, input, data any) protocol.CallResult {
	g.t.Helper()
	in := callInput(tool, input)
	in.Tenant, in.Principal.Permissions = g.tenant, []string{"entities.thing.read"}
	result, err := g.Trigger(g.t.Context(), in, "")
	require.NoError(g.t, err)
	done, err := g.WaitCall(g.t.Context(), g.tenant, result.SessionID)
	require.NoError(g.t, err)
	require.Equal(g.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	require.NoError(g.t, json.Unmarshal(done.Result.Data, data))
	return done
}

func TestResearch_ReadsEntities(t *testing.T) {
	t.Parallel()
	var bonn atomic.Pointer[string]
	g := entityEnvWithModel(t, func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.System, "conditions on the fields") {
			return modeltest.Text(`{"where":[{"field":"risk","op":"eq","value":"High","said":"high risk"},{"field":"price","op":"lt","value":5,"said":"cheap"}]}`)
		}
		return modeltest.Text(`{"answer":"In the cellar.","claims":[{"text":"It is in the cellar.","source_entity_ids":["` + *bonn.Load() + `"],"quote":"The boiler stands in the cellar."}]}`)
	})
	found := g.entity(map[string]any{"city": "Bonn", "risk": "high"})
	bonn.Store(&found.ID)
	rome := g.entity(map[string]any{"city": "Rome", "risk": "low"})
	for _, text := range []entity.Text{
		{EntityID: found.ID, Body: "Notes of May. The boiler stands in the cellar."}, {EntityID: rome.ID, Body: "There is no boiler."},
	} {
		text.Tenant = g.tenant
		_, err := g.db.PutText(t.Context(), text)
		require.NoError(t, err)
	}
	var made entities.ExtractedFilter
	g.find(entities.ExtractFiltersTool, map[string]any{"type": "thing", "text": "cheap ones of high risk"}, &made)
	require.Len(t, made.Filter.Where, 1)
	require.Equal(t, "price", made.Dropped[0].Condition.Field)
	var page entity.RowPage
	g.find(entities.FilterTool, made.Filter, &page)
	require.Len(t, page.Entities, 1)
	require.Equal(t, found.ID, page.Entities[0].ID)

	var r entities.Research
	input := map[string]any{"question": "Where is the boiler?", "type": "thing", "where": made.Filter.Where, "answer": true}
	g.find(entities.ResearchTool, input, &r)
	require.Equal(t, "model", r.Method)
	require.Len(t, r.Entities, 1)
	require.Equal(t, "In the cellar.", r.Entities[0].Answer)
	require.Len(t, r.Entities[0].Claims, 1)
	require.Empty(t, r.Entities[0].Rejected)
	r = entities.Research{}
	g.find(entities.ResearchTool, map[string]any{"question": "Where is the boiler?"}, &r)
	require.Len(t, r.Entities, 2)
	stolen := entityEnv{tenantEnv: tenantEnv{testEnv: g.testEnv, tenant: g.tenant + "x"}, db: g.db}
	r = entities.Research{}
	stolen.find(entities.ResearchTool, map[string]any{"question": "Where is the boiler?"}, &r)
	require.Empty(t, r.Entities)
}

// The prompt still names the entities of an old result after the result was replaced by a reference, and then by a summary.
func TestResearch_KeepsItsWorkingMemory(t *testing.T) {
	t.Parallel()
	const passes = 33
	for _, provider := range providers {
		t.Run(provider[:6], func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var id string
			var asked []modeltest.Request
			summaries := 0
			g := entityEnvWithModel(t, func(r modeltest.Request) modeltest.Reply {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(r.System, "Summarise") {
					summaries++
					return modeltest.Text("Some values were echoed.")
				}
				asked = append(asked, r)
				switch n := len(asked); {
				case n == 1:
					return modeltest.Calls(ask("entities.get", `{"id":"`+id+`"}`))
				case n < passes:
					return modeltest.Calls(ask("test.echo", fmt.Sprintf(`{"value":"%d %s"}`, n, strings.Repeat("words ", 200))))
				}
				return modeltest.Text("done")
			})
			mu.Lock()
			id = g.entity(map[string]any{"city": "Bonn"}).ID
			mu.Unlock()
			document := fmt.Sprintf("---\nname: probe\ndescription: Reads much.\nmodel: %s\ntools: [entities.get, test.echo]\ntoken_budget: 4000\n---\nRead.\n", provider)
			started, err := g.Start(t.Context(), client.StartOptions{
				Tenant: g.tenant, Document: document, DocumentName: "probe.md", Task: "go",
				Principal: jig.Principal{ID: "tester", Permissions: []string{"entities.*.read"}},
			})
			require.NoError(t, err)
			view := g.finish(started.SessionID)
			require.Equal(t, "done", view.Answer, "%v", view.Error)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, asked, passes)
			require.Positive(t, summaries)
			line := fmt.Sprintf("- %s thing %q (1.1 entities.get)", id, "a thing")
			for i, r := range asked {
				require.Equal(t, i > 0, strings.Contains(r.Last().Text, line), "pass %d: %s", i+1, r.Last().Text)
			}
			whole := func(r modeltest.Request) bool { return strings.Contains(string(r.Body), `\"city\"`) }
			require.True(t, whole(asked[1]), string(asked[1].Body))
			require.False(t, whole(asked[passes-1]), "the result itself is no longer in the prompt")
		})
	}
}
