package current

import (
	"cmp"
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

// Options configure the settings of tenants.
type Options struct {
	// Documents is required.
	Documents bundle.Documents
	// Proof and Starts apply to tenants whose documents do not say what proof decisions and starts need. Signals, unless empty, applies in place
	// of Proof.
	Proof, Starts jig.Proof
	Signals       tenancy.SignalMode
	// Environ returns a variable of the environment, which holds the secrets that documents name. Required.
	Environ func(name string) string
	// Operator is a key that every tenant accepts. Without it nobody could approve a tenant's first document. It may be nil.
	Operator *identity.Key
	// Everybody lists the permissions of every principal in tenants without a document.
	Everybody []string
	// Logger gets a warning for each part of a document that has no effect. Required.
	Logger *slog.Logger
}

// Tenants returns the current settings of tenants. A change takes effect on every worker within a second. It is safe for concurrent use.
type Tenants struct {
	options Options
	known   *bundle.Current[*settings]
}

// settings holds the settings from one version of a tenant's document.
type settings struct {
	settings tenancy.Settings
	// left lists the keys and webhooks for which this worker has no usable key or secret.
	left []leftOut
	// warn logs left once.
	warn sync.Once
	// broken says why the document cannot be read. Nothing can be decided in the tenant while it is set.
	broken error
}

// leftOut is a part of a document that this worker cannot use.
type leftOut struct{ what, name, variable, why string }

// NewTenants returns the settings of tenants.
func NewTenants(o Options) *Tenants {
	t := &Tenants{options: o}
	t.known = bundle.NewCurrent(ownDocument{o.Documents}, string(spec.KindTenant), t.load)
	return t
}

// ownDocument leaves out the documents of other tenants that a tenant sees.
type ownDocument struct{ bundle.Documents }

func (o ownDocument) CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error) {
	list, err := o.Documents.CurrentDocuments(ctx, tenant, kind)
	return slices.DeleteFunc(list, func(v bundle.DocumentVersion) bool { return v.Name != tenant }), err
}

// Settings returns a tenant's settings, with the operator's key among the tenant's keys and, for a tenant without a document, the permissions
// of everybody. They are shared; callers must not modify them. It returns UNAVAILABLE if the tenant's document cannot be read, for example
// because a newer version of jig wrote it: what proof a decision needs must not be guessed.
func (t *Tenants) Settings(ctx context.Context, tenant string) (tenancy.Settings, error) {
	of, err := t.known.Of(ctx, tenant)
	if err != nil {
		return tenancy.Settings{}, err
	}
	of.warn.Do(func() { t.warn(ctx, tenant, of.left) })
	return of.settings, of.broken
}

// Latest is like [Tenants.Settings], but reads again which document the tenant has.
func (t *Tenants) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	t.known.Forget(tenant)
	return t.Settings(ctx, tenant)
}

// warn logs which parts of a document have no effect.
func (t *Tenants) warn(ctx context.Context, tenant string, left []leftOut) {
	for _, l := range left {
		t.options.Logger.WarnContext(ctx, "part of a tenant's document is left out", slog.String("tenant", tenant), slog.String("part", l.what),
			slog.String("name", l.name), slog.String("variable", l.variable), slog.String("why", l.why))
	}
}

// load reads a tenant's document. It returns the defaults if there is none.
func (t *Tenants) load(_ context.Context, tenant string, documents []bundle.StoredDocument) (*settings, error) {
	of := &settings{}
	var doc spec.Tenant
	version := ""
	for _, d := range documents {
		var err error
		version = d.Version
		if doc, err = spec.LoadTenant(tenant, d.Body); err != nil {
			of.broken = jig.Errorf(jig.CodeUnavailable, "the document of tenant %s (version %s) cannot be read, so nothing is decided: %w", tenant, jig.ShortVersion(version), err).
				WithHint("register one that this worker reads: jig validate FILE, then jig catalog add FILE")
			return of, nil
		}
	}
	of.settings, of.left = t.settings(tenant, doc)
	of.settings.Version = version
	if o := t.options.Operator; o != nil {
		of.settings.Keys, of.settings.Operator = append(of.settings.Keys, *o), o.Principal
	}
	if version == "" {
		of.settings.Everybody = t.options.Everybody
	}
	return of, nil
}

// settings converts a document to settings and lists the parts that this worker cannot use.
func (t *Tenants) settings(tenant string, doc spec.Tenant) (s tenancy.Settings, left []leftOut) {
	s = tenancy.Settings{
		Proof: t.options.Proof, Starts: cmp.Or(doc.Starts.Proof, t.options.Starts, jig.ProofClaimed),
		Grants: approval.GrantCeiling{MaxUses: doc.Grants.MaxUses, MaxAge: time.Duration(doc.Grants.MaxAge), Off: doc.Grants.Off}.WithDefaults(),
	}
	switch mode := cmp.Or(doc.Approvals.Signals, t.options.Signals); {
	case doc.Approvals.Proof != "":
		s.Proof = doc.Approvals.Proof
	case mode != "":
		s.SetSignals(mode)
	}
	if r := doc.Approvals.Reconcilers; r != nil {
		reconcilers := jig.Approvers(*r)
		s.Reconcilers = &reconcilers
	}
	if o := doc.Owners; o != nil {
		s.Owners = &tenancy.Owners{Approvers: o.Approvers(), Quorum: o.Quorum}
	}
	s.People, s.Roles, s.Directory = doc.Principals(), doc.AllRoles(), doc.Directory()
	for _, p := range doc.People {
		if p.Disabled {
			s.Disabled = append(s.Disabled, p.ID)
		}
		for _, l := range p.Logins {
			if s.Logins == nil {
				s.Logins = map[tenancy.Login]string{}
			}
			s.Logins[tenancy.Login{Issuer: l.Issuer, Subject: l.Subject}] = p.ID
		}
	}
	for _, g := range doc.LoginGroups {
		s.LoginGroups = append(s.LoginGroups, tenancy.LoginGroup{Issuer: g.Issuer, Value: g.Value, Group: g.Group})
	}
	for _, key := range doc.Keys {
		if key.Disabled {
			continue
		}
		material, why := t.material(tenant, key)
		if why != "" {
			left = append(left, leftOut{"key", key.ID, key.SecretEnv, why})
			continue
		}
		s.Keys = append(s.Keys, identity.Key{ID: key.ID, Algorithm: key.Algorithm, Principal: key.Principal, Maker: key.Maker, Material: material, RelyingParty: key.RelyingParty, Origins: key.Origins})
	}
	for _, hook := range doc.Webhooks {
		secret, why := t.secret(tenant, hook.SecretEnv, minWebhookSecret)
		if why != "" { // keep the webhook without its secret: another worker may have it
			left = append(left, leftOut{"webhook", hook.URL, hook.SecretEnv, why})
		}
		s.Webhooks = append(s.Webhooks, tenancy.Webhook{URL: hook.URL, Secret: secret, Events: hook.Events})
	}
	for _, m := range doc.Messages {
		message := tenancy.Message{Mail: m.Mail, ChatEnv: m.ChatEnv, Events: m.Events}
		if m.ChatEnv != "" {
			address, why := t.secret(tenant, m.ChatEnv, 1)
			if why != "" {
				left = append(left, leftOut{"message", m.ChatEnv, m.ChatEnv, why})
			}
			message.ChatURL = string(address)
		}
		s.Messages = append(s.Messages, message)
	}
	return s, left
}

// material returns the bytes that a key verifies signatures with, or why there are none.
func (t *Tenants) material(tenant string, key spec.TenantKey) (material []byte, why string) {
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
func (t *Tenants) secret(tenant, name string, least int) (secret []byte, why string) {
	if !strings.HasPrefix(name, spec.SecretPrefixOf(tenant)) {
		return nil, "the variable is not this tenant's"
	}
	value := t.options.Environ(name)
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

// Check refuses a document for another tenant, because it would never be read.
func Check(tenant string, doc spec.Document) error {
	if doc.Tenant() == nil || doc.Tenant().Name == tenant {
		return nil
	}
	return jig.Errorf(jig.CodeInvalidInput, "%s is the document of tenant %s, and this is tenant %s", doc.Path, doc.Tenant().Name, jig.Known(tenant)).
		WithField("name").WithHint(jig.Templatef("write name: %s, or register it with --tenant %s", jig.Known(tenant), doc.Tenant().Name))
}
