package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/embed"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

const pageOrigin = "https://shop.example.com"

// newEmbed stores a token that a credential makes, and returns it with its text's hash.
func newEmbed(t *testing.T, db *store.DB, tenant string, maker embed.Maker, until *time.Time) (embed.Token, []byte) {
	t.Helper()
	_, id, hash := embed.New()
	e, err := db.CreateEmbedToken(t.Context(), embed.Token{Tenant: tenant, ID: id, Session: tenant + ".s1", Origin: pageOrigin, Principal: "ana", Maker: maker}, hash, until)
	require.NoError(t, err)
	return e, hash
}

func TestEmbedToken_IsFoundWhileItIsValid(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	person := embed.Maker{Kind: "access_token", ID: "https://a#1", Issuer: "https://a", Subject: "1", Groups: []string{"finance"}}
	e, hash := newEmbed(t, db, tenant, person, nil)
	require.Equal(t, embed.Lifetime, e.ExpiresAt.Sub(e.CreatedAt).Round(time.Second))
	found, err := db.EmbedToken(t.Context(), e.ID, hash)
	require.NoError(t, err)
	require.Equal(t, e, found)
	_, otherHash := newEmbed(t, db, tenant, person, nil)
	_, err = db.EmbedToken(t.Context(), e.ID, otherHash)
	requireCode(t, jig.CodeNotFound, err)

	soon, past := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond), time.Now().Add(-time.Second)
	short, _ := newEmbed(t, db, tenant, person, &soon)
	require.Equal(t, soon, short.ExpiresAt, "it ends with what made it")
	expired, expiredHash := newEmbed(t, db, tenant, person, &past)
	_, err = db.EmbedToken(t.Context(), expired.ID, expiredHash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err := db.ValidEmbedTokens(t.Context(), []string{e.ID, expired.ID, "nobody"})
	require.NoError(t, err)
	require.Equal(t, []string{e.ID}, valid)

	requireCode(t, jig.CodeNotFound, db.RevokeEmbedToken(t.Context(), storetest.Tenant(t), e.ID, "eve"))
	require.NoError(t, db.RevokeEmbedToken(t.Context(), tenant, e.ID, "ana"))
	require.NoError(t, db.RevokeEmbedToken(t.Context(), tenant, e.ID, "ben"), "again changes nothing")
	_, err = db.EmbedToken(t.Context(), e.ID, hash)
	requireCode(t, jig.CodeNotFound, err)
	valid, err = db.ValidEmbedTokens(t.Context(), []string{e.ID})
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
	others, _, err := db.EmbedTokens(t.Context(), storetest.Tenant(t), next, 3)
	require.NoError(t, err)
	require.Empty(t, others)
}

// A token ends with the API key or the login that made it.
func TestEmbedToken_EndsWithItsMaker(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	k, _ := newKey(t, db, tenant, func(k *apikey.Key) { k.Scopes = apikey.DefaultScopes() })
	l, _, _ := newLogin(t, db, tenant)
	foreign, _ := newKey(t, db, storetest.Tenant(t), nil)
	ends := func(maker embed.Maker, end func() error) {
		t.Helper()
		e, hash := newEmbed(t, db, tenant, maker, nil)
		_, err := db.EmbedToken(t.Context(), e.ID, hash)
		require.NoError(t, err)
		require.NoError(t, end())
		_, err = db.EmbedToken(t.Context(), e.ID, hash)
		requireCode(t, jig.CodeNotFound, err)
		valid, err := db.ValidEmbedTokens(t.Context(), []string{e.ID})
		require.NoError(t, err)
		require.Empty(t, valid)
	}
	ends(embed.Maker{Kind: "api_key", ID: k.ID}, func() error { return db.RevokeAPIKey(t.Context(), tenant, k.ID, "") })
	ends(embed.Maker{Kind: "login", ID: l.ID, Issuer: l.Issuer, Subject: l.Subject}, func() error { return db.EndLogin(t.Context(), tenant, l.ID) })
	e, hash := newEmbed(t, db, tenant, embed.Maker{Kind: "api_key", ID: foreign.ID}, nil)
	_, err := db.EmbedToken(t.Context(), e.ID, hash)
	requireCode(t, jig.CodeNotFound, err) // a key of another tenant makes none
}

// An origin is known as long as there is a valid token for it.
// The tokens that are valid among many are those that are found one by one.
func TestEmbedTokens_AreJudgedTogetherAsAlone(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	past := time.Now().Add(-time.Hour)
	k, _ := newKey(t, db, tenant, nil)
	expired, _ := newKey(t, db, tenant, func(k *apikey.Key) { k.ExpiresAt = &past })
	revoked, _ := newKey(t, db, tenant, nil)
	require.NoError(t, db.RevokeAPIKey(t.Context(), tenant, revoked.ID, ""))
	foreign, _ := newKey(t, db, storetest.Tenant(t), nil)
	l, _, _ := newLogin(t, db, tenant)
	ended, _, _ := newLogin(t, db, tenant)
	require.NoError(t, db.EndLogin(t.Context(), tenant, ended.ID))
	var ids, found []string
	for _, maker := range []embed.Maker{
		{Kind: "api_key", ID: k.ID},
		{Kind: "api_key", ID: expired.ID},
		{Kind: "api_key", ID: revoked.ID},
		{Kind: "api_key", ID: foreign.ID},
		{Kind: "api_key", ID: l.ID},
		{Kind: "login", ID: l.ID},
		{Kind: "login", ID: ended.ID},
		{Kind: "login", ID: k.ID},
		{Kind: "dev_login", ID: l.ID},
		{Kind: "dev_login", ID: ended.ID},
		{Kind: "access_token", ID: "ana"},
		{Kind: "access_token", ID: k.ID},
	} {
		e, hash := newEmbed(t, db, tenant, maker, nil)
		ids = append(ids, e.ID)
		if _, err := db.EmbedToken(t.Context(), e.ID, hash); err == nil {
			found = append(found, e.ID)
		}
	}
	valid, err := db.ValidEmbedTokens(t.Context(), ids)
	require.NoError(t, err)
	require.Len(t, found, 5)
	require.ElementsMatch(t, found, valid)
}

func TestEmbedOrigin(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	origin := "https://" + tenant + ".example.com"
	known := func() bool {
		t.Helper()
		known, err := db.EmbedOrigin(t.Context(), origin)
		require.NoError(t, err)
		return known
	}
	require.False(t, known())
	_, id, hash := embed.New()
	e := embed.Token{Tenant: tenant, ID: id, Tool: "orders.pay", Origin: origin, Principal: "ana", Maker: embed.Maker{Kind: "access_token", ID: "ana"}}
	_, err := db.CreateEmbedToken(t.Context(), e, hash, nil)
	require.NoError(t, err)
	require.True(t, known())
	require.NoError(t, db.RevokeEmbedToken(t.Context(), tenant, id, "ana"))
	require.False(t, known())
}

// Tokens that were made long ago are deleted when the tenant makes another one.
func TestEmbedTokens_ArePruned(t *testing.T) {
	t.Parallel()
	db, tenant := storetest.Server(t), storetest.Tenant(t)
	maker := embed.Maker{Kind: "access_token", ID: "ana"}
	old, _ := newEmbed(t, db, tenant, maker, nil)
	recent, _ := newEmbed(t, db, tenant, maker, nil)
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), "select set_config('jig.tenant', $1, false)", tenant)
	require.NoError(t, err)
	for id, days := range map[string]int{old.ID: 8, recent.ID: 6} {
		tag, err := conn.Exec(t.Context(), "update embed_tokens set created_at = now() - make_interval(days => $2), expires_at = now() - make_interval(days => $2) where token_id = $1", id, days)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
	}
	fresh, _ := newEmbed(t, db, tenant, maker, nil)
	list, _, err := db.EmbedTokens(t.Context(), tenant, "", 0)
	require.NoError(t, err)
	require.Equal(t, []string{fresh.ID, recent.ID}, []string{list[0].ID, list[1].ID})
	require.Len(t, list, 2)
}
