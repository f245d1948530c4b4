package store_test

import (
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/embed"
	"github.com/jig-run/jig/internal/identity/history"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// newKey stores a key and returns it with its text's hash.
func newKey(t *testing.T, db *store.DB, tenant string, change func(k *apikey.Key)) (apikey.Key, []byte) {
	t.Helper()
	_, id, hash := apikey.New()
	k := apikey.Key{Tenant: tenant, ID: id, Name: "test", Principal: "ana", Scopes: apikey.DefaultScopes()}
	if change != nil {
		change(&k)
	}
	k, err := db.CreateAPIKey(t.Context(), k, hash)
	require.NoError(t, err)
	return k, hash
}

func TestAPIKey_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	k, hash := newKey(t, db, tenant, nil)
	found, err := db.APIKey(t.Context(), k.ID, hash)
	require.NoError(t, err)
	require.Equal(t, identity.Lineage{{Principal: "ana", Persons: []string{}}}, found.Lineage)
	found.Lineage = nil
	require.Equal(t, k, found)
	_, otherHash := newKey(t, db, tenant, nil)
	_, err = db.APIKey(t.Context(), k.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	soon := time.Now().Add(time.Hour)
	lasting, lastingHash := newKey(t, db, tenant, func(k *apikey.Key) { k.ExpiresAt = &soon })
	_, err = db.APIKey(t.Context(), lasting.ID, lastingHash)
	require.NoError(t, err)
	past := time.Now().Add(-time.Hour)
	expired, expiredHash := newKey(t, db, tenant, func(k *apikey.Key) { k.ExpiresAt = &past })
	_, err = db.APIKey(t.Context(), expired.ID, expiredHash)
	requireCode(t, jig.CodeNotFound, err)

	valid, err := db.ValidAPIKeys(t.Context(), []string{k.ID, expired.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{k.ID}, valid)
	requireCode(t, jig.CodeNotFound, db.RevokeAPIKey(t.Context(), storetest.Tenant(t), k.ID, ""))
	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, k.ID, ""))
	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, k.ID, ""), "again changes nothing")
	_, err = db.APIKey(t.Context(), k.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidAPIKeys(t.Context(), []string{k.ID})
	require.NoError(t, err)
	require.Empty(t, valid)

	require.NoError(t, db.RevokeAPIKeysNamed(t.Context(), tenant, "test"))
	list, err := db.APIKeys(t.Context(), tenant)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.NotNil(t, list[0].UsedAt)
	for _, one := range list {
		require.NotNil(t, one.RevokedAt)
	}
	others, err := db.APIKeys(t.Context(), storetest.Tenant(t))
	require.NoError(t, err)
	require.Empty(t, others)
}

// A key that was taken over ends with the credential that took it over, not with the one that made it, and has another text. An event names who did it.
func TestAPIKey_TakenOver(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	old, _ := newKey(t, db, tenant, nil)
	owner, _ := newKey(t, db, tenant, func(k *apikey.Key) { k.Principal = "ben" })
	k, hash := newKey(t, db, tenant, func(k *apikey.Key) {
		k.Principal, k.Maker, k.CreatedBy, k.Persons = "ci", "ana", "ana", []string{"ana"}
		k.MadeWith = identity.CredentialRef{Kind: "api_key", ID: old.ID}
	})
	k.Maker, k.CreatedBy, k.Persons, k.MadeWith.ID = "ben", "ben", []string{"ben"}, owner.ID
	_, renewed := apikey.Renew(k.ID)
	require.NoError(t, db.TakeOverAPIKey(t.Context(), k, renewed))
	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, old.ID, ""))
	_, err := db.APIKey(t.Context(), k.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	found, err := db.APIKey(t.Context(), k.ID, renewed)
	require.NoError(t, err)
	require.Equal(t, identity.Lineage{{Principal: "ci", Maker: "ben", CreatedBy: "ben", Persons: []string{"ben"}}, {Principal: "ben", Persons: []string{}}}, found.Lineage)
	page, err := db.CredentialEvents(t.Context(), tenant, history.KeyTakenOver, "ben", "", 10)
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
	require.Equal(t, k.ID, page.Events[0].CredentialID)

	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, owner.ID, ""))
	_, err = db.APIKey(t.Context(), k.ID, renewed)
	requireCode(t, jig.CodeNotFound, err)
	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, k.ID, ""))
	requireCode(t, jig.CodeConflict, db.TakeOverAPIKey(t.Context(), k, renewed))
	k.Tenant = storetest.Tenant(t)
	requireCode(t, jig.CodeConflict, db.TakeOverAPIKey(t.Context(), k, renewed))
}

// A key ends with the keys in its lineage, and with it what it made, across requests, streams and embed tokens.
func TestAPIKey_EndsWithTheKeyThatMadeIt(t *testing.T) {
	t.Parallel()
	db, worker, tenant := storetest.Server(t), storetest.New(t), storetest.Tenant(t)
	madeWith := func(parent apikey.Key) func(k *apikey.Key) {
		return func(k *apikey.Key) {
			k.Principal, k.Maker, k.CreatedBy, k.Persons = "ci", "ana", parent.Principal, []string{"ana"}
			k.MadeWith = identity.CredentialRef{Kind: "api_key", ID: parent.ID}
		}
	}
	first, _ := newKey(t, db, tenant, nil)
	second, _ := newKey(t, db, tenant, madeWith(first))
	third, thirdHash := newKey(t, db, tenant, madeWith(second))
	_, embedID, embedHash := embed.New()
	_, err := db.CreateEmbedToken(t.Context(), embed.Token{
		Tenant: tenant, ID: embedID, Tool: "file.list", Origin: "https://a.example.com", Principal: "ci", Maker: embed.Maker{Kind: "api_key", ID: third.ID},
	}, embedHash, nil)
	require.NoError(t, err)

	found, err := db.APIKey(t.Context(), third.ID, thirdHash)
	require.NoError(t, err)
	line := identity.Lineage{
		{Principal: "ci", Maker: "ana", CreatedBy: "ci", Persons: []string{"ana"}},
		{Principal: "ci", Maker: "ana", CreatedBy: "ana", Persons: []string{"ana"}},
		{Principal: "ana", Persons: []string{}},
	}
	require.Equal(t, line, found.Lineage)
	page, err := db.EmbedToken(t.Context(), embedID, embedHash)
	require.NoError(t, err)
	require.Equal(t, line, page.Lineage)
	known, err := worker.KeyLineage(t.Context(), tenant, third.ID)
	require.NoError(t, err, "workers follow the lineage, too")
	require.Equal(t, line, known)
	_, err = worker.KeyLineage(t.Context(), storetest.Tenant(t), third.ID)
	requireCode(t, jig.CodeNotFound, err)
	valid, err := db.ValidAPIKeys(t.Context(), []string{first.ID, second.ID, third.ID})
	require.NoError(t, err)
	require.Len(t, valid, 3)

	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, first.ID, "ben"))
	_, err = db.APIKey(t.Context(), third.ID, thirdHash)
	requireCode(t, jig.CodeNotFound, err)
	_, err = db.EmbedToken(t.Context(), embedID, embedHash)
	requireCode(t, jig.CodeNotFound, err)
	_, err = worker.KeyLineage(t.Context(), tenant, third.ID)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidAPIKeys(t.Context(), []string{first.ID, second.ID, third.ID})
	require.NoError(t, err)
	require.Empty(t, valid)
	valid, err = db.ValidEmbedTokens(t.Context(), []string{embedID})
	require.NoError(t, err)
	require.Empty(t, valid)
	ended, err := db.EndedCredential(t.Context(), third.ID, thirdHash)
	require.NoError(t, err)
	require.Equal(t, "revoked", ended.Reason)
}

// The server reads what tenants have, one tenant at a time, and changes nothing but its own table. Workers have no rights on that.
func TestServersRole_IsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asking := w.asking(t)
	server := storetest.Server(t)
	found, err := server.Session(t.Context(), w.tenant, w.session)
	require.NoError(t, err)
	require.Equal(t, w.session, found.ID)
	_, err = server.Session(t.Context(), storetest.Tenant(t), w.session)
	requireCode(t, jig.CodeNotFound, err)
	require.Error(t, server.AppendEvents(t.Context(), w.tenant, w.session, jig.Event{Type: jig.EventPassStarted}))
	require.Error(t, server.PutGrant(t.Context(), jig.Grant{Tenant: w.tenant, ID: "grt_x", Tool: "x", When: "true", MaxUses: 1, ExpiresAt: time.Now().Add(time.Hour), By: []string{"ana"}}))

	refused := func(url, tenant, sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		defer func() { _ = conn.Close(t.Context()) }()
		_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), sql)
		var failure *pgconn.PgError
		require.ErrorAs(t, err, &failure, sql)
		require.Equal(t, "42501", failure.Code, sql)
	}
	key := "srv_" + hex.EncodeToString([]byte(rand.Text())[:16])
	require.NoError(t, server.PutServerKey(t.Context(), key, "certificate"))
	require.NoError(t, server.RevokeServerKey(t.Context(), key))
	require.NoError(t, server.RevokeServerKey(t.Context(), key), "it is revoked already")
	for _, sql := range []string{
		"update server_keys set revoked_at = null where key_id = '" + key + "'", "delete from server_keys",
		"update approvals set status = 'approved' where call_id = '" + asking.ID + "'", "update calls set status = 'reserved'", "delete from sessions",
		"insert into documents (tenant_id, kind, name, version, body, current) values ('" + w.tenant + "', 'policy', 'p', 'v', '', true)",
		"insert into decisions (tenant_id) values ('" + w.tenant + "')", "select jig_erase()", "select jig_audit('{}', 'approved', 's', '1.1')",
		"delete from api_keys", "delete from credential_events", "update credential_events set kind = 'logged_in'",
		"insert into credential_events (tenant_id, kind, reason, credential_kind, credential_id, principal, address, minute, digest) " +
			"values ('another', 'logged_in', '', '', '', '', '', now(), sha256(''))",
	} {
		refused(storetest.ServerURL(t), w.tenant, sql)
	}
	for _, sql := range []string{
		"select * from api_keys", "select * from jig_api_key('a', '\\x00')", "insert into api_keys default values", "select * from logins", "select * from jig_login('a', '\\x00', '1 hour')",
		"select * from embed_tokens", "select * from jig_embed_token('a', '\\x00')", "select jig_embed_origin('a')",
		"select * from credential_events", "select * from jig_ended_credential('a', '\\x00', '1 hour')", "select jig_forget_credential_events()",
	} {
		refused(storetest.URL(t), w.tenant, sql)
	}
}
