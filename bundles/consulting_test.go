package bundles_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/spec"
)

func TestConsultingBundle_IsComplete(t *testing.T) {
	t.Parallel()
	got := map[string]spec.Kind{}
	for _, doc := range theBundle(t, "consulting").Documents {
		got[doc.Name] = doc.Kind
		if doc.Kind == spec.KindThinTool {
			require.Equal(t, "consulting", doc.Execution().Thin().Bundle, doc.Name)
		}
		if doc.Execution() != nil {
			require.Contains(t, []jig.Permission{jig.PermissionRead, jig.PermissionDraft}, doc.Execution().Tool.Permission, doc.Name)
		}
	}
	require.Equal(t, map[string]spec.Kind{
		"engagement": spec.KindEntityType, "pilot": spec.KindEntityType, "assessment": spec.KindEntityType, "executive_summary": spec.KindEntityType,
		"consulting.recordEngagement": spec.KindThinTool, "consulting.recordPilot": spec.KindThinTool, "consulting.recordAssessment": spec.KindThinTool,
		"consulting.generateExecutiveSummary": spec.KindThinTool,
		"consulting.loadSample":               spec.KindComposition, "consulting.readRecords": spec.KindComposition,
		"consulting.publishExecutiveSummary": spec.KindComposition,
		"executive-summary-composer":         spec.KindAgent, "executive-summary-review": spec.KindSkill, "consulting-rules": spec.KindPolicy,
	}, got)
}

// The summary has seven tasks in three layers: the records and what they add up to, the text, and the check of its claims. Each task fills
// one field.
func TestConsulting_ExecutiveSummaryIsLayered(t *testing.T) {
	t.Parallel()
	var summary *entity.Type
	for _, doc := range theBundle(t, "consulting").Documents {
		if doc.Name == "executive_summary" {
			summary = doc.EntityType()
		}
	}
	require.NotNil(t, summary)
	var ids, at, fills []string
	for _, task := range summary.Tasks {
		ids = append(ids, task.ID)
		if len(task.DependsOn) == 0 && task.Kind != entity.TaskCitations {
			at = append(at, task.ID)
		}
		switch task.ID {
		case "narrative":
			require.ElementsMatch(t, []string{"situation", "pilots", "assessments", "outcomes", "readiness"}, task.DependsOn, "all records")
			require.Equal(t, entity.TaskAgent, task.Kind)
			require.NotEmpty(t, task.OutputSchema)
		case "citations":
			require.Equal(t, "narrative", task.Claims)
		default:
			require.Contains(t, []entity.TaskKind{entity.TaskComposition, entity.TaskCompute}, task.Kind, "no model runs before the records have been read")
		}
	}
	require.Equal(t, []string{"situation", "pilots", "assessments", "outcomes", "readiness", "narrative", "citations"}, ids)
	require.Equal(t, []string{"situation", "pilots", "assessments"}, at, "these begin at once")
	for i := range summary.Fields {
		if task := summary.Fields[i].Task; task != "" {
			fills = append(fills, task)
		}
	}
	slices.Sort(fills)
	slices.Sort(ids)
	require.Equal(t, ids, fills)
}

// summaryText is the answer of the rules of executive-summary-composer.
type summaryText struct {
	Headline, Summary string
	Recommendations   []string
	Claims            []entity.TextClaim
}

// compose lets the rules answer. The answer must match what the task asks for.
func compose(t *testing.T, input string) (out summaryText) {
	t.Helper()
	var composer *jig.Agent
	for _, doc := range theBundle(t, "consulting").Documents {
		if doc.Name == "executive-summary-composer" {
			composer = doc.Agent()
		}
	}
	require.NotNil(t, composer)
	turn, err := model.NewRouter(model.Settings{}).Answer(t.Context(), chat.Request{
		Model: composer.Model, Pass: 1, Input: json.RawMessage(input), Script: composer.Script, Exchanges: []chat.Exchange{{Pass: 1}},
	}, nil)
	require.NoError(t, err)
	require.Empty(t, turn.Calls)
	decoder := json.NewDecoder(strings.NewReader(turn.Text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&out), turn.Text)
	require.NotNil(t, out.Recommendations)
	for _, claim := range out.Claims {
		require.Contains(t, out.Summary, "- "+claim.Text)
	}
	return out
}

func TestComposer_UsesTheRecords(t *testing.T) {
	t.Parallel()
	got := compose(t, `{
		"situation": {"id": "ent_e", "title": "Claims", "client": "Acme", "scope": "answer within a day"},
		"pilots": [
			{"id": "ent_1", "name": "Intake", "metric": "minutes per form"}, {"id": "ent_2", "name": "Letters", "metric": "letters sent"},
			{"id": "ent_3", "name": "Same", "metric": "calls"}, {"id": "ent_4", "name": "Rounds", "metric": "km", "stage": "running"}],
		"assessments": [
			{"id": "ent_5", "area": "data", "score": 2, "risk": "high", "findings": "Scans cannot be read. Nobody keeps a list.", "recommendation": "scan again",
				"passages": [{"document_id": "doc_1", "text": "Three in ten cannot be read. More follows."}]},
			{"id": "ent_6", "area": "people", "score": 4, "risk": "low", "findings": "They know.", "recommendation": "go on", "passages": []},
			{"id": "ent_7", "area": "law", "score": 2, "risk": "high", "findings": "All is open", "passages": []}],
		"outcomes": {"pilots": 4, "completed": 1, "improved": 1, "results": [
			{"id": "ent_1", "name": "Intake", "metric": "minutes per form", "unit": "min", "baseline": 19, "result": 6.5, "change_percent": -65.8, "improved": true},
			{"id": "ent_2", "name": "Letters", "metric": "letters sent", "unit": "", "baseline": 71, "result": 64, "change_percent": -9.9, "improved": false},
			{"id": "ent_3", "name": "Same", "metric": "calls", "unit": "", "baseline": 5, "result": 5, "change_percent": 0, "improved": false}]},
		"readiness": {"assessments": 3, "mean": 2.7, "weakest": ["ent_5", "ent_7"], "strongest": ["ent_6"], "high_risks": ["ent_5", "ent_7"]}}`)
	require.Equal(t, "Acme: 1 of 4 pilots have improved what they measure, readiness is 2.7 of 5", got.Headline)
	require.Equal(t, []string{"data: scan again", "people: go on"}, got.Recommendations, "the weakest first; an assessment without a recommendation is left out")
	require.Equal(t, []entity.TextClaim{
		{Text: "Acme has asked for this: answer within a day", SourceEntityIDs: []string{"ent_e"}},
		{Text: "Intake: minutes per form improved by 65.8%, from 19 to 6.5 min.", SourceEntityIDs: []string{"ent_1"}},
		{Text: "Letters: letters sent got worse by 9.9%, from 71 to 64.", SourceEntityIDs: []string{"ent_2"}},
		{Text: "Same: calls did not change, from 5 to 5.", SourceEntityIDs: []string{"ent_3"}},
		{Text: "Rounds has no result to compare yet (running).", SourceEntityIDs: []string{"ent_4"}},
		{Text: "Readiness is 2.7 of 5 over 3 assessments.", SourceEntityIDs: []string{"ent_5", "ent_6", "ent_7"}},
		{Text: "The lowest score, 2 of 5, is that of data, law.", SourceEntityIDs: []string{"ent_5", "ent_7"}},
		{Text: "A high risk is seen in data: Scans cannot be read.", SourceEntityIDs: []string{"ent_5"}},
		{Text: "A high risk is seen in law: All is open", SourceEntityIDs: []string{"ent_7"}},
		{
			Text: "A document on data says: Three in ten cannot be read", SourceEntityIDs: []string{"ent_5", "doc_1"},
			Quote: "Three in ten cannot be read",
		},
	}, got.Claims)
	require.True(t, strings.HasPrefix(got.Summary, "Put together from the records by fixed rules, without a model.\n\n- Acme "), got.Summary)
}

func TestComposer_FewRecords(t *testing.T) {
	t.Parallel()
	got := compose(t, `{
		"situation": {"id": "ent_e", "title": "", "client": "Acme", "scope": "look around"}, "pilots": [], "assessments": [],
		"outcomes": {"pilots": 0, "completed": 0, "improved": 0, "results": []},
		"readiness": {"assessments": 0, "weakest": [], "strongest": [], "high_risks": []}}`)
	require.Equal(t, "Acme: 0 of 0 pilots have improved what they measure", got.Headline)
	require.Equal(t, []entity.TextClaim{{Text: "Acme has asked for this: look around", SourceEntityIDs: []string{"ent_e"}}}, got.Claims)
	require.Empty(t, got.Recommendations)
}
