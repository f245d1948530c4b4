package extraction_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/spec"
)

var fenced = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// documented returns the entity types of the reference page, by name.
func documented(t *testing.T) map[string]entity.Type {
	t.Helper()
	page, err := os.ReadFile("../../../docs/spec.md")
	require.NoError(t, err)
	out := map[string]entity.Type{}
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(block[1], "kind: entity_type\n") {
			kind, err := spec.LoadEntityType("spec.md", []byte(block[1]))
			require.NoError(t, err)
			out[kind.Name] = kind
		}
	}
	return out
}

// strict returns the checks that the engine uses.
func strict() extraction.Checks {
	schemas := schema.NewCompiler(schema.Options{})
	return extraction.Checks{Field: spec.CheckField, Schema: func(raw, value json.RawMessage) error {
		s, err := schemas.Compile(raw)
		if err != nil {
			return err
		}
		return s.Validate(value)
	}}
}

func TestReference_EntityTypesCompile(t *testing.T) {
	t.Parallel()
	kinds := documented(t)
	require.Len(t, kinds, 2, "the reference has an example that no test runs")

	t.Run("module", func(t *testing.T) {
		t.Parallel()
		plan, err := extraction.Compile(kinds["module"], strict())
		require.NoError(t, err)
		in := extraction.Input{Entity: extraction.Target{Content: json.RawMessage(`{"path":"example.org/a","version":"v1.0.0","direct":true}`)}}
		w := worldOf(plan, in, answers(map[string]string{"licence": `{"licenses":[{"spdx":"MIT"},{"spdx":"AGPL-3.0"}]}`}))
		got := w.run(t)
		require.JSONEq(t, `{"module":"example.org/a","version":"v1.0.0"}`, string(w.rows["licence"].input))
		require.JSONEq(t, `["MIT","AGPL-3.0"]`, string(got.Values["licences"]))
		require.JSONEq(t, `"high"`, string(got.Values["risk"]))
		require.Equal(t, []string{"ent_1"}, got.Provenance["licences"].Sources)

		w = worldOf(plan, in, answers(map[string]string{"licence": `{"licenses":[{"spdx":7}]}`}))
		got = w.run(t)
		require.Equal(t, jig.CodeInvalidOutput, got.Tasks["licence"].Error.Code)
		require.Contains(t, got.Tasks["licence"].Error.Message, "does not fit the field licences")
		require.Equal(t, "licence", got.Tasks["risk"].Because)
	})

	t.Run("review", func(t *testing.T) {
		t.Parallel()
		plan, err := extraction.Compile(kinds["review"], strict())
		require.NoError(t, err)
		known := map[string]extraction.Source{"mod_1": {Hash: "1"}, "mod_2": {Hash: "2"}, "mod_3": {Hash: "3"}}
		in := extraction.Input{
			Input:  json.RawMessage(`{"language":"en"}`),
			Entity: extraction.Target{Content: json.RawMessage(`{"modules":["mod_1","mod_2","mod_3"]}`)},
		}
		answer := func(claims string) map[string]string {
			raw, err := json.Marshal(map[string]string{"session_id": "s", "answer": `{"summary":"All is well.","claims":` + claims + `}`})
			require.NoError(t, err)
			return map[string]string{"text": string(raw)}
		}
		w := worldOf(plan, in, answers(answer(`[{"text":"It is small.","source_entity_ids":["mod_2"]}]`))).knowing(known)
		got := w.run(t)
		require.Equal(t, 4, got.Counts.Completed, "%v", got.Tasks)
		require.JSONEq(t, `"All is well."`, string(got.Values["summary"]))
		var asked struct {
			Agent string          `json:"agent"`
			Input json.RawMessage `json:"input"`
		}
		require.NoError(t, json.Unmarshal(w.rows["text"].input, &asked))
		require.Equal(t, "review-writer", asked.Agent)
		require.JSONEq(t, `{"modules":["mod_1","mod_2","mod_3"],"language":"en"}`, string(asked.Input))

		got = worldOf(plan, in, answers(answer(`[{"text":"It is small.","source_entity_ids":["mod_9"]}]`))).knowing(known).run(t)
		require.Equal(t, extraction.ReasonCitations, got.Tasks["check"].Error.Reason)

		in.Entity.Content = json.RawMessage(`{"modules":["mod_1"]}`)
		w = worldOf(plan, in, echo)
		require.Equal(t, extraction.Counts{Total: 4, Skipped: 4}, w.run(t).Counts)
		require.Empty(t, w.asked)
	})
}
