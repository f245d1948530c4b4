package e2e_test

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
)

// pageTasks are tasks of which one makes calls, one depends on it, and one needs an approval.
const pageTasks = `fields:
  - {name: url, type: text, required: true}
  - {name: facts, type: number, task: facts}
  - {name: label, type: text, task: label}
tasks:
  - {id: facts, tool: test.keyed, input: {url: "${entity.content.url}", name: facts}, value: result.status}
  - {id: label, depends_on: [facts], compute: "string(tasks.facts) + input.?sign.orValue('!')"}
  - {id: publish, tool: test.write, input: {url: "${entity.content.url}", name: publish}, value: result.status}
  - {id: elsewhere, tool: test.keyed, input: {url: "${entity.content.url}", name: elsewhere}, value: result.status}
`

const pageDocuments = `kind: task
name: page.label
description: Labels a page.
input_schema: {type: object, required: [id], properties: {id: {type: string}, sign: {type: string}}}
task: label
entity: "${input.id}"
values: {sign: "${input.?sign.orValue('?')}"}
`

const pageRefresh = `kind: composition
name: page.refresh
description: Labels a page and has the facts looked up elsewhere in the meantime.
input_schema: {type: object, required: [id], properties: {id: {type: string}}}
steps:
  - {id: later, task: {task: elsewhere, entity: "${input.id}", wait: false}}
  - {id: label, task: {task: label, entity: "${input.id}"}}
output: {label: "${steps.label.data.value}", status: "${steps.label.data.status}", later: "${steps.later.data.session_id}"}
`

// entityCall returns a call of somebody who may read and write entities.
func (g entityEnv) entityCall(tool string, input any) protocol.CallInput {
	in := callInput(tool, input)
	in.Tenant, in.Principal.Permissions = g.tenant, entityPermissions
	return in
}

// called makes a call of somebody who may read and write entities and waits until it ends, or for a person.
func (g entityEnv) called(tool string, input any) protocol.CallResult {
	g.t.Helper()
	result, err := g.Trigger(g.t.Context(), g.entityCall(tool, input), "")
	require.NoError(g.t, err)
	return result
}

func (g entityEnv) pages() {
	g.t.Helper()
	g.install("label.yaml", pageDocuments, g.trusting)
	g.install("refresh.yaml", pageRefresh, g.trusting)
}

func TestTaskDocument_RunsOneTaskOfAnEntity(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(pageTasks), newReceiver(t)
	g.pages()
	e := g.entity(map[string]any{"url": r.URL})
	done := g.called("page.label", map[string]any{"id": e.ID})
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	var out extraction.TaskOutcome
	require.NoError(t, json.Unmarshal(done.Result.Data, &out))
	require.Equal(t, []any{e.ID, "label", extraction.TaskCompleted, `"204?"`}, []any{out.EntityID, out.Task, out.Status, string(out.Value)})
	require.Equal(t, []string{"facts", "label"}, g.tasksOf(done.SessionID, jig.EventTaskCompleted), "no other task runs")
	stored, err := g.db.Entity(t.Context(), g.tenant, e.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"url":"`+r.URL+`","facts":204,"label":"204?"}`, string(stored.Content))
	require.Equal(t, "label", stored.Provenance["label"].Task)

	// The next run keeps the value of the task that it depends on.
	done = g.called("page.label", map[string]any{"id": e.ID, "sign": "."})
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	require.Contains(t, string(done.Result.Data), `"204."`)
	requests, _ := r.count("facts")
	require.Equal(t, 1, requests)
}

func TestTaskSteps_WaitOrNot(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(pageTasks), newReceiver(t)
	g.pages()
	e := g.entity(map[string]any{"url": r.URL})
	done := g.called("page.refresh", map[string]any{"id": e.ID})
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	var out struct{ Label, Status, Later string }
	require.NoError(t, json.Unmarshal(done.Result.Data, &out))
	require.Equal(t, []string{"204!", "completed"}, []string{out.Label, out.Status})
	require.Equal(t, jig.ChildSessionID(done.SessionID, "1.1/later"), out.Later)
	later, err := g.WaitCall(t.Context(), g.tenant, out.Later)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, later.Status, "%+v", later.Result)
	require.Contains(t, string(later.Result.Data), `204`)
	requests, _ := r.count("elsewhere")
	require.Equal(t, 1, requests)

	// A task that waits for a person keeps the call waiting.
	waits := g.called("tasks.run", map[string]any{"entity": e.ID, "task": "publish"})
	require.Equal(t, "1.1/publish", g.waiting(waits.SessionID).Pending[0].Call)
	g.signal(waits.SessionID, protocol.SignalDeny, map[string]string{"call": "1.1/publish", "by": "ana", "reason": "not yet"})
	denied, err := g.WaitCall(t.Context(), g.tenant, waits.SessionID)
	require.NoError(t, err)
	require.Equal(t, []any{jig.CallFailed, jig.CodeDenied}, []any{denied.Status, denied.Result.Error.Code}, "%+v", denied.Result)
	require.Contains(t, denied.Result.Error.Message, "task publish failed")
}

func TestTaskCalls_AreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(pageTasks)
	e := g.entity(map[string]any{"url": "https://example.com"})
	for _, tool := range []string{"tasks.run", "tasks.start"} {
		wrong := g.called(tool, map[string]any{"entity": e.ID, "task": "lable"})
		require.Equal(t, jig.CallFailed, wrong.Status)
		require.Equal(t, []any{jig.CodeInvalidInput, "/task", `did you mean "label"?`},
			[]any{wrong.Result.Error.Code, wrong.Result.Error.Field, wrong.Result.Error.Hint})
		gone := g.called(tool, map[string]any{"entity": "ent_gone", "task": "label"})
		require.Equal(t, []any{jig.CodeNotFound, "/entity"}, []any{gone.Result.Error.Code, gone.Result.Error.Field})
		in := g.entityCall(tool, map[string]any{"entity": e.ID, "task": "label"})
		in.Principal.Permissions = []string{"entities.*.read"}
		reader, err := g.Trigger(t.Context(), in, "")
		require.NoError(t, err)
		require.Equal(t, jig.CodeNotPermitted, reader.Result.Error.Code, "%+v", reader.Result)
	}
}

// A task that an agent starts may call only what the agent may call, whether or not the agent waits for it.
func TestTasksOfAnAgent_MayUseOnlyItsTools(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(pageTasks), newReceiver(t)
	e := g.entity(map[string]any{"url": r.URL})
	for n, tools := range []string{"tasks.start", "tasks.start, test.keyed"} {
		started, err := g.Start(t.Context(), client.StartOptions{
			Tenant: g.tenant, DocumentName: "probe.md", Principal: jig.Principal{ID: "tester", Permissions: entityPermissions},
			Document: agent("["+tools+"]", "    - when: pass == 1\n      calls: [{tool: tasks.start, input: {entity: "+e.ID+", task: elsewhere}}]\n    - answer: done\n"),
		})
		require.NoError(t, err)
		require.Equal(t, jig.StatusCompleted, g.finish(started.SessionID).Status)
		done, err := g.WaitCall(t.Context(), g.tenant, jig.ChildSessionID(started.SessionID, "1.1"))
		require.NoError(t, err)
		requests, _ := r.count("elsewhere")
		require.Equal(t, n, requests)
		if n == 0 {
			require.Equal(t, []any{jig.CallFailed, jig.CodeNotPermitted}, []any{done.Status, done.Result.Error.Code}, "%+v", done.Result)
		} else {
			require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
		}
	}
}

// The catalog refuses a document whose task does not exist, and `jig validate` reports it with its line.
func TestTaskDocuments_OfUnknownTasksAreRefused(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(pageTasks)
	body := strings.Replace(pageDocuments, "task: label", "task: lable", 1)
	result := g.trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": "label.yaml", "body": body}}})
	g.trusting(result.SessionID)
	result, err := g.WaitCall(t.Context(), g.tenant, result.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallFailed, result.Status, "%+v", result.Result)
	require.Contains(t, result.Result.Error.Error(), `no entity type has a task "lable"`)
	g.put("label.yaml", body)
	valid := g.jig("validate", "label.yaml", "--tenant", g.tenant)
	require.Equal(t, 1, valid.code)
	require.Contains(t, valid.out, `label.yaml:5:7: task: no entity type has a task "lable" (did you mean "label"?)`)
	g.put("label.yaml", pageDocuments)
	valid = g.jig("validate", "label.yaml", "--tenant", g.tenant)
	require.Zero(t, valid.code, valid.out+valid.err)
}

// The worker is killed while tasks run. Each task runs once, waited for or not.
func TestChaos_KillWorkerInTasks(t *testing.T) { //nolint:paralleltest // it kills the worker of all its calls
	kills, seed := chaos(t, 40, 8, 3)
	random := rand.New(rand.NewPCG(uint64(seed), 12))
	g := newEntityEnv(t, pageTasks)
	g.pages()
	r := newReceiver(t)
	type run struct{ session, entity string }
	var runs []run
	for range kills {
		for range 3 {
			e := g.entity(map[string]any{"url": r.URL})
			started, err := g.StartCall(t.Context(), g.entityCall("page.refresh", map[string]any{"id": e.ID}), "")
			require.NoError(t, err)
			runs = append(runs, run{started.SessionID, e.ID})
		}
		eventually(t.Context(), time.Duration(random.IntN(400))*time.Millisecond, func() bool { return false })
		g.kill()
		g.start()
	}
	for _, one := range runs {
		done, err := g.WaitCall(t.Context(), g.tenant, one.session)
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
		require.Equal(t, []string{"facts", "label"}, g.tasksOf(one.session, jig.EventTaskCompleted))
		later := jig.ChildSessionID(one.session, "1.1/later")
		ended, err := g.WaitCall(t.Context(), g.tenant, later)
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, ended.Status, "%+v", ended.Result)
		require.Equal(t, []string{"elsewhere"}, g.tasksOf(later, jig.EventTaskCompleted))
		stored, err := g.db.Entity(t.Context(), g.tenant, one.entity)
		require.NoError(t, err)
		require.JSONEq(t, `{"url":"`+r.URL+`","facts":204,"label":"204!"}`, string(stored.Content))
	}
	for _, name := range []string{"facts", "elsewhere"} {
		_, keys := r.count(name)
		require.Equal(t, len(runs), keys, "each task has one idempotency key")
	}
}

// Follows the section about single tasks in docs/entities.md.
func TestEntitiesPage_SingleTask(t *testing.T) {
	t.Parallel()
	d := startEnv(t, "JIG_PERMISSIONS=*", "PATH="+filepath.Dir(shared.cli.path(t))+":/usr/local/bin:/usr/bin:/bin")
	page := func(language, with string) string {
		found := slices.DeleteFunc(blocks(t, "docs/entities.md", language), func(block string) bool { return !strings.Contains(block, with) })
		require.Len(t, found, 1, with)
		return found[0]
	}
	d.put("note.yaml", page("yaml", "name: note\n"))
	d.put("measure.yaml", page("yaml", "name: note.measure\n"))
	entity, outputs := "", map[string]string{}
	for command := range strings.Lines(page("sh", "measure.yaml")) {
		said := d.command("bash", "-c", strings.ReplaceAll(command, "ent_...", entity))
		require.Zero(t, said.code, "%s%s%s", command, said.out, said.err)
		outputs[strings.Join(strings.Fields(command)[1:3], " ")] = said.out
		if found := regexp.MustCompile(`ent_[a-z0-9-]+`).FindString(said.out); entity == "" {
			entity = found
		}
	}
	require.Len(t, outputs, 5)
	require.Contains(t, outputs["trigger note.measure"], `"value": "long"`)
	d.put("measure.yaml", strings.Replace(page("yaml", "name: note.measure\n"), "task: length", "task: lengths", 1))
	valid := d.jig("validate", "note.yaml", "measure.yaml")
	require.Equal(t, 1, valid.code)
	require.Contains(t, valid.out, `did you mean "length"?`)
}
