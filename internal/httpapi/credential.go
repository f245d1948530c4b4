package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/identity/openid"
	"github.com/jig-run/jig/internal/tenancy"
)

// Reasons of refused credentials.
const (
	reasonCredential = "unauthenticated"
	reasonScope      = "scope"
	reasonDisabled   = tenancy.EndedDisabled
)

// shownReasons lists why credentials are refused that nobody can use without their secret, so that the reason may be told.
func shownReasons() []string {
	return []string{reasonDisabled, reasonOrigin, tenancy.EndedRemoved, tenancy.EndedPerson}
}

// More reasons for refusing requests, for the observer.
const (
	refusedHost    = "host"
	refusedAddress = "rate_of_address"
	refusedKey     = "rate_of_key"
	refusedStarts  = "rate_of_starts"
	// reasonRoom is also the reason of the problem.
	reasonRoom = "room"
)

// caller describes the principal that a request acts for. Only [API.credential] creates it, from the credential and the tenant's document. The
// rest of the request does not influence it.
type caller struct {
	kind string
	// id identifies the credential in the log, and label says what its owner uses it for.
	id, label string
	tenant    string
	// principal has only the groups that the credential gives. Workers add what the tenant's document gives at the time. Without a signing key,
	// workers treat the server's word as a claim.
	principal jig.Principal
	// holds is the principal with everything that the tenant's document gives it now.
	holds jig.Principal
	// name is the principal's name for people.
	name string
	// signed holds the identity provider's claims, from the access token or from the login; nil for other credentials.
	signed *openid.Identity
	// scopes are the scopes of the credential, and roles the principal's roles.
	scopes, roles []string
	// expires is when the credential expires; nil if it does not.
	expires *time.Time
	// embed is the embed token; nil for other credentials.
	embed *credential.Credential
	// lineage holds the API key with those that made it, or that of an embed token; nil for other credentials.
	lineage identity.Lineage
}

// allows reports whether the credential has a scope. Every credential has the empty scope.
func (c caller) allows(scope string) bool { return scope == "" || slices.Contains(c.scopes, scope) }

// payer returns whose rate and whose share of the server the credential uses. Credentials that another one made use those of the credential at the
// beginning of their lineage, and all credentials of a person together those of the person: making more of them gives nobody more.
func (c caller) payer() string {
	person := c.principal.ID
	if c.embed != nil {
		person = c.embed.CreatedBy
	}
	if n := len(c.lineage); n > 0 {
		if person = c.lineage[n-1].CreatedBy; person == "" {
			return c.tenant + " key " + c.lineage[n-1].ID
		}
	}
	return c.tenant + " person " + person
}

// Caller returns the tenant and the principal for whom a request acts; "" if the request has no credential.
func Caller(ctx context.Context) (tenant string, who jig.Principal) { return callerOf(ctx) }

// callerOf returns the tenant and the principal for whom a request acts.
func callerOf(ctx context.Context) (tenant string, who jig.Principal) {
	c := exchangeOf(ctx).caller
	return c.tenant, c.principal
}

// authenticate returns the middleware that refuses requests without a credential that the operation accepts. Its result is the only source of
// the tenant and the principal.
func (a *API) authenticate(o api.Operation) func(ctx huma.Context, next func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		exchangeOf(ctx.Context()).operation = ctx.Operation().OperationID
		c, err := a.credential(ctx.Context(), r)
		if err != nil {
			p := a.problemOf(ctx.Context(), err)
			switch {
			case p.Status == http.StatusUnauthorized:
				a.options.Observer.Refused(reasonCredential)
				a.recordEnded(ctx.Context(), r)
			case slices.Contains(shownReasons(), p.Reason):
				a.options.Observer.Refused(p.Reason)
				a.recordRefusal(ctx.Context(), c, p.Reason)
			}
			a.refuse(w, r, p)
			return
		}
		x := exchangeOf(ctx.Context())
		x.caller, x.scope = c, o.Scope
		if c.embed != nil {
			shareWith(w.Header(), c.embed.Origin)
		}
		payer := c.payer()
		if wait := a.byKey.take(payer, a.options.Now()); wait > 0 {
			a.options.Observer.Refused(refusedKey)
			a.refuse(w, r, tooMany("with this credential", wait))
			return
		}
		if c.embed != nil && o.Embed != embeds(c.embed) {
			a.options.Observer.Refused(reasonScope)
			a.recordRefusal(ctx.Context(), c, reasonScope)
			a.refuse(w, r, failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "an embed token of this kind does not allow this").WithReason(reasonScope)))
			return
		}
		if !c.allows(o.Scope) && (o.OrScope == "" || !c.allows(o.OrScope)) {
			a.options.Observer.Refused(reasonScope)
			a.recordRefusal(ctx.Context(), c, reasonScope)
			a.refuse(w, r, failed(http.StatusForbidden, c.lacks(o.Scope)))
			return
		}
		if err := c.reaches(ctx.Param); err != nil {
			a.refuse(w, r, a.problemOf(ctx.Context(), err))
			return
		}
		entered, err := a.enter(identity.WithSource(ctx.Context(), payer), w, x, payer)
		if err != nil {
			a.refuse(w, r, a.problemOf(ctx.Context(), err))
			return
		}
		next(huma.WithContext(ctx, entered))
	}
}

// needs returns an error unless the credential has one of the scopes. It is for cases that the operation's own scope does not cover.
func (a *API) needs(ctx context.Context, scopes ...string) error {
	c := exchangeOf(ctx).caller
	if slices.ContainsFunc(scopes, c.allows) {
		return nil
	}
	a.options.Observer.Refused(reasonScope)
	a.recordRefusal(ctx, c, reasonScope)
	return failed(http.StatusForbidden, c.lacks(scopes[0]))
}

// lacks returns the error for a credential without the scope.
func (c caller) lacks(scope string) *jig.Error {
	if c.kind == identity.KindAPIKey {
		return jig.Errorf(jig.CodeNotPermitted, "the API key does not have the scope %s", jig.Known(scope)).WithReason(reasonScope).
			WithHint("use a key with this scope; `jig api-key create --scope " + scope + "` makes one")
	}
	var roles []string
	for _, r := range tenancy.ShippedRoles() {
		if slices.Contains(r.Permissions, permissionOf(scope)) {
			roles = append(roles, r.Name)
		}
	}
	return jig.Errorf(jig.CodeNotPermitted, "you do not have the permission %s", jig.Known(permissionOf(scope))).WithReason(reasonScope).
		WithHint("the roles " + strings.Join(roles, ", ") + " have it; `roles` in the tenant's document says who has them")
}

// permissionOf returns the permission that gives people a scope.
func permissionOf(scope string) string { return "api." + scope }

// scopesOf returns the scopes that a principal's permissions give.
func scopesOf(p jig.Principal) []string {
	return slices.DeleteFunc(credential.Scopes(), func(scope string) bool { return !p.Holds(permissionOf(scope)) })
}

// credential returns the caller of a request. Invalid credentials are all refused in the same way, whatever is wrong with them.
func (a *API) credential(ctx context.Context, r *http.Request) (caller, error) {
	refused := failed(http.StatusUnauthorized, jig.Errorf(jig.CodeNotPermitted, "the request has no valid credential").WithReason(reasonCredential).
		WithHint("send an API key or an access token in the header Authorization: Bearer …; `jig api-key create` makes a key"))
	challenge := `Bearer realm="jig"`
	if a.options.Providers != nil {
		challenge += `, resource_metadata="` + a.address(r) + api.GetProtectedResource.Path + `"`
	}
	refused.Headers.Set("WWW-Authenticate", challenge)
	c, known, err := a.identify(ctx, r)
	if !known {
		return caller{}, refused
	}
	if err == nil {
		err = a.complete(ctx, &c)
	}
	if code := jig.CodeOf(err); code == jig.CodeNotFound || code == jig.CodeNotPermitted && !slices.Contains(shownReasons(), jig.AsError(err).Reason) {
		a.options.Logger.InfoContext(ctx, "a credential was refused", slog.String("request_id", exchangeOf(ctx).id), slog.String("why", jig.AsError(err).Message))
		return caller{}, refused
	}
	return c, err
}

// identify returns the caller of a request's only credential, without what the tenant's document adds. known is false if the request has no
// credential, or several of the same kind. Because browsers send cookies on their own, a header takes precedence over a cookie.
func (a *API) identify(ctx context.Context, r *http.Request) (c caller, known bool, err error) {
	headers := r.Header.Values("Authorization")
	if cookie, ok := cookieOf(r, cookieLogin); ok && len(headers) == 0 {
		id, hash, ok := credential.LoginForm.Parse(cookie)
		if !ok {
			return caller{}, false, nil
		}
		if c, err = a.issued(ctx, id, hash); err == nil {
			err = a.sameOrigin(r)
		}
		return c, true, err
	}
	if len(headers) != 1 {
		return caller{}, false, nil
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, false, nil
	}
	c, err = a.bearer(ctx, r, text)
	return c, true, err
}

// bearer returns the caller of an embed token, an API key or an access token, without what the tenant's document adds. The error is NOT_FOUND or
// NOT_PERMITTED if it is not valid.
func (a *API) bearer(ctx context.Context, r *http.Request, text string) (caller, error) {
	if id, hash, ok := credential.EmbedForm.Parse(text); ok {
		c, err := a.issued(ctx, id, hash)
		if err == nil {
			err = c.fromItsPage(r)
		}
		return c, err
	}
	if id, hash, ok := credential.KeyForm.Parse(text); ok {
		return a.issued(ctx, id, hash)
	}
	if a.options.Providers == nil {
		return caller{}, jig.Errorf(jig.CodeNotFound, "not an API key, and no identity provider is configured")
	}
	who, err := a.options.Providers.AccessToken(ctx, text)
	return caller{kind: identity.KindAccessToken, tenant: who.Tenant, name: who.Name, signed: &who, expires: &who.ExpiresAt}, err
}

// issued returns the caller of a credential that the server issued, without what the tenant's document adds. The error is NOT_FOUND if it is not valid.
func (a *API) issued(ctx context.Context, id string, hash []byte) (caller, error) {
	found, err := a.options.Credentials.Credential(ctx, id, hash)
	if err != nil {
		return caller{}, err
	}
	return callerWith(found), nil
}

// callerWith returns the caller of a credential that the server issued, without what the tenant's document adds.
func callerWith(found credential.Credential) caller {
	c := caller{
		kind: found.Kind, id: found.ID, label: found.Name, tenant: found.Tenant, principal: jig.Principal{ID: found.Principal, Claimed: true},
		scopes: found.Scopes, expires: found.ExpiresAt, lineage: found.Lineage,
	}
	if len(found.Lineage) > 0 {
		c.principal.Maker = found.Lineage[0].Maker
	}
	if found.Issuer != "" {
		c.signed = &openid.Identity{Tenant: found.Tenant, Issuer: found.Issuer, Subject: found.Subject, Groups: found.Groups}
	}
	switch {
	case found.Kind == identity.KindEmbed:
		c.embed = &found
	case found.IsLogin():
		c.name, c.label = found.Name, ""
	}
	return c
}

// complete fills in what the tenant's document says about the caller. The error is NOT_PERMITTED if the principal must not act or the credential
// ended with somebody in its lineage; its reason is one of those of [tenancy.Settings.Ended].
func (a *API) complete(ctx context.Context, c *caller) error {
	settings, err := a.options.Tenants.Settings(ctx, c.tenant)
	if err != nil {
		return err
	}
	c.apply(settings)
	if settings.IsDisabled(c.principal.ID) {
		return jig.Errorf(jig.CodeNotPermitted, "the principal of the credential is disabled").WithReason(reasonDisabled)
	}
	switch why := settings.Ended(c.lineage); why {
	case "":
		return a.notePersons(ctx, c, settings)
	case tenancy.EndedPerson:
		return jig.Errorf(jig.CodeNotPermitted, "somebody else made the credential for its principal, who is a person of the tenant by now").WithReason(why).
			WithHint("log in, or ask the installation's operator for a key")
	case tenancy.EndedRemoved:
		return jig.Errorf(jig.CodeNotPermitted, "the credential ended when its principal, or somebody who made it, left the tenant's document").WithReason(why).
			WithHint("ask an owner for a new key")
	default:
		return jig.Errorf(jig.CodeNotPermitted, "somebody who made the credential is disabled").WithReason(why)
	}
}

// notePersons stores who of an API key's principals is a person of the tenant by now, so that the key ends when they leave.
func (a *API) notePersons(ctx context.Context, c *caller, settings tenancy.Settings) error {
	if c.kind != identity.KindAPIKey || len(c.lineage) == 0 {
		return nil
	}
	persons := settings.Persons(c.lineage[0])
	if !slices.ContainsFunc(persons, func(id string) bool { return !slices.Contains(c.lineage[0].Persons, id) }) {
		return nil
	}
	return a.options.Credentials.NotePersons(ctx, c.tenant, c.id, persons)
}

// apply fills in what the tenant's settings say about the caller.
func (c *caller) apply(settings tenancy.Settings) {
	if c.signed != nil {
		l := tenancy.Login{Issuer: c.signed.Issuer, Subject: c.signed.Subject}
		c.principal = settings.SignedIn(l, c.signed.Groups)
		c.principal.Claimed = true
		if c.kind == identity.KindAccessToken { // it has no id of its own
			c.id = l.Principal()
		}
	}
	c.holds = settings.Effective(c.principal)
	c.roles = settings.RolesOf(c.holds)
	switch {
	case c.embed != nil && c.embed.MadeWith.Kind == identity.KindAPIKey:
	case c.embed != nil:
		c.scopes = slices.DeleteFunc(slices.Clone(c.embed.Scopes), func(scope string) bool { return !c.holds.Holds(permissionOf(scope)) })
	case c.kind != identity.KindAPIKey:
		c.scopes = scopesOf(c.holds)
	}
}
