package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

func (a *API) listKeys(ctx context.Context, _ *struct{}) (api.APIKeys, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Credentials.Credentials(ctx, tenant, identity.KindAPIKey)
	return api.APIKeys{Keys: list}, err
}

func (a *API) createKey(ctx context.Context, in *api.CreateAPIKeyRequest) (created credential.CreatedKey, err error) {
	c := exchangeOf(ctx).caller
	k := credential.Credential{Tenant: c.tenant, Kind: identity.KindAPIKey, Name: in.Body.Name, Principal: in.Body.Principal, Scopes: in.Body.Scopes, ExpiresAt: in.Body.ExpiresAt}
	if k.Principal == "" {
		k.Principal = c.principal.ID
	}
	if len(k.Scopes) == 0 {
		k.Scopes = credential.DefaultScopes()
	}
	if k.ExpiresAt == nil && c.kind == identity.KindAPIKey {
		k.ExpiresAt = c.expires
	}
	if err := k.CheckKey(a.options.Now()); err != nil {
		return created, err
	}
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return created, err
	}
	if err := mayCreate(c, settings, k); err != nil {
		return created, err
	}
	if err := settings.CheckNew(k.Principal); err != nil {
		return created, err
	}
	c.makes(&k, settings)
	text, id, hash := credential.KeyForm.New()
	k.ID = id
	created.Text = text
	created.Credential, err = a.options.Credentials.CreateCredential(ctx, credential.New{Credential: k, Hash: hash})
	return created, err
}

// makes notes that a key was made with the caller's credential.
func (c caller) makes(k *credential.Credential, settings tenancy.Settings) {
	k.CreatedBy, k.MadeWith = c.principal.ID, identity.CredentialRef{Kind: c.kind, ID: c.id}
	k.Maker = identity.MakerOf(c.principal, k.Principal)
	k.Persons = settings.Persons(k.Link())
}

// mayCreate returns an error if a caller must not create a key. A key allows no more than the credential that creates it, and expires no later than
// an API key that creates it. It decides only as its creator, and never acts as another person. Otherwise, people who manage keys could approve
// their own requests.
func mayCreate(c caller, settings tenancy.Settings, k credential.Credential) error {
	for _, scope := range k.Scopes {
		if !c.allows(scope) {
			return jig.Errorf(jig.CodeNotPermitted, "your credential does not have the scope %s, so it cannot give it to a key", jig.Known(scope)).WithField("scopes")
		}
	}
	if c.kind == identity.KindAPIKey && c.expires != nil && (k.ExpiresAt == nil || k.ExpiresAt.After(*c.expires)) {
		return jig.Errorf(jig.CodeNotPermitted, "the key would outlive the key that creates it").WithField("expires_at").WithHint("leave it out, or choose an earlier time")
	}
	if k.Principal == c.principal.ID {
		return nil
	}
	if slices.Contains(k.Scopes, credential.ScopeDecide) {
		return jig.Errorf(jig.CodeNotPermitted, "a key that decides acts as its creator").WithField("principal").WithHint("leave out the principal, or the scope decide")
	}
	if settings.IsPerson(k.Principal) {
		return jig.Errorf(jig.CodeNotPermitted, "the principal is another person").WithField("principal").
			WithHint("leave it out, or name a program that the tenant's document does not list; `jig api-key create` on the server makes keys for everybody")
	}
	return nil
}

func (a *API) takeOverKey(ctx context.Context, in *api.APIKeyPath) (taken credential.CreatedKey, err error) {
	c := exchangeOf(ctx).caller
	keys, err := a.options.Credentials.Credentials(ctx, c.tenant, identity.KindAPIKey)
	if err != nil {
		return taken, err
	}
	at := slices.IndexFunc(keys, func(k credential.Credential) bool { return k.ID == in.Key })
	if at < 0 {
		return taken, jig.Errorf(jig.CodeNotFound, "there is no such API key").WithField("key").WithHint("GET /v1/api-keys lists them")
	}
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return taken, err
	}
	k := keys[at]
	if err := mayTakeOver(c, settings, keys, k, a.options.Now()); err != nil {
		return taken, err
	}
	c.makes(&k, settings)
	text, hash := credential.KeyForm.Renew(k.ID)
	return credential.CreatedKey{Credential: k, Text: text}, a.options.Credentials.TakeOverAPIKey(ctx, k, hash)
}

// mayTakeOver returns an error if a caller must not take over one of the tenant's keys: a key that they could not create, or that acts as a person who
// has left.
func mayTakeOver(c caller, settings tenancy.Settings, keys []credential.Credential, k credential.Credential, now time.Time) error {
	switch {
	case !k.Valid(now):
		return jig.Errorf(jig.CodeConflict, "the key was revoked or has expired").WithField("key").WithHint("create a new key")
	case c.kind == identity.KindAPIKey && credential.Descendants(keys, k.ID)[c.id]:
		return jig.Errorf(jig.CodeConflict, "your credential was made with this key, so it ends with it").WithField("key").
			WithHint("use a login, or a key that was not made with it")
	case k.Principal != c.principal.ID && slices.Contains(k.Persons, k.Principal):
		return jig.Errorf(jig.CodeNotPermitted, "the key acts as another person").WithField("key").WithHint("create a key for a program")
	}
	return mayCreate(c, settings, k)
}

// revoke ends a credential that the server issued.
func (a *API) revoke(ctx context.Context, kind, id string) (*struct{}, error) {
	tenant, who := callerOf(ctx)
	return nil, a.options.Credentials.RevokeCredential(ctx, tenant, identity.CredentialRef{Kind: kind, ID: id}, who.ID)
}

func (a *API) createEmbed(ctx context.Context, in *api.CreateEmbedTokenRequest) (created api.CreatedEmbed, err error) {
	c := exchangeOf(ctx).caller
	t := credential.Credential{
		Tenant: c.tenant, Kind: identity.KindEmbed, Tool: in.Body.Tool, Origin: in.Body.Origin, Principal: c.principal.ID, Scopes: credential.EmbedScopes(in.Body.Tool),
		ExpiresAt: c.expires, CreatedBy: c.principal.ID, MadeWith: identity.CredentialRef{Kind: c.kind, ID: c.id},
	}
	if !c.allows(credential.ScopeRead) {
		return created, c.lacks(credential.ScopeRead)
	}
	if in.Body.Session != "" {
		t.Session = jig.SessionID(c.tenant, in.Body.Session)
		if _, err := a.standing(ctx, c.tenant, t.Session); err != nil {
			return created, err
		}
	}
	if err := t.CheckEmbed(); err != nil {
		return created, err
	}
	if c.signed != nil {
		t.Issuer, t.Subject, t.Groups = c.signed.Issuer, c.signed.Subject, c.signed.Groups
	}
	text, id, hash := credential.EmbedForm.New()
	t.ID = id
	created.Text = text
	created.Credential, err = a.options.Credentials.CreateCredential(ctx, credential.New{Credential: t, Hash: hash})
	return created, err
}

func (a *API) listEmbeds(ctx context.Context, in *api.Page) (api.EmbedTokens, error) {
	tenant, _ := callerOf(ctx)
	list, next, err := a.options.Credentials.EmbedTokens(ctx, tenant, in.Cursor, in.Limit)
	return api.EmbedTokens{Tokens: list, Next: next}, err
}

// fromItsPage returns an error unless a request comes from a page of its embed token's origin. It is NOT_PERMITTED, reason cross_origin.
func (c caller) fromItsPage(r *http.Request) error {
	if origins := r.Header.Values("Origin"); len(origins) != 1 || origins[0] != c.embed.Origin {
		return jig.Errorf(jig.CodeNotPermitted, "the embed token is for pages of another origin").WithReason(reasonOrigin)
	}
	return nil
}

// embeds returns the kind of an embed token.
func embeds(t *credential.Credential) api.Embed {
	if t.Tool != "" {
		return api.EmbedTool
	}
	return api.EmbedSession
}

// reaches returns an error if the path of a request names another session or tool than those of its embed token. All others are answered in
// the same way, whether they exist or not. param returns a parameter of the path, or "".
func (c caller) reaches(param func(name string) string) error {
	if c.embed == nil {
		return nil
	}
	if session := param("session"); session != "" && !c.embed.Shows(jig.SessionID(c.tenant, session)) {
		return jig.Errorf(jig.CodeNotFound, "there is no such session").WithField("session")
	}
	if tool := param("tool"); tool != "" && tool != c.embed.Tool {
		return jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	return nil
}

// recordTimeout is how long a refused request waits until the refusal is recorded.
const recordTimeout = time.Second

// recordRefusal records the refusal of a credential whose tenant is known.
func (a *API) recordRefusal(ctx context.Context, c caller, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	a.record(ctx, c, reason)
}

// recordEnded records the refusal of a credential that was revoked or has expired. The request must contain its secret, so that a stranger
// cannot write to the record of a tenant.
func (a *API) recordEnded(ctx context.Context, r *http.Request) {
	id, hash, ok := presented(r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	ended, reason, err := a.options.CredentialLog.EndedCredential(ctx, id, hash)
	switch {
	case err == nil:
		c := callerWith(ended)
		c.principal.ID = a.whoLoggedIn(ctx, ended)
		a.record(ctx, c, reason)
	case jig.CodeOf(err) != jig.CodeNotFound:
		a.unrecorded(ctx, err)
	}
}

func (a *API) record(ctx context.Context, c caller, reason string) {
	if c.principal.ID == "" && c.signed != nil {
		c.principal.ID = a.personOf(ctx, c.tenant, tenancy.Login{Issuer: c.signed.Issuer, Subject: c.signed.Subject})
	}
	err := a.options.CredentialLog.RecordCredential(ctx, identity.CredentialEvent{
		Tenant: c.tenant, Kind: identity.EventRefused, Reason: reason, CredentialKind: c.kind, CredentialID: c.id, Principal: c.principal.ID,
		Address: identity.AddressOf(ctx), Source: c.payer(),
	})
	if err != nil {
		a.unrecorded(ctx, err)
	}
}

// unrecorded logs that a refusal could not be recorded.
func (a *API) unrecorded(ctx context.Context, err error) {
	a.options.Logger.WarnContext(ctx, "a refused credential could not be recorded", slog.String("request_id", exchangeOf(ctx).id), slog.Any("error", err))
}

// personOf returns the principal of a person who logged in at an identity provider, as the tenant's document names them now.
func (a *API) personOf(ctx context.Context, tenant string, l tenancy.Login) string {
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	if err != nil {
		return l.Principal()
	}
	return settings.SignedIn(l, nil).ID
}

// whoLoggedIn returns the principal of a credential, which for a login follows from the tenant's document.
func (a *API) whoLoggedIn(ctx context.Context, c credential.Credential) string {
	if c.Kind != identity.KindLogin {
		return c.Principal
	}
	return a.personOf(ctx, c.Tenant, tenancy.Login{Issuer: c.Issuer, Subject: c.Subject})
}

// presented returns the id and the hash of a request's credential. ok is false if it does not have the form of one that this server issues.
func presented(r *http.Request) (id string, hash []byte, ok bool) {
	headers := r.Header.Values("Authorization")
	if cookie, cookied := cookieOf(r, cookieLogin); cookied && len(headers) == 0 {
		return credential.LoginForm.Parse(cookie)
	}
	if len(headers) != 1 {
		return "", nil, false
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil, false
	}
	if id, hash, ok = credential.EmbedForm.Parse(text); ok {
		return id, hash, true
	}
	return credential.KeyForm.Parse(text)
}
