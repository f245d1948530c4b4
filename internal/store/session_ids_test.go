package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store/storetest"
)

// named returns a session that was started under a client's own id.
func named(tenant, id, digest string) jig.Session {
	return jig.Session{
		Tenant: tenant, ID: jig.SessionID(tenant, id), Agent: jig.Agent{Name: "tester"}, Principal: jig.Principal{ID: "ana"}, RequestDigest: digest,
	}
}

// creations returns the two ways to start a session.
func (w world) creations(t *testing.T) map[string]func(jig.Session) (jig.Session, error) {
	t.Helper()
	return map[string]func(jig.Session) (jig.Session, error){
		"agent": func(s jig.Session) (jig.Session, error) { return w.CreateSession(t.Context(), s) },
		"call": func(s jig.Session) (jig.Session, error) {
			return w.CreateCall(t.Context(), s, chat.Turn{Stop: chat.StopCalls, Calls: []jig.ToolCall{{Name: "todo.write"}}})
		},
	}
}

func TestCreateSession_SameIDWithAnotherRequestIsConflict(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	for name, create := range w.creations(t) {
		first, err := create(named(w.tenant, name, "d1"))
		require.NoError(t, err, name)
		again, err := create(named(w.tenant, name, "d1"))
		require.NoError(t, err, name)
		require.Equal(t, first.ID, again.ID, name)
		_, err = create(named(w.tenant, name, "d2"))
		requireCode(t, jig.CodeConflict, err)
		child := named(w.tenant, name, "d1")
		child.ParentID = "ses_other"
		_, err = create(child)
		requireCode(t, jig.CodeConflict, err)
	}
}

func TestCreateSession_DeletedSessionsNeverRunAgain(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"pruned", "erased"} {
		w, neighbour := newTenant(t), storetest.Tenant(t)
		for name, create := range w.creations(t) {
			s, err := create(named(w.tenant, name, "d1"))
			require.NoError(t, err)
			require.NoError(t, w.CancelSession(t.Context(), ledger.End{Tenant: w.tenant, SessionID: s.ID}))
			if way == "pruned" {
				gone, err := w.PruneTenant(t.Context(), w.tenant, time.Now().Add(time.Hour))
				require.NoError(t, err)
				require.EqualValues(t, 1, gone)
			} else {
				require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
			}
			for _, digest := range []string{"d1", "d2"} {
				_, err = create(named(w.tenant, name, digest))
				requireCode(t, jig.CodeConflict, err)
				require.Equal(t, jig.ReasonSessionDeleted, jig.AsError(err).Reason)
			}
			_, err = create(named(neighbour, name, "d1"))
			require.NoError(t, err, "another tenant may use the same id")
			_, err = create(named(w.tenant, name+"-2", "d1"))
			require.NoError(t, err)
		}
	}
}

func TestEraseTenant_TokensStayUsed(t *testing.T) {
	t.Parallel()
	w := newTenant(t)
	_, err := w.pauseTool(t, proof("once", "first"))
	require.NoError(t, err)
	require.NoError(t, w.EraseTenant(t.Context(), w.tenant))
	_, err = w.pauseTool(t, proof("once", "second"))
	requireCode(t, jig.CodeNotPermitted, err)
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		var n int
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from used_tokens").Scan(&n))
		require.Equal(t, 1, n)
	})
}
