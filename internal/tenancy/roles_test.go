package tenancy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/tenancy"
)

func acme() tenancy.Settings {
	reviewer, _ := tenancy.ShippedRole("reviewer")
	return tenancy.Settings{
		People: []jig.Principal{{ID: "ana", Groups: []string{"leads"}, Permissions: []string{"pay"}}, {ID: "ben"}},
		Roles: []tenancy.Role{
			{Name: "reviewer", Permissions: reviewer, Groups: []string{"finance"}},
			{Name: "buyer", Permissions: []string{"buy"}, People: []string{"ben"}, Groups: []string{"leads"}},
		},
		Logins:      map[tenancy.Login]string{{Issuer: "https://a", Subject: "1"}: "ana"},
		LoginGroups: []tenancy.LoginGroup{{Issuer: "https://a", Value: "fin-team", Group: "finance"}},
		Disabled:    []string{"carl"},
	}
}

// Only the issuer and the subject say who somebody is, and only groups count that the document maps.
func TestSettings_KnowWhoSignedIn(t *testing.T) {
	t.Parallel()
	s := acme()
	require.Equal(t, jig.Principal{ID: "ana", Groups: []string{"finance"}}, s.SignedIn(tenancy.Login{Issuer: "https://a", Subject: "1"}, []string{"fin-team", "leads", "fin-team"}))
	require.Equal(t, jig.Principal{ID: "https://a#ana"}, s.SignedIn(tenancy.Login{Issuer: "https://a", Subject: "ana"}, nil), "a subject is not a principal's id")
	require.Equal(t, jig.Principal{ID: "https://b#1"}, s.SignedIn(tenancy.Login{Issuer: "https://b", Subject: "1"}, []string{"fin-team"}), "another issuer's groups do not count")
}

func TestEffective_AddsRolesOfGroups(t *testing.T) {
	t.Parallel()
	s := acme()
	got := s.Effective(jig.Principal{ID: "ana", Groups: []string{"finance"}})
	require.Equal(t, jig.Principal{ID: "ana", Groups: []string{"finance", "leads"}, Permissions: []string{"api.decide", "api.read", "buy", "pay"}}, got)
	require.Equal(t, []string{"reviewer", "buyer"}, s.RolesOf(got))
	require.Equal(t, []string{"buy"}, s.Effective(jig.Principal{ID: "ben"}).Permissions)
	require.Empty(t, s.Effective(jig.Principal{ID: "dora"}).Permissions)
	require.Equal(t, []string{"*"}, tenancy.Settings{Everybody: []string{"*"}}.Effective(jig.Principal{ID: "dora"}).Permissions)
	require.True(t, s.IsDisabled("carl"))
	require.False(t, s.IsDisabled("ana"))
}

func TestOnlyPerson_CountsEverybodyTheDocumentNames(t *testing.T) {
	t.Parallel()
	ana, ben := &tenancy.Owners{Approvers: jig.Approvers{People: []string{"ana"}}}, &tenancy.Owners{Approvers: jig.Approvers{People: []string{"ben"}}}
	groups := []tenancy.LoginGroup{{Issuer: "https://login.example.com", Value: "team", Group: "finance"}}
	require.True(t, tenancy.Settings{}.OnlyPerson("ana"))
	require.True(t, tenancy.Settings{People: []jig.Principal{{ID: "ana"}}, Owners: ana}.OnlyPerson("ana"))
	require.False(t, tenancy.Settings{People: []jig.Principal{{ID: "ana"}}, Owners: ben}.OnlyPerson("ana"))
	require.False(t, tenancy.Settings{LoginGroups: groups}.OnlyPerson("ana"))
	require.True(t, tenancy.Settings{People: []jig.Principal{{ID: "ana"}}, LoginGroups: groups}.OnlyPerson("ana"))
	require.False(t, tenancy.Settings{People: []jig.Principal{{ID: "ana"}}, LoginGroups: groups}.OnlyPerson("https://login.example.com#1"))
	require.False(t, tenancy.Settings{People: []jig.Principal{{ID: "ana"}}}.OnlyPerson("portal"), "ana could decide")
	require.False(t, acme().OnlyPerson("ana"))
}

// Everybody whom the document lists is a person, in whichever part, and so is everybody whom an identity provider names.
func TestIsPerson_KnowsThoseWhomTheDocumentNames(t *testing.T) {
	t.Parallel()
	approvers := jig.Approvers{People: []string{"ana"}}
	for where, s := range map[string]tenancy.Settings{
		"people":      {People: []jig.Principal{{ID: "ana"}}},
		"owners":      {Owners: &tenancy.Owners{Approvers: approvers}},
		"reconcilers": {Reconcilers: &approvers},
		"logins":      {Logins: map[tenancy.Login]string{{Issuer: "https://a", Subject: "1"}: "ana"}},
		"keys":        {Directory: tenancy.Directory{People: []tenancy.DirectoryPerson{{Principal: "ana", Keys: []tenancy.DirectoryKey{{ID: "ana-1"}}}}}},
	} {
		require.True(t, s.IsPerson("ana"), where)
		require.False(t, s.IsPerson("ci"), where)
		require.Equal(t, []string{"ana"}, s.Listed(), where)
		require.True(t, s.OnlyPerson("ana"), where)
		require.False(t, s.OnlyPerson("ci"), where)
	}
	disabled := tenancy.Settings{
		Disabled: []string{"ana"}, People: []jig.Principal{{ID: "ana"}},
		Directory: tenancy.Directory{People: []tenancy.DirectoryPerson{{Principal: "ana", Disabled: true}}},
	}
	require.True(t, disabled.IsPerson("ana"))
	require.Empty(t, disabled.Listed(), "to disable a stranger lists nobody")
	require.True(t, tenancy.Settings{}.IsPerson("https://login.example.com#1"))
}

// Each shipped role reads, and only the owner manages the credentials of others.
func TestShippedRoles_HavePermissions(t *testing.T) {
	t.Parallel()
	for _, r := range tenancy.ShippedRoles() {
		require.Contains(t, r.Permissions, tenancy.PermissionRead, r.Name)
		permissions, ok := tenancy.ShippedRole(r.Name)
		require.True(t, ok)
		require.Equal(t, r.Name == "owner", len(permissions) == 6, r.Name)
	}
	_, ok := tenancy.ShippedRole("admin")
	require.False(t, ok)
}
