package worker

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
)

// Minimum lengths of secrets, in bytes. A key's secret is as long as the output of HMAC-SHA-256; a webhook's has the minimum of the
// Standard Webhooks specification.
const (
	minKeySecret     = 32
	minWebhookSecret = 24
)

// webhookPrefix marks a webhook secret in base64, as in the Standard Webhooks specification.
const webhookPrefix = "whsec_"

// tenants caches the settings in documents of kind tenant. A change takes effect on every worker within policyAge.
type tenants struct {
	documents policyDocuments
	// defaults applies to tenants whose document does not say what proof decisions need.
	defaults tenancy.SignalMode
	environ  func(name string) string
	logger   *slog.Logger

	mu    sync.Mutex
	known map[string]tenantSettings
}

// tenantSettings are a tenant's cached settings.
type tenantSettings struct {
	read     time.Time
	version  string
	settings tenancy.Settings
	// left lists the keys and webhooks that cannot be used fully, because this worker has no usable key or secret for them.
	left []leftOut
	// broken says why the document cannot be read. Nothing can be decided in the tenant while it is set.
	broken error
}

// leftOut is a part of a document that this worker cannot use.
type leftOut struct{ what, name, variable, why string }

func newTenants(documents policyDocuments, defaults tenancy.SignalMode, environ func(name string) string, logger *slog.Logger) *tenants {
	return &tenants{documents: documents, defaults: defaults, environ: environ, logger: logger, known: map[string]tenantSettings{}}
}

// Settings returns a tenant's settings, checked for changes at most policyAge ago. They are shared; callers must not modify them. It
// returns UNAVAILABLE if the tenant's document cannot be read, for example because a newer version of jig wrote it: what proof a decision
// needs must not be guessed.
func (t *tenants) Settings(ctx context.Context, tenant string) (tenancy.Settings, error) {
	t.mu.Lock()
	known, ok := t.known[tenant]
	t.mu.Unlock()
	if ok && time.Since(known.read) < policyAge {
		return known.settings, known.broken
	}
	versions, err := t.documents.CurrentDocuments(ctx, tenant, string(spec.KindTenant))
	if err != nil {
		return tenancy.Settings{}, err
	}
	version := ""
	if i := slices.IndexFunc(versions, func(v bundle.DocumentVersion) bool { return v.Name == tenant }); i >= 0 {
		version = versions[i].Version
	}
	if !ok || version != known.version {
		if known, err = t.load(ctx, tenant, version); err != nil {
			return tenancy.Settings{}, err
		}
	}
	known.read = time.Now()
	t.keep(ctx, tenant, known)
	return known.settings, known.broken
}

// keep caches a tenant's settings. Once per version it logs which parts of the document have no effect.
func (t *tenants) keep(ctx context.Context, tenant string, of tenantSettings) {
	t.mu.Lock()
	before, ok := t.known[tenant]
	remember(t.known, tenant, of)
	t.mu.Unlock()
	if ok && before.version == of.version {
		return
	}
	for _, l := range of.left {
		t.logger.WarnContext(ctx, "part of a tenant's document is left out", slog.String("tenant", tenant), slog.String("part", l.what),
			slog.String("name", l.name), slog.String("variable", l.variable), slog.String("why", l.why))
	}
}

// load reads a version of a tenant's document. An empty version means that there is no document; then load returns the defaults.
func (t *tenants) load(ctx context.Context, tenant, version string) (tenantSettings, error) {
	of := tenantSettings{version: version}
	var doc spec.Tenant
	if version != "" {
		body, err := t.documents.DocumentAt(ctx, tenant, string(spec.KindTenant), tenant, version)
		if err != nil {
			return of, err
		}
		if doc, err = spec.LoadTenant(tenant, body); err != nil {
			of.broken = jig.Errorf(jig.CodeUnavailable, "the document of tenant %s (version %s) cannot be read, so nothing is decided: %w", tenant, jig.ShortVersion(version), err).
				WithHint("register one that this worker reads: jig validate FILE, then jig catalog add FILE")
			return of, nil
		}
	}
	of.settings, of.left = t.settings(tenant, doc)
	of.settings.Version = version
	return of, nil
}

// settings converts a document to settings and lists the parts that this worker cannot use.
func (t *tenants) settings(tenant string, doc spec.Tenant) (s tenancy.Settings, left []leftOut) {
	s = tenancy.Settings{
		Signals: t.defaults,
		Grants:  approval.GrantCeiling{MaxUses: doc.Grants.MaxUses, MaxAge: time.Duration(doc.Grants.MaxAge), Off: doc.Grants.Off}.WithDefaults(),
	}
	if doc.Approvals.Signals != "" {
		s.Signals = doc.Approvals.Signals
	}
	if r := doc.Approvals.Reconcilers; r != nil {
		reconcilers := jig.Approvers(*r)
		s.Reconcilers = &reconcilers
	}
	if o := doc.Owners; o != nil {
		s.Owners = &tenancy.Owners{Approvers: o.Approvers(), Quorum: o.Quorum}
	}
	for _, p := range doc.People {
		s.People = append(s.People, jig.Principal{ID: p.ID, Groups: p.Groups, Permissions: p.Permissions})
	}
	for _, key := range doc.Keys {
		material, why := t.material(tenant, key)
		if why != "" {
			left = append(left, leftOut{"key", key.ID, key.SecretEnv, why})
			continue
		}
		s.Keys = append(s.Keys, identity.Key{ID: key.ID, Algorithm: key.Algorithm, Principal: key.Principal, Material: material})
	}
	for _, hook := range doc.Webhooks {
		secret, why := t.secret(tenant, hook.SecretEnv, minWebhookSecret)
		if why != "" { // keep the webhook without its secret: another worker may have it
			left = append(left, leftOut{"webhook", hook.URL, hook.SecretEnv, why})
		}
		s.Webhooks = append(s.Webhooks, tenancy.Webhook{URL: hook.URL, Secret: secret, Events: hook.Events})
	}
	return s, left
}

// material returns the bytes that a key verifies signatures with, or why there are none.
func (t *tenants) material(tenant string, key spec.TenantKey) (material []byte, why string) {
	if key.Algorithm == identity.AlgorithmHMAC {
		return t.secret(tenant, key.SecretEnv, minKeySecret)
	}
	material, err := key.Public()
	if err != nil {
		return nil, jig.AsError(err).Message
	}
	return material, ""
}

// secret reads a secret from the environment, or says why it cannot be used. The reason never contains the value.
func (t *tenants) secret(tenant, name string, least int) (secret []byte, why string) {
	if !strings.HasPrefix(name, spec.SecretPrefixOf(tenant)) {
		return nil, "the variable is not this tenant's"
	}
	value := t.environ(name)
	if value == "" {
		return nil, "the variable is not set"
	}
	secret = []byte(value)
	if encoded, ok := strings.CutPrefix(value, webhookPrefix); ok {
		var err error
		if secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, "what follows " + webhookPrefix + " is not base64"
		}
	}
	if len(secret) < least {
		return nil, "the secret is too short"
	}
	return secret, ""
}

// checkTenant refuses a document for another tenant, because it would never be read.
func checkTenant(tenant string, doc spec.Document) error {
	if doc.Tenant == nil || doc.Tenant.Name == tenant {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s is the document of tenant %s, and this is tenant %s", doc.Path, doc.Tenant.Name, tenant).
		WithField("name").WithHint("write name: " + tenant + ", or register it with --tenant " + doc.Tenant.Name)
}
