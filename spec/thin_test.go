package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

const fullThinTool = `kind: thin_tool
name: review.start
description: Starts a review of a module; its fields fill in the background.
input_schema: {type: object, properties: {engagement_id: {type: string}, module: {type: string}, workspace: {type: string}, model: {type: string}}, required: [engagement_id, module]}
bundle: dependency-review
entities:
  - name: engagement
    id: "${input.engagement_id}"
    type: engagement
    workspace: "${input.?workspace.orValue(null)}"
    connected: {types: [pilot, assessment], at_least: 3}
requires:
  - {check: "entities.engagement.connected.exists(c, c.type == 'assessment')", code: insufficient_graph, message: "add an assessment to ${entities.engagement.title} first"}
creates:
  type: review
  title: "Review of ${input.module}"
  key: "${input.module}"
  fields: {module: "${input.module}"}
  relations: {engagement: ["${entities.engagement.id}"]}
  workspaces: ["${input.workspace}"]
starts: {input: {model: "${input.?model.orValue('')}"}, fields: [summary]}
url: "https://example.com/reviews/${entity.id}?session=${session.id}"
`

func TestThinTool_ReadsEveryKey(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("review.yaml", []byte(fullThinTool))
	require.NoError(t, err)
	require.Equal(t, spec.KindThinTool, x.Kind)
	require.Empty(t, x.Steps)
	require.Equal(t, &spec.ThinTool{
		Bundle: "dependency-review",
		Entities: []spec.ThinEntity{{
			Name: "engagement", ID: "${input.engagement_id}", Type: "engagement", Workspace: "${input.?workspace.orValue(null)}",
			Connected: &spec.ThinConnected{Types: []string{"pilot", "assessment"}, Depth: 1, AtLeast: 3},
		}},
		Requires: []spec.ThinRequirement{{
			Check: "entities.engagement.connected.exists(c, c.type == 'assessment')", Code: jig.ReasonInsufficientGraph,
			Message: "add an assessment to ${entities.engagement.title} first",
		}},
		Creates: &spec.ThinCreation{
			Type: "review", Title: "Review of ${input.module}", Key: "${input.module}", Fields: json.RawMessage(`{"module":"${input.module}"}`),
			Relations: json.RawMessage(`{"engagement":["${entities.engagement.id}"]}`), Workspaces: json.RawMessage(`["${input.workspace}"]`),
		},
		Starts: &spec.ThinStart{Fields: []string{"summary"}, Input: json.RawMessage(`{"model":"${input.?model.orValue('')}"}`)},
		URL:    "https://example.com/reviews/${entity.id}?session=${session.id}",
	}, x.Thin())
	require.Equal(t, jig.ImplementationThin, x.Tool.Implementation)
	require.Equal(t, jig.PermissionDraft, x.Tool.Permission)
	require.True(t, x.Tool.Idempotent)
	require.Empty(t, x.Tool.Bundle, "Tool.Bundle is only for Go tools")
	require.Equal(t, x.Version, x.Tool.Version)
	require.Contains(t, string(x.Tool.OutputSchema), "session_id")
}

// If only the name of an entity type is known, Check does not check its fields.
func TestThinTool_OfTypesThatAreKnownByName(t *testing.T) {
	t.Parallel()
	docs := load(t, map[string]string{"a.yaml": "{kind: thin_tool, name: a.b, creates: {type: review, fields: {x: 1}}, starts: {fields: [y]}}"})
	require.Empty(t, spec.Check(docs, spec.Catalog{EntityTypes: []entity.Type{{Name: "review"}}}))
	problems := spec.Check(docs, spec.Catalog{EntityTypes: []entity.Type{}})
	require.Len(t, problems, 1)
	require.Equal(t, spec.ProblemUnknownType, problems[0].Code)
	require.Equal(t, "add a document of kind entity_type with that name", problems[0].Hint)
}

func TestThinTool_FollowsConnectedEntitiesAsFarAsTheStore(t *testing.T) {
	t.Parallel()
	for depth, ok := range map[int]bool{1: true, entity.MaxConnectedDepth: true, entity.MaxConnectedDepth + 1: false} {
		text := fmt.Sprintf("{kind: thin_tool, name: a, entities: [{name: b, id: c, type: d, connected: {depth: %d, at_least: %d}}]}", depth, entity.MaxConnected)
		x, err := spec.LoadExecution("a.yaml", []byte(text))
		require.Equal(t, ok, err == nil, "%d: %v", depth, err)
		if ok {
			require.Equal(t, depth, x.Thin().Entities[0].Connected.Depth)
		}
	}
}

func TestAdvise_OnThinTools(t *testing.T) {
	t.Parallel()
	docs := load(t, map[string]string{
		"a.yaml": "{kind: thin_tool, name: review.start, description: Does it., creates: {type: review}}",
		"b.yaml": "{kind: thin_tool, name: review.starts, description: Starts the review of a module and returns its id., creates: {type: review}}",
	})
	var codes []spec.ProblemCode
	for _, p := range spec.Advise(docs, spec.Catalog{}) {
		require.Equal(t, spec.SeverityWarning, p.Severity)
		codes = append(codes, p.Code)
	}
	require.ElementsMatch(t, []spec.ProblemCode{spec.ProblemVagueDescription, spec.ProblemSimilarName, spec.ProblemSimilarName}, codes)
}

// The engine's result fits the schema that the tool declares.
func TestThinTool_ResultsFitTheirSchema(t *testing.T) {
	t.Parallel()
	x, err := spec.LoadExecution("a.yaml", []byte("{kind: thin_tool, name: a.b, creates: {type: c}}"))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.Tool.OutputSchema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("result.json", doc))
	schema, err := compiler.Compile("result.json")
	require.NoError(t, err)
	for _, result := range []spec.ThinResult{{}, {EntityID: "ent_1", URL: "/entities/ent_1", SessionID: "ses_1", Created: true}} {
		raw, err := json.Marshal(result)
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(value))
	}
}
