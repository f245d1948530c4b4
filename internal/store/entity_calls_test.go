package store_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/store/storetest"
)

// filling starts the extraction of an entity as a call of pass 1.
func (w world) filling(t *testing.T, ordinal int, entity string) plan.Frame {
	t.Helper()
	root := w.call(ordinal)
	root.Tool, root.Idempotent = "entities.extract", true
	w.admit(t, root)
	f := w.composition(root, w.reserve(t, root).Fence)
	f.Kind, f.Entity = "entity_type", entity
	begun, err := w.BeginFrame(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, entity, begun.Entity)
	return f
}

func TestBeginFrame_NamesItsCallInTheEntity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	promised := func(n *entity.NewEntity) { n.SessionID, n.Call, n.Key = "ses_promised", "1.1", "k" }
	e := w.record(t, `{"name":"a"}`, promised)
	require.Equal(t, "ses_promised 1.1", e.SessionID+" "+e.Call)
	again, created, err := w.CreateEntity(t.Context(), entity.NewEntity{
		Entity: entity.Entity{Tenant: w.tenant, Type: e.Type, SessionID: "ses_second", Call: "1.2"}, Key: "k",
	})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, e, again, "a second creation under the key finds the first entity and the call that fills it")

	read := func() string {
		found, err := w.Entity(t.Context(), w.tenant, e.ID)
		require.NoError(t, err)
		require.Equal(t, e.Revision, found.Revision, "starting an extraction does not change the revision")
		require.Equal(t, e.UpdatedAt, found.UpdatedAt)
		return found.SessionID + " " + found.Call
	}
	first := w.filling(t, 1, e.ID)
	require.Equal(t, w.session+" 1.1", read())
	require.Equal(t, e.ID, w.frameOf(t, "1.1").Entity)
	w.filling(t, 2, e.ID)
	require.Equal(t, w.session+" 1.2", read())
	first.Fence++
	_, err = w.BeginFrame(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, w.session+" 1.2", read(), "a later attempt at an earlier call is not the latest extraction")
	f, _ := w.frame(t, 3)
	require.Empty(t, f.Entity)
	w.filling(t, 4, "ent_none")

	other := world{DB: w.DB, tenant: storetest.Tenant(t)}
	other.session = storetest.Session(t, w.DB, other.tenant).ID
	other.begin(t, 1)
	other.filling(t, 1, e.ID)
	require.Equal(t, w.session+" 1.2", read(), "another tenant cannot fill it")

	patch := entity.Patch{Fields: map[string]json.RawMessage{"name": []byte(`"b"`)}}
	changed, err := w.UpdateEntity(t.Context(), w.tenant, e.ID, 0, patch)
	require.NoError(t, err)
	require.Equal(t, "1.2", changed.Call)
}

func TestEntityProgress_ReturnsTheLatestOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.record(t, `{"name":"a"}`, nil)
	found, ended, err := w.EntityProgress(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, e, found)
	require.Empty(t, ended)
	f, _ := w.frame(t, 1)
	m := w.moving(f)
	m.Entity = &entity.Change{
		ID: e.ID, Fields: map[string]json.RawMessage{"name": []byte(`"b"`)},
		Tasks: map[string]json.RawMessage{"n": []byte(`{"status":"completed"}`), "m": []byte(`{"status":"failed"}`)},
	}
	w.move(t, m)
	found, ended, err = w.EntityProgress(t.Context(), w.tenant, e.ID)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"b"}`, string(found.Content))
	require.Equal(t, m.Entity.Tasks, ended)
	require.NoError(t, w.DeleteEntity(t.Context(), w.tenant, e.ID, 0))
	_, _, err = w.EntityProgress(t.Context(), w.tenant, e.ID)
	requireCode(t, jig.CodeNotFound, err)
}

func TestRecordViolation_WritesOneRowForEachID(t *testing.T) {
	t.Parallel()
	w, victim := newWorld(t), newTenant(t)
	stolen := victim.record(t, `{}`, nil)
	w.running(t, func(c *jig.Call) { c.Tool = "review.start" })
	by := jig.Invocation{Tenant: w.tenant, SessionID: w.session, CallID: "1.1", Principal: jig.Principal{ID: "eve", Claimed: true}}
	errs := make([]error, 6)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() { errs[i] = w.RecordViolation(t.Context(), by, []string{stolen.ID, "ent_2", stolen.ID}) })
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, w.RecordViolation(t.Context(), by, nil))
	entries := w.entries(t)
	require.Len(t, entries, 2)
	want := audit.Entry{
		Kind: audit.AuditViolation, Tenant: w.tenant, At: entries[0].At, By: "eve", Claimed: true, SessionID: w.session, Call: "1.1",
		Tool: "review.start", Subject: stolen.ID, Reason: jig.ReasonIDORViolation,
	}
	require.Equal(t, want, entries[0])
	require.Equal(t, "ent_2", entries[1].Subject)

	long := "\x00" + strings.Repeat("x", 100_000)
	later := by
	later.CallID = "1.9"
	for range 2 {
		require.NoError(t, w.RecordViolation(t.Context(), later, []string{stolen.ID, long}))
	}
	entries = w.entries(t)
	require.Len(t, entries, 4, "another call is another attempt")
	require.Empty(t, entries[2].Tool)
	require.LessOrEqual(t, len(entries[3].Subject), 256)
	require.Empty(t, victim.entries(t), "the owner of the entity is not told")
	requireCode(t, jig.CodeInvalidInput, w.RecordViolation(t.Context(), jig.Invocation{Tenant: jig.GlobalTenant}, []string{"x"}))
	requireCode(t, jig.CodeInvalidInput, w.RecordViolation(t.Context(), jig.Invocation{}, []string{"x"}))
}
