package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/store/storetest"
)

// direct runs SQL in a transaction that is rolled back, as the role of the URL, with a tenant set unless it is "".
func direct(t *testing.T, url, tenant string, work func(pgx.Tx)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }() //nolint:errcheck // the connection is closed next
	if tenant != "" {
		_, err = tx.Exec(t.Context(), "select set_config('jig.tenant', $1, true)", tenant)
		require.NoError(t, err)
	}
	work(tx)
}

// column reads strings as the application role.
func (w world) column(t *testing.T, query string, args ...any) []string {
	t.Helper()
	var found []string
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		rows, err := tx.Query(t.Context(), query, args...)
		require.NoError(t, err)
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	})
	return found
}

// approvals lists the statuses of a call's approvals, oldest first.
func (w world) approvals(t *testing.T, c jig.Call) []string {
	t.Helper()
	return w.column(t, "select status from approvals where session_id = $1 and call_id = $2 order by id", w.session, c.ID)
}
