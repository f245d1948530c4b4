package spec_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

const publicKey = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

const fullTenant = `
kind: tenant
name: 7-acme
description: Acme.
approvals:
  signals: off
  reconcilers: {people: [ana], groups: [operations], permission: ledger.reconcile}
keys:
  - {id: ana-2026, algorithm: ed25519, principal: ana, public_key: ` + publicKey + `}
  - {id: portal, algorithm: hmac-sha256, secret_env: JIG_SECRET_7_ACME__PORTAL}
people:
  - {id: ana, groups: [finance], permissions: ["*"]}
  - {id: bo@example.com}
grants: {max_uses: 100, max_age: 7d, off: true}
webhooks:
  - {url: "https://hooks.example.com/jig?a=b", secret_env: JIG_SECRET_7_ACME__HOOK, events: [approval.requested, approval.expired]}
  - {url: "http://127.0.0.1:8080", secret_env: JIG_SECRET_7_ACME__HOOK}
`

func TestTenant_ReadsEveryKey(t *testing.T) {
	t.Parallel()
	// Without quotes, off is a text: documents are YAML 1.2.
	got, err := spec.LoadTenant("acme.yaml", []byte(fullTenant))
	require.NoError(t, err)
	require.Equal(t, spec.Tenant{
		Kind: "tenant", Name: "7-acme", Description: "Acme.",
		Approvals: spec.TenantApprovals{
			Signals: tenancy.SignalsOff, Reconcilers: &spec.Approvers{People: []string{"ana"}, Groups: []string{"operations"}, Permission: "ledger.reconcile"},
		},
		Keys: []spec.TenantKey{
			{ID: "ana-2026", Algorithm: identity.AlgorithmEd25519, Principal: "ana", PublicKey: publicKey},
			{ID: "portal", Algorithm: identity.AlgorithmHMAC, SecretEnv: "JIG_SECRET_7_ACME__PORTAL"},
		},
		People: []spec.TenantPerson{{ID: "ana", Groups: []string{"finance"}, Permissions: []string{"*"}}, {ID: "bo@example.com"}},
		Grants: spec.TenantGrants{Off: true, MaxUses: 100, MaxAge: spec.Duration(7 * 24 * time.Hour)},
		Webhooks: []spec.TenantWebhook{
			{URL: "https://hooks.example.com/jig?a=b", SecretEnv: "JIG_SECRET_7_ACME__HOOK", Events: []jig.NoticeKind{jig.NoticeRequested, jig.NoticeExpired}},
			{URL: "http://127.0.0.1:8080", SecretEnv: "JIG_SECRET_7_ACME__HOOK"},
		},
	}, got)
	public, err := got.Keys[0].Public()
	require.NoError(t, err)
	require.Equal(t, publicKey, base64.StdEncoding.EncodeToString(public))
	require.Len(t, public, 32)
	_, err = got.Keys[1].Public()
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.Equal(t, "public_key", jig.AsError(err).Field)

	_, err = spec.LoadTenant("acme.yaml", []byte("kind: policy\nname: acme\n"))
	require.ErrorContains(t, err, "write kind: tenant")
	_, err = spec.LoadTenant("acme.yaml", []byte("- kind: tenant\n"))
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
}

// A tenant's document is found, read and versioned like other documents.
func TestTenant_IsADocument(t *testing.T) {
	t.Parallel()
	asJSON, err := json.Marshal(valueOf(t, fullTenant))
	require.NoError(t, err)
	for file, body := range map[string][]byte{"acme.yaml": []byte(fullTenant), "acme.json": asJSON} {
		doc, problems := spec.Load(file, body)
		require.Empty(t, problems)
		require.Equal(t, spec.KindTenant, doc.Kind)
		require.Equal(t, "7-acme", doc.Name)
		require.Equal(t, "portal", doc.Tenant().Keys[1].ID)
		line, column := doc.Position("people[1].id")
		require.Positive(t, line)
		require.Positive(t, column)
		require.Empty(t, spec.Check([]spec.Document{doc}, spec.Catalog{Tools: []jig.Tool{}}))
		require.Empty(t, spec.Advise([]spec.Document{doc}, spec.Catalog{}))
	}
}

func TestSchema_OfTenantsAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	schema := compiled(t, spec.KindTenant)
	with := func(rest string) string { return "{kind: tenant, name: acme, " + rest + "}" }
	key := func(rest string) string { return with("keys: [{id: a, " + rest + "}]") }
	hook := func(url, rest string) string { return with("webhooks: [{url: '" + url + "', " + rest + "}]") }
	for text, ok := range map[string]bool{
		fullTenant:                                                               true,
		"{kind: tenant, name: acme}":                                             true,
		"{kind: tenant}":                                                         false,
		"{name: acme}":                                                           false,
		"{kind: tenants, name: a}":                                               false,
		"{kind: tenant, name: a.b}":                                              false,
		"{kind: tenant, name: _global}":                                          false,
		with("people: [{id: a, groups: [g]}]"):                                   true,
		with("people: [a]"):                                                      false,
		with("people: [{groups: [g]}]"):                                          false,
		with("people: [{id: ' a'}]"):                                             false,
		with("people: [{id: a, group: g}]"):                                      false,
		with("approvals: {signals: trusted}"):                                    true,
		with("approvals: {signals: on}"):                                         false,
		with("approvals: {reconcilers: {}}"):                                     false,
		with("approvals: {reconcilers: {groups: [a]}}"):                          true,
		with("owners: {people: [ana]}"):                                          true,
		with("owners: {people: [ana, bo], quorum: 2}"):                           true,
		with("owners: {}"):                                                       false,
		with("owners: [ana]"):                                                    false,
		with("owners: {people: [], quorum: 1}"):                                  false,
		with("owners: {people: [ana], quorum: 0}"):                               false,
		with("owners: {people: [ana], approvers: 1}"):                            false,
		with("owners: {quorum: 1}, people: [{id: ana}]"):                         true,
		with("owners: {groups: [g]}, people: [{id: ana, groups: [g]}]"):          true,
		with("owners: {permission: p}, people: [{id: ana, permissions: ['*']}]"): true,
		with("grants: {off: true}"):                                              true,
		with("grants: {max_uses: 0}"):                                            false,
		with("grants: {max_age: forever}"):                                       false,
		key("algorithm: ed25519, public_key: " + publicKey):                      true,
		key("algorithm: ed25519, public_key: short"):                             false,
		key("algorithm: ed25519"):                                                false,
		key("algorithm: ed25519, secret_env: JIG_SECRET_ACME__A"):                false,
		key("algorithm: ed25519, public_key: " + publicKey + ", secret_env: JIG_SECRET_ACME__A"): false,
		key("algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__A"):                            true,
		key("algorithm: hmac-sha256, secret_env: JIG_DATABASE_URL"):                              false,
		key("algorithm: none"):                                                                                false,
		hook("https://a.b/c", "secret_env: JIG_SECRET_ACME__A"):                                               true,
		hook("https://a.b:8443/c?d=e", "secret_env: JIG_SECRET_ACME__A"):                                      true,
		hook("https://a.b/c", "events: [approval.decided]"):                                                   false,
		hook("https://a.b/c", "secret_env: JIG_SECRET_ACME__A, events: [approval.decided]"):                   true,
		hook("https://a.b/c", "secret_env: JIG_SECRET_ACME__A, events: [approval]"):                           false,
		hook("https://a.b/c", "secret_env: JIG_SECRET_ACME__A, events: []"):                                   false,
		hook("file:///etc/passwd", "secret_env: JIG_SECRET_ACME__A"):                                          false,
		hook("http://a.b/c", "secret_env: JIG_SECRET_ACME__A"):                                                false,
		hook("http://10.0.0.1/c", "secret_env: JIG_SECRET_ACME__A"):                                           false,
		hook("http://localhost.example.com/c", "secret_env: JIG_SECRET_ACME__A"):                              false,
		hook("http://LocalHost:80/c", "secret_env: JIG_SECRET_ACME__A"):                                       true,
		hook("http://127.1.2.3/c", "secret_env: JIG_SECRET_ACME__A"):                                          true,
		hook("http://[::1]:8080", "secret_env: JIG_SECRET_ACME__A"):                                           true,
		hook("https://u:p@a.b/c", "secret_env: JIG_SECRET_ACME__A"):                                           false,
		hook("https://", "secret_env: JIG_SECRET_ACME__A"):                                                    false,
		hook("https://a.b/c", "secret_env: PATH"):                                                             false,
		with("webhooks: [" + strings.Repeat("{url: 'https://a', secret_env: JIG_SECRET_ACME__A},", 21) + "]"): false,
	} {
		_, err := spec.LoadTenant("acme.yaml", []byte(text))
		if ok {
			require.NoError(t, err, text)
			require.NoError(t, schema.Validate(valueOf(t, text)), text)
		} else {
			require.Error(t, err, text)
			require.Error(t, schema.Validate(valueOf(t, text)), text)
		}
	}
}

// Owners who could never approve a document could never be replaced, either.
func TestTenant_OwnersCanApproveTheirOwnReplacement(t *testing.T) {
	t.Parallel()
	const people = "people: [{id: ana, groups: [admins]}, {id: bo, groups: [admins]}, {id: carl, permissions: [own]}], "
	for rest, says := range map[string]string{
		"owners: {groups: [admins]}":                                     "1 of the owners must approve, but the document names only 0",
		"owners: {quorum: 1}":                                            "1 of the owners must approve, but the document names only 0",
		"owners: {people: [ana], quorum: 2}":                             "2 of the owners must approve, but the document names only 1",
		people + "owners: {groups: [admin]}":                             "but the document names only 0",
		people + "owners: {groups: [admins], quorum: 3}":                 "but the document names only 2",
		people + "owners: {quorum: 4}":                                   "but the document names only 3",
		people + "owners: {permission: own, groups: [admins]}":           "",
		people + "owners: {people: [ana, ana, dora], quorum: 1}":         "",
		people + "owners: {people: [ana]}":                               "warning: the requester may not approve",
		people + "owners: {groups: [admins], quorum: 2}":                 "warning: the requester may not approve",
		people + "owners: {people: [dora], groups: [admins], quorum: 2}": "",
		"people: [{id: ana}], owners: {people: [ana]}":                   "",
	} {
		_, problems := spec.Load("acme.yaml", []byte("{kind: tenant, name: acme, "+rest+"}"))
		want, warns := strings.CutPrefix(says, "warning: ")
		if says == "" {
			require.Empty(t, problems, rest)
			continue
		}
		require.Len(t, problems, 1, rest)
		require.Equal(t, "owners", problems[0].Path, rest)
		require.Contains(t, problems[0].Message, want, rest)
		require.Equal(t, warns, problems.OrNil() == nil, rest)
	}
}

// peopleOf returns a tenant with n people.
func peopleOf(n int) string {
	var b strings.Builder
	b.WriteString("kind: tenant\nname: acme\npeople:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {id: someone-%d@example.com, groups: [finance, leads], permissions: [refunds.any]}\n", i)
	}
	return b.String()
}

func TestTenant_Bounds(t *testing.T) {
	t.Parallel()
	got, err := spec.LoadTenant("acme.yaml", []byte(peopleOf(10_000)))
	require.NoError(t, err)
	require.Len(t, got.People, 10_000)
	for body, says := range map[string]string{
		peopleOf(10_001): "use at most 10000 entries",
		peopleOf(40_000): "at most 2097152 are allowed",
		"kind: tenant\nname: acme\npeople: [" + strings.Repeat("{},", 190_000) + "]": "more than 200000 values",
	} {
		_, err := spec.LoadTenant("acme.yaml", []byte(body))
		require.ErrorContains(t, err, says)
	}
	// The higher limits do not apply to other documents.
	_, problems := spec.Load("a.yaml", []byte(strings.Replace(peopleOf(10_000), "kind: tenant", "kind: policy", 1)))
	require.ErrorContains(t, problems.OrNil(), fmt.Sprintf("at most %d are allowed", spec.MaxDocumentBytes))
}

// FuzzTenant reads arbitrary text as a tenant's document. The keys of a document that is read without problems can verify something.
func FuzzTenant(f *testing.F) {
	f.Add(fullTenant)
	f.Add("kind: tenant\nname: a\nkeys: [{id: a, algorithm: ed25519, public_key: x}]\n")
	f.Add("kind: tenant\nname: a\npeople: [&a {id: a, groups: [*a]}, *a]\nwebhooks: [{url: 'http://[', secret_env: JIG_SECRET_}]\n")
	f.Add(`{"kind": "tenant", "name": "a", "approvals": {"reconcilers": {"people": ["\ud83d\ude00"]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := spec.LoadTenant("acme.yaml", []byte(text))
		if err != nil {
			require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
			return
		}
		require.NoError(t, jig.CheckTenant(got.Name))
		ids := map[string]bool{}
		for _, key := range got.Keys {
			require.False(t, ids[key.ID])
			ids[key.ID] = true
			if key.Algorithm == identity.AlgorithmHMAC {
				require.True(t, strings.HasPrefix(key.SecretEnv, spec.SecretPrefixOf(got.Name)))
				continue
			}
			public, err := key.Public()
			require.NoError(t, err)
			require.Len(t, public, 32)
		}
	})
}

func TestTenant_SecretsAreNamedAfterIt(t *testing.T) {
	t.Parallel()
	for tenant, prefix := range map[string]string{
		"acme": "JIG_SECRET_ACME__", "acme-west": "JIG_SECRET_ACME_WEST__", "a_b": "JIG_SECRET__615F62__", "a-": "JIG_SECRET__612D__",
	} {
		require.Equal(t, prefix, spec.SecretPrefixOf(tenant))
	}
	// No tenant can name a secret that belongs to another tenant, even if their names are similar.
	tenants := []string{"a", "a-b", "a_b", "a--b", "a-", "a_", "a-b-", "ab", "a-b-c", "615f62", "612d", "x" + strings.Repeat("_", 62)}
	for _, one := range tenants {
		document := func(name string) []byte {
			return []byte("kind: tenant\nname: " + one + "\nwebhooks: [{url: 'https://x.example', secret_env: " + name + "}]\n" +
				"keys: [{id: k, algorithm: hmac-sha256, secret_env: " + name + "}]\n")
		}
		_, err := spec.LoadTenant("t.yaml", document(spec.SecretPrefixOf(one)+"HOOK"))
		require.NoError(t, err, one)
		for _, other := range tenants {
			if other == one {
				continue
			}
			for _, rest := range []string{"HOOK", "B__HOOK", "_HOOK", "_B__HOOK"} {
				_, err := spec.LoadTenant("t.yaml", document(spec.SecretPrefixOf(other)+rest))
				require.ErrorContains(t, err, spec.SecretPrefixOf(one), "%s names a secret of %s", one, other)
				require.ErrorContains(t, err, "keys[0].secret_env")
				require.ErrorContains(t, err, "webhooks[0].secret_env")
			}
		}
		for _, name := range []string{"JIG_SECRET_HOOK", spec.SecretPrefixOf(one)} {
			_, err := spec.LoadTenant("t.yaml", document(name))
			require.Error(t, err, name)
		}
	}
}

// The passkey in docs/proof.md is a valid key, and what belongs to one is required.
func TestTenant_Passkey(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/proof.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "## Passkeys")
	_, section, _ = strings.Cut(section, "```yaml\n")
	body, _, found := strings.Cut(section, "```")
	require.True(t, found)
	got, err := spec.LoadTenant("acme.yaml", []byte(body))
	require.NoError(t, err)
	require.Equal(t, identity.AlgorithmWebAuthn, got.Keys[0].Algorithm)
	require.Equal(t, []string{"https://jig.example.com"}, got.Keys[0].Origins)
	_, err = got.Keys[0].Public()
	require.NoError(t, err)
	for old, why := range map[string]string{
		"    principal: ana\n": "a passkey needs principal", "    rp_id: jig.example.com\n": "a passkey needs rp_id",
		"    origins: [https://jig.example.com]\n": "a passkey needs origins", "MFkw": "this is not a passkey's public key",
	} {
		require.Contains(t, body, old)
		_, err := spec.LoadTenant("acme.yaml", []byte(strings.Replace(body, old, strings.Repeat("A", len(old)*strings.Count(old, "MFkw")/4), 1)))
		require.ErrorContains(t, err, why)
	}
}

func TestTenant_ProofAndSignalsSayTheSame(t *testing.T) {
	t.Parallel()
	_, err := spec.LoadTenant("acme.yaml", []byte("kind: tenant\nname: acme\napprovals: {proof: key, signals: signed}\n"))
	require.ErrorContains(t, err, "proof and signals say the same")
	_, err = spec.LoadTenant("acme.yaml", []byte("kind: tenant\nname: acme\nstarts: {proof: key}\n"))
	require.ErrorContains(t, err, "claimed or vouched")
	got, err := spec.LoadTenant("acme.yaml", []byte("kind: tenant\nname: acme\napprovals: {proof: passkey}\nstarts: {proof: vouched}\n"))
	require.NoError(t, err)
	require.Equal(t, jig.ProofPasskey, got.Approvals.Proof)
	require.Equal(t, jig.ProofVouched, got.Starts.Proof)
}

// A document does not name two principals whom people may take for one, wherever it names them.
func TestTenant_LookAlikes(t *testing.T) {
	t.Parallel()
	const cyrillic = "\u0430na"
	for path, rest := range map[string]string{
		"people[1].id":                    "people: [{id: ana}, {id: Ana}]",
		"people[2].id":                    "people: [{id: ana}, {id: ben}, {id: " + cyrillic + "}]",
		"roles[0].people[0]":              "people: [{id: ana}]\nroles: [{name: reader, people: [" + cyrillic + "]}]",
		"roles[1].people[1]":              "roles: [{name: reader, people: [pau1]}, {name: author, people: [ben, paul]}]",
		"owners.people[1]":                "owners: {people: [ana, ANA]}",
		"approvals.reconcilers.people[0]": "people: [{id: ana}]\napprovals: {reconcilers: {people: [" + cyrillic + "]}}",
		"keys[0].principal":               "people: [{id: ana}]\nkeys: [{id: k, algorithm: ed25519, principal: Ana, public_key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=}]",
	} {
		_, err := spec.LoadTenant("acme.yaml", []byte("kind: tenant\nname: acme\n"+rest+"\n"))
		require.ErrorContains(t, err, "looks like", path)
		require.ErrorContains(t, err, path)
	}
	_, err := spec.LoadTenant("acme.yaml", []byte("kind: tenant\nname: acme\npeople: [{id: ana}, {id: Ana, disabled: true}]\nroles: [{name: reader, people: [ana]}]\nowners: {people: [ana]}\n"))
	require.NoError(t, err, "whoever has such a name can be disabled, and one name may stand in several places")
}
