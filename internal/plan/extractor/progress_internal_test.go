package extractor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/spec"
)

// An announced session that does not exist counts as about to start, and later as lost.
func TestExtraction_ThatNeverStarted(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	ctx, tenant := t.Context(), "acme"
	body := []byte("kind: entity_type\nname: note\nfields: [{name: n, type: number, task: n}]\ntasks: [{id: n, compute: \"1\"}]\n")
	doc, problems := spec.Load("note.yaml", body)
	require.NoError(t, problems.OrNil())
	require.NoError(t, db.PutDocument(ctx, tenant, string(spec.KindEntityType), doc.Name, doc.Version, doc.Body))
	e, _, err := db.CreateEntity(ctx, entity.NewEntity{Entity: entity.Entity{
		Tenant: tenant, Type: "note", TypeVersion: doc.Version, SessionID: "ses_announced", Call: "1.1",
	}})
	require.NoError(t, err)

	p, after := NewProgress(db, NewTypes(db, nil)), time.Duration(0)
	p.now = func() time.Time { return e.CreatedAt.Add(after) }
	s, err := p.EntityStatus(ctx, tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, []any{jig.ExtractionRunning, "ses_announced"}, []any{s.Status, s.SessionID})

	after = startWithin
	s, err = p.EntityStatus(ctx, tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, []any{jig.ExtractionNone, "", ""}, []any{s.Status, s.SessionID, s.Call})
	require.Equal(t, "pending", s.Tasks["n"].Status)

	_, err = db.CreateSession(ctx, jig.Session{Tenant: tenant, ID: "ses_announced", Agent: jig.Agent{Name: "call"}, Status: jig.StatusWorking})
	require.NoError(t, err)
	s, err = p.EntityStatus(ctx, tenant, e.ID)
	require.NoError(t, err)
	require.Equal(t, []any{jig.ExtractionRunning, "ses_announced"}, []any{s.Status, s.SessionID}, "it started after all")
}
