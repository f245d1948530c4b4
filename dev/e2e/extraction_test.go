package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/workflows"
)

// entityEnv is a tenant with entities of one type.
type entityEnv struct {
	tenantEnv
	db *store.DB
	// kind is the name of the entity type.
	kind string
}

// newEntityEnv returns a tenant with an entity type. The document is given without its kind and name.
func newEntityEnv(t *testing.T, document string) entityEnv {
	t.Helper()
	return newTenantEnv(t).withEntityType(document)
}

func (o tenantEnv) withEntityType(document string) entityEnv {
	o.t.Helper()
	db, err := store.Open(o.t.Context(), shared.stack.DatabaseURL(), store.Options{})
	require.NoError(o.t, err)
	o.t.Cleanup(db.Close)
	g := entityEnv{tenantEnv: o, db: db, kind: "thing"}
	o.install("thing.yaml", "kind: entity_type\nname: thing\n"+document, o.trusting)
	return g
}

// entity creates an entity with the given content.
func (g entityEnv) entity(content map[string]any) entity.Entity {
	g.t.Helper()
	raw, err := json.Marshal(content)
	require.NoError(g.t, err)
	e, _, err := g.db.CreateEntity(g.t.Context(), entity.NewEntity{Entity: entity.Entity{Tenant: g.tenant, Type: g.kind, Title: "a thing", Content: raw}})
	require.NoError(g.t, err)
	return e
}

// extraction returns the call that fills an entity.
func (g entityEnv) extraction(input map[string]any) protocol.CallInput {
	in := callInput("entities.extract", input)
	in.Tenant, in.Principal.Permissions = g.tenant, []string{"entities.*.read", "entities.*.write"}
	return in
}

// extract starts to fill an entity and returns when the extraction has ended or waits for a person.
func (g entityEnv) extract(input map[string]any) string {
	g.t.Helper()
	result, err := g.Trigger(g.t.Context(), g.extraction(input), "")
	require.NoError(g.t, err)
	return result.SessionID
}

// filled waits for the end of an extraction and returns its result and the entity's state.
func (g entityEnv) filled(session string, e entity.Entity) (extraction.Result, entity.Entity) {
	g.t.Helper()
	var out extraction.Result
	done, err := g.WaitCall(g.t.Context(), g.tenant, session)
	require.NoError(g.t, err)
	require.Equal(g.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	whole, err := g.WholeResult(g.t.Context(), g.tenant, done)
	require.NoError(g.t, err)
	require.NoError(g.t, json.Unmarshal(whole.Data, &out))
	e, err = g.db.Entity(g.t.Context(), g.tenant, e.ID)
	require.NoError(g.t, err)
	return out, e
}

// tasksOf returns the tasks named by a session's events of a type, in order.
func (g entityEnv) tasksOf(session string, kind jig.EventType) []string {
	g.t.Helper()
	list := []string{}
	for _, e := range g.eventsOf(session, kind) {
		var about extraction.TaskEvent
		require.NoError(g.t, json.Unmarshal(e.Data, &about))
		list = append(list, about.Task)
	}
	return list
}

const sevenTasks = `fields:
  - {name: path, type: text, required: true}
  - {name: host, type: text, task: host}
  - {name: owner, type: text, task: owner}
  - {name: short, type: text, task: short}
  - {name: depth, type: number, integer: true, task: depth}
  - {name: public, type: boolean, task: public}
  - {name: label, type: text, task: label}
  - {name: risk, type: enum, options: [low, high], task: risk}
tasks:
  - {id: parts, compute: "entity.content.path.split('/')"}
  - {id: host, depends_on: [parts], compute: "tasks.parts[0]"}
  - {id: owner, depends_on: [parts], compute: "tasks.parts[1]"}
  - {id: short, depends_on: [parts], compute: "tasks.parts[2]"}
  - {id: depth, depends_on: [parts], compute: "size(tasks.parts)"}
  - {id: public, depends_on: [host], compute: "tasks.host == 'github.com'"}
  - {id: label, depends_on: [owner, short], compute: "tasks.owner + ' ' + tasks.short"}
  - {id: risk, depends_on: [public, depth], compute: "tasks.public && tasks.depth < 4 ? 'low' : 'high'"}
`

func TestExtraction_ComputesAnEntity(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(sevenTasks)
	e := g.entity(map[string]any{"path": "github.com/jig-run/jig"})
	session := g.extract(map[string]any{"id": e.ID})
	out, now := g.filled(session, e)
	require.Equal(t, extraction.Counts{Total: 8, Completed: 8}, out.Counts)
	require.JSONEq(t, `{"path":"github.com/jig-run/jig","host":"github.com","owner":"jig-run","short":"jig","depth":3,"public":true,
		"label":"jig-run jig","risk":"low"}`, string(now.Content))
	require.Len(t, now.Provenance, 7)
	require.Equal(t, "risk", now.Provenance["risk"].Task)
	require.NotEmpty(t, now.Provenance["risk"].InputHash)
	require.Len(t, g.tasksOf(session, jig.EventTaskCompleted), 8)
	require.Len(t, g.tasksOf(session, jig.EventEntityUpdated), 7)
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(session, "1.1"), "")
	require.NoError(t, err)
	require.Equal(t, protocol.ExtractionWorkflow, described.GetWorkflowExecutionInfo().GetType().GetName())

	for name, input := range map[string]map[string]any{
		"no such entity": {"id": "ent_none"}, "no such field": {"id": e.ID, "fields": []string{"colour"}}, "no task": {"id": e.ID, "fields": []string{"path"}},
	} {
		done, err := g.WaitCall(t.Context(), g.tenant, g.extract(input))
		require.NoError(t, err)
		require.Equal(t, jig.CallFailed, done.Status, name)
		require.Contains(t, []jig.Code{jig.CodeNotFound, jig.CodeInvalidInput}, done.Result.Error.Code, name)
	}
	denied := g.trigger("entities.extract", map[string]any{"id": e.ID})
	done, err := g.WaitCall(t.Context(), g.tenant, denied.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CodeNotFound, done.Result.Error.Code, "without the permission the entity does not exist")
	stolen := entityEnv{tenantEnv: tenantEnv{testEnv: g.testEnv, tenant: g.tenant + "x"}, db: g.db}
	done, err = g.WaitCall(t.Context(), stolen.tenant, stolen.extract(map[string]any{"id": e.ID}))
	require.NoError(t, err)
	require.Equal(t, jig.CodeNotFound, done.Result.Error.Code, "for another tenant the entity does not exist")
}

// A number that a double cannot represent does not affect the results of other tasks.
func TestExtraction_OfLargeNumbers(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(`fields:
  - {name: name, type: text, required: true}
  - {name: most, type: number, task: most}
  - {name: size, type: number, task: size}
tasks:
  - {id: most, compute: "9223372036854775807", output_schema: {type: integer}}
  - {id: size, compute: "size(entity.content.name)"}
`)
	e := g.entity(map[string]any{"name": "four"})
	out, now := g.filled(g.extract(map[string]any{"id": e.ID}), e)
	require.Equal(t, extraction.Counts{Total: 2, Completed: 2}, out.Counts)
	require.Equal(t, "9223372036854775807", string(out.Values["most"]))
	require.Contains(t, strings.ReplaceAll(string(now.Content), " ", ""), `"most":9223372036854775807`)
}

const graphTasks = `fields:
  - {name: url, type: text, required: true}
  - {name: name, type: text, required: true}
  - {name: facts, type: number, task: facts}
  - {name: note, type: text, task: note}
  - {name: published, type: number, task: publish}
  - {name: link, type: text, task: link}
  - {name: broken, type: text, task: broken}
  - {name: after, type: text, task: after}
  - {name: loud, type: text, task: loud}
tasks:
  - id: facts
    tool: test.keyed
    input: {url: "${entity.content.url}", name: "${entity.content.name}-facts"}
    value: result.status
  - {id: note, depends_on: [facts], tool: test.echo, input: {value: "status ${tasks.facts}"}, value: result.value}
  - id: publish
    depends_on: [note]
    tool: test.write
    input: {url: "${entity.content.url}", name: "${entity.content.name}-publish"}
    value: result.status
  - {id: link, depends_on: [publish], compute: "'published ' + string(tasks.publish)"}
  - {id: broken, tool: test.fail, input: {name: x}, value: "'never'"}
  - {id: after, depends_on: [broken], compute: tasks.broken}
  - {id: loud, when: "entity.content.name == 'loud'", compute: "'loud'"}
`

func TestExtraction_RunsAGraph(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(graphTasks), newReceiver(t)
	e := g.entity(map[string]any{"url": r.URL, "name": "n"})
	session := g.extract(map[string]any{"id": e.ID})
	require.Equal(t, "1.1/publish", g.waiting(session).Pending[0].Call)
	require.True(t, eventually(t.Context(), patience, func() bool {
		value, err := shared.temporal.QueryWorkflow(t.Context(), workflows.FrameWorkflowID(session, "1.1"), "", "__temporal_workflow_metadata")
		var about sdkpb.WorkflowMetadata
		return err == nil && value.Get(&about) == nil && strings.Contains(about.GetCurrentDetails(), "Running: `publish`") &&
			strings.Contains(about.GetCurrentDetails(), "**extraction**")
	}), "the page of the workflow shows the tasks under way")
	half, err := g.db.Entity(t.Context(), g.tenant, e.ID)
	require.NoError(t, err)
	require.Contains(t, string(half.Content), `"note": "status 204"`, "values are visible before the end")
	g.signal(session, protocol.SignalDeny, map[string]string{"call": "1.1/publish", "by": "ana"})

	out, now := g.filled(session, e)
	require.Equal(t, extraction.Counts{Total: 7, Completed: 2, Failed: 2, Skipped: 3}, out.Counts)
	require.Equal(t, jig.CodeDenied, out.Tasks["publish"].Error.Code)
	require.Equal(t, "publish", out.Tasks["link"].Because)
	require.Equal(t, jig.CodeConflict, out.Tasks["broken"].Error.Code)
	require.Equal(t, "broken", out.Tasks["after"].Because)
	require.Equal(t, "condition", out.Tasks["loud"].Because)
	require.Equal(t, session+"/1.1/facts", now.Provenance["facts"].Call)
	require.Equal(t, session+"/1.1/facts", out.Provenance["facts"].Call, "the result names the call as the entity does")
	require.NotContains(t, string(now.Content), "published")
	require.ElementsMatch(t, []string{"publish", "broken"}, g.tasksOf(session, jig.EventTaskFailed))

	session = g.extract(map[string]any{"id": e.ID, "mode": "retry"})
	require.Equal(t, "1.1/publish", g.waiting(session).Pending[0].Call)
	g.signal(session, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
	out, now = g.filled(session, e)
	require.Equal(t, extraction.Counts{Total: 7, Completed: 2, Kept: 2, Failed: 1, Skipped: 2}, out.Counts)
	require.Contains(t, string(now.Content), `"link": "published 204"`)
	for _, name := range []string{"n-facts", "n-publish"} {
		requests, _ := r.count(name)
		require.Equal(t, 1, requests, name)
	}

	// When it is canceled halfway, its status says so, and the values found so far are kept.
	other := g.entity(map[string]any{"url": r.URL, "name": "c"})
	session = g.extract(map[string]any{"id": other.ID})
	g.waiting(session)
	require.NoError(t, g.Cancel(t.Context(), g.tenant, session))
	require.Equal(t, jig.StatusCanceled, g.finish(session).Status)
	other, err = g.db.Entity(t.Context(), g.tenant, other.ID)
	require.NoError(t, err)
	require.Contains(t, string(other.Content), `"facts": 204`)
	session = g.extract(map[string]any{"id": other.ID, "mode": "retry", "fields": []string{"link"}})
	g.waiting(session)
	g.signal(session, protocol.SignalApprove, map[string]string{"call": "1.1/publish", "by": "ana"})
	out, _ = g.filled(session, other)
	require.Equal(t, extraction.Counts{Total: 4, Completed: 2, Kept: 2}, out.Counts)
}

const sourcedTasks = `fields:
  - {name: url, type: text, required: true}
  - {name: source, type: text}
  - {name: facts, type: text, task: facts}
  - {name: digest, type: number, task: digest}
  - {name: beside, type: number, task: beside}
tasks:
  - id: facts
    tool: test.keyed
    input: {url: "${entity.content.url}", name: facts}
    value: "string(now)"
    sources: "[entity.content.source]"
  - {id: text, depends_on: [facts], compute: "'as of ' + tasks.facts"}
  - {id: digest, depends_on: [text], tool: test.keyed, input: {url: "${entity.content.url}", name: digest, key: "${tasks.text}"}, value: result.status}
  - {id: beside, tool: test.keyed, input: {url: "${entity.content.url}", name: beside}, value: result.status}
`

func TestExtraction_Refreshes(t *testing.T) {
	t.Parallel()
	g, r := joinTenantEnv(t).withEntityType(sourcedTasks), newReceiver(t)
	e := g.entity(map[string]any{"url": r.URL})
	source, err := g.db.PutText(t.Context(), entity.Text{Tenant: g.tenant, EntityID: e.ID, Body: "as it was"})
	require.NoError(t, err)
	_, err = g.db.UpdateEntity(t.Context(), g.tenant, e.ID, 0, entity.Patch{Fields: map[string]json.RawMessage{"source": []byte(`"` + source.ID + `"`)}})
	require.NoError(t, err)
	run := func(mode string, facts, digest, beside int) extraction.Result {
		out, _ := g.filled(g.extract(map[string]any{"id": e.ID, "mode": mode}), e)
		for name, want := range map[string]int{"facts": facts, "digest": digest, "beside": beside} {
			requests, _ := r.count(name)
			require.Equal(t, want, requests, "%s after %s", name, mode)
		}
		return out
	}
	require.Equal(t, []string{source.ID}, run("run", 1, 1, 1).Provenance["facts"].Sources)
	require.Equal(t, extraction.Counts{Total: 4, Kept: 4}, run("refresh", 1, 1, 1).Counts)
	source.Body = "as it is"
	_, err = g.db.PutText(t.Context(), source)
	require.NoError(t, err)
	require.Equal(t, extraction.Counts{Total: 4, Completed: 3, Kept: 1}, run("refresh", 2, 2, 1).Counts)
	require.Equal(t, extraction.Counts{Total: 4, Kept: 4}, run("refresh", 2, 2, 1).Counts)
	_, err = g.db.UpdateEntity(t.Context(), g.tenant, e.ID, 0, entity.Patch{Fields: map[string]json.RawMessage{"beside": []byte("7")}})
	require.NoError(t, err)
	require.Equal(t, extraction.Counts{Total: 4, Completed: 1, Kept: 3}, run("refresh", 2, 2, 2).Counts, "a value that somebody else wrote does not count as the task's value")
}

const citingTasks = `fields:
  - {name: text, type: object, fields: [{name: claims, type: array, items: {type: object, fields: [
      {name: text, type: text}, {name: source_entity_ids, type: array, items: {type: text}}, {name: quote, type: text}]}}]}
  - {name: claims, type: array, task: claims, items: {type: object, fields: [
      {name: text, type: text}, {name: source_entity_ids, type: array, items: {type: text}}, {name: quote, type: text}]}}
tasks:
  - {id: claims, compute: entity.content.text.claims}
  - {id: check, citations: claims}
`

func TestExtraction_RejectsCitations(t *testing.T) {
	t.Parallel()
	g := joinTenantEnv(t).withEntityType(citingTasks)
	near := g.entity(map[string]any{})
	text, err := g.db.PutText(t.Context(), entity.Text{Tenant: g.tenant, EntityID: near.ID, Body: "The pump was replaced in May."})
	require.NoError(t, err)
	far := g.entity(map[string]any{})
	check := func(claims ...entity.TextClaim) extraction.TaskResult {
		e := g.entity(map[string]any{"text": map[string]any{"claims": claims}})
		require.NoError(t, g.db.Relate(t.Context(), g.tenant, entity.Relation{From: e.ID, Name: "about", To: near.ID}))
		out, _ := g.filled(g.extract(map[string]any{"id": e.ID}), e)
		require.Equal(t, extraction.TaskCompleted, out.Tasks["claims"].Status, "%+v", out.Tasks)
		return out.Tasks["check"]
	}
	claim := func(quote string, ids ...string) entity.TextClaim {
		return entity.TextClaim{Text: "it is new", SourceEntityIDs: append([]string{}, ids...), Quote: quote}
	}
	require.Equal(t, extraction.TaskCompleted, check(claim("replaced in  May", text.ID), claim("The pump", near.ID), claim("", near.ID)).Status)
	wrong := check(claim("", near.ID), claim("", far.ID), claim(""), claim("replaced in June", text.ID), claim("", "ent_made_up"))
	require.Equal(t, extraction.TaskFailed, wrong.Status)
	require.Equal(t, extraction.ReasonCitations, wrong.Error.Reason)
	var places []string
	for _, v := range wrong.Error.Violations {
		places = append(places, v.Pointer[:2])
	}
	require.Equal(t, []string{"/1", "/2", "/3", "/4"}, places, "%+v", wrong.Error.Violations)
}

// wideTasks returns an entity type with many tasks: a layer of calls, one more call after each, and a sum.
func wideTasks(wide int) string {
	var b strings.Builder
	b.WriteString("max_parallel: 20\nfields:\n  - {name: url, type: text}\n  - {name: total, type: number, task: total}\ntasks:\n")
	var ids, sum []string
	for i := range wide {
		fmt.Fprintf(&b, "  - {id: a%d, tool: test.keyed, input: {url: \"${entity.content.url}\", name: a%d, before: 100, after: 200}, value: result.status}\n", i, i)
		fmt.Fprintf(&b, "  - {id: b%d, depends_on: [a%d], tool: test.quick, input: {value: \"${string(tasks.a%d)}\"}, value: size(result.value)}\n", i, i, i)
		ids, sum = append(ids, fmt.Sprintf("b%d", i)), append(sum, fmt.Sprintf("tasks.b%d", i))
	}
	fmt.Fprintf(&b, "  - {id: total, depends_on: [%s], compute: %q}\n", strings.Join(ids, ", "), strings.Join(sum, " + "))
	return b.String()
}

// TestChaos_Extraction kills the worker at random moments of a wide extraction that takes several workflow runs. Each task must end once,
// and each effect must happen under one key.
func TestChaos_Extraction(t *testing.T) { //nolint:paralleltest // it kills the worker of all its calls
	kills, seed := chaos(t, 40, 10, 3)
	random := rand.New(rand.NewPCG(uint64(seed), 5))
	const wide = 80
	g, r := newEntityEnv(t, wideTasks(wide)), newReceiver(t)
	e := g.entity(map[string]any{"url": r.URL})
	session := newID(g.tenant)
	_, err := g.StartCall(t.Context(), g.extraction(map[string]any{"id": e.ID}), session)
	require.NoError(t, err)
	hits := 0
	for range kills {
		pause := time.Duration(random.IntN(1500)) * time.Millisecond
		over := eventually(t.Context(), pause, func() bool {
			view, err := g.Status(t.Context(), g.tenant, session)
			return err == nil && view.Status.Final()
		})
		if over {
			break
		}
		g.kill()
		g.start()
		hits++
	}
	require.Positive(t, hits, "the extraction ended before the first kill")
	out, now := g.filled(session, e)
	require.Equal(t, extraction.Counts{Total: 2*wide + 1, Completed: 2*wide + 1}, out.Counts)
	require.Contains(t, string(now.Content), fmt.Sprintf(`"total": %d`, 3*wide))
	require.Equal(t, int64(2), now.Revision, "the entity changed once")
	for i := range wide {
		_, keys := r.count(fmt.Sprintf("a%d", i))
		require.Equal(t, 1, keys, "a%d", i)
	}
	require.Len(t, g.tasksOf(session, jig.EventTaskStarted), 2*wide+1)
	require.Len(t, g.tasksOf(session, jig.EventTaskCompleted), 2*wide+1)
	require.Greater(t, len(g.runs(workflows.FrameWorkflowID(session, "1.1"))), 1)
}
