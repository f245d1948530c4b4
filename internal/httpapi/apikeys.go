package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

type keysAnswer struct {
	Body struct {
		Keys []credential.Credential `json:"api_keys"`
	} `nameHint:"APIKeys"`
}

func (a *API) listKeys(ctx context.Context, _ *struct{}) (*keysAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Credentials.Credentials(ctx, tenant, identity.KindAPIKey)
	answer := &keysAnswer{}
	answer.Body.Keys = append([]credential.Credential{}, list...)
	return answer, err
}

type keyRequest struct {
	Body struct {
		Name      string     `json:"name,omitempty" maxLength:"200" doc:"What the key is for"`
		Principal string     `json:"principal,omitempty" maxLength:"200" doc:"The principal that the key acts as; default: that of the credential"`
		Scopes    []string   `json:"scopes,omitempty" maxItems:"10" doc:"What the key allows: read, run, decide, author, operate, manage; default: read and run"`
		ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"When the key expires; default: never"`
	} `nameHint:"CreateAPIKey"`
}

type keyAnswer struct{ Body credential.CreatedKey }

func (a *API) createKey(ctx context.Context, in *keyRequest) (*keyAnswer, error) {
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
		return nil, err
	}
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	if err := mayCreate(c, settings, k); err != nil {
		return nil, err
	}
	if err := settings.CheckNew(k.Principal); err != nil {
		return nil, err
	}
	c.makes(&k, settings)
	text, id, hash := credential.KeyForm.New()
	k.ID = id
	created, err := a.options.Credentials.CreateCredential(ctx, credential.New{Credential: k, Hash: hash})
	return &keyAnswer{Body: credential.CreatedKey{Credential: created, Text: text}}, err
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
			return jig.Errorf(jig.CodeNotPermitted, "your credential does not have the scope %s, so it cannot give it to a key", scope).WithField("scopes")
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

type oneKey struct {
	Key string `path:"key" names:"key" maxLength:"100" doc:"The id of the key"`
}

func (a *API) revokeKey(ctx context.Context, in *oneKey) (*struct{}, error) {
	tenant, who := callerOf(ctx)
	return nil, a.options.Credentials.RevokeCredential(ctx, tenant, identity.CredentialRef{Kind: identity.KindAPIKey, ID: in.Key}, who.ID)
}

func (a *API) takeOverKey(ctx context.Context, in *oneKey) (*keyAnswer, error) {
	c := exchangeOf(ctx).caller
	keys, err := a.options.Credentials.Credentials(ctx, c.tenant, identity.KindAPIKey)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k credential.Credential) bool { return k.ID == in.Key })
	if at < 0 {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no such API key").WithField("key").WithHint("GET /v1/api-keys lists them")
	}
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return nil, err
	}
	k := keys[at]
	if err := mayTakeOver(c, settings, keys, k, a.options.Now()); err != nil {
		return nil, err
	}
	c.makes(&k, settings)
	text, hash := credential.KeyForm.Renew(k.ID)
	return &keyAnswer{Body: credential.CreatedKey{Credential: k, Text: text}}, a.options.Credentials.TakeOverAPIKey(ctx, k, hash)
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
