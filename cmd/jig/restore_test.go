package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestMarkRestored_ListsMarkedCallsByTenant(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	first, second := storetest.Session(t, db, "acme").ID, storetest.Session(t, db, "zoo").ID
	for session, of := range map[string]string{first: "acme", second: "zoo"} {
		_, err := db.BeginPass(t.Context(), of, session, 1)
		require.NoError(t, err)
		require.NoError(t, db.Admit(t.Context(), ledger.Admission{Tenant: of, SessionID: session, Pass: 1, Calls: []jig.Call{
			{ID: "1.1", Pass: 1, Ordinal: 1, Tool: "shop.pay", Version: "v1", Write: true, Verdict: jig.VerdictRun, Digest: "d"},
			{ID: "1.2", Pass: 1, Ordinal: 2, Tool: "shop.tag", Version: "v1", Write: true, Idempotent: of == "acme", Verdict: jig.VerdictRun, Digest: "d"},
		}}))
	}
	command := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		environ := []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"), "JIG_DATABASE_URL=" + app}
		require.Equal(t, exitDone, run(t.Context(), append([]string{"mark-restored"}, args...), environ, &stdout, &stderr), stderr.String())
		return stdout.String()
	}
	dry := command("--dry-run")
	require.Regexp(t, `acme +`+first+` +1\.1 +shop\.pay +reserved +asks a person\n`, dry)
	require.Regexp(t, `acme +`+first+` +1\.2 +shop\.tag +reserved +may run again under its key\n`, dry)
	require.Regexp(t, `zoo +`+second+` +1\.2 +shop\.tag +reserved +asks a person\n`, dry)
	require.Contains(t, dry, "tenant acme: would mark 2: a person is asked about 1, and 1 may run again under their keys\n")
	require.Contains(t, command("--dry-run", "--output", "json"),
		`{"tenant":"acme","session_id":"`+first+`","call_id":"1.2","tool":"shop.tag","status":"reserved","asks":false}`)
	const done = "tenant acme: marked 2: a person is asked about 1, and 1 may run again under their keys\n" +
		"tenant zoo: marked 2: a person is asked about 2, and 0 may run again under their keys\n"
	require.Equal(t, done, command())
	require.Equal(t, "marked no calls\n", command())

	conn, err := pgx.Connect(t.Context(), owner)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "drop function jig_sessions_after")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	var stdout, stderr bytes.Buffer
	require.NotEqual(t, exitDone, run(t.Context(), []string{"mark-restored"}, []string{"JIG_DATABASE_URL=" + app}, &stdout, &stderr))
	require.Empty(t, stdout.String(), "it does not say that it marked nothing when it failed")
}
