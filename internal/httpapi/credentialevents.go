package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/tenancy"
)

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
		a.record(ctx, caller{kind: ended.Kind, id: ended.ID, tenant: ended.Tenant, principal: jig.Principal{ID: a.whoLoggedIn(ctx, ended)}}, reason)
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
		Address: identity.AddressOf(ctx),
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
