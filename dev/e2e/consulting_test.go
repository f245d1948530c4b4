package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

const generate = "consulting.generateExecutiveSummary"

// consultingEnv is a tenant with the bundle consulting and its sample data.
type consultingEnv struct {
	tenantEnv
	db          *store.DB
	engagements map[string]string
}

func newConsultingEnv(t *testing.T, env ...string) consultingEnv {
	t.Helper()
	p := consultingEnv{tenantEnv: newTenantEnv(t, append([]string{"JIG_PERMISSIONS=*"}, env...)...)}
	var err error
	p.db, err = store.Open(t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(p.db.Close)
	folder, err := filepath.Abs(filepath.Join("..", "..", "bundles", "consulting"))
	require.NoError(t, err)
	installed := p.jig("bundle", "install", folder, "--yes", "--tenant", p.tenant)
	require.Zero(t, installed.code, installed.out+installed.err)
	p.load()
	return p
}

// load loads the sample data. The first time creates them; later times find them.
func (p *consultingEnv) load() {
	p.t.Helper()
	result := p.result("consulting.loadSample", map[string]any{"workspace": "west"})
	require.True(p.t, result.Success, "%+v", result.Error)
	var out struct {
		Engagements         map[string]string
		Pilots, Assessments int
	}
	require.NoError(p.t, json.Unmarshal(result.Data, &out))
	require.Len(p.t, out.Engagements, 2)
	require.Equal(p.t, []int{5, 8}, []int{out.Pilots, out.Assessments})
	p.engagements = out.Engagements
}

// result returns the result of a call that needs no approval.
func (p consultingEnv) result(tool string, input any) jig.ToolResult {
	p.t.Helper()
	return p.end(p.trigger(tool, input).SessionID)
}

func (p consultingEnv) end(session string) jig.ToolResult {
	p.t.Helper()
	done, err := p.WaitCall(p.t.Context(), p.tenant, session)
	require.NoError(p.t, err)
	whole, err := p.WholeResult(p.t.Context(), p.tenant, done)
	require.NoError(p.t, err)
	require.NotNil(p.t, whole)
	return *whole
}

// made starts a summary and returns the result of that call.
func (p consultingEnv) made(input map[string]any) (made spec.ThinResult) {
	p.t.Helper()
	result := p.trigger(generate, input)
	require.Equal(p.t, jig.CallSucceeded, result.Status, "%+v", result.Result)
	require.NoError(p.t, json.Unmarshal(result.Result.Data, &made))
	require.True(p.t, made.Created)
	return made
}

// executiveSummary is the content of an executive summary.
type executiveSummary struct {
	Engagement, Model, Method, Classification string
	Situation                                 struct{ Client, Scope string }
	Pilots                                    []struct{ ID, Name string }
	Assessments                               []struct{ ID, Area, Findings string }
	Outcomes                                  struct {
		Pilots, Completed, Improved int
		Results                     []struct {
			Name     string
			Change   float64 `json:"change_percent"`
			Improved bool
		}
	}
	Readiness struct {
		Assessments        int
		Mean               float64
		Weakest, Strongest []string
		HighRisks          []string `json:"high_risks"`
	}
	Narrative struct {
		Headline, Summary string
		Recommendations   []string
		Claims            []entity.TextClaim
	}
	Citations []entity.TextClaim
}

// filled waits until an extraction has ended.
func (p consultingEnv) filled(session, id string) (out extraction.Result, now executiveSummary) {
	p.t.Helper()
	result := p.end(session)
	require.True(p.t, result.Success, "%+v", result.Error)
	require.NoError(p.t, json.Unmarshal(result.Data, &out))
	e, err := p.db.Entity(p.t.Context(), p.tenant, id)
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(e.Content, &now))
	return out, now
}

// again runs an extraction in a mode and returns the tasks that completed in it.
func (p consultingEnv) again(id, mode string) (tasks []string, out extraction.Result, now executiveSummary) {
	p.t.Helper()
	session := p.trigger("entities.extract", map[string]any{"id": id, "mode": mode}).SessionID
	out, now = p.filled(session, id)
	for _, e := range p.eventsOf(session, jig.EventTaskCompleted) {
		var about extraction.TaskEvent
		require.NoError(p.t, json.Unmarshal(e.Data, &about))
		tasks = append(tasks, about.Task)
	}
	slices.Sort(tasks)
	return tasks, out, now
}

func (p consultingEnv) counts() map[string]int64 {
	p.t.Helper()
	list, err := p.db.EntityCounts(p.t.Context(), p.tenant)
	require.NoError(p.t, err)
	counts := map[string]int64{}
	for _, c := range list {
		counts[c.Type] = c.Count
	}
	return counts
}

func TestConsulting_SumsUpAnEngagement(t *testing.T) {
	t.Parallel()
	p := newConsultingEnv(t)
	p.load()
	require.Equal(t, map[string]int64{"engagement": 2, "pilot": 5, "assessment": 8}, p.counts(), "loading twice adds nothing")
	harbour := p.engagements["sample-harbour"]
	made := p.made(map[string]any{"engagement_id": harbour, "workspace": "west"})
	out, now := p.filled(made.SessionID, made.EntityID)
	require.Equal(t, 7, out.Counts.Total)
	require.Equal(t, 7, out.Counts.Completed, "%+v", out.Tasks)

	require.Equal(t, []string{harbour, "Harbour Mutual", "confidential"}, []string{now.Engagement, now.Situation.Client, now.Classification})
	require.Contains(t, now.Method, "without a model")
	require.Equal(t, []int{3, 2, 2}, []int{now.Outcomes.Pilots, now.Outcomes.Completed, now.Outcomes.Improved})
	for _, r := range now.Outcomes.Results {
		want := map[string]float64{"Reading of claim forms": -65.8, "Triage of water damage": -63.9, "Drafts of letters": -9.9}[r.Name]
		require.InDelta(t, want, r.Change, 0.001, r.Name)
		require.Equal(t, r.Name != "Drafts of letters", r.Improved, r.Name)
	}
	require.Len(t, now.Outcomes.Results, 3)
	require.InDelta(t, 3.3, now.Readiness.Mean, 0.001)
	require.Len(t, now.Readiness.Strongest, 2)
	require.Equal(t, now.Readiness.Weakest, now.Readiness.HighRisks)
	require.Contains(t, now.Narrative.Headline, "2 of 3 pilots")
	require.Len(t, now.Narrative.Recommendations, 4)
	require.Equal(t, now.Narrative.Claims, now.Citations)

	known := map[string]bool{harbour: true}
	for _, r := range now.Pilots {
		known[r.ID] = true
	}
	for _, r := range now.Assessments {
		known[r.ID] = true
	}
	require.Len(t, known, 8)
	cited := map[string]bool{}
	for _, claim := range now.Citations {
		require.NotEmpty(t, claim.SourceEntityIDs, claim.Text)
		for _, id := range claim.SourceEntityIDs {
			require.True(t, known[id], "%s: %s", claim.Text, id)
			cited[id] = true
		}
	}
	require.Equal(t, known, cited, "every record is in the text")
	in, err := p.db.InWorkspace(t.Context(), p.tenant, "west", []string{made.EntityID})
	require.NoError(t, err)
	require.Len(t, in, 1)
	p.publishes(made.EntityID, now)
}

// publishes checks that publishing needs two people, neither of whom asked for it.
func (p consultingEnv) publishes(id string, now executiveSummary) {
	p.t.Helper()
	asked := p.trigger("consulting.publishExecutiveSummary", map[string]any{"id": id, "name": "harbour"})
	pending := p.waiting(asked.SessionID).Pending
	require.Len(p.t, pending, 1)
	require.Equal(p.t, "file.write", pending[0].Tool)
	answer := func(by string) jig.Ruled {
		return p.decided(asked.SessionID, jig.Decision{Call: pending[0].Call, By: by, Answer: jig.AnswerApprove})
	}
	require.NotEqual(p.t, jig.DecisionAccepted, answer("tester").Outcome, "the requester may not approve")
	file := p.workdir("summaries", "harbour.md")
	answer("ana")
	require.Len(p.t, p.waiting(asked.SessionID).Pending, 1, "one approval is not enough")
	require.NoFileExists(p.t, file)
	answer("bo")
	published := p.end(asked.SessionID)
	require.True(p.t, published.Success, "%+v", published.Error)
	written, err := os.ReadFile(file)
	require.NoError(p.t, err)
	for _, said := range []string{"# " + now.Narrative.Headline, now.Narrative.Summary, now.Citations[1].Text, "without a model", "no advice on its own"} {
		require.Contains(p.t, string(written), said)
	}
	wrong := p.result("consulting.publishExecutiveSummary", map[string]any{"id": now.Pilots[0].ID})
	require.Equal(p.t, "not_a_summary", wrong.Error.Reason)
}

// A refresh reads the records again and writes a new text if they have changed. The text quotes documents literally.
func TestConsulting_IsRefreshed(t *testing.T) {
	t.Parallel()
	p := newConsultingEnv(t)
	northfield := p.engagements["sample-northfield"]
	made := p.made(map[string]any{"engagement_id": northfield})
	_, before := p.filled(made.SessionID, made.EntityID)
	require.Contains(t, before.Narrative.Summary, "Rounds by need has no result to compare yet (running).")
	tasks, _, now := p.again(made.EntityID, "refresh")
	require.Equal(t, []string{"assessments", "pilots", "situation"}, tasks, "the records are read again, and have not changed")
	require.Equal(t, before, now)

	long := strings.Repeat("The maker of the control system has been gone for four years. ", 60)
	added := p.result("consulting.recordAssessment", map[string]any{
		"engagement_id": northfield, "reference": "supply", "area": "suppliers", "score": 1, "risk": "high", "findings": long,
	})
	require.True(t, added.Success, "%+v", added.Error)
	var assessment spec.ThinResult
	require.NoError(t, json.Unmarshal(added.Data, &assessment))
	const said = "Findings of the audit: spare parts are bought second hand"
	text, err := p.db.PutText(t.Context(), entity.Text{
		Tenant: p.tenant, EntityID: assessment.EntityID, Title: "audit", MediaType: "text/plain", Body: said + ". Nobody knows for how long.",
	})
	require.NoError(t, err)
	tasks, out, now := p.again(made.EntityID, "refresh")
	require.Zero(t, out.Counts.Failed, "%+v", out.Tasks)
	require.Equal(t, []string{"assessments", "citations", "narrative", "pilots", "readiness", "situation"}, tasks, "the outcomes have not changed")
	require.Equal(t, 5, now.Readiness.Assessments)
	require.Equal(t, []string{assessment.EntityID}, now.Readiness.Weakest)
	require.Equal(t, strings.TrimSpace(long), strings.TrimSpace(now.Assessments[4].Findings), "long findings are read in full")
	quoted := slices.IndexFunc(now.Citations, func(c entity.TextClaim) bool { return c.Quote != "" })
	require.GreaterOrEqual(t, quoted, 0)
	require.Equal(t, said, now.Citations[quoted].Quote)
	require.Contains(t, now.Citations[quoted].SourceEntityIDs, text.ID)
}
