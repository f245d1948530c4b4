package current

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

const acme = `kind: tenant
name: acme
approvals: {signals: off, reconcilers: {groups: [operations]}}
keys:
  - {id: ana, algorithm: ed25519, principal: ana, public_key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=}
  - {id: portal, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__PORTAL}
  - {id: missing, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__MISSING}
  - {id: short, algorithm: hmac-sha256, secret_env: JIG_SECRET_ACME__SHORT}
people:
  - {id: ana, groups: [finance], permissions: [pay]}
grants: {max_uses: 7}
webhooks:
  - {url: "https://a.example.com", secret_env: JIG_SECRET_ACME__HOOK, events: [approval.requested]}
  - {url: "https://b.example.com", secret_env: JIG_SECRET_ACME__SHORT}
  - {url: "https://c.example.com", secret_env: JIG_SECRET_ACME__ODD}
`

// cabinet holds tenant documents by tenant and counts how often one is read.
type cabinet struct {
	bodies   map[string]string
	versions map[string]string
	opened   int
	err      error
}

func (c *cabinet) CurrentDocuments(_ context.Context, tenant, kind string) ([]bundle.DocumentVersion, error) {
	if _, ok := c.bodies[tenant]; !ok || kind != "tenant" || c.err != nil {
		return nil, c.err
	}
	return []bundle.DocumentVersion{{Kind: kind, Name: "other", Version: "v0"}, {Kind: kind, Name: tenant, Version: c.versions[tenant]}}, nil
}

func (c *cabinet) DocumentAt(_ context.Context, tenant, _, name, version string) ([]byte, error) {
	if name != tenant || version != c.versions[tenant] {
		return nil, jig.Errorf(jig.CodeNotFound, "no document %s of %s", name, tenant)
	}
	c.opened++
	return []byte(c.bodies[tenant]), nil
}

var secrets = map[string]string{
	"JIG_SECRET_ACME__PORTAL": strings.Repeat("p", minKeySecret),
	"JIG_SECRET_ACME__SHORT":  strings.Repeat("s", minWebhookSecret-1),
	"JIG_SECRET_ACME__HOOK":   webhookPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("h", minWebhookSecret))),
	"JIG_SECRET_ACME__ODD":    webhookPrefix + strings.Repeat("?", minWebhookSecret),
}

func reading(c *cabinet, log *bytes.Buffer, change ...func(*Options)) *Tenants {
	o := Options{
		Documents: c, Signals: tenancy.SignalsSigned, Environ: func(name string) string { return secrets[name] },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	return NewTenants(o)
}

// Signatures of a disabled key do not count, and the directory says so.
func TestTenantSettings_DisabledKey(t *testing.T) {
	t.Parallel()
	off := strings.Replace(acme, "principal: ana", "disabled: true, principal: ana", 1)
	require.NotEqual(t, acme, off)
	var log bytes.Buffer
	got, err := reading(&cabinet{bodies: map[string]string{"acme": off}, versions: map[string]string{"acme": "v1"}}, &log).Settings(t.Context(), "acme")
	require.NoError(t, err)
	require.Empty(t, got.Key("ana").ID)
	require.Equal(t, []tenancy.DirectoryKey{{ID: "ana", Algorithm: identity.AlgorithmEd25519, Disabled: true}}, got.Directory.People[0].Keys)
}

// Whoever disables somebody whom the document does not know still decides as before.
func TestTenantSettings_DisablingAStrangerListsNobody(t *testing.T) {
	t.Parallel()
	empty := "kind: tenant\nname: acme\n"
	for document, want := range map[string][]string{
		acme: {"ana"}, empty: nil, empty + "owners: {people: [ci]}\n": {"ci"},
		empty + "people:\n  - {id: ci, groups: [finance]}\n":                                                          {"ci"},
		empty + "roles:\n  - {name: reviewer, people: [ci]}\n":                                                        {"ci"},
		empty + "people:\n  - {id: ci}\nkeys:\n" + strings.ReplaceAll(strings.Split(acme, "\n")[4]+"\n", "ana", "ci"): {"ci"},
	} {
		body, err := spec.DisablePerson("acme.yaml", []byte(document), "ci", true)
		require.NoError(t, err)
		var log bytes.Buffer
		got, err := reading(&cabinet{bodies: map[string]string{"acme": string(body)}, versions: map[string]string{"acme": "v1"}}, &log).Settings(t.Context(), "acme")
		require.NoError(t, err)
		require.True(t, got.IsDisabled("ci"))
		require.Equal(t, want, got.Listed(), string(body))
		require.Equal(t, document == acme, got.OnlyPerson("ana") && len(want) > 0)
	}
}

func TestSettings_OfADocument(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := &cabinet{bodies: map[string]string{"acme": acme}, versions: map[string]string{"acme": "v1"}}
	of := reading(c, &log)
	got, err := of.Settings(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, got.Keys[0].Material, 32)
	got.Keys[0].Material = nil
	require.Len(t, got.Directory.Keys, 3, "those that this worker cannot use included")
	require.Equal(t, "ana", got.Directory.People[0].Keys[0].ID)
	got.Directory = tenancy.Directory{}
	require.Equal(t, tenancy.Settings{
		Version: "v1", Proof: jig.ProofKey, NoSignals: true, Starts: jig.ProofClaimed, Reconcilers: &jig.Approvers{Groups: []string{"operations"}},
		Keys: []identity.Key{
			{ID: "ana", Algorithm: identity.AlgorithmEd25519, Principal: "ana"},
			{ID: "portal", Algorithm: identity.AlgorithmHMAC, Material: []byte(secrets["JIG_SECRET_ACME__PORTAL"])},
		},
		People: []jig.Principal{{ID: "ana", Groups: []string{"finance"}, Permissions: []string{"pay"}}},
		Grants: approval.GrantCeiling{MaxUses: 7, MaxAge: 30 * 24 * time.Hour},
		Webhooks: []tenancy.Webhook{
			{URL: "https://a.example.com", Secret: []byte(strings.Repeat("h", minWebhookSecret)), Events: []jig.NoticeKind{jig.NoticeRequested}},
			{URL: "https://b.example.com"},
			{URL: "https://c.example.com"},
		},
	}, got)

	// A tenant without a document has the worker's defaults.
	got, err = of.Settings(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, tenancy.Settings{
		Proof: jig.ProofKey, SharedKeys: true, Starts: jig.ProofClaimed, Grants: approval.GrantCeiling{}.WithDefaults(), Directory: spec.Tenant{}.Directory(),
	}, got)
}

// Parts that are left out are logged once per version, without the secrets.
func TestSettings_LogsUnusableParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &cabinet{bodies: map[string]string{"acme": acme}, versions: map[string]string{"acme": "v1"}}
		of := reading(c, &log)
		read := func() {
			time.Sleep(time.Second)
			_, err := of.Settings(t.Context(), "acme")
			require.NoError(t, err)
		}
		_, err := of.Settings(t.Context(), "acme")
		require.NoError(t, err)
		for _, part := range []string{"name=missing", "JIG_SECRET_ACME__MISSING", "not set", "name=short", "too short", "https://b.example.com", "https://c.example.com", "not base64"} {
			require.Contains(t, log.String(), part)
		}
		require.Equal(t, 4, strings.Count(log.String(), "level=WARN"))
		require.NotContains(t, log.String(), secrets["JIG_SECRET_ACME__SHORT"])
		read()
		require.Equal(t, 4, strings.Count(log.String(), "level=WARN"))
		require.Equal(t, 1, c.opened, "a version is read once")
		c.versions["acme"] = "v2"
		_, err = of.Settings(t.Context(), "acme")
		require.NoError(t, err)
		require.Equal(t, 1, c.opened, "the settings are cached for a second")
		read()
		require.Equal(t, 2, c.opened)
		require.Equal(t, 8, strings.Count(log.String(), "level=WARN"))
	})
}

// Nothing is decided while the settings cannot be read.
func TestSettings_OfAnUnreadableDocumentAreUnavailable(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := &cabinet{bodies: map[string]string{"acme": "kind: tenant\nname: acme\nnovelty: 3\n"}, versions: map[string]string{"acme": "v1"}}
	of := reading(c, &log)
	for range 2 {
		got, err := of.Settings(t.Context(), "acme")
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeUnavailable})
		require.ErrorContains(t, err, "novelty")
		require.Empty(t, got)
	}
	require.Equal(t, 1, c.opened)
	c.err = errors.New("no database")
	_, err := reading(c, &log).Settings(t.Context(), "acme")
	require.ErrorIs(t, err, c.err)
}

func TestCheck_RefusesTheDocumentOfAnotherTenant(t *testing.T) {
	t.Parallel()
	doc, problems := spec.Load("doc.yaml", []byte(acme))
	require.NoError(t, problems.OrNil())
	require.NoError(t, Check("acme", doc))
	err := Check("other", doc)
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.Equal(t, "name", jig.AsError(err).Field)
	require.Contains(t, jig.AsError(err).Hint, "--tenant acme")
}

// Every tenant accepts the operator's key, and its principal counts as an owner.
func TestSettings_OperatorCountsAsAnOwner(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := &cabinet{bodies: map[string]string{"acme": acme}, versions: map[string]string{"acme": "v1"}}
	of := reading(c, &log, func(o *Options) { o.Operator = &identity.Key{ID: "op", Principal: "olga"} })
	got, err := of.Settings(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, "olga", got.Operator)
	require.Equal(t, "op", got.Keys[len(got.Keys)-1].ID)
}

// In a tenant with a document, only the document grants permissions.
func TestEverybody_OnlyWithoutADocument(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := &cabinet{bodies: map[string]string{"acme": acme}, versions: map[string]string{"acme": "v1"}}
	of := reading(c, &log, func(o *Options) { o.Everybody = []string{"entities.*.read"} })
	for tenant, want := range map[string][]string{"acme": nil, "new": {"entities.*.read"}} {
		got, err := of.Settings(t.Context(), tenant)
		require.NoError(t, err)
		require.Equal(t, want, got.Everybody, tenant)
	}
}

// A document that was stored by other means and names another tenant's secret does not get that secret.
func TestSettings_HaveNoSecretOfAnotherTenant(t *testing.T) {
	t.Parallel()
	of := reading(&cabinet{}, &bytes.Buffer{})
	for tenant, found := range map[string]bool{"acme": true, "globex": false, "acme-west": false, "acm": false} {
		secret, why := of.secret(tenant, "JIG_SECRET_ACME__PORTAL", minKeySecret)
		require.Equal(t, found, secret != nil, tenant)
		require.Equal(t, found, why == "", tenant)
	}
}
