package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// holding is a session with the result of a call and an artifact.
type holding struct{ inv, result, artifact string }

func keeps(t *testing.T, db *store.DB, tenant, id string, who jig.Principal) holding {
	t.Helper()
	ctx := t.Context()
	_, err := db.CreateSession(ctx, jig.Session{Tenant: tenant, ID: id, Agent: jig.Agent{Name: "tester"}, Principal: who})
	require.NoError(t, err)
	_, err = db.BeginPass(ctx, tenant, id, 1)
	require.NoError(t, err)
	result := jig.ToolResult{Success: true, Summary: "the secret of " + id}
	require.NoError(t, db.Admit(ctx, ledger.Admission{Tenant: tenant, SessionID: id, Pass: 1, Calls: []jig.Call{{
		ID: "1.1", Pass: 1, Ordinal: 1, Tool: "entities.get", Verdict: jig.VerdictRun, Status: jig.CallSucceeded, Result: &result,
	}}}))
	artifact, err := db.PutArtifact(ctx, tenant, id, "text/plain", []byte("the secret of "+id))
	require.NoError(t, err)
	return holding{id, id + "/1.1", artifact}
}

func TestValues_ShowsOwnValuesOnly(t *testing.T) {
	t.Parallel()
	db, tenant, other := storetest.New(t), storetest.Tenant(t), storetest.Tenant(t)
	values := activities.Values{Store: db}
	ana := jig.Principal{ID: "ana", Permissions: []string{"entities.deal.read"}}
	mine := keeps(t, db, tenant, jig.SessionID(tenant, "mine"), ana)
	caller := jig.Invocation{Tenant: tenant, Principal: ana, SessionID: mine.inv, CallID: "2.1"}
	read := func(id string) (string, error) {
		b, size, err := values.ReadArtifact(t.Context(), caller, id, 0, 1000)
		require.True(t, err != nil || int64(len(b)) == size)
		return string(b), err
	}
	readable := map[string]holding{
		"own":                  mine,
		"the same principal's": keeps(t, db, tenant, jig.NewSessionID(), ana),
		"the same principal's, with fewer rights": keeps(t, db, tenant, jig.NewSessionID(), jig.Principal{ID: "ana"}),
	}
	for name, k := range readable {
		for _, id := range []string{k.result, k.artifact} {
			text, err := read(id)
			require.NoError(t, err, name)
			require.Contains(t, text, "the secret of "+k.inv, name)
		}
	}
	require.Empty(t, violations(t, db, tenant))

	uploaded := jig.NewArtifactID()
	require.NoError(t, db.AppendArtifact(t.Context(), tenant, uploaded, 0, []byte("an upload")))
	foreign := map[string]holding{
		"another principal's":                    keeps(t, db, tenant, jig.NewSessionID(), jig.Principal{ID: "ben"}),
		"without an owner":                       keeps(t, db, tenant, jig.NewSessionID(), jig.Principal{}),
		"the same principal's, with more rights": keeps(t, db, tenant, jig.NewSessionID(), jig.Principal{ID: "ana", Permissions: []string{"entities.salary.read"}}),
		"another tenant's":                       keeps(t, db, other, jig.SessionID(other, "mine"), ana),
		"uploaded":                               {uploaded, uploaded, uploaded},
	}
	stolen := map[string]bool{}
	for name, k := range foreign {
		for _, id := range []string{k.result, k.artifact} {
			_, err := read(id)
			require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), name)
			require.Equal(t, unknown(id), jig.AsError(err).Error(), name)
			stolen[id] = true
		}
	}
	for _, id := range []string{"art_none", "ses_none/1.1", mine.inv + "/9.9", "x"} {
		_, err := read(id)
		require.Equal(t, unknown(id), jig.AsError(err).Error())
	}
	require.Equal(t, stolen, violations(t, db, tenant), "what is not there is no violation")

	caller.Principal.ID = "" // a caller without an identity has no other sessions
	_, err := read(foreign["without an owner"].result)
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
}

// unknown returns the error message for an unknown id.
func unknown(id string) string {
	return jig.Errorf(jig.CodeNotFound, "there is no artifact %q", id).WithField("id").Error()
}

// violations returns the subjects of the audit rows that record attempts to read values of others.
func violations(t *testing.T, db interface {
	AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error)
}, tenant string,
) map[string]bool {
	t.Helper()
	rows, err := db.AuditRows(t.Context(), tenant, 0, 100)
	require.NoError(t, err)
	subjects := map[string]bool{}
	for _, row := range rows {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(row.Entry), &e))
		require.Equal(t, audit.AuditViolation, e.Kind)
		require.Equal(t, jig.ReasonIDORViolation, e.Reason)
		subjects[e.Subject] = true
	}
	return subjects
}
