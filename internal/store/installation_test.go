package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

func TestInstallation_IsCreatedOnceAndCanBeOverridden(t *testing.T) {
	t.Parallel()
	owner, app := storetest.NewDatabase(t)
	db := storetest.Open(t, owner, app, store.Options{})
	require.Regexp(t, "^ins_[0-9a-f]{32}$", db.Installation())
	require.NoError(t, store.Migrate(t.Context(), owner, role(t, app)))
	require.Equal(t, db.Installation(), storetest.Open(t, owner, app, store.Options{}).Installation())
	require.NotEqual(t, db.Installation(), storetest.New(t).Installation(), "each database has its own installation id")
	require.Equal(t, "staging", storetest.Open(t, owner, app, store.Options{Installation: "staging"}).Installation())
	_, err := store.Open(t.Context(), app, store.Options{Installation: "a/b"})
	requireCode(t, jig.CodeInvalidInput, err)

	for _, change := range []string{
		"update installation set id = 'other'", "delete from installation", "insert into installation (single, id) values (true, 'other')",
	} {
		direct(t, app, "", func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), change)
			require.ErrorContains(t, err, "permission denied", change)
		})
	}
	direct(t, owner, "", func(tx pgx.Tx) {
		_, err := tx.Exec(t.Context(), "insert into installation (id) values ('other')")
		require.ErrorContains(t, err, "installation_pkey", "there can be only one row")
	})
}

func TestIdempotencyKeys_AreWrittenAtAdmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	key := jig.IdempotencyKey(w.Installation(), w.tenant, w.session, c.ID)
	require.Equal(t, key, w.row(t, c).IdempotencyKey)
	elsewhere := storetest.Open(t, storetest.OwnerURL(t), storetest.URL(t), store.Options{Installation: "staging"})
	row, err := elsewhere.Call(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, key, row.IdempotencyKey, "a stored key stays")

	f, _ := w.frame(t, 2)
	first := w.step(f, "pay")
	f = w.move(t, w.moving(f, first))
	again := w.step(f, "pay~2")
	again.RetryOf = first.ID
	f = w.move(t, w.moving(f, again))
	third := w.step(f, "pay~3")
	third.RetryOf = again.ID
	f = w.move(t, w.moving(f, third))
	want := jig.IdempotencyKey(w.Installation(), w.tenant, w.session, first.ID)
	for _, c := range []jig.Call{first, again, third} {
		require.Equal(t, want, w.row(t, c).IdempotencyKey, c.ID)
	}
	lost := w.step(f, "pay~4")
	lost.RetryOf = "1.9/none"
	require.Error(t, w.MoveFrame(t.Context(), w.moving(f, lost)), "without the earlier call there is no key to take over")
}

func TestIdempotencyKeys_OfOtherSessionsAreNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.running(t, nil)
	other := w
	other.session = storetest.Session(t, w.DB, w.tenant).ID
	other.begin(t, 1)
	mine := other.call(2)
	mine.RetryOf = c.ID
	require.Error(t, w.Admit(t.Context(), ledger.Admission{Tenant: w.tenant, SessionID: other.session, Pass: 1, Calls: []jig.Call{mine}}))
}

func TestIdempotencyKeys_OfLongCallIDsFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := w.running(t, func(c *jig.Call) { c.ID += "/" + strings.Repeat("step/", 100) })
	require.LessOrEqual(t, len(w.row(t, long).IdempotencyKey), jig.MaxIdempotencyKey)
}
