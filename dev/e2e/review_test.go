package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

// reviewEnv is a tenant with the bundle dependency-review, a work folder with a go.mod, and a made-up module cache.
type reviewEnv struct {
	tenantEnv
	db    *store.DB
	cache string
}

func newReviewEnv(t *testing.T, env ...string) reviewEnv {
	t.Helper()
	cache := t.TempDir()
	s := reviewEnv{tenantEnv: newTenantEnv(t, append([]string{"GOMODCACHE=" + cache, "JIG_PERMISSIONS=*"}, env...)...), cache: cache}
	var err error
	s.db, err = store.Open(t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(s.db.Close)
	var files []map[string]string
	folder := filepath.Join("..", "..", "bundles", "dependency-review")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		body, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		require.NoError(t, err)
		files = append(files, map[string]string{"path": entry.Name(), "body": string(body)})
	}
	installing := s.trigger("bundle.install", map[string]any{"files": files})
	require.Equal(t, jig.CallWaiting, installing.Status, "%+v", installing.Result)
	s.trusting(installing.SessionID)
	require.True(t, s.done(installing.SessionID).Success)
	return s
}

// module adds a module with the MIT license to the cache, and lists newer releases of it.
func (s reviewEnv) module(path, version string, newer ...string) {
	s.t.Helper()
	list, err := exec.CommandContext(s.t.Context(), "go", "env", "GOMODCACHE").Output()
	require.NoError(s.t, err)
	mit, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(list)), "github.com", "google", "jsonschema-go@v0.4.3", "LICENSE"))
	require.NoError(s.t, err)
	kept := filepath.Join(s.cache, "cache", "download", path, "@v")
	for name, body := range map[string]string{
		filepath.Join(s.cache, path+"@"+version, "LICENSE"): string(mit),
		filepath.Join(kept, "list"):                         strings.Join(append([]string{version}, newer...), "\n"),
		filepath.Join(kept, version+".info"):                fmt.Sprintf(`{"Version":%q,"Time":"2024-03-01T12:00:00Z"}`, version),
		filepath.Join(kept, version+".mod"):                 "module " + path + "\n",
	} {
		require.NoError(s.t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(s.t, os.WriteFile(name, []byte(body), 0o600))
	}
}

// requires writes the go.mod to review.
func (s reviewEnv) requires(lines ...string) {
	s.t.Helper()
	body := "module example.com/app\n\ngo 1.26\n\nrequire (\n\t" + strings.Join(lines, "\n\t") + "\n)\n\nreplace example.com/here => ./here\n"
	require.NoError(s.t, os.MkdirAll(s.workdir("app"), 0o755))
	require.NoError(s.t, os.WriteFile(s.workdir("app", "go.mod"), []byte(body), 0o600))
}

// begin starts a review.
func (s reviewEnv) begin(input map[string]any) (made spec.ThinResult) {
	s.t.Helper()
	input["module"] = "app"
	started := s.trigger("review.start", input)
	require.Equal(s.t, jig.CallSucceeded, started.Status, "%+v", started.Result)
	require.NoError(s.t, json.Unmarshal(started.Result.Data, &made))
	require.True(s.t, made.Created)
	return made
}

// done waits for a call's end and returns its whole result.
func (s reviewEnv) done(session string) jig.ToolResult {
	s.t.Helper()
	result, err := s.WaitCall(s.t.Context(), s.tenant, session)
	require.NoError(s.t, err)
	whole, err := s.WholeResult(s.t.Context(), s.tenant, result)
	require.NoError(s.t, err)
	require.NotNil(s.t, whole)
	return *whole
}

// content is the content of a review.
type content struct {
	Module, Summary, Method, Report string
	Direct, Indirect                int
	Modules, Concerns, Outdated     []string
	Local                           []string
	NotInspected                    []string       `json:"not_inspected"`
	ByRisk                          map[string]int `json:"by_risk"`
	Claims, Citations               []entity.TextClaim
}

// filled waits until the extraction of a review has ended.
func (s reviewEnv) filled(session, id string) (extraction.Result, content) {
	s.t.Helper()
	result := s.done(session)
	require.True(s.t, result.Success, "%+v", result.Error)
	var out extraction.Result
	require.NoError(s.t, json.Unmarshal(result.Data, &out))
	return out, s.read(id)
}

func (s reviewEnv) read(id string) (now content) {
	s.t.Helper()
	e, err := s.db.Entity(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(e.Content, &now))
	return now
}

// ran returns the names of the tasks that a session completed for one entity, and the number of tasks that it completed for other entities.
func (s reviewEnv) ran(session, id string) (tasks []string, others int) {
	s.t.Helper()
	for _, e := range s.eventsOf(session, jig.EventTaskCompleted) {
		var about extraction.TaskEvent
		require.NoError(s.t, json.Unmarshal(e.Data, &about))
		if about.EntityID == id {
			tasks = append(tasks, about.Task)
		} else {
			others++
		}
	}
	slices.Sort(tasks)
	return tasks, others
}

// failures returns the failed tasks and their errors.
func failures(out extraction.Result) map[string]string {
	list := map[string]string{}
	for id, task := range out.Tasks {
		if task.Error != nil {
			list[id] = task.Error.Error()
		}
	}
	return list
}

// publish asks for the report to be written and returns the call.
func (s reviewEnv) publish(id string) protocol.CallResult {
	s.t.Helper()
	return s.trigger("review.publish", map[string]any{"id": id, "path": "out/review.md"})
}

func TestReview_IsFilledByTasks(t *testing.T) {
	t.Parallel()
	s := newReviewEnv(t)
	s.module("example.com/a", "v1.0.0", "v1.1.0", "v1.2.0")
	s.module("example.com/b", "v1.5.0")
	s.requires("example.com/a v1.0.0", "example.com/b v1.5.0", "example.com/gone v0.1.0", "example.com/here v0.0.0", "example.com/deep v1.0.0 // indirect")
	made := s.begin(map[string]any{})
	out, now := s.filled(made.SessionID, made.EntityID)
	require.Empty(t, failures(out), "a missing module does not end the review")
	require.Equal(t, out.Counts.Total, out.Counts.Completed)
	require.Equal(t, "example.com/app", now.Module)
	require.Equal(t, 4, now.Direct)
	require.Equal(t, 1, now.Indirect)
	require.Equal(t, []string{"example.com/here"}, now.Local)
	require.Equal(t, map[string]int{"low": 2, "medium": 0, "high": 0, "unknown": 1}, now.ByRisk)
	require.Equal(t, []string{"example.com/a v1.0.0: 2 behind v1.2.0"}, now.Outdated)
	require.Equal(t, []string{"example.com/gone v0.1.0 is not in the module cache"}, now.NotInspected)
	require.Len(t, now.Modules, 3)
	require.Equal(t, now.Claims, now.Citations)
	require.Len(t, now.Claims, 4)
	require.Equal(t, now.Modules[:2], now.Claims[0].SourceEntityIDs)
	require.Equal(t, now.Modules[2:], now.Claims[3].SourceEntityIDs)
	require.Contains(t, now.Method, "without a model")
	for _, said := range []string{now.Summary, "| example.com/a | v1.0.0 | MIT | low | 2024-03-01 | 2 |", "## Not looked at\n\n- example.com/gone"} {
		require.Contains(t, now.Report, said)
	}
	gone, err := s.db.Entity(t.Context(), s.tenant, now.Modules[2])
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"example.com/gone","version":"v0.1.0","direct":true}`, string(gone.Content), "unknown facts are not guessed")

	asked := s.publish(made.EntityID)
	pending := s.waiting(asked.SessionID).Pending
	require.Equal(t, "file.write", pending[0].Tool)
	s.signal(asked.SessionID, protocol.SignalDeny, map[string]string{"call": pending[0].Call, "by": "ana", "reason": "not yet"})
	denied := s.done(asked.SessionID)
	require.Equal(t, jig.CodeDenied, denied.Error.Code)
	file := s.workdir("out", "review.md")
	require.NoFileExists(t, file)

	asked = s.publish(made.EntityID)
	s.signal(asked.SessionID, protocol.SignalApprove, map[string]string{"call": s.waiting(asked.SessionID).Pending[0].Call, "by": "ana"})
	published := s.done(asked.SessionID)
	require.True(t, published.Success, "%+v", published.Error)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, now.Report, string(written))

	wrong := s.done(s.publish(now.Modules[0]).SessionID)
	require.Equal(t, "not_a_review", wrong.Error.Reason)
}

// A refresh runs only the tasks that depend on something that has changed.
func TestReview_IsRefreshed(t *testing.T) {
	t.Parallel()
	s := newReviewEnv(t)
	s.module("example.com/a", "v1.0.0")
	s.module("example.com/a", "v1.1.0")
	s.module("example.com/b", "v1.5.0")
	s.requires("example.com/a v1.0.0", "example.com/b v1.5.0")
	made := s.begin(map[string]any{})
	_, before := s.filled(made.SessionID, made.EntityID)
	refresh := func() (tasks []string, others int, now content) {
		session := s.trigger("entities.extract", map[string]any{"id": made.EntityID, "mode": "refresh"}).SessionID
		out, now := s.filled(session, made.EntityID)
		require.Empty(t, failures(out))
		tasks, others = s.ran(session, made.EntityID)
		return tasks, others, now
	}
	tasks, others, now := refresh()
	require.Equal(t, []string{"list"}, tasks, "the file is read again, and has not changed")
	require.Zero(t, others)
	require.Equal(t, before, now)

	s.requires("example.com/a v1.0.0", "example.com/b v1.5.0", "example.com/deep v1.0.0 // indirect")
	tasks, others, now = refresh()
	require.Equal(t, []string{"direct", "go", "indirect", "list", "local", "module", "record", "report"}, tasks,
		"the tasks that read the list, and the tasks that depend on changed values: the report has the new number")
	require.Zero(t, others, "no module is inspected again")
	require.Equal(t, 1, now.Indirect)
	require.Equal(t, before.Claims, now.Claims)

	s.requires("example.com/a v1.1.0", "example.com/b v1.5.0", "example.com/deep v1.0.0 // indirect")
	tasks, others, now = refresh()
	require.Len(t, tasks, 17)
	require.NotContains(t, tasks, "method", "the way of writing has not changed")
	const ofModule = 9 // three tasks of the module are skipped: no archive says its size, and it is neither retracted nor deprecated
	require.Equal(t, ofModule, others, "only the new module is inspected")
	require.Equal(t, before.Modules[1], now.Modules[1])
	require.NotEqual(t, before.Modules[0], now.Modules[0])
	require.Equal(t, now.Modules, now.Citations[0].SourceEntityIDs)

	s.requires("example.com/a v1.1.0", "example.com/b v1.5.0", "example.com/gone v1.0.0")
	_, _, now = refresh()
	require.Len(t, now.NotInspected, 1)
	s.module("example.com/gone", "v1.0.0")
	s.requires("example.com/a v1.1.0", "example.com/b v1.5.0", "example.com/gone v1.0.0", "example.com/more v1.0.0 // indirect")
	_, _, now = refresh()
	require.Empty(t, now.NotInspected, "a module that could not be found is looked for again")
	require.Equal(t, 3, now.ByRisk["low"])
}

// A model's claims are checked: an id that is not one of the modules is named, and nothing is published.
func TestReview_RejectsAFabricatedSource(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	cited := "ent_made_up"
	server := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Last().Text)
		if len(asked) == 1 {
			return modeltest.Text("All is well with these modules.")
		}
		if len(asked) == 2 {
			return modeltest.Text(`{"summary": "All is well.", "claims": [
				{"text": "All is well.", "source_entity_ids": ["ent_made_up"]}, {"text": "Really.", "source_entity_ids": []}]}`)
		}
		return modeltest.Text(`{"summary": "As before.", "claims": [{"text": "As before.", "source_entity_ids": ["` + cited + `"]}]}`)
	})
	s := newReviewEnv(t, "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+server.OpenAIURL())
	s.module("example.com/a", "v1.0.0")
	s.requires("example.com/a v1.0.0")
	made := s.begin(map[string]any{"model": "openai/gpt-test"})
	out, now := s.filled(made.SessionID, made.EntityID)
	mu.Lock()
	require.Len(t, asked, 2, "after an answer that is not JSON, the model is asked once more")
	require.Contains(t, asked[1], "It was not accepted")
	mu.Unlock()
	require.Equal(t, "All is well.", now.Summary)
	require.Equal(t, "written by openai/gpt-test", now.Method)
	require.Equal(t, extraction.TaskFailed, out.Tasks["citations"].Status)
	problem := out.Tasks["citations"].Error
	require.Equal(t, extraction.ReasonCitations, problem.Reason)
	require.Contains(t, problem.Message, `"ent_made_up" is not connected`)
	require.Equal(t, []jig.Violation{
		{Pointer: "/0/source_entity_ids/0", Message: `"ent_made_up" is not connected to the entity`},
		{Pointer: "/1/source_entity_ids", Message: "the claim has no source"},
	}, problem.Violations)
	require.Equal(t, extraction.TaskSkipped, out.Tasks["report"].Status)
	require.Empty(t, now.Report)
	require.Nil(t, now.Citations)

	refused := s.done(s.publish(made.EntityID).SessionID)
	require.Equal(t, "citations_not_passed", refused.Error.Reason)
	require.Contains(t, refused.Error.Message, `/0/source_entity_ids/0 "ent_made_up" is not connected to the entity; /1/source_entity_ids the claim has no source`)
	require.NoFileExists(t, s.workdir("out", "review.md"))

	// The first review is connected to the second one through a shared module, but that does not make it a module.
	mu.Lock()
	cited = made.EntityID
	mu.Unlock()
	again := s.begin(map[string]any{"model": "openai/gpt-test"})
	out, now = s.filled(again.SessionID, again.EntityID)
	require.Contains(t, out.Tasks["citations"].Error.Message, `"`+made.EntityID+`" is connected to the entity, but not one of those`)
	mu.Lock()
	cited = now.Modules[0]
	mu.Unlock()
	out, now = s.filled(s.trigger("entities.extract", map[string]any{"id": again.EntityID}).SessionID, again.EntityID)
	require.Empty(t, failures(out))
	require.Equal(t, now.Modules, now.Citations[0].SourceEntityIDs)
	require.Contains(t, now.Report, "Method: written by openai/gpt-test")
}

// If the worker dies halfway, the review takes longer but completes.
func TestReview_ContinuesAfterAKill(t *testing.T) {
	t.Parallel()
	s := newReviewEnv(t)
	lines := make([]string, 12)
	for i := range lines {
		path := fmt.Sprintf("example.com/m%d", i)
		s.module(path, "v1.0.0")
		lines[i] = path + " v1.0.0"
	}
	s.requires(lines...)
	made := s.begin(map[string]any{})
	for range 3 {
		reached := len(s.eventsOf(made.SessionID, jig.EventTaskCompleted)) + 5 + rand.IntN(40)
		require.True(t, eventually(t.Context(), patience, func() bool {
			return len(s.eventsOf(made.SessionID, jig.EventTaskCompleted)) >= reached || len(s.eventsOf(made.SessionID, jig.EventSessionCompleted)) > 0
		}))
		s.kill()
		s.start()
	}
	out, now := s.filled(made.SessionID, made.EntityID)
	require.Equal(t, out.Counts.Total, out.Counts.Completed)
	require.Len(t, now.Modules, 12)
	require.Len(t, now.Citations, 2)
	require.NotEmpty(t, now.Report)
	seen := map[string]int{}
	for _, e := range s.eventsOf(made.SessionID, jig.EventTaskCompleted) {
		var about extraction.TaskEvent
		require.NoError(t, json.Unmarshal(e.Data, &about))
		seen[about.EntityID+" "+about.Task]++
	}
	for task, times := range seen {
		require.Equal(t, 1, times, task)
	}
	counts, err := s.db.EntityCounts(t.Context(), s.tenant)
	require.NoError(t, err)
	for _, c := range counts {
		require.Equal(t, map[string]int64{"module": 12, "review": 1}[c.Type], c.Count, c.Type)
	}
}
