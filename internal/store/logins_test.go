package store_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/login"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// newLogin stores a login and returns it with the hash of its cookie and its attempt.
func newLogin(t *testing.T, db *store.DB, tenant string) (l login.Login, hash, attempt []byte) {
	t.Helper()
	_, id, hash := login.New()
	attempt = []byte(rand.Text() + rand.Text())[:32]
	l, err := db.CreateLogin(t.Context(), login.Login{Tenant: tenant, ID: id, Issuer: "https://a", Subject: "1", Name: "Ana", Groups: []string{"finance"}}, hash, attempt)
	require.NoError(t, err)
	return l, hash, attempt
}

// age changes the times of a login, as the owner of the database.
func age(t *testing.T, l login.Login, set string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", l.Tenant)
	require.NoError(t, err)
	tag, err := conn.Exec(t.Context(), "update logins set "+set+" where login_id = $1", l.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
}

func TestLogin_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	l, hash, attempt := newLogin(t, db, tenant)
	require.Equal(t, login.Lifetime, l.ExpiresAt.Sub(l.CreatedAt).Round(time.Hour))
	found, err := db.Login(t.Context(), l.ID, hash)
	require.NoError(t, err)
	require.Equal(t, l, found)
	other, otherHash, _ := newLogin(t, db, tenant)
	_, err = db.Login(t.Context(), l.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	_, id, another := login.New()
	_, err = db.CreateLogin(t.Context(), login.Login{Tenant: storetest.Tenant(t), ID: id, Issuer: "https://a", Subject: "1"}, another, attempt)
	requireCode(t, jig.CodeConflict, err) // whatever the tenant, one login comes of an attempt

	valid, err := db.ValidLogins(t.Context(), []string{l.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{l.ID}, valid)
	all, err := db.LoginsOf(t.Context(), tenant)
	require.NoError(t, err)
	require.Equal(t, []login.Login{l, other}, all)
	none, err := db.LoginsOf(t.Context(), storetest.Tenant(t))
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, db.EndLogin(t.Context(), storetest.Tenant(t), l.ID))
	_, err = db.Login(t.Context(), l.ID, hash)
	require.NoError(t, err, "another tenant cannot end it")
	require.NoError(t, db.EndLogin(t.Context(), tenant, l.ID))
	require.NoError(t, db.EndLogin(t.Context(), tenant, l.ID), "again changes nothing")
	_, err = db.Login(t.Context(), l.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	_, err = db.CreateLogin(t.Context(), login.Login{Tenant: tenant, ID: id, Issuer: "https://a", Subject: "1"}, another, attempt)
	requireCode(t, jig.CodeConflict, err) // the attempt of an ended login is still known

	_, err = db.Login(t.Context(), other.ID, otherHash)
	require.NoError(t, err)
	age(t, other, "used_at = now() - interval '11 hours'")
	_, err = db.Login(t.Context(), other.ID, otherHash)
	require.NoError(t, err)
	age(t, other, "expires_at = now() + interval '1 hour'")
	_, err = db.Login(t.Context(), other.ID, otherHash)
	require.NoError(t, err, "using it starts the idle time again")
	for _, set := range []string{"used_at = now() - interval '13 hours'", "used_at = now(), expires_at = now() - interval '1 second'"} {
		age(t, other, set)
		_, err = db.Login(t.Context(), other.ID, otherHash)
		requireCode(t, jig.CodeNotFound, err)
		valid, err = db.ValidLogins(t.Context(), []string{l.ID, other.ID})
		require.NoError(t, err)
		require.Empty(t, valid)
	}
}
