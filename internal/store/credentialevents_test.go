package store_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// credentialEvents returns a tenant's events of a kind, the newest first.
func credentialEvents(t *testing.T, db *store.DB, tenant, kind string) []identity.CredentialEvent {
	t.Helper()
	page, err := db.CredentialEvents(t.Context(), tenant, kind, "", "", 1000)
	require.NoError(t, err)
	require.Empty(t, page.Next)
	return page.Events
}

// wholeMinute waits until a minute is not about to end, so that what follows happens within one.
func wholeMinute(t *testing.T) {
	t.Helper()
	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 15*time.Second {
		time.Sleep(left + 100*time.Millisecond)
	}
}

// Repeating something adds no rows, and a minute has a bounded number of rows, whatever is recorded.
func TestCredentialEvents_AreBounded(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	wholeMinute(t)
	refused := identity.CredentialEvent{Tenant: tenant, Kind: identity.EventRefused, Reason: "scope", CredentialKind: "api_key", CredentialID: "k1", Principal: "ana", Address: "10.0.0.1"}
	for range 3 {
		require.NoError(t, db.RecordCredential(t.Context(), refused))
	}
	list := credentialEvents(t, db, tenant, "")
	require.Len(t, list, 1)
	require.Equal(t, list[0].LastAt.Truncate(time.Minute), list[0].Minute)
	refused.Count, refused.Minute, refused.LastAt = 3, list[0].Minute, list[0].LastAt
	require.Equal(t, refused, list[0])

	for i := range 120 {
		e := refused
		e.Address = "10.0.1." + strconv.Itoa(i)
		require.NoError(t, db.RecordCredential(t.Context(), e))
	}
	require.NoError(t, db.RecordCredential(t.Context(), refused))
	require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{Tenant: tenant, Kind: identity.EventKeyCreated, CredentialID: "k2"}))
	list = credentialEvents(t, db, tenant, identity.EventRefused)
	require.Len(t, list, 101)
	require.Equal(t, identity.CredentialEvent{Tenant: tenant, Kind: identity.EventRefused, Count: 21, Minute: list[0].Minute, LastAt: list[0].LastAt}, list[0], "it counts the rest")
	require.EqualValues(t, 4, list[100].Count, "a row that exists goes on counting")
	require.Equal(t, "k2", credentialEvents(t, db, tenant, identity.EventKeyCreated)[0].CredentialID, "other kinds keep their details")

	long := identity.CredentialEvent{Tenant: tenant, Kind: identity.EventLoggedIn, Principal: strings.Repeat("é", 100_000), CredentialID: "a\x00b\xff"}
	require.NoError(t, db.RecordCredential(t.Context(), long))
	require.Len(t, []rune(credentialEvents(t, db, tenant, identity.EventLoggedIn)[0].Principal), 500)
}

// Somebody who makes noise with credentials of their own leaves room for the details of everybody else.
func TestCredentialEvents_CannotBeBlinded(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	wholeMinute(t)
	noise := func(source string, n int) {
		t.Helper()
		for i := range n {
			require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{
				Tenant: tenant, Kind: identity.EventRefused, Reason: "scope", CredentialKind: "embed_token", CredentialID: strconv.Itoa(i), Source: source,
			}))
		}
	}
	noise("eve", 110)
	require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{Tenant: tenant, Kind: identity.EventRefused, Reason: "revoked", CredentialID: "stolen", Source: "ana"}))
	list := credentialEvents(t, db, tenant, "")
	require.Len(t, list, 102)
	require.Equal(t, []string{"revoked", "stolen"}, []string{list[0].Reason, list[0].CredentialID})

	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `insert into credential_events (tenant_id, kind, reason, credential_kind, credential_id, principal, address, minute, digest, source)
		select $1, 'refused', '', '', n::text, '', '', date_trunc('minute', now()), sha256(n::text::bytea), n::text from generate_series(1, 898) n`, tenant)
	require.NoError(t, err)
	noise("ben", 3)
	list = credentialEvents(t, db, tenant, "")
	require.Len(t, list, 1000, "all of them together are bounded, too")
	require.EqualValues(t, 13, list[slices.IndexFunc(list, func(e identity.CredentialEvent) bool { return e.CredentialID == "" })].Count)
}

func TestCredentialEvents_Pages(t *testing.T) {
	t.Parallel()
	db, tenant, other := storetest.Server(t), storetest.Tenant(t), storetest.Tenant(t)
	for i := range 5 {
		for _, of := range []string{tenant, other} {
			principal := []string{"ana", "ben"}[i%2]
			require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{Tenant: of, Kind: identity.EventLoggedIn, CredentialID: strconv.Itoa(i), Principal: principal}))
		}
	}
	var ids []string
	for cursor := ""; ; {
		page, err := db.CredentialEvents(t.Context(), tenant, identity.EventLoggedIn, "ana", cursor, 2)
		require.NoError(t, err)
		for _, e := range page.Events {
			require.Equal(t, []string{tenant, "ana"}, []string{e.Tenant, e.Principal})
			ids = append(ids, e.CredentialID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"4", "2", "0"}, ids)
	require.Empty(t, credentialEvents(t, db, tenant, identity.EventLoggedOut))
	first, err := db.CredentialEvents(t.Context(), tenant, identity.EventLoggedIn, "ana", "", 2)
	require.NoError(t, err)
	for _, row := range [][3]string{{"", "", "x"}, {identity.EventLoggedIn, "ben", first.Next}, {"", "ana", first.Next}} {
		_, err := db.CredentialEvents(t.Context(), tenant, row[0], row[1], row[2], 2)
		requireCode(t, jig.CodeInvalidInput, err)
	}
}

// What changes a credential is recorded together with the change, and what changes nothing is not.
func TestCredentialEvents_OfChanges(t *testing.T) {
	t.Parallel()
	db, tenant, other := storetest.Server(t), storetest.Tenant(t), storetest.Tenant(t)
	k, _ := newKey(t, db, tenant, func(k *credential.Credential) { k.CreatedBy = "ana" })
	l, _, attempt := newLogin(t, db, tenant)
	e, _ := newEmbed(t, db, tenant, identity.CredentialRef{Kind: "api_key", ID: k.ID}, nil)
	_, err := db.CreateCredential(t.Context(), credential.New{Credential: l, Hash: make([]byte, 32), Attempt: attempt})
	requireCode(t, jig.CodeConflict, err)
	ctx := identity.WithAddress(t.Context(), "10.0.0.9")
	requireCode(t, jig.CodeNotFound, db.RevokeCredential(ctx, other, k.Ref(), "eve"))
	requireCode(t, jig.CodeNotFound, db.RevokeCredential(ctx, other, e.Ref(), "eve"))
	requireCode(t, jig.CodeNotFound, db.RevokeCredential(ctx, other, l.Ref(), "eve"))
	for range 2 {
		require.NoError(t, db.RevokeCredential(ctx, tenant, e.Ref(), "ben"))
		require.NoError(t, db.RevokeCredential(ctx, tenant, k.Ref(), "ben"))
		require.NoError(t, db.RevokeCredential(ctx, tenant, l.Ref(), "ben"))
	}
	var got [][]string
	for _, e := range credentialEvents(t, db, tenant, "") {
		got = append(got, []string{e.Kind, e.CredentialKind, e.CredentialID, e.Principal, e.Address})
		require.EqualValues(t, 1, e.Count)
	}
	require.Equal(t, [][]string{
		{"logged_out", "login", l.ID, "ben", "10.0.0.9"},
		{"key_revoked", "api_key", k.ID, "ben", "10.0.0.9"},
		{"embed_revoked", "embed_token", e.ID, "ben", "10.0.0.9"},
		{"embed_created", "embed_token", e.ID, "ana", ""},
		{"logged_in", "login", l.ID, "", ""},
		{"key_created", "api_key", k.ID, "ana", ""},
	}, got)
	require.Empty(t, credentialEvents(t, db, other, ""))
}

// A credential that has ended is found by its secret alone, with the reason.
func TestEndedCredential_IsFoundByItsSecret(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	past := time.Now().Add(-time.Hour)
	k, keyHash := newKey(t, db, tenant, nil)
	expired, expiredHash := newKey(t, db, tenant, func(k *credential.Credential) { k.ExpiresAt = &past })
	l, loginHash, _ := newLogin(t, db, tenant)
	idle, idleHash, _ := newLogin(t, db, tenant)
	age(t, idle, "used_at = now() - interval '13 hours'")
	e, embedHash := newEmbed(t, db, tenant, identity.CredentialRef{Kind: "api_key", ID: k.ID}, nil)
	none := func(id string, hash []byte) {
		t.Helper()
		_, _, err := db.EndedCredential(t.Context(), id, hash)
		requireCode(t, jig.CodeNotFound, err)
	}
	none(k.ID, keyHash)
	none(l.ID, loginHash)
	none(e.ID, embedHash)
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, k.Ref(), ""))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, l.Ref(), "ben"))
	none(k.ID, expiredHash)
	none(l.ID, idleHash)
	none(e.ID, keyHash)
	for id, c := range map[string]struct {
		hash                    []byte
		kind, reason, principal string
	}{
		k.ID: {keyHash, "api_key", "revoked", "ana"}, expired.ID: {expiredHash, "api_key", "expired", "ana"},
		l.ID: {loginHash, "login", "revoked", ""}, idle.ID: {idleHash, "login", "expired", ""}, e.ID: {embedHash, "embed_token", "revoked", "ana"},
	} {
		found, reason, err := db.EndedCredential(t.Context(), id, c.hash)
		require.NoError(t, err)
		require.Equal(t, []string{tenant, c.kind, id, c.reason, c.principal}, []string{found.Tenant, found.Kind, found.ID, reason, found.Principal})
		require.Equal(t, c.kind == "login", found.Subject == "1")
	}
}

// Rows are forgotten after 90 days. Erasing a tenant deletes them.
func TestCredentialEvents_AreForgotten(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	for i, days := range []int{91, 89} {
		require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{Tenant: tenant, Kind: identity.EventLoggedIn, CredentialID: strconv.Itoa(i)}))
		_, err = conn.Exec(t.Context(), "update credential_events set minute = minute - make_interval(days => $2) where credential_id = $1", strconv.Itoa(i), days)
		require.NoError(t, err)
	}
	require.NoError(t, db.RecordCredential(t.Context(), identity.CredentialEvent{Tenant: tenant, Kind: identity.EventLoggedOut}))
	require.Empty(t, credentialEvents(t, storetest.Server(t), storetest.Tenant(t), ""))
	list := credentialEvents(t, db, tenant, identity.EventLoggedIn)
	require.Len(t, list, 1)
	require.Equal(t, "1", list[0].CredentialID)
	_, err = conn.Exec(t.Context(), "select jig_erase()")
	require.NoError(t, err)
	require.Empty(t, credentialEvents(t, db, tenant, ""))
}
