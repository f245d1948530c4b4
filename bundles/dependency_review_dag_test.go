package bundles_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/bundles"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/spec"
)

func theBundle(t *testing.T, name string) spec.Bundle {
	t.Helper()
	list, err := bundles.Bundles()
	require.NoError(t, err)
	for _, b := range list {
		if b.Manifest.Name == name {
			return b
		}
	}
	require.Fail(t, "there is no bundle "+name)
	return spec.Bundle{}
}

func TestDependencyReviewBundle_IsComplete(t *testing.T) {
	t.Parallel()
	got := map[string]spec.Kind{}
	for _, doc := range theBundle(t, "dependency-review").Documents {
		got[doc.Name] = doc.Kind
		if doc.Kind == spec.KindThinTool {
			require.Equal(t, "dependency-review", doc.Execution().Thin().Bundle, doc.Name)
		}
	}
	require.Equal(t, map[string]spec.Kind{
		"dependency-review": spec.KindAgent, "review-writer": spec.KindAgent,
		"module": spec.KindEntityType, "review": spec.KindEntityType,
		"module.record": spec.KindThinTool, "review.start": spec.KindThinTool,
		"review.recordModules": spec.KindComposition, "review.publish": spec.KindComposition,
	}, got)
}

// The tasks of a review form three layers: nothing is written before the facts are known, and nothing is reported before the text was
// checked.
func TestDependencyReview_TasksAreLayered(t *testing.T) {
	t.Parallel()
	var review *entity.Type
	for _, doc := range theBundle(t, "dependency-review").Documents {
		if doc.Name == "review" {
			review = doc.EntityType()
		}
	}
	require.NotNil(t, review)
	needs := map[string][]string{}
	for _, task := range review.Tasks {
		needs[task.ID] = task.DependsOn
	}
	var before func(id string, seen map[string]bool) map[string]bool
	before = func(id string, seen map[string]bool) map[string]bool {
		for _, need := range needs[id] {
			if !seen[need] {
				seen[need] = true
				before(need, seen)
			}
		}
		return seen
	}
	require.Subset(t, before("text", map[string]bool{}), map[string]bool{"list": true, "record": true})
	require.NotContains(t, before("text", map[string]bool{}), "citations")
	require.Subset(t, before("citations", map[string]bool{}), map[string]bool{"text": true, "modules": true})
	require.Contains(t, before("report", map[string]bool{}), "citations")
	for _, id := range []string{"module", "direct", "indirect", "modules", "by_risk", "outdated", "concerns", "not_inspected"} {
		require.NotContains(t, before(id, map[string]bool{}), "text", id)
	}
}

// prose is the answer of the rules of review-writer.
type prose struct {
	Summary string
	Claims  []entity.TextClaim
}

func write(t *testing.T, modules ...map[string]any) prose {
	t.Helper()
	var writer *jig.Agent
	for _, doc := range theBundle(t, "dependency-review").Documents {
		if doc.Name == "review-writer" {
			writer = doc.Agent()
		}
	}
	require.NotNil(t, writer)
	if modules == nil {
		modules = []map[string]any{}
	}
	input, err := json.Marshal(map[string]any{"module": "example.com/app", "modules": modules})
	require.NoError(t, err)
	require.NoError(t, schema.NewChecker(schema.Options{}).Validate(writer.InputSchema, input))
	turn, err := model.NewRouter(model.Settings{}).Answer(t.Context(), chat.Request{
		Model: writer.Model, Pass: 1, Input: input, Script: writer.Script, Exchanges: []chat.Exchange{{Pass: 1}},
	}, nil)
	require.NoError(t, err)
	require.Empty(t, turn.Calls)
	var out prose
	require.NoError(t, json.Unmarshal([]byte(turn.Text), &out))
	return out
}

func fact(id string, more map[string]any) map[string]any {
	m := map[string]any{"id": "ent_" + id, "path": "example.com/" + id, "version": "v1.0.0", "licences": []string{"MIT"}, "risk": "low", "concerns": []string{}}
	for k, v := range more {
		m[k] = v
	}
	return m
}

func TestReviewWriter_UsesTheFacts(t *testing.T) {
	t.Parallel()
	got := write(t,
		fact("a", map[string]any{"age_days": 10, "versions_behind": 0, "latest_known": "v1.0.0"}),
		fact("b", map[string]any{"age_days": 900, "versions_behind": 3, "latest_known": "v1.3.0"}),
		fact("c", map[string]any{"risk": "high", "concerns": []string{"licence risk high (GPL-3.0-only)", "its authors retracted it"}, "versions_behind": 12, "latest_known": "v2.0.0"}),
		fact("d", map[string]any{"risk": "unknown", "problem": "example.com/d v1.0.0 is not in the module cache"}),
		fact("e", map[string]any{"risk": "unknown", "problem": "the module cache cannot be read"}),
	)
	require.Equal(t, []entity.TextClaim{
		{Text: "2 of 5 direct modules come under permissive licences (risk class low).", SourceEntityIDs: []string{"ent_a", "ent_b"}},
		{Text: "example.com/c v1.0.0 needs a look: licence risk high (GPL-3.0-only); its authors retracted it.", SourceEntityIDs: []string{"ent_c"}},
		{
			Text:            "Newer releases are known of 2 of 5 direct modules; furthest behind is example.com/c v1.0.0, 12 releases before v2.0.0.",
			SourceEntityIDs: []string{"ent_c", "ent_b"},
		},
		{Text: "The oldest version in use is example.com/b v1.0.0, published 900 days before it was looked at.", SourceEntityIDs: []string{"ent_b"}},
		{Text: "Nothing could be found out about example.com/d v1.0.0.", SourceEntityIDs: []string{"ent_d"}},
		{Text: "Nothing could be found out about example.com/e v1.0.0: the module cache cannot be read.", SourceEntityIDs: []string{"ent_e"}},
	}, got.Claims)
	require.True(t, strings.HasPrefix(got.Summary, "Put together from the recorded facts by fixed rules, without a model.\n\n- 2 of 5 "), got.Summary)
	for _, claim := range got.Claims {
		require.Contains(t, got.Summary, "- "+claim.Text)
	}
}

func TestReviewWriter_FewAndManyModules(t *testing.T) {
	t.Parallel()
	none := write(t)
	require.Empty(t, none.Claims)
	require.NotNil(t, none.Claims, "an empty list, not null")
	require.Contains(t, none.Summary, "example.com/app uses no other module directly")

	bare := write(t, fact("x", map[string]any{"licences": []string{}, "risk": "unknown"}))
	require.Empty(t, bare.Claims, "there are no claims about a module of which nothing is known")

	var many []map[string]any
	for i := range 500 {
		many = append(many, fact(fmt.Sprint("m", i), map[string]any{"age_days": i, "versions_behind": i % 7, "latest_known": "v9.0.0"}))
	}
	got := write(t, many...)
	require.Len(t, got.Claims, 3)
	require.Len(t, got.Claims[0].SourceEntityIDs, 500)
	require.Contains(t, got.Claims[2].Text, "example.com/m499")
}
