package wire

import (
	"context"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

// Shortest secrets, in bytes: those of keys are as long as what HMAC-SHA-256 gives, those of webhooks as their standard wants.
const (
	minKeySecret     = 32
	minWebhookSecret = 24
)

// webhookPrefix begins a webhook's secret in base64, as receivers of Standard Webhooks write it.
const webhookPrefix = "whsec_"

// tenants gives what the documents of kind tenant say. A change holds everywhere after policyAge.
type tenants struct {
	documents policyDocuments
	// defaults are what holds for a tenant whose document does not say what decisions must prove.
	defaults jig.SignalMode
	environ  func(name string) string
	logger   *slog.Logger

	mu    sync.Mutex
	known map[string]tenantSettings
}

// tenantSettings are a tenant's settings as they were read.
type tenantSettings struct {
	read     time.Time
	version  string
	settings jig.TenantSettings
	// left are the keys and webhooks that this worker has no secret for.
	left []leftOut
	// broken says why the document cannot be read; then nothing is decided.
	broken error
}

// leftOut is a part of a document that has no effect on this worker.
type leftOut struct{ what, name, variable, why string }

func newTenants(documents policyDocuments, defaults jig.SignalMode, environ func(name string) string, logger *slog.Logger) *tenants {
	return &tenants{documents: documents, defaults: defaults, environ: environ, logger: logger, known: map[string]tenantSettings{}}
}

// Settings gives a tenant's settings, read at most policyAge ago. They are shared: whoever gets them changes nothing. A document
// that cannot be read (a newer version wrote it) is UNAVAILABLE: nobody guesses what a decision has to prove.
func (t *tenants) Settings(ctx context.Context, tenant string) (jig.TenantSettings, error) {
	t.mu.Lock()
	known, ok := t.known[tenant]
	t.mu.Unlock()
	if ok && time.Since(known.read) < policyAge {
		return known.settings, known.broken
	}
	versions, err := t.documents.CurrentDocuments(ctx, tenant, string(spec.KindTenant))
	if err != nil {
		return jig.TenantSettings{}, err
	}
	version := ""
	if i := slices.IndexFunc(versions, func(v jig.DocumentVersion) bool { return v.Name == tenant }); i >= 0 {
		version = versions[i].Version
	}
	if !ok || version != known.version {
		if known, err = t.load(ctx, tenant, version); err != nil {
			return jig.TenantSettings{}, err
		}
	}
	known.read = time.Now()
	t.keep(ctx, tenant, known)
	return known.settings, known.broken
}

// keep remembers what was read, and tells once of each version what of it has no effect.
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

// load reads a version of a tenant's document; of none, the defaults.
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

// settings makes settings of a document.
func (t *tenants) settings(tenant string, doc spec.Tenant) (s jig.TenantSettings, left []leftOut) {
	s = jig.TenantSettings{
		Signals: t.defaults,
		Grants:  jig.GrantCeiling{MaxUses: doc.Grants.MaxUses, MaxAge: time.Duration(doc.Grants.MaxAge), Off: doc.Grants.Off}.WithDefaults(),
	}
	if doc.Approvals.Signals != "" {
		s.Signals = doc.Approvals.Signals
	}
	if r := doc.Approvals.Reconcilers; r != nil {
		reconcilers := jig.Approvers(*r)
		s.Reconcilers = &reconcilers
	}
	if o := doc.Owners; o != nil {
		s.Owners = &jig.Owners{Approvers: o.Approvers(), Quorum: o.Quorum}
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
		s.Keys = append(s.Keys, jig.Key{ID: key.ID, Algorithm: key.Algorithm, Principal: key.Principal, Material: material})
	}
	for _, hook := range doc.Webhooks {
		secret, why := t.secret(tenant, hook.SecretEnv, minWebhookSecret)
		if why != "" { // it stays without its secret: another worker may have it
			left = append(left, leftOut{"webhook", hook.URL, hook.SecretEnv, why})
		}
		s.Webhooks = append(s.Webhooks, jig.Webhook{URL: hook.URL, Secret: secret, Events: hook.Events})
	}
	return s, left
}

// material is what a key verifies with, or why there is none.
func (t *tenants) material(tenant string, key spec.TenantKey) (material []byte, why string) {
	if key.Algorithm == jig.AlgorithmHMAC {
		return t.secret(tenant, key.SecretEnv, minKeySecret)
	}
	material, err := key.Public()
	if err != nil {
		return nil, jig.AsError(err).Message
	}
	return material, ""
}

// secret takes a secret from the environment, or says why it is not to be used; the value is never repeated.
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

// checkTenant refuses the document of another tenant: nobody would ever read it.
func checkTenant(tenant string, doc spec.Document) error {
	if doc.Tenant == nil || doc.Tenant.Name == tenant {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s is the document of tenant %s, and this is tenant %s", doc.Path, doc.Tenant.Name, tenant).
		WithField("name").WithHint("write name: " + tenant + ", or register it with --tenant " + doc.Tenant.Name)
}
