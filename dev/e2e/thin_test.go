package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/workflows"
)

// thinTypes are the entity types that the thin tools of these tests work with.
var thinTypes = map[string]string{
	"engagement.yaml": "kind: entity_type\nname: engagement\nfields:\n  - {name: client, type: text, required: true}\n",
	"pilot.yaml":      "kind: entity_type\nname: pilot\nfields:\n  - {name: client, type: text}\n",
	"review.yaml": "kind: entity_type\nname: review\n" + strings.Replace(sevenTasks, "fields:\n",
		"fields:\n  - {name: stage, type: enum, options: [new, old], default: new}\n  - {name: pilot, type: relation, target: pilot}\n", 1),
}

const thinReview = `kind: thin_tool
name: review.start
description: Starts the review of a module for an engagement.
input_schema:
  type: object
  required: [path]
  properties:
    path: {type: string}
    engagement_id: {type: string}
    pilot_id: {type: string}
    related_id: {type: string}
    workspace: {type: string}
    key: {type: string}
    stage: {type: string}
entities:
  - name: engagement
    id: "${input.?engagement_id.orValue('')}"
    type: engagement
    optional: true
    workspace: "${input.?workspace.orValue('')}"
    connected: {types: [pilot], depth: 2, at_least: 1}
requires:
  - check: "entities.engagement == null || entities.engagement.connected.all(c, c.title != 'closed')"
    code: pilot_closed
    message: "open a pilot of ${entities.engagement.title} first"
  - check: "entities.engagement == null || entities.engagement.content.client != 'nobody'"
    code: workspace_violation
creates:
  type: review
  title: "Review of ${input.path}"
  key: "${input.?key.orValue('')}"
  fields: {path: "${input.path}", stage: "${input.?stage.orValue(null)}", pilot: "${input.?pilot_id.orValue(null)}"}
  relations: {engagement: ["${entities.?engagement.?id.orValue('')}"], about: ["${input.?related_id.orValue('')}"]}
  workspaces: ["${input.?workspace.orValue('')}"]
starts: {input: {asked_by: "${principal.id}"}}
`

// thinToolEnv is a tenant with a thin tool.
type thinToolEnv struct{ entityEnv }

func newThinToolEnv(t *testing.T, env ...string) thinToolEnv {
	t.Helper()
	return thinToolEnvOf(newTenantEnv(t, env...))
}

func thinToolEnvOf(o tenantEnv) thinToolEnv {
	o.t.Helper()
	f := thinToolEnv{o.withEntityType(sevenTasks)}
	f.kind = "review"
	var files []map[string]string
	for name, body := range thinTypes {
		files = append(files, map[string]string{"path": name, "body": body})
	}
	f.put(append(files, map[string]string{"path": "review.start.yaml", "body": thinReview})...)
	return f
}

// put registers documents.
func (f thinToolEnv) put(files ...map[string]string) {
	f.t.Helper()
	result := f.trigger("catalog.put", map[string]any{"documents": files})
	require.Equal(f.t, jig.CallWaiting, result.Status, "%+v", result.Result)
	f.trusting(result.SessionID)
	done, err := f.WaitCall(f.t.Context(), f.tenant, result.SessionID)
	require.NoError(f.t, err)
	require.Equal(f.t, jig.CallSucceeded, done.Status, "%+v", done.Result)
}

// record creates an entity of a type.
func (f thinToolEnv) record(kind, title string, content map[string]any, change ...func(*entity.NewEntity)) string {
	f.t.Helper()
	if content == nil {
		content = map[string]any{}
	}
	raw, err := json.Marshal(content)
	require.NoError(f.t, err)
	n := entity.NewEntity{Entity: entity.Entity{Tenant: f.tenant, Type: kind, Title: title, Content: raw}}
	for _, c := range change {
		c(&n)
	}
	e, _, err := f.db.CreateEntity(f.t.Context(), n)
	require.NoError(f.t, err)
	return e.ID
}

var entityPermissions = []string{"entities.*.read", "entities.*.write"}

// call calls a tool with the given permissions, in a session with the given id or, if the id is empty, a new one.
func (f thinToolEnv) call(tool, id string, input map[string]any, permissions ...string) protocol.CallResult {
	f.t.Helper()
	in := callInput(tool, input)
	in.Tenant, in.Principal.Permissions = f.tenant, permissions
	result, err := f.Trigger(f.t.Context(), in, id)
	require.NoError(f.t, err)
	return result
}

// begun returns the result of a thin tool that succeeded.
func (f thinToolEnv) begun(result protocol.CallResult) spec.ThinResult {
	f.t.Helper()
	require.Equal(f.t, jig.CallSucceeded, result.Status, "%+v", result.Result)
	var out spec.ThinResult
	require.NoError(f.t, json.Unmarshal(result.Result.Data, &out))
	return out
}

func (f thinToolEnv) review(id string, input map[string]any) spec.ThinResult {
	f.t.Helper()
	return f.begun(f.call("review.start", id, input, entityPermissions...))
}

// reviews returns the number of entities that thin tools have created so far.
func (f thinToolEnv) reviews() int64 {
	f.t.Helper()
	counts, err := f.db.EntityCounts(f.t.Context(), f.tenant)
	require.NoError(f.t, err)
	for _, c := range counts {
		if c.Type == "review" {
			return c.Count
		}
	}
	return 0
}

const module = "github.com/jig-run/jig"

func TestThinTool_Acts(t *testing.T) {
	t.Parallel()
	f := newThinToolEnv(t, "JIG_ENTITY_URL=https://jig.example/{tenant}/{entity_id}?session={session_id}")
	pilot := f.record("pilot", "a pilot", nil)
	engagement := f.record("engagement", "Acme", map[string]any{"client": "acme"}, func(n *entity.NewEntity) {
		n.Relations, n.Workspaces = map[string][]string{"has": {pilot}}, []string{"west"}
	})
	result := f.call("review.start", "first", map[string]any{"path": module, "engagement_id": engagement, "workspace": "west", "pilot_id": pilot},
		entityPermissions...)
	out := f.begun(result)
	require.True(t, out.Created)
	require.Equal(t, jig.ChildSessionID(jig.SessionID(f.tenant, "first"), "1.1"), out.SessionID)
	require.Equal(t, "https://jig.example/"+f.tenant+"/"+out.EntityID+"?session="+out.SessionID, out.URL)
	require.Equal(t, "created review "+out.EntityID+"; its fields fill in session "+out.SessionID, result.Result.Summary)

	e, err := f.db.Entity(t.Context(), f.tenant, out.EntityID)
	require.NoError(t, err)
	require.Equal(t, []any{"Review of " + module, "review", out.SessionID, "1.1"}, []any{e.Title, e.Type, e.SessionID, e.Call})
	_, now := f.filled(out.SessionID, e)
	require.JSONEq(t, fmt.Sprintf(`{"path":%q,"stage":"new","pilot":%q,"host":"github.com","owner":"jig-run","short":"jig","depth":3,"public":true,
		"label":"jig-run jig","risk":"low"}`, module, pilot), string(now.Content))
	near, err := f.db.Connected(t.Context(), f.tenant, out.EntityID, 1, "")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{engagement, pilot}, near)
	in, err := f.db.InWorkspace(t.Context(), f.tenant, "west", []string{out.EntityID})
	require.NoError(t, err)
	require.Len(t, in, 1)
	child, err := f.db.Session(t.Context(), f.tenant, out.SessionID)
	require.NoError(t, err)
	require.Equal(t, []any{jig.SessionID(f.tenant, "first"), 1, "tester"}, []any{child.ParentID, child.Depth, child.Principal.ID})
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), out.SessionID, "")
	require.NoError(t, err)
	require.Equal(t, protocol.CallWorkflow, described.GetWorkflowExecutionInfo().GetType().GetName())
	_, err = shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(out.SessionID, "1.1"), "")
	require.Error(t, err, "an extraction that makes no calls needs no workflow of its own")

	// Repeating the request with the same id gives the same call.
	same := map[string]any{"path": module, "engagement_id": engagement, "workspace": "west", "pilot_id": pilot}
	require.Equal(t, out, f.review("first", same))
	require.EqualValues(t, 1, f.reviews())
}

// An extraction whose tasks call tools continues in a separate workflow.
func TestThinTool_TasksThatMakeCalls(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	f.put(map[string]string{"path": "note.yaml", "body": "kind: entity_type\nname: note\nfields:\n" +
		"  - {name: text, type: text, required: true}\n  - {name: size, type: number, task: size}\n  - {name: echo, type: text, task: echo}\n" +
		"  - {name: sent, type: text, task: sent}\ntasks:\n  - {id: size, compute: size(entity.content.text)}\n" +
		"  - {id: echo, depends_on: [size], tool: test.echo, input: {value: \"n${tasks.size}\"}, value: result.value}\n" +
		"  - {id: sent, depends_on: [echo], tool: test.write, input: {url: \"http://127.0.0.1:1\", name: x}, value: \"'sent'\"}\n"})
	f.put(map[string]string{"path": "note.start.yaml", "body": "kind: thin_tool\nname: note.start\ndescription: Starts a note.\n" +
		"input_schema: {type: object, required: [text], properties: {text: {type: string}}}\n" +
		"creates: {type: note, fields: {text: \"${input.text}\"}}\nstarts: {}\n"})
	out := f.begun(f.call("note.start", "", map[string]any{"text": "four"}, entityPermissions...))
	require.Equal(t, "1.1/sent", f.waiting(out.SessionID).Pending[0].Call)
	described, err := shared.temporal.DescribeWorkflowExecution(t.Context(), workflows.FrameWorkflowID(out.SessionID, "1.1"), "")
	require.NoError(t, err)
	require.Equal(t, protocol.ExtractionWorkflow, described.GetWorkflowExecutionInfo().GetType().GetName())
	f.signal(out.SessionID, protocol.SignalDeny, map[string]string{"call": "1.1/sent", "by": "ana"})
	filled, now := f.filled(out.SessionID, entity.Entity{ID: out.EntityID})
	require.Equal(t, []int{2, 1}, []int{filled.Counts.Completed, filled.Counts.Failed})
	require.JSONEq(t, `{"text":"four","size":4,"echo":"n4"}`, string(now.Content))
	require.Len(t, f.tasksOf(out.SessionID, jig.EventTaskCompleted), 2)
}

func TestThinTool_Key(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	input := map[string]any{"path": module, "key": "one"}
	first, other := f.review("", input), f.review("", map[string]any{"path": module})
	require.Equal(t, "/entities/"+first.EntityID, first.URL)
	require.NotEqual(t, first.EntityID, other.EntityID)
	again := f.review("", input)
	require.Equal(t, []any{first.EntityID, first.SessionID, false}, []any{again.EntityID, again.SessionID, again.Created})

	// If several calls with the same key run at the same time, one creates the entity and all succeed.
	const many = 8
	var calls sync.WaitGroup
	all := make([]spec.ThinResult, many)
	for i := range many {
		calls.Go(func() { all[i] = f.review("", map[string]any{"path": module, "key": "two"}) })
	}
	calls.Wait()
	created := 0
	for _, one := range all {
		require.Equal(t, []string{all[0].EntityID, all[0].SessionID}, []string{one.EntityID, one.SessionID})
		if one.Created {
			created++
		}
	}
	require.Equal(t, 1, created)
	require.EqualValues(t, 3, f.reviews())

	// A deleted entity does not block its key.
	require.NoError(t, f.db.DeleteEntity(t.Context(), f.tenant, first.EntityID, 0))
	second := f.review("", input)
	require.True(t, second.Created)
	require.NotEqual(t, first.EntityID, second.EntityID)
	require.Equal(t, second.EntityID, f.review("", input).EntityID)
}

func TestThinTool_Rejects(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	relate := func(id string) func(*entity.NewEntity) {
		return func(n *entity.NewEntity) { n.Relations = map[string][]string{"has": {id}} }
	}
	pilot, closed := f.record("pilot", "a pilot", nil), f.record("pilot", "closed", nil)
	alone := f.record("engagement", "alone", map[string]any{"client": "a"})
	good := f.record("engagement", "Acme", map[string]any{"client": "a"}, relate(pilot))
	shut := f.record("engagement", "Shut", map[string]any{"client": "a"}, relate(closed))
	nobody := f.record("engagement", "Nobody", map[string]any{"client": "nobody"}, relate(pilot))
	engaged := func(id string) map[string]any { return map[string]any{"path": module, "engagement_id": id} }
	with := func(id, name string, v any) map[string]any {
		in := engaged(id)
		in[name] = v
		return in
	}
	for name, c := range map[string]struct {
		input       map[string]any
		permissions []string
		code        jig.Code
		reason      string
		field       string
	}{
		"no such entity":    {engaged("ent_none"), entityPermissions, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id"},
		"another type":      {engaged(pilot), entityPermissions, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id"},
		"not readable":      {engaged(good), []string{"entities.review.write", "entities.review.read"}, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id"},
		"no permission":     {map[string]any{"path": module}, nil, jig.CodeNotFound, "", "creates.type"},
		"only readable":     {engaged(good), []string{"entities.*.read"}, jig.CodeNotPermitted, "", ""},
		"another workspace": {with(good, "workspace", "east"), entityPermissions, jig.CodeNotPermitted, jig.ReasonWorkspaceViolation, "/workspace"},
		"too few":           {engaged(alone), entityPermissions, jig.CodeConflict, jig.ReasonInsufficientGraph, "/engagement_id"},
		"pilots not readable": {
			engaged(good),
			[]string{"entities.engagement.read", "entities.review.write", "entities.review.read"},
			jig.CodeConflict, jig.ReasonInsufficientGraph, "/engagement_id",
		},
		"a reason of the author":          {engaged(shut), entityPermissions, jig.CodeInvalidInput, "pilot_closed", "requires[0]"},
		"a reason with its own code":      {engaged(nobody), entityPermissions, jig.CodeNotPermitted, jig.ReasonWorkspaceViolation, "requires[1]"},
		"a value that does not fit":       {with(good, "stage", "worn"), entityPermissions, jig.CodeInvalidInput, "", "creates.fields.stage"},
		"a relation to an unknown entity": {with(good, "related_id", "ent_none"), entityPermissions, jig.CodeNotFound, jig.ReasonEntityNotFound, "creates.relations"},
		"a field with an unknown entity":  {with(good, "pilot_id", "ent_none"), entityPermissions, jig.CodeNotFound, jig.ReasonEntityNotFound, "creates.relations"},
		"a field of the wrong type":       {with(good, "pilot_id", good), entityPermissions, jig.CodeInvalidInput, "", "creates.fields.pilot"},
		"a key that is too long":          {with(good, "key", strings.Repeat("k", 501)), entityPermissions, jig.CodeInvalidInput, "", "creates.key"},
	} {
		result := f.call("review.start", "", c.input, c.permissions...)
		require.Equal(t, jig.CallFailed, result.Status, name)
		e := result.Result.Error
		require.Equal(t, []any{c.code, c.reason}, []any{e.Code, e.Reason}, "%s: %+v", name, e)
		require.Contains(t, e.Field, c.field, "%s: %+v", name, e)
		require.NotEmpty(t, e.Hint, name)
	}
	require.Zero(t, f.reviews())
	result := f.call("review.start", "", engaged(shut), entityPermissions...)
	require.Equal(t, "open a pilot of Shut first", result.Result.Error.Message)
	in := callInput("review.start", map[string]any{"path": 7})
	in.Tenant = f.tenant + "-other"
	_, err := f.Trigger(t.Context(), in, "")
	require.Equal(t, jig.CodeToolNotFound, jig.CodeOf(err), "another tenant does not have the tool")
	in.Tenant = f.tenant
	_, err = f.Trigger(t.Context(), in, "")
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))

	// A thin tool that is sent along with a call was never registered, so nobody has approved it: it must not run.
	_, err = f.StartCall(t.Context(), client.CallInput{
		Tenant: f.tenant, Document: strings.Replace(thinReview, "review.start", "review.begin", 1), DocumentName: "t.yaml",
		Input: json.RawMessage(`{"path":"x"}`), Principal: jig.Principal{ID: "tester", Permissions: entityPermissions},
	}, "along")
	require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	_, err = f.WaitCall(t.Context(), f.tenant, "along")
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "nothing has started, so the id remains free")
	require.Zero(t, f.reviews())
}

// For ids of another tenant, in every argument that takes an id, the caller gets the same answer as for an id that does not exist. Only the
// audit of the caller's own tenant distinguishes the two.
func TestThinTool_EntitiesOfAnotherTenant(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	other := thinToolEnv{entityEnv{tenantEnv: tenantEnv{testEnv: f.testEnv, tenant: f.tenant + "-other"}, db: f.db}}
	theirs := map[string]string{
		"engagement_id": other.record("engagement", "secret", map[string]any{"client": "x"}),
		"pilot_id":      other.record("pilot", "secret", nil), "related_id": other.record("review", "secret", nil),
	}
	known := map[string]bool{}
	for argument, id := range theirs {
		known[id] = true
		nobodys := jig.NewEntityID("customer")
		told := f.call("review.start", "", map[string]any{"path": module, argument: id}, entityPermissions...).Result
		same := f.call("review.start", "", map[string]any{"path": module, argument: nobodys}, entityPermissions...).Result
		require.Equal(t, jig.CodeNotFound, told.Error.Code, "%s: %+v", argument, told.Error)
		seen, err := json.Marshal(told)
		require.NoError(t, err)
		expected, err := json.Marshal(same)
		require.NoError(t, err)
		require.JSONEq(t, strings.ReplaceAll(string(expected), nobodys, id), string(seen), argument)
		require.NotContains(t, string(seen), "secret")
	}
	violations := 0
	for _, row := range f.requireAudited(f.tenant) {
		if row.Kind != audit.AuditViolation {
			continue
		}
		violations++
		require.True(t, known[row.Subject])
		require.Equal(t, []string{jig.ReasonIDORViolation, "tester", "review.start", "1.1"}, []string{row.Reason, row.By, row.Tool, row.Call})
	}
	require.Equal(t, len(theirs), violations)
	rows, err := f.db.AuditRows(t.Context(), other.tenant, 0, 100)
	require.NoError(t, err)
	require.Empty(t, rows, "nothing is written to the other tenant's audit")
	require.Zero(t, f.reviews())
}

func TestThinTool_FromAgentsAndCompositions(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	f.put(map[string]string{"path": "review.both.yaml", "body": `kind: composition
name: review.both
description: Starts two reviews.
steps:
  - {id: one, tool: review.start, input: {path: github.com/a/one}}
  - {id: two, tool: review.start, input: {path: "github.com/a/two/${steps.one.data.entity_id}"}}
output: {one: "${steps.one.data}", two: "${steps.two.data}"}
`})
	result := f.call("review.both", "both", map[string]any{}, entityPermissions...)
	done, err := f.WaitCall(t.Context(), f.tenant, result.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, done.Status, "%+v", done.Result)
	var both struct{ One, Two spec.ThinResult }
	require.NoError(t, json.Unmarshal(done.Result.Data, &both))
	require.Equal(t, jig.ChildSessionID(jig.SessionID(f.tenant, "both"), "1.1/two"), both.Two.SessionID)
	f.filled(both.Two.SessionID, entity.Entity{ID: both.Two.EntityID})

	document := agent("[review.start]", "    - when: pass == 1\n      calls:\n        - {tool: review.start, input: {path: github.com/a/three}}\n    - answer: \"${last[0].data.entity_id}\"\n")
	started, err := f.Start(t.Context(), client.StartOptions{
		Tenant: f.tenant, Document: document, DocumentName: "probe.md", Principal: jig.Principal{ID: "tester", Permissions: entityPermissions},
	})
	require.NoError(t, err)
	view := f.finish(started.SessionID)
	require.Equal(t, jig.StatusCompleted, view.Status, "%+v", view)
	e, err := f.db.Entity(t.Context(), f.tenant, view.Answer)
	require.NoError(t, err, "the agent gets the id")
	require.Equal(t, jig.ChildSessionID(started.SessionID, "1.1"), e.SessionID)
	f.filled(e.SessionID, e)
}

// A session that started before its bundle was removed still has the tool, but calls of the tool fail.
func TestThinTool_OfARemovedBundle(t *testing.T) {
	t.Parallel()
	f := thinToolEnvOf(joinTenantEnv(t))
	body := []byte(strings.Replace(thinReview, "name: review.start\n", "name: review.kept\nbundle: reviews\napproval: always_ask\n", 1))
	x, err := spec.LoadExecution("review.kept.yaml", body)
	require.NoError(t, err)
	by := jig.Invocation{Tenant: f.tenant, Principal: jig.Principal{ID: "operator"}}
	manifest := bundle.Manifest{Name: "reviews", Version: "1.0.0"}
	_, err = f.db.InstallBundle(t.Context(), by, bundle.Install{Manifest: manifest, Hash: "0123456789abcdef", Documents: []bundle.StoredDocument{
		{DocumentVersion: bundle.DocumentVersion{Kind: "composition", Name: x.Name, Version: x.Version}, Body: body},
	}})
	require.NoError(t, err)
	begin := func(id string) {
		require.Equal(t, jig.CallWaiting, f.call("review.kept", id, map[string]any{"path": module}, entityPermissions...).Status)
	}
	begin("kept")
	begin("gone")
	f.trusting(jig.SessionID(f.tenant, "kept"))
	done, err := f.WaitCall(t.Context(), f.tenant, "kept")
	require.NoError(t, err)
	require.True(t, f.begun(done).Created)

	_, _, err = f.db.RemoveBundle(t.Context(), by, "reviews", "")
	require.NoError(t, err)
	gone := jig.SessionID(f.tenant, "gone")
	f.trusting(gone)
	f.foreseesNothing(gone, "not installed") // it would not do any more what was shown, so it asks again
	f.trusting(gone)
	done, err = f.WaitCall(t.Context(), f.tenant, "gone")
	require.NoError(t, err)
	require.Equal(t, jig.CallFailed, done.Status)
	require.Equal(t, []any{jig.CodeNotPermitted, jig.ReasonBundleNotInstalled}, []any{done.Result.Error.Code, done.Result.Error.Reason})
	require.EqualValues(t, 1, f.reviews())
}
