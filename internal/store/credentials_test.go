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
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// newKey stores an API key of ana's and returns it with its text's hash.
func newKey(t *testing.T, db *store.DB, tenant string, change func(k *credential.Credential)) (credential.Credential, []byte) {
	t.Helper()
	_, id, hash := credential.KeyForm.New()
	k := credential.Credential{Tenant: tenant, ID: id, Kind: identity.KindAPIKey, Name: "test", Principal: "ana", Scopes: credential.DefaultScopes()}
	if change != nil {
		change(&k)
	}
	k, err := db.CreateCredential(t.Context(), credential.New{Credential: k, Hash: hash})
	require.NoError(t, err)
	return k, hash
}

func TestAPIKey_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	k, hash := newKey(t, db, tenant, nil)
	found, err := db.Credential(t.Context(), k.ID, hash)
	require.NoError(t, err)
	require.Equal(t, identity.Lineage{{ID: k.ID, Principal: "ana", Persons: []string{}}}, found.Lineage)
	found.Lineage = nil
	require.Equal(t, k, found)
	other, otherHash := newKey(t, db, tenant, nil)
	_, err = db.Credential(t.Context(), k.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	soon := time.Now().Add(time.Hour)
	lasting, lastingHash := newKey(t, db, tenant, func(k *credential.Credential) { k.ExpiresAt = &soon })
	_, err = db.Credential(t.Context(), lasting.ID, lastingHash)
	require.NoError(t, err)
	past := time.Now().Add(-time.Hour)
	expired, expiredHash := newKey(t, db, tenant, func(k *credential.Credential) { k.ExpiresAt = &past })
	_, err = db.Credential(t.Context(), expired.ID, expiredHash)
	requireCode(t, jig.CodeNotFound, err)

	valid, err := db.ValidCredentials(t.Context(), []string{k.ID, expired.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{k.ID}, valid)
	requireCode(t, jig.CodeNotFound, db.RevokeCredential(t.Context(), storetest.Tenant(t), k.Ref(), ""))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, k.Ref(), ""))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, k.Ref(), ""), "again changes nothing")
	_, err = db.Credential(t.Context(), k.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidCredentials(t.Context(), []string{k.ID})
	require.NoError(t, err)
	require.Empty(t, valid)

	for _, one := range []credential.Credential{other, lasting, expired} {
		require.NoError(t, db.RevokeCredential(t.Context(), tenant, one.Ref(), ""))
	}
	list, err := db.Credentials(t.Context(), tenant, identity.KindAPIKey)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.NotNil(t, list[0].UsedAt)
	for _, one := range list {
		require.NotNil(t, one.RevokedAt)
	}
	others, err := db.Credentials(t.Context(), storetest.Tenant(t), identity.KindAPIKey)
	require.NoError(t, err)
	require.Empty(t, others)
}

// A key that was taken over ends with the credential that took it over, not with the one that made it, and has another text. An event names who did it.
func TestAPIKey_TakenOver(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	old, _ := newKey(t, db, tenant, nil)
	owner, _ := newKey(t, db, tenant, func(k *credential.Credential) { k.Principal = "ben" })
	k, hash := newKey(t, db, tenant, func(k *credential.Credential) {
		k.Principal, k.Maker, k.CreatedBy, k.Persons = "ci", "ana", "ana", []string{"ana"}
		k.MadeWith = old.Ref()
	})
	k.Maker, k.CreatedBy, k.Persons, k.MadeWith.ID = "ben", "ben", []string{"ben"}, owner.ID
	_, renewed := credential.KeyForm.Renew(k.ID)
	require.NoError(t, db.TakeOverAPIKey(t.Context(), k, renewed))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, old.Ref(), ""))
	_, err := db.Credential(t.Context(), k.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	found, err := db.Credential(t.Context(), k.ID, renewed)
	require.NoError(t, err)
	require.Equal(t, identity.Lineage{{ID: k.ID, Principal: "ci", Maker: "ben", CreatedBy: "ben", Persons: []string{"ben"}}, {ID: owner.ID, Principal: "ben", Persons: []string{}}}, found.Lineage)
	page, err := db.CredentialEvents(t.Context(), tenant, identity.EventKeyTakenOver, "ben", "", 10)
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
	require.Equal(t, k.ID, page.Events[0].CredentialID)

	require.NoError(t, db.RevokeCredential(t.Context(), tenant, owner.Ref(), ""))
	_, err = db.Credential(t.Context(), k.ID, renewed)
	requireCode(t, jig.CodeNotFound, err)
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, k.Ref(), ""))
	requireCode(t, jig.CodeConflict, db.TakeOverAPIKey(t.Context(), k, renewed))
	k.Tenant = storetest.Tenant(t)
	requireCode(t, jig.CodeConflict, db.TakeOverAPIKey(t.Context(), k, renewed))
}

// A key ends with the keys in its lineage, and with it what it made, across requests, streams and embed tokens.
func TestAPIKey_EndsWithTheKeyThatMadeIt(t *testing.T) {
	t.Parallel()
	db, worker, tenant := storetest.Server(t), storetest.New(t), storetest.Tenant(t)
	madeWith := func(parent credential.Credential) func(k *credential.Credential) {
		return func(k *credential.Credential) {
			k.Principal, k.Maker, k.CreatedBy, k.Persons = "ci", "ana", parent.Principal, []string{"ana"}
			k.MadeWith = parent.Ref()
		}
	}
	first, _ := newKey(t, db, tenant, nil)
	second, _ := newKey(t, db, tenant, madeWith(first))
	third, thirdHash := newKey(t, db, tenant, madeWith(second))
	token, embedHash := newEmbed(t, db, tenant, third.Ref(), nil)
	embedID := token.ID

	found, err := db.Credential(t.Context(), third.ID, thirdHash)
	require.NoError(t, err)
	line := identity.Lineage{
		{ID: third.ID, Principal: "ci", Maker: "ana", CreatedBy: "ci", Persons: []string{"ana"}},
		{ID: second.ID, Principal: "ci", Maker: "ana", CreatedBy: "ana", Persons: []string{"ana"}},
		{ID: first.ID, Principal: "ana", Persons: []string{}},
	}
	require.Equal(t, line, found.Lineage)
	page, err := db.Credential(t.Context(), embedID, embedHash)
	require.NoError(t, err)
	require.Equal(t, line, page.Lineage)
	known, err := worker.KeyLineage(t.Context(), tenant, third.ID)
	require.NoError(t, err, "workers follow the lineage, too")
	require.Equal(t, line, known)
	_, err = worker.KeyLineage(t.Context(), storetest.Tenant(t), third.ID)
	requireCode(t, jig.CodeNotFound, err)
	valid, err := db.ValidCredentials(t.Context(), []string{first.ID, second.ID, third.ID})
	require.NoError(t, err)
	require.Len(t, valid, 3)

	require.NoError(t, db.RevokeCredential(t.Context(), tenant, first.Ref(), "ben"))
	_, err = db.Credential(t.Context(), third.ID, thirdHash)
	requireCode(t, jig.CodeNotFound, err)
	_, err = db.Credential(t.Context(), embedID, embedHash)
	requireCode(t, jig.CodeNotFound, err)
	_, err = worker.KeyLineage(t.Context(), tenant, third.ID)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidCredentials(t.Context(), []string{first.ID, second.ID, third.ID})
	require.NoError(t, err)
	require.Empty(t, valid)
	valid, err = db.ValidCredentials(t.Context(), []string{embedID})
	require.NoError(t, err)
	require.Empty(t, valid)
	_, reason, err := db.EndedCredential(t.Context(), third.ID, thirdHash)
	require.NoError(t, err)
	require.Equal(t, "revoked", reason)
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
	revoked, _ := newKey(t, server, w.tenant, nil)
	require.NoError(t, server.RevokeCredential(t.Context(), w.tenant, revoked.Ref(), ""))
	for _, sql := range []string{
		"update server_keys set revoked_at = null where key_id = '" + key + "'", "delete from server_keys",
		"update approvals set status = 'approved' where call_id = '" + asking.ID + "'", "update calls set status = 'reserved'", "delete from sessions",
		"insert into documents (tenant_id, kind, name, version, body, current) values ('" + w.tenant + "', 'policy', 'p', 'v', '', true)",
		"insert into decisions (tenant_id) values ('" + w.tenant + "')", "select jig_erase()", "select jig_audit('{}', 'approved', 's', '1.1')",
		"delete from credentials", "update credentials set principal = 'ben'", "update credentials set scopes = '{read}'", "update credentials set expires_at = null",
		"update credentials set revoked_at = null where credential_id = '" + revoked.ID + "'", "delete from credential_events", "update credential_events set kind = 'logged_in'",
		"insert into credential_events (tenant_id, kind, reason, credential_kind, credential_id, principal, address, minute, digest) " +
			"values ('another', 'logged_in', '', '', '', '', '', now(), sha256(''))",
	} {
		refused(storetest.ServerURL(t), w.tenant, sql)
	}
	for _, sql := range []string{
		"select * from credentials", "insert into credentials default values", "select * from jig_credential('a', '\\x00', '1 hour')",
		"select jig_credentials_valid('{a}', '1 hour')", "select jig_forget_credentials('1 hour')",
		"select * from credential_events", "select * from jig_ended_credential('a', '\\x00', '1 hour')", "select jig_forget_credential_events()",
	} {
		refused(storetest.URL(t), w.tenant, sql)
	}
}

// newLogin stores a login at an identity provider, and returns it with the hash of its cookie and its attempt.
func newLogin(t *testing.T, db *store.DB, tenant string) (l credential.Credential, hash, attempt []byte) {
	t.Helper()
	_, id, hash := credential.LoginForm.New()
	attempt = []byte(rand.Text() + rand.Text())[:32]
	l, err := db.CreateCredential(t.Context(), credential.New{Credential: credential.Credential{
		Tenant: tenant, ID: id, Kind: identity.KindLogin, Issuer: "https://a", Subject: "1", Name: "Ana", Groups: []string{"finance"},
	}, Hash: hash, Attempt: attempt})
	require.NoError(t, err)
	return l, hash, attempt
}

// age changes the times of a login, as the owner of the database.
func age(t *testing.T, l credential.Credential, set string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", l.Tenant)
	require.NoError(t, err)
	tag, err := conn.Exec(t.Context(), "update credentials set "+set+" where credential_id = $1", l.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, tag.RowsAffected())
}

func TestLogin_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	l, hash, attempt := newLogin(t, db, tenant)
	require.Equal(t, credential.LoginLifetime, l.ExpiresAt.Sub(l.CreatedAt).Round(time.Hour))
	found, err := db.Credential(t.Context(), l.ID, hash)
	require.NoError(t, err)
	require.Equal(t, l, found)
	other, otherHash, _ := newLogin(t, db, tenant)
	_, err = db.Credential(t.Context(), l.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	_, id, another := credential.LoginForm.New()
	again := credential.New{Credential: credential.Credential{Tenant: storetest.Tenant(t), ID: id, Kind: identity.KindLogin, Issuer: "https://a", Subject: "1"}, Hash: another, Attempt: attempt}
	_, err = db.CreateCredential(t.Context(), again)
	requireCode(t, jig.CodeConflict, err) // whatever the tenant, one login comes of an attempt

	valid, err := db.ValidCredentials(t.Context(), []string{l.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{l.ID}, valid)
	all, err := db.Credentials(t.Context(), tenant, identity.KindLogin)
	require.NoError(t, err)
	require.NotNil(t, all[0].UsedAt)
	l.UsedAt = all[0].UsedAt
	require.Equal(t, []credential.Credential{l, other}, all)
	none, err := db.Credentials(t.Context(), storetest.Tenant(t), identity.KindLogin)
	require.NoError(t, err)
	require.Empty(t, none)
	requireCode(t, jig.CodeNotFound, db.RevokeCredential(t.Context(), storetest.Tenant(t), l.Ref(), "ben"))
	_, err = db.Credential(t.Context(), l.ID, hash)
	require.NoError(t, err, "another tenant cannot end it")
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, l.Ref(), "ben"))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, l.Ref(), "ben"), "again changes nothing")
	_, err = db.Credential(t.Context(), l.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	again.Tenant = tenant
	_, err = db.CreateCredential(t.Context(), again)
	requireCode(t, jig.CodeConflict, err) // the attempt of an ended login is still known

	_, err = db.Credential(t.Context(), other.ID, otherHash)
	require.NoError(t, err)
	age(t, other, "used_at = now() - interval '11 hours'")
	_, err = db.Credential(t.Context(), other.ID, otherHash)
	require.NoError(t, err)
	age(t, other, "expires_at = now() + interval '1 hour'")
	_, err = db.Credential(t.Context(), other.ID, otherHash)
	require.NoError(t, err, "using it starts the idle time again")
	for _, set := range []string{"used_at = now() - interval '13 hours'", "used_at = now(), expires_at = now() - interval '1 second'"} {
		age(t, other, set)
		_, err = db.Credential(t.Context(), other.ID, otherHash)
		requireCode(t, jig.CodeNotFound, err)
		valid, err = db.ValidCredentials(t.Context(), []string{l.ID, other.ID})
		require.NoError(t, err)
		require.Empty(t, valid)
	}
}

const pageOrigin = "https://shop.example.com"

// newEmbed stores a token that a credential makes, and returns it with its text's hash.
func newEmbed(t *testing.T, db *store.DB, tenant string, maker identity.CredentialRef, until *time.Time) (credential.Credential, []byte) {
	t.Helper()
	_, id, hash := credential.EmbedForm.New()
	e := credential.Credential{
		Tenant: tenant, ID: id, Kind: identity.KindEmbed, Session: tenant + ".s1", Origin: pageOrigin, Principal: "ana", Scopes: credential.EmbedScopes(""), MadeWith: maker,
		CreatedBy: "ana", ExpiresAt: until,
	}
	if maker.Kind == identity.KindAccessToken {
		e.Issuer, e.Subject, e.Groups = "https://a", "1", []string{"finance"}
	}
	e, err := db.CreateCredential(t.Context(), credential.New{Credential: e, Hash: hash})
	require.NoError(t, err)
	return e, hash
}

func TestEmbedToken_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	person := identity.CredentialRef{Kind: "access_token", ID: "https://a#1"}
	e, hash := newEmbed(t, db, tenant, person, nil)
	require.Equal(t, credential.EmbedLifetime, e.ExpiresAt.Sub(e.CreatedAt).Round(time.Second))
	found, err := db.Credential(t.Context(), e.ID, hash)
	require.NoError(t, err)
	require.Equal(t, e, found)
	_, otherHash := newEmbed(t, db, tenant, person, nil)
	_, err = db.Credential(t.Context(), e.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	soon, past := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond), time.Now().Add(-time.Second)
	short, _ := newEmbed(t, db, tenant, person, &soon)
	require.Equal(t, soon, *short.ExpiresAt, "it ends with what made it")
	expired, expiredHash := newEmbed(t, db, tenant, person, &past)
	_, err = db.Credential(t.Context(), expired.ID, expiredHash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err := db.ValidCredentials(t.Context(), []string{e.ID, expired.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{e.ID}, valid)

	requireCode(t, jig.CodeNotFound, db.RevokeCredential(t.Context(), storetest.Tenant(t), e.Ref(), "eve"))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, e.Ref(), "ana"))
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, e.Ref(), "ben"), "again changes nothing")
	_, err = db.Credential(t.Context(), e.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidCredentials(t.Context(), []string{e.ID})
	require.NoError(t, err)
	require.Empty(t, valid)
	list, next, err := db.EmbedTokens(t.Context(), tenant, "", 3)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, []string{expired.ID, short.ID}, []string{list[0].ID, list[1].ID})
	rest, end, err := db.EmbedTokens(t.Context(), tenant, next, 3)
	require.NoError(t, err)
	require.Equal(t, []string{e.ID, "ana"}, []string{rest[0].ID, rest[0].RevokedBy})
	require.Len(t, rest, 1)
	require.Empty(t, end)
	_, _, err = db.EmbedTokens(t.Context(), storetest.Tenant(t), next, 3)
	requireCode(t, jig.CodeInvalidInput, err)
}

// A token ends with the API key or the login that made it.
func TestEmbedToken_EndsWithItsMaker(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	k, _ := newKey(t, db, tenant, func(k *credential.Credential) { k.Scopes = credential.DefaultScopes() })
	l, _, _ := newLogin(t, db, tenant)
	foreign, _ := newKey(t, db, storetest.Tenant(t), nil)
	ends := func(maker identity.CredentialRef, end func() error) {
		t.Helper()
		e, hash := newEmbed(t, db, tenant, maker, nil)
		_, err := db.Credential(t.Context(), e.ID, hash)
		require.NoError(t, err)
		require.NoError(t, end())
		_, err = db.Credential(t.Context(), e.ID, hash)
		requireCode(t, jig.CodeNotFound, err)
		valid, err := db.ValidCredentials(t.Context(), []string{e.ID})
		require.NoError(t, err)
		require.Empty(t, valid)
	}
	ends(k.Ref(), func() error { return db.RevokeCredential(t.Context(), tenant, k.Ref(), "") })
	ends(l.Ref(), func() error { return db.RevokeCredential(t.Context(), tenant, l.Ref(), "ben") })
	e, hash := newEmbed(t, db, tenant, identity.CredentialRef{Kind: "api_key", ID: foreign.ID}, nil)
	_, err := db.Credential(t.Context(), e.ID, hash)
	requireCode(t, jig.CodeNotFound, err) // a key of another tenant makes none
}

// The tokens that are valid among many are those that are found one by one.
func TestEmbedTokens_AreJudgedTogetherAsAlone(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	past := time.Now().Add(-time.Hour)
	k, _ := newKey(t, db, tenant, nil)
	expired, _ := newKey(t, db, tenant, func(k *credential.Credential) { k.ExpiresAt = &past })
	revoked, _ := newKey(t, db, tenant, nil)
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, revoked.Ref(), ""))
	foreign, _ := newKey(t, db, storetest.Tenant(t), nil)
	l, _, _ := newLogin(t, db, tenant)
	_, devID, devHash := credential.LoginForm.New()
	dev, err := db.CreateCredential(t.Context(), credential.New{Credential: credential.Credential{
		Tenant: tenant, ID: devID, Kind: identity.KindDevLogin, Principal: "ana",
	}, Hash: devHash, Attempt: []byte(rand.Text() + rand.Text())[:32]})
	require.NoError(t, err)
	ended, _, _ := newLogin(t, db, tenant)
	require.NoError(t, db.RevokeCredential(t.Context(), tenant, ended.Ref(), "ben"))
	var ids, found []string
	for _, maker := range []identity.CredentialRef{
		{Kind: "api_key", ID: k.ID},
		{Kind: "api_key", ID: expired.ID},
		{Kind: "api_key", ID: revoked.ID},
		{Kind: "api_key", ID: foreign.ID},
		{Kind: "api_key", ID: l.ID},
		{Kind: "login", ID: l.ID},
		{Kind: "login", ID: ended.ID},
		{Kind: "login", ID: k.ID},
		{Kind: "dev_login", ID: dev.ID},
		{Kind: "dev_login", ID: l.ID},
		{Kind: "dev_login", ID: ended.ID},
		{Kind: "access_token", ID: "ana"},
		{Kind: "access_token", ID: k.ID},
	} {
		e, hash := newEmbed(t, db, tenant, maker, nil)
		ids = append(ids, e.ID)
		if _, err := db.Credential(t.Context(), e.ID, hash); err == nil {
			found = append(found, e.ID)
		}
	}
	valid, err := db.ValidCredentials(t.Context(), ids)
	require.NoError(t, err)
	require.Len(t, found, 5)
	require.ElementsMatch(t, found, valid)
}

// Tokens that were made long ago are deleted when the tenant makes another one.
func TestEmbedTokens_ArePruned(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	maker := identity.CredentialRef{Kind: "access_token", ID: "ana"}
	old, _ := newEmbed(t, db, tenant, maker, nil)
	recent, _ := newEmbed(t, db, tenant, maker, nil)
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	for id, days := range map[string]int{old.ID: 8, recent.ID: 6} {
		tag, err := conn.Exec(t.Context(), "update credentials set created_at = now() - make_interval(days => $2), expires_at = now() - make_interval(days => $2) where credential_id = $1", id, days)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
	}
	fresh, _ := newEmbed(t, db, tenant, maker, nil)
	list, _, err := db.EmbedTokens(t.Context(), tenant, "", 0)
	require.NoError(t, err)
	require.Equal(t, []string{fresh.ID, recent.ID}, []string{list[0].ID, list[1].ID})
	require.Len(t, list, 2)
}
