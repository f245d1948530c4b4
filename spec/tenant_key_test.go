package spec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

func TestAddTenantKey_KeepsTheRest(t *testing.T) {
	t.Parallel()
	key := spec.TenantKey{ID: "ana-1", Algorithm: "ed25519", Principal: "ana", PublicKey: "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="}
	passkey := spec.TenantKey{
		ID: "0123", Algorithm: "webauthn", Principal: "true", RelyingParty: "jig.example.com", Origins: []string{"https://jig.example.com", "https://a.example.com"},
		PublicKey: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
	}
	for name, body := range map[string]string{
		"without keys": "# who decides\nkind: tenant\nname: acme # us\napprovals: {proof: key}\npeople:\n  - {id: ana, groups: [finance]}\n",
		"with keys":    "# who decides\nkind: tenant\nname: acme # us\nkeys:\n  # the portal\n  - {id: p, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__P}\n",
		"in one line":  "# who decides\nkind: tenant\nname: acme # us\nkeys: [{id: p, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__P}]\n",
		"empty keys":   "# who decides\nkind: tenant\nname: acme # us\nkeys: []\n",
		"JSON":         `{"kind": "tenant", "name": "acme", "people": [{"id": "ana", "groups": ["café"]}]}`,
	} {
		before, err := spec.LoadTenant("acme.yaml", []byte(body))
		require.NoError(t, err, name)
		once, err := spec.AddTenantKey("acme.yaml", []byte(body), key)
		require.NoError(t, err, name)
		twice, err := spec.AddTenantKey("acme.yaml", once, passkey)
		require.NoError(t, err, name)
		after, err := spec.LoadTenant("acme.yaml", twice)
		require.NoError(t, err, name)
		before.Keys = append(before.Keys, key, passkey)
		require.Equal(t, before, after, name)
		for line := range strings.Lines(body) {
			if _, comment, ok := strings.Cut(line, "# "); ok {
				require.Contains(t, string(twice), "# "+strings.TrimSpace(comment), "%s: comments stay:\n%s", name, twice)
			}
		}
		again, err := spec.AddTenantKey("acme.yaml", twice, key)
		require.NoError(t, err, name)
		require.Equal(t, string(twice), string(again), "the document has the key")

		other := key
		other.Principal = "flo"
		_, err = spec.AddTenantKey("acme.yaml", twice, other)
		require.Equal(t, jig.CodeConflict, jig.CodeOf(err), name)
	}
	key.PublicKey = "short"
	_, err := spec.AddTenantKey("acme.yaml", []byte("kind: tenant\nname: acme\n"), key)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.ErrorContains(t, err, "public")
}
