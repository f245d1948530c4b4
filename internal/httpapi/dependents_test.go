package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

// standing is what a worker knows about grants.
type standing struct{ httpapi.Governance }

func (standing) Grants(context.Context, string, bool) ([]jig.Grant, error) {
	return []jig.Grant{{ID: "grt_1", Tool: "file.write", By: []string{"ben", "ana"}}, {ID: "grt_2", By: []string{"ben"}}}, nil
}

// What ends with a person or a key is listed with everything that was made with it, directly or not, and nothing else.
func TestDependents_EndWithAPersonOrAKey(t *testing.T) {
	t.Parallel()
	l := &library{whole: []client.Schedule{
		{Name: "hers", Principal: "ana"},
		{Name: "bens", Principal: "ben"},
		{Name: "made", Principal: "bot", Maker: "ana"},
		{Name: "keyed", Principal: "ben", Credential: "api_key:child"},
		{Name: "login", Principal: "ben", Credential: "login:root"},
	}}
	s := newSiteWith(t, func(o *httpapi.Options) {
		o.Engine.Schedules, o.Engine.Governance = l, standing{}
	})
	s.tenants.change(func(all *tenancy.Settings) {
		all.Logins = map[tenancy.Login]string{{Issuer: issuer, Subject: "1"}: "ana"}
	})
	reader := s.key
	require.NoError(t, s.keys.change(idOf(t, reader), func(k *credential.Credential) { k.Principal = "reader" }))
	key := func(id, principal, createdBy, parent string, change func(*credential.Credential)) {
		k := credential.Credential{Tenant: "acme", ID: id, Kind: identity.KindAPIKey, Principal: principal, CreatedBy: createdBy, CreatedAt: time.Now()}
		if parent != "" {
			k.MadeWith = identity.CredentialRef{Kind: "api_key", ID: parent}
		}
		if change != nil {
			change(&k)
		}
		s.keys.put([]byte(id), k)
	}
	revoked := func(k *credential.Credential) { k.RevokedAt = new(time.Now()) }
	key("root", "ci", "ana", "", nil)
	key("child", "ci", "ci", "root", revoked)
	key("grandchild", "ci", "ci", "child", nil)
	key("other", "ben", "ben", "", nil)
	key("gone", "ana", "", "", revoked)
	for id, maker := range map[string]string{"page": "grandchild", "bens-page": "other"} {
		s.keys.put([]byte(id), credential.Credential{
			Tenant: "acme", ID: id, Kind: identity.KindEmbed, Principal: "ben", ExpiresAt: new(time.Now().Add(time.Minute)), MadeWith: identity.CredentialRef{Kind: "api_key", ID: maker},
		})
	}
	for id, subject := range map[string]string{"lgn": "1", "bens-lgn": "2"} {
		s.keys.put([]byte(id), credential.Credential{Tenant: "acme", ID: id, Kind: identity.KindLogin, Issuer: issuer, Subject: subject, CreatedAt: time.Now()})
	}
	s.key = reader
	for query, want := range map[string][]string{
		"person=ana":     {"api_key root", "api_key grandchild", "embed_token page", "login lgn", "schedule hers", "schedule made", "schedule keyed", "grant grt_1"},
		"key=root":       {"api_key grandchild", "embed_token page", "schedule keyed"},
		"key=grandchild": {"embed_token page"},
		"person=nobody":  nil,
	} {
		answer, body := s.send(http.MethodGet, "/v1/dependents?"+query, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		var found struct{ Dependents []identity.Dependent }
		require.NoError(t, json.Unmarshal([]byte(body), &found))
		var got []string
		for _, d := range found.Dependents {
			got = append(got, d.Kind+" "+d.ID)
		}
		require.ElementsMatch(t, want, got, query)
	}
	for _, query := range []string{"", "?person=ana&key=root"} {
		answer, body := s.send(http.MethodGet, "/v1/dependents"+query, "")
		require.Equal(t, "person", problem(t, answer, body).Field)
	}
}
