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
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// Tests each reason for which a summary is refused. The messages must contain nothing of another tenant.
func TestConsulting_Rejects(t *testing.T) {
	t.Parallel()
	p := newConsultingEnv(t)
	record := func(tool string, input map[string]any) string {
		result := p.result("consulting."+tool, input)
		require.True(t, result.Success, "%+v", result.Error)
		var made spec.ThinResult
		require.NoError(t, json.Unmarshal(result.Data, &made))
		return made.EntityID
	}
	engaged := func(name string) string {
		return record("recordEngagement", map[string]any{"reference": name, "title": name, "client": name, "scope": "look", "workspace": "east"})
	}
	few, noPilot, noAssessment := engaged("few"), engaged("no-pilot"), engaged("no-assessment")
	for i := range 3 {
		for name, id := range map[string]string{"few": few, "no-assessment": noAssessment} {
			if name != "few" || i == 0 {
				record("recordPilot", map[string]any{"engagement_id": id, "reference": fmt.Sprint(i), "name": name, "metric": "x"})
			}
		}
		for name, id := range map[string]string{"few": few, "no-pilot": noPilot} {
			if name != "few" || i == 0 {
				record("recordAssessment", map[string]any{"engagement_id": id, "reference": fmt.Sprint(i), "area": name, "score": 3, "findings": "x"})
			}
		}
	}
	harbour := p.engagements["sample-harbour"]
	theirs, _, err := p.db.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{
		Tenant: p.tenant + "-other", Type: "engagement", Title: "secret", Content: json.RawMessage(`{"client":"secret","scope":"secret"}`),
	}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		input        map[string]any
		code         jig.Code
		reason, said string
	}{
		"unknown":              {map[string]any{"engagement_id": jig.NewEntityID("customer")}, jig.CodeNotFound, jig.ReasonEntityNotFound, ""},
		"another tenant's":     {map[string]any{"engagement_id": theirs.ID}, jig.CodeNotFound, jig.ReasonEntityNotFound, ""},
		"another workspace's":  {map[string]any{"engagement_id": harbour, "workspace": "east"}, jig.CodeNotPermitted, jig.ReasonWorkspaceViolation, ""},
		"with too few records": {map[string]any{"engagement_id": few}, jig.CodeConflict, jig.ReasonInsufficientGraph, ""},
		"without a pilot":      {map[string]any{"engagement_id": noPilot}, jig.CodeConflict, jig.ReasonInsufficientGraph, "consulting.recordPilot"},
		"without assessments":  {map[string]any{"engagement_id": noAssessment}, jig.CodeConflict, jig.ReasonInsufficientGraph, "consulting.recordAssessment"},
	} {
		result := p.result(generate, c.input)
		require.False(t, result.Success, name)
		require.Equal(t, []any{c.code, c.reason}, []any{result.Error.Code, result.Error.Reason}, "%s: %+v", name, result.Error)
		require.Contains(t, result.Error.Message, c.said, name)
		require.NotContains(t, result.Error.Message, "secret", name)
	}
	var seen []string
	for _, row := range p.requireAudited(p.tenant) {
		if row.Kind == audit.AuditViolation {
			require.Equal(t, []string{jig.ReasonIDORViolation, generate}, []string{row.Reason, row.Tool})
			seen = append(seen, row.Subject)
		}
	}
	require.Equal(t, []string{theirs.ID}, seen, "the tenant's own audit records only the id of another tenant, not the unknown one")

	// A call waits while the bundle is removed.
	p.install("ask.yaml", "kind: policy\nname: ask\nrules: [{name: all, when: \"tool.name == '"+generate+"'\", verdict: ask}]\n", p.trusting)
	var waits protocol.CallResult
	require.True(t, eventually(t.Context(), patience, func() bool {
		waits = p.trigger(generate, map[string]any{"engagement_id": harbour})
		return waits.Status == jig.CallWaiting
	}), "the policy holds within a second")
	removed := p.jig("bundle", "remove", "consulting", "--yes", "--tenant", p.tenant)
	require.Zero(t, removed.code, removed.out+removed.err)
	p.trusting(waits.SessionID)
	p.foreseesNothing(waits.SessionID, "not installed") // it would not do any more what was shown, so it asks again
	p.trusting(waits.SessionID)
	gone := p.end(waits.SessionID)
	require.Equal(t, []any{jig.CodeNotPermitted, jig.ReasonBundleNotInstalled}, []any{gone.Error.Code, gone.Error.Reason})
}

// If there are more than a hundred records, the task fails with an error that says so. It does not silently ignore the rest.
func TestConsulting_TooManyRecords(t *testing.T) {
	t.Parallel()
	p := newConsultingEnv(t)
	northfield := p.engagements["sample-northfield"]
	for i := range 99 {
		_, _, err := p.db.CreateEntity(t.Context(), entity.NewEntity{Entity: entity.Entity{
			Tenant: p.tenant, Type: "pilot", Content: json.RawMessage(fmt.Sprintf(`{"engagement":%q,"name":"pilot %d","metric":"x"}`, northfield, i)),
		}, Relations: map[string][]string{"engagement": {northfield}}})
		require.NoError(t, err)
	}
	made := p.made(map[string]any{"engagement_id": northfield})
	out, now := p.filled(made.SessionID, made.EntityID)
	problem := out.Tasks["pilots"].Error
	require.NotNil(t, problem, "%+v", out.Tasks)
	require.Equal(t, "too_many", problem.Reason)
	require.Contains(t, problem.Message, "more than 100 entities of type pilot")
	require.Equal(t, extraction.TaskSkipped, out.Tasks["narrative"].Status)
	require.Equal(t, 4, now.Readiness.Assessments, "tasks that do not read pilots have values")
}

// A model's claims are checked: an id that is not connected is named, and nothing is published.
func TestConsulting_RejectsAFabricatedSource(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	answers := map[string]string{}
	server := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Last().Text)
		return modeltest.Text(answers["now"])
	})
	p := newConsultingEnv(t, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL())
	harbour, northfield := p.engagements["sample-harbour"], p.engagements["sample-northfield"]
	says := func(claims string) {
		mu.Lock()
		defer mu.Unlock()
		answers["now"] = `{"headline": "All is well", "summary": "All is well.", "recommendations": [], "claims": [` + claims + `]}`
	}
	says(`{"text": "All is well.", "source_entity_ids": ["ent_made_up"]}, {"text": "Here, too.", "source_entity_ids": ["` + northfield + `"]},
		{"text": "Really.", "source_entity_ids": []}, {"text": "Indeed.", "source_entity_ids": ["` + harbour + `"], "quote": "it is well"}`)
	made := p.made(map[string]any{"engagement_id": harbour, "model": "openai/gpt-test"})
	out, now := p.filled(made.SessionID, made.EntityID)
	mu.Lock()
	require.Len(t, asked, 1)
	require.Contains(t, asked[0], "Reading of claim forms", "the model gets the records")
	mu.Unlock()
	require.Equal(t, "written by openai/gpt-test", now.Method)
	require.Equal(t, 6, out.Counts.Completed, "%+v", out.Tasks)
	problem := out.Tasks["citations"].Error
	require.Equal(t, extraction.ReasonCitations, problem.Reason)
	var pointers []string
	for _, v := range problem.Violations {
		pointers = append(pointers, v.Pointer)
	}
	require.Equal(t, []string{"/0/source_entity_ids/0", "/1/source_entity_ids/0", "/2/source_entity_ids", "/3/quote"}, pointers)
	require.Contains(t, problem.Message, `"ent_made_up" is not connected`)
	require.Nil(t, now.Citations)
	refused := p.result("consulting.publishExecutiveSummary", map[string]any{"id": made.EntityID})
	require.Equal(t, "citations_not_passed", refused.Error.Reason)
	require.Contains(t, refused.Error.Message, "ent_made_up")
	require.NoDirExists(t, p.workdir("summaries"))

	// Running all tasks again produces a new text.
	says(`{"text": "All is well.", "source_entity_ids": ["` + harbour + `"]}`)
	_, out, now = p.again(made.EntityID, "run")
	require.Equal(t, 7, out.Counts.Completed, "%+v", out.Tasks)
	require.Len(t, now.Citations, 1)

	// Another summary of the same engagement is connected, but it is not a record.
	other := p.made(map[string]any{"engagement_id": harbour})
	p.filled(other.SessionID, other.EntityID)
	says(`{"text": "All is well.", "source_entity_ids": ["` + harbour + `", "` + other.EntityID + `"]}`)
	p.again(made.EntityID, "run")
	refused = p.result("consulting.publishExecutiveSummary", map[string]any{"id": made.EntityID})
	require.Equal(t, "citations_not_passed", refused.Error.Reason)
	require.Contains(t, refused.Error.Message, other.EntityID)
	require.NoDirExists(t, p.workdir("summaries"))
}

// A task that failed because of the model is retried automatically once the model works.
func TestConsulting_RetriesFailedTasks(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	var engagement atomic.Value
	server := modeltest.Func(t, func(modeltest.Request) modeltest.Reply {
		if !well.Load() {
			return modeltest.Fail(401, "bad key")
		}
		return modeltest.Text(fmt.Sprintf(`{"headline": "Well", "summary": "Well.", "recommendations": ["Go on"],
			"claims": [{"text": "Well.", "source_entity_ids": [%q]}]}`, engagement.Load()))
	})
	p := newConsultingEnv(t, "ANTHROPIC_API_KEY=key", "ANTHROPIC_BASE_URL="+server.URL)
	engagement.Store(p.engagements["sample-harbour"])
	made := p.made(map[string]any{"engagement_id": p.engagements["sample-harbour"], "model": "anthropic/claude-test"})
	out, now := p.filled(made.SessionID, made.EntityID)
	require.Equal(t, extraction.TaskFailed, out.Tasks["narrative"].Status)
	require.Equal(t, extraction.TaskSkipped, out.Tasks["citations"].Status)
	require.Equal(t, 5, out.Counts.Completed, "%+v", out.Tasks)
	require.Equal(t, 3, now.Outcomes.Pilots, "values computed from records are there")
	early := p.result("consulting.publishExecutiveSummary", map[string]any{"id": made.EntityID})
	require.Equal(t, "not_done", early.Error.Reason)
	well.Store(true)
	tasks, _, now := p.again(made.EntityID, "retry")
	require.Equal(t, []string{"citations", "narrative"}, tasks)
	require.Equal(t, "Well", now.Narrative.Headline)
	require.Len(t, now.Citations, 1)
}

// No request of a tenant without the bundle reveals anything about it.
func TestConsulting_IsHiddenFromOtherTenants(t *testing.T) {
	t.Parallel()
	p := newConsultingEnv(t)
	made := p.made(map[string]any{"engagement_id": p.engagements["sample-harbour"]})
	_, now := p.filled(made.SessionID, made.EntityID)
	at := func(args ...string) commandResult { return p.jig(append(args, "--tenant", p.tenant+"-b")...) }
	for _, args := range [][]string{
		{"catalog"},
		{"catalog", "export"},
		{"bundle", "list"},
		{"trigger", "entities.listTypes", "--output", "json"},
		{"trigger", "entities.search", "--input", "query=Harbour", "--output", "json"},
	} {
		listed := at(args...)
		require.Zero(t, listed.code, "%v: %s", args, listed.err)
		for _, word := range []string{"consulting", "executive", "engagement", "pilot", "assessment", "Harbour"} {
			require.NotContains(t, strings.ToLower(listed.out), strings.ToLower(word), "%v", args)
		}
	}
	for _, tool := range []string{generate, "consulting.loadSample", "consulting.recordPilot", "consulting.readRecords", "consulting.publishExecutiveSummary"} {
		asked := at("trigger", tool, "--input", "id=x")
		require.Equal(t, 1, asked.code, tool)
		require.Contains(t, asked.err, "there is no tool \""+tool+"\"")
	}
	for _, id := range []string{made.EntityID, now.Engagement, now.Pilots[0].ID} {
		asked := at("trigger", "entities.get", "--input", "id="+id)
		require.Equal(t, 1, asked.code, asked.out)
		require.Contains(t, asked.err, "there is no entity")
	}
	for _, name := range []string{"executive-summary-composer", "executive-summary-review", "consulting-rules"} {
		asked := at("explain", name)
		require.Equal(t, 1, asked.code, "%s: %s", name, asked.out)
	}
}
