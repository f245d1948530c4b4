package spec_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const knowing = `kind: tenant
name: acme
people:
  - {id: ana, groups: [finance], logins: [{issuer: "https://login.example.com", subject: ana}]} # on leave
  - {id: ben, disabled: true}
roles:
  - {name: reviewer, groups: [finance]}
  - {name: owner, people: [flo]}
keys:
  # ana's laptop
  - id: ana-1
    algorithm: ed25519
    principal: ana
    public_key: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
  - {id: portal, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__PORTAL, disabled: true}
`

func TestDirectory_ListsEverybody(t *testing.T) {
	t.Parallel()
	doc, err := spec.LoadTenant("acme.yaml", []byte(knowing))
	require.NoError(t, err)
	got, err := json.Marshal(doc.Directory())
	require.NoError(t, err)
	require.JSONEq(t, `{
		"people": [
			{"principal": "ana", "disabled": false, "groups": ["finance"], "roles": ["reviewer"], "permissions": ["api.decide", "api.read"],
				"logins": [{"issuer": "https://login.example.com", "subject": "ana"}], "keys": [{"id": "ana-1", "algorithm": "ed25519", "disabled": false}]},
			{"principal": "ben", "disabled": true, "groups": [], "roles": [], "permissions": [], "logins": [], "keys": []},
			{"principal": "flo", "disabled": false, "groups": [], "roles": ["owner"],
				"permissions": ["api.author", "api.decide", "api.manage", "api.operate", "api.read", "api.run"], "logins": [], "keys": []}
		],
		"groups": [{"name": "finance", "members": ["ana"], "roles": ["reviewer"]}],
		"keys": [{"id": "portal", "algorithm": "hmac-sha256", "disabled": true}]
	}`, string(got))
}

// Disabling changes one member and keeps comments; the opposite change undoes it.
func TestDisable_KeepsTheRest(t *testing.T) {
	t.Parallel()
	off, err := spec.DisablePerson("acme.yaml", []byte(knowing), "ana", true)
	require.NoError(t, err)
	require.Contains(t, string(off), "# on leave")
	again, err := spec.DisablePerson("acme.yaml", off, "ana", true)
	require.NoError(t, err)
	require.Equal(t, string(off), string(again), "nothing changes")
	off, err = spec.DisableKey("acme.yaml", off, "ana-1", true)
	require.NoError(t, err)
	require.Contains(t, string(off), "# ana's laptop")
	doc, err := spec.LoadTenant("acme.yaml", off)
	require.NoError(t, err)
	require.True(t, doc.People[0].Disabled)
	require.True(t, doc.Keys[0].Disabled)

	on, err := spec.DisablePerson("acme.yaml", off, "ana", false)
	require.NoError(t, err)
	on, err = spec.DisableKey("acme.yaml", on, "ana-1", false)
	require.NoError(t, err)
	before, err := spec.LoadTenant("acme.yaml", []byte(knowing))
	require.NoError(t, err)
	after, err := spec.LoadTenant("acme.yaml", on)
	require.NoError(t, err)
	require.Equal(t, before, after)

	// Whoever signs in can be disabled, also if the document does not list them yet.
	for _, body := range []string{knowing, "kind: tenant\nname: acme\n"} {
		listed, err := spec.DisablePerson("acme.yaml", []byte(body), "https://login.example.com#eve", true)
		require.NoError(t, err)
		doc, err = spec.LoadTenant("acme.yaml", listed)
		require.NoError(t, err)
		require.Equal(t, spec.TenantPerson{ID: "https://login.example.com#eve", Disabled: true}, doc.People[len(doc.People)-1])
	}
	_, err = spec.DisablePerson("acme.yaml", []byte(knowing), "eve", false)
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
	for _, disabled := range []bool{true, false} {
		_, err = spec.DisableKey("acme.yaml", []byte(knowing), "eve-1", disabled)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
	}
	_, err = spec.DisablePerson("acme.yaml", []byte(knowing), " ", true)
	require.Error(t, err)
}
