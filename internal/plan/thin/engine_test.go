package thin_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// world is an in-memory implementation of Records and Starter.
type world struct {
	mu       sync.Mutex
	entities map[string]entity.Entity
	near     map[string][]entity.Entity
	holds    map[string]bool
	bundles  []string
	// down is the error of every read, and refuses the error of every start.
	down, refuses error
	// unseen lists ids that nobody may read.
	unseen map[string]bool

	made     map[string]entity.Entity
	created  []thin.Creation
	started  map[string]json.RawMessage
	starts   int
	trespass []string
}

func newWorld() *world {
	acme := entity.Entity{ID: "ent_acme", Type: "engagement", Title: "Acme", Content: json.RawMessage(`{"size":3}`)}
	pilot := entity.Entity{ID: "ent_pilot", Type: "pilot", Title: "a pilot"}
	return &world{
		entities: map[string]entity.Entity{"ent_acme": acme, "ent_pilot": pilot, "ent_empty": {ID: "ent_empty", Type: "engagement", Title: "Empty"}},
		near:     map[string][]entity.Entity{"ent_acme": {pilot}},
		holds:    map[string]bool{"west/ent_acme": true}, bundles: []string{"reviews"},
		unseen: map[string]bool{}, made: map[string]entity.Entity{}, started: map[string]json.RawMessage{},
	}
}

func (w *world) HasBundle(_ context.Context, _, bundle string) (bool, error) {
	for _, b := range w.bundles {
		if b == bundle {
			return true, w.down
		}
	}
	return false, w.down
}

func (w *world) Readable(_ context.Context, _ jig.Invocation, id string) (entity.Entity, bool, error) {
	e, ok := w.entities[id]
	return e, ok && !w.unseen[id], w.down
}

func (w *world) InWorkspace(_ context.Context, _, workspace, id string) (bool, error) {
	return w.holds[workspace+"/"+id], nil
}

func (w *world) Connected(_ context.Context, _ jig.Invocation, id string, which spec.ThinConnected) ([]entity.Entity, error) {
	var list []entity.Entity
	for _, e := range w.near[id] {
		if len(which.Types) == 0 || which.Types[0] == e.Type {
			list = append(list, e)
		}
	}
	return list, nil
}

func (w *world) Trespassed(_ context.Context, _ jig.Invocation, ids []string) error {
	w.trespass = append(w.trespass, ids...)
	return nil
}

func (w *world) Made(_ context.Context, _, key string) (entity.Entity, bool, error) {
	e, ok := w.made[key]
	return e, ok, nil
}

func (w *world) Create(_ context.Context, _ jig.Invocation, c thin.Creation) (entity.Entity, bool, []string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	for _, ids := range c.Relations {
		for _, id := range ids {
			if _, ok := w.entities[id]; !ok {
				missing = append(missing, id)
			}
		}
	}
	if len(missing) > 0 {
		return entity.Entity{}, false, missing, nil
	}
	if v, ok := c.Content["module"]; ok && string(v) == `"bad"` {
		return entity.Entity{}, false, nil, jig.Errorf(jig.CodeInvalidInput, "it is bad").WithField("creates.fields/module")
	}
	w.created = append(w.created, c)
	if e, ok := w.made[c.Key]; ok {
		return e, false, nil, nil
	}
	e := entity.Entity{ID: "ent_new" + c.Key, Type: c.Type, Title: c.Title, SessionID: c.SessionID, Call: c.Call}
	w.made[c.Key] = e
	return e, true, nil, nil
}

func (w *world) Begun(_ context.Context, _, session string) (bool, error) {
	_, ok := w.started[session]
	return ok, w.down
}

func (w *world) Start(_ context.Context, _ jig.Invocation, session string, input json.RawMessage) error {
	w.starts++
	if w.refuses != nil {
		return w.refuses
	}
	w.started[session] = input
	return nil
}

const document = `kind: thin_tool
name: review.start
description: Starts a review.
input_schema:
  type: object
  properties: {engagement_id: {}, module: {type: string}, workspace: {type: string}, key: {type: string}, other: {type: string}, more: {type: string}}
bundle: reviews
entities:
  - name: engagement
    id: "${input.engagement_id}"
    type: engagement
    workspace: "${input.?workspace.orValue('')}"
    connected: {types: [pilot], at_least: 1}
requires:
  - {check: "entities.engagement.content.size > 2", code: too_small, message: "${entities.engagement.title} has ${entities.engagement.content.size}"}
  - {check: "entities.engagement.connected.exists(c, c.type == 'pilot' && c.title != 'closed')", code: insufficient_graph}
  - {check: "input.module != 'forbidden'", code: bundle_not_installed}
  - {check: "input.module != 'spied'", code: idor_violation}
creates:
  type: review
  title: "Review of ${input.module}"
  key: "${input.?key.orValue('')}"
  fields: {module: "${input.module}", note: "${input.?note.orValue(null)}"}
  relations: {engagement: ["${entities.engagement.id}", "${input.?other.orValue('')}", "${input.?more.orValue('')}"]}
  workspaces: ["${input.?workspace.orValue('')}", fixed]
starts: {input: {by: "${principal.id}", at: "${string(now)}"}, fields: [summary]}
`

func invocation(attempt int) jig.Invocation {
	return jig.Invocation{
		Tenant: "acme", Principal: jig.Principal{ID: "ana", Permissions: []string{"*"}}, SessionID: "ses_1", CallID: "1.1",
		IdempotencyKey: "ses_1/1.1", Attempt: attempt,
	}
}

func (w *world) engine(t *testing.T) *thin.Engine {
	t.Helper()
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	return thin.NewEngine(thin.Options{
		Records: w, Starter: w, Tools: registry, URL: "https://x/{tenant}/{entity_id}#{session_id}",
		Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) },
	})
}

// tool loads a document.
func (w *world) tool(t *testing.T, body string) plan.Tool {
	t.Helper()
	tool, err := w.engine(t).Load("tool.yaml", []byte(body))
	require.NoError(t, err)
	return tool
}

// run runs a call of a document.
func (w *world) run(t *testing.T, body string, inv jig.Invocation, input map[string]any) (jig.ToolResult, spec.ThinResult) {
	t.Helper()
	if input == nil {
		input = map[string]any{}
	}
	raw, err := json.Marshal(input)
	require.NoError(t, err)
	result := w.tool(t, body).Run(t.Context(), raw, inv)
	var out spec.ThinResult
	if result.Success {
		require.NoError(t, json.Unmarshal(result.Data, &out))
	}
	return result, out
}

func engaged(more ...any) map[string]any {
	in := map[string]any{"engagement_id": "ent_acme", "module": "m"}
	for i := 0; i < len(more); i += 2 {
		in[more[i].(string)] = more[i+1] //nolint:errcheck // a test's literal
	}
	return in
}

func TestRun_CreatesAndStarts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	result, out := w.run(t, document, invocation(1), engaged("workspace", "west"))
	require.True(t, result.Success, "%+v", result.Error)
	session := jig.ChildSessionID("ses_1", "1.1")
	require.Equal(t, spec.ThinResult{EntityID: "ent_newses_1/1.1", URL: "https://x/acme/ent_newses_1%2F1.1#" + session, SessionID: session, Created: true}, out)
	require.Equal(t, []thin.Creation{{
		Type: "review", Title: "Review of m", Content: map[string]json.RawMessage{"module": json.RawMessage(`"m"`)},
		Relations: map[string][]string{"engagement": {"ent_acme"}}, Workspaces: []string{"west", "fixed"},
		Bundle: "reviews", Key: "ses_1/1.1", SessionID: session, Call: "1.1",
	}}, w.created)
	require.JSONEq(t, `{"id":"ent_newses_1/1.1","fields":["summary"],"input":{"by":"ana","at":"2026-03-01T00:00:00Z"}}`, string(w.started[session]))
	require.Equal(t, "created review "+out.EntityID+"; its fields fill in session "+session, result.Summary)
}

// If the context times out while a not-found answer is being delayed, the result is TIMEOUT and not CANCELED, so that the call can be retried.
func TestRun_TimesOutDuringADelayedAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // in the bubble's time, and shorter than the delay of the answer
		defer cancel()
		input, err := json.Marshal(engaged("engagement_id", "ent_none"))
		require.NoError(t, err)
		result := newWorld().tool(t, document).Run(ctx, input, invocation(1))
		require.Equal(t, jig.CodeTimeout, result.Error.Code)
	})
}

func TestRun_RejectsWithAReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input               map[string]any
		change              func(w *world)
		code                jig.Code
		reason, at, message string
		trespass            []string
	}{
		"no bundle": {engaged(), func(w *world) { w.bundles = nil }, jig.CodeNotPermitted, jig.ReasonBundleNotInstalled, "bundle", "belongs to the bundle reviews", nil},
		"no such entity": {
			engaged("engagement_id", "ent_none"), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id",
			`there is no engagement "ent_none"`,
			[]string{"ent_none"},
		},
		"another type": {
			engaged("engagement_id", "ent_pilot"), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id",
			`there is no engagement "ent_pilot"`,
			[]string{"ent_pilot"},
		},
		"not readable": {
			engaged(), func(w *world) { w.unseen["ent_acme"] = true }, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id",
			`there is no engagement "ent_acme"`,
			[]string{"ent_acme"},
		},
		"no id":             {map[string]any{"module": "m"}, nil, jig.CodeInvalidInput, "", "entities.engagement.id", "engagement_id", nil},
		"an empty id":       {engaged("engagement_id", ""), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "/engagement_id", `there is no engagement ""`, []string{""}},
		"an id of a number": {engaged("engagement_id", 7), nil, jig.CodeInvalidInput, "", "entities.engagement.id", "but must give a text", nil},
		"another workspace": {engaged("workspace", "east"), nil, jig.CodeNotPermitted, jig.ReasonWorkspaceViolation, "/workspace", `not in the workspace "east"`, nil},
		"too few": {
			engaged("engagement_id", "ent_empty"), nil, jig.CodeConflict, jig.ReasonInsufficientGraph, "/engagement_id",
			"0 entities of type pilot are connected with the engagement \"ent_empty\", but at least 1 must be", nil,
		},
		"the author's": {engaged(), func(w *world) {
			w.entities["ent_acme"] = entity.Entity{ID: "ent_acme", Type: "engagement", Title: "Acme", Content: json.RawMessage(`{"size":1}`)}
		}, jig.CodeInvalidInput, "too_small", "requires[0]", "Acme has 1", nil},
		"an expression that fails": {engaged(), func(w *world) {
			w.entities["ent_acme"] = entity.Entity{ID: "ent_acme", Type: "engagement", Title: "Acme"}
		}, jig.CodeInvalidInput, "", "requires[0].check", "size", nil},
		"a graph": {
			engaged(), func(w *world) { w.near["ent_acme"][0].Title = "closed" }, jig.CodeConflict, jig.ReasonInsufficientGraph, "requires[1]",
			"this does not hold", nil,
		},
		"a reason of ours":      {engaged("module", "forbidden"), nil, jig.CodeNotPermitted, jig.ReasonBundleNotInstalled, "requires[2]", "", nil},
		"not for callers":       {engaged("module", "spied"), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "requires[3]", "", nil},
		"a field that misfits":  {engaged("module", "bad"), nil, jig.CodeInvalidInput, "", "creates.fields.module", "it is bad", nil},
		"a relation to nowhere": {engaged("other", "ent_none"), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "creates.relations", `"ent_none"`, []string{"ent_none"}},
		"relations to nowhere": {
			engaged("other", "ent_none", "more", "ent_foreign"), nil, jig.CodeNotFound, jig.ReasonEntityNotFound, "creates.relations", `"ent_none"`,
			[]string{"ent_none", "ent_foreign"},
		},
		"a title that is long":    {engaged("module", strings.Repeat("x", 500)), nil, jig.CodeInvalidInput, "", "creates.title", "510 characters", nil},
		"a key that is long":      {engaged("key", strings.Repeat("x", 501)), nil, jig.CodeInvalidInput, "", "creates.key", "501 characters", nil},
		"a workspace with a name": {engaged("workspace", strings.Repeat("x", 129)), func(w *world) { w.holds[strings.Repeat("x", 129)+"/ent_acme"] = true }, jig.CodeInvalidInput, "", "creates.workspaces", "129", nil},
		"an unavailable database": {engaged(), func(w *world) { w.down = jig.Errorf(jig.CodeUnavailable, "away") }, jig.CodeUnavailable, "", "", "away", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if c.change != nil {
					c.change(w)
				}
				began, least := time.Now(), time.Duration(0)
				result, _ := w.run(t, document, invocation(1), c.input)
				if c.trespass != nil {
					least = 50 * time.Millisecond // the time must not reveal whether the id belongs to another tenant
				}
				require.Equal(t, least, time.Since(began), "only a delayed answer takes time in the bubble")
				require.False(t, result.Success)
				e := result.Error
				require.Equal(t, []any{c.code, c.reason, c.at}, []any{e.Code, e.Reason, e.Field}, "%+v", e)
				require.Contains(t, e.Message, c.message)
				if c.code != jig.CodeUnavailable {
					require.NotEmpty(t, e.Hint)
				}
				require.Equal(t, c.trespass, w.trespass)
				require.Empty(t, w.created)
				require.Empty(t, w.started)
			})
		})
	}
}

// An attempt after an interrupted one does the remaining work, even if the created entity now violates a requirement.
func TestRun_ResumesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "k"} {
		w := newWorld()
		w.refuses = jig.Errorf(jig.CodeUnavailable, "away")
		result, _ := w.run(t, document, invocation(1), engaged("key", key))
		require.Equal(t, jig.CodeUnavailable, result.Error.Code)
		require.Len(t, w.created, 1)

		w.refuses = nil
		w.near["ent_acme"][0].Title = "closed" // the second requirement no longer holds
		result, out := w.run(t, document, invocation(2), engaged("key", key))
		require.True(t, result.Success, "%+v", result.Error)
		require.True(t, out.Created)
		require.Len(t, w.created, 1)
		require.Len(t, w.started, 1)
		require.Contains(t, w.started, out.SessionID)

		_, again := w.run(t, document, invocation(3), engaged("key", key))
		require.Equal(t, out, again)
		require.Len(t, w.created, 1)
	}
}

func TestRun_CreatesOnceUnderAKey(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, first := w.run(t, document, invocation(1), engaged("key", "k"))
	require.True(t, first.Created)
	require.Equal(t, "review.start: k", w.created[0].Key)
	other := invocation(1)
	other.SessionID, other.IdempotencyKey = "ses_2", "ses_2/1.1"
	result, second := w.run(t, document, other, engaged("key", "k"))
	require.Equal(t, []any{first.EntityID, first.SessionID, false}, []any{second.EntityID, second.SessionID, second.Created})
	require.Contains(t, result.Summary, "existed already")
	require.Equal(t, 1, w.starts)

	// An entity whose extraction was never started is filled now.
	lonely := w.made["review.start: k"]
	lonely.SessionID = ""
	w.made["review.start: k"] = lonely
	_, third := w.run(t, document, other, engaged("key", "k"))
	require.False(t, third.Created)
	require.Equal(t, jig.ChildSessionID("ses_2", "1.1"), third.SessionID)
	require.Equal(t, 2, w.starts)
}

// If a call created an entity but could not start its extraction, the next call with the same key starts it, under the session id that the
// first call announced.
func TestRun_StartsAnExtractionThatAnotherCallCouldNot(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.refuses = jig.Errorf(jig.CodeUnavailable, "away")
	result, _ := w.run(t, document, invocation(1), engaged("key", "k"))
	require.Equal(t, jig.CodeUnavailable, result.Error.Code)
	announced := w.made["review.start: k"].SessionID
	require.NotEmpty(t, announced)

	w.refuses = nil
	other := invocation(1)
	other.SessionID, other.IdempotencyKey = "ses_2", "ses_2/1.1"
	result, out := w.run(t, document, other, engaged("key", "k"))
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, []any{announced, false}, []any{out.SessionID, out.Created})
	require.Contains(t, w.started, announced)
	require.Equal(t, 2, w.starts)
	w.run(t, document, other, engaged("key", "k"))
	require.Equal(t, 2, w.starts, "the session exists now")
}

// The expressions that are needed after the creation are evaluated before it, so that a call that fails on them has created nothing.
func TestRun_CreatesNothingIfALaterExpressionFails(t *testing.T) {
	t.Parallel()
	for at, body := range map[string]string{
		"starts.input": strings.Replace(document, `by: "${principal.id}"`, `by: "${input.other}"`, 1),
		"url":          document + "url: \"https://x/${entity.id}/${input.other}\"\n",
	} {
		w := newWorld()
		result, _ := w.run(t, body, invocation(1), engaged())
		require.False(t, result.Success, at)
		require.Equal(t, jig.CodeInvalidInput, result.Error.Code, at)
		require.Contains(t, result.Error.Field, at)
		require.Empty(t, w.created, at)
		require.Zero(t, w.starts, at)
		result, _ = w.run(t, body, invocation(1), engaged("other", "ent_pilot"))
		require.True(t, result.Success, "%s: %+v", at, result.Error)
	}
}

func TestRun_RespectsDepthAndCancellation(t *testing.T) {
	t.Parallel()
	w := newWorld()
	deep := invocation(1)
	deep.Depth = 5
	result, _ := w.run(t, document, deep, engaged())
	require.Equal(t, jig.CodeBudgetExhausted, result.Error.Code)
	require.Empty(t, w.created)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	result = w.tool(t, document).Run(over, json.RawMessage(`{"engagement_id":"ent_none","module":"m"}`), invocation(1))
	require.Equal(t, jig.CodeCanceled, result.Error.Code)
	require.True(t, result.Error.NotExecuted)
}

func TestRun_WithoutCreation(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const checks = "kind: thin_tool\nname: review.check\ndescription: Checks.\ninput_schema: {type: object, properties: {id: {type: string}}}\n" +
		"entities:\n  - {name: one, id: \"${input.?id.orValue(null)}\", type: engagement, optional: true}\n" +
		"requires:\n  - {check: \"entities.one != null\", code: nothing_given}\n"
	result, out := w.run(t, checks, invocation(1), map[string]any{"id": "ent_acme"})
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, spec.ThinResult{}, out)
	require.Contains(t, result.Summary, "review.check")
	result, _ = w.run(t, checks, invocation(1), nil)
	require.Equal(t, "nothing_given", result.Error.Reason)
}

// Errors say whether the call had an effect, because the ledger relies on it.
func TestRun_ErrorsSayWhetherAnythingWasCreated(t *testing.T) {
	t.Parallel()
	w := newWorld()
	result, _ := w.run(t, document, invocation(1), engaged("module", "forbidden"))
	require.True(t, result.Error.NotExecuted)
	deep := invocation(1)
	deep.Depth = 5
	result, _ = w.run(t, document, deep, engaged())
	require.Equal(t, jig.CodeBudgetExhausted, result.Error.Code)
	require.True(t, result.Error.NotExecuted)
	require.Empty(t, w.created)

	w.refuses = &jig.Error{Code: jig.CodeConflict, Message: "busy", NotExecuted: true}
	result, _ = w.run(t, document, invocation(1), engaged())
	require.Len(t, w.created, 1)
	require.False(t, result.Error.NoEffect(), "the entity exists: %+v", result.Error)
}
