package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/internal/toolname"
)

// serveIdentity serves the operations on credentials, and on the people who use them.
func (a *API) serveIdentity() {
	a.serveLogins()
	serve(a, api.GetMe, a.getMe)
	serve(a, api.ListAPIKeys, a.listKeys)
	serve(a, api.CreateAPIKey, a.createKey)
	serve(a, api.TakeOverAPIKey, a.takeOverKey)
	serveAs(a, api.RevokeAPIKey, func(ctx context.Context, in *api.APIKeyPath) (*struct{}, error) {
		return a.revoke(ctx, identity.KindAPIKey, in.Key)
	})
	serve(a, api.ListCredentialEvents, func(ctx context.Context, in *api.CredentialEventsRequest) (identity.CredentialEvents, error) {
		tenant, _ := callerOf(ctx)
		return a.options.CredentialLog.CredentialEvents(ctx, tenant, in.Kind, in.Principal, in.Cursor, in.Limit)
	})
	serve(a, api.ListPeople, func(ctx context.Context, _ *struct{}) (tenancy.Directory, error) {
		tenant, _ := callerOf(ctx)
		settings, err := a.options.Tenants.Settings(ctx, tenant)
		return settings.Directory, err
	})
	serve(a, api.ListDependents, a.listDependents)
	serveAs(a, api.DisablePerson, a.disabling(true))
	serveAs(a, api.EnablePerson, a.disabling(false))
	serve(a, api.ListEmbedTokens, a.listEmbeds)
	serve(a, api.CreateEmbedToken, a.createEmbed)
	serveAs(a, api.RevokeEmbedToken, func(ctx context.Context, in *api.EmbedTokenPath) (*struct{}, error) {
		return a.revoke(ctx, identity.KindEmbed, in.Token)
	})
}

func (a *API) getMe(ctx context.Context, _ *struct{}) (api.Me, error) {
	c := exchangeOf(ctx).caller
	proof := jig.ProofClaimed
	if a.options.Vouches {
		proof = jig.ProofVouched
	}
	return api.Me{
		Installation: a.options.Installation, Tenant: c.tenant, Principal: c.principal.ID, Name: c.name, Groups: listed(c.holds.Groups), Roles: listed(c.roles),
		Permissions: listed(c.holds.Permissions), Proof: proof,
		Credential: api.UsedCredential{Kind: c.kind, ID: c.id, Name: c.label, Scopes: listed(c.scopes), ExpiresAt: c.expires},
	}, nil
}

// listed returns a list that is sorted and not null in JSON.
func listed(list []string) []string {
	sorted := append([]string{}, list...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// disabling returns a function that disables or enables a person or a signing key, by a call of tenants.set_disabled.
func (a *API) disabling(disabled bool) func(ctx context.Context, in *api.DisableRequest) (*callAnswer, error) {
	return func(ctx context.Context, in *api.DisableRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.SetDisabled, struct {
			api.Disabling
			Disabled bool `json:"disabled"`
		}{in.Body, disabled})
	}
}

func (a *API) listDependents(ctx context.Context, in *api.DependentsRequest) (api.Dependents, error) {
	if (in.Person == "") == (in.Key == "") {
		return api.Dependents{}, jig.Errorf(jig.CodeInvalidInput, "give either a person or a key").WithField("person")
	}
	tenant, _ := callerOf(ctx)
	list, err := a.options.Dependents(ctx, tenant, in.Person, in.Key)
	return api.Dependents{Dependents: list}, err
}

// ending tells what ends with a person or with an API key. One of them is empty.
type ending struct {
	person, key string

	settings tenancy.Settings
	// keys are the ids of the API keys that end.
	keys map[string]bool
}

// Dependents returns what ends when a person is disabled or an API key is revoked: keys, embed tokens and schedules that were made with it, and
// logins and standing approvals of the person. It leaves out schedules and standing approvals if the options have no source of them. One of person and key is empty.
func (o Options) Dependents(ctx context.Context, tenant, person, key string) ([]identity.Dependent, error) {
	settings, err := o.Tenants.Settings(ctx, tenant)
	if err != nil {
		return nil, err
	}
	issued, err := o.Credentials.Credentials(ctx, tenant, identity.KindAPIKey, identity.KindLogin, identity.KindDevLogin)
	if err != nil {
		return nil, err
	}
	tokens, _, err := o.Credentials.EmbedTokens(ctx, tenant, "", maxEmbeds)
	if err != nil {
		return nil, err
	}
	roots := []string{key}
	for _, c := range issued {
		if person != "" && c.Kind == identity.KindAPIKey && slices.Contains([]string{c.Principal, c.Maker, c.CreatedBy}, person) {
			roots = append(roots, c.ID)
		}
	}
	e := ending{person: person, key: key, settings: settings, keys: credential.Descendants(issued, roots...)}
	found := e.credentials(append(issued, tokens...))
	work, err := o.work(ctx, tenant, e)
	return append(found, work...), err
}

// maxEmbeds is the maximum number of embed tokens that are searched, the newest first. They last minutes.
const maxEmbeds = 1_000

// credentials returns those of the credentials that end.
func (e ending) credentials(all []credential.Credential) (found []identity.Dependent) {
	now := time.Now()
	for _, c := range all {
		d := identity.Dependent{Kind: c.Kind, ID: c.ID, Principal: c.Principal}
		switch {
		case c.Kind == identity.KindAPIKey:
			d.Name = c.Name
		case c.IsLogin():
			d.Kind = identity.KindLogin
			if c.Issuer != "" {
				d.Principal = e.settings.SignedIn(tenancy.Login{Issuer: c.Issuer, Subject: c.Subject}, nil).ID
			}
		}
		made := e.keys[c.ID] || c.Kind == identity.KindEmbed && c.MadeWith.Kind == identity.KindAPIKey && e.keys[c.MadeWith.ID]
		if c.ID != e.key && c.Valid(now) && (made || e.is(d.Principal)) {
			found = append(found, d)
		}
	}
	return found
}

func (e ending) is(principal string) bool { return e.person != "" && e.person == principal }

// work returns the schedules and the standing approvals that end.
func (o Options) work(ctx context.Context, tenant string, e ending) (found []identity.Dependent, err error) {
	if schedules := o.Engine.Schedules; schedules != nil {
		list, err := schedules.WholeSchedules(ctx, tenant)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			key, made := strings.CutPrefix(s.Credential, protocol.MandateKey)
			if made && e.keys[key] || e.is(s.Principal) || e.is(s.Maker) {
				found = append(found, identity.Dependent{Kind: "schedule", ID: s.Name, Principal: s.Principal})
			}
		}
	}
	if grants := o.Engine.Governance; grants != nil && e.person != "" {
		list, err := grants.Grants(ctx, tenant, false)
		if err != nil {
			return nil, err
		}
		for _, g := range list {
			if slices.ContainsFunc(g.By, e.is) {
				found = append(found, identity.Dependent{Kind: "grant", ID: g.ID, Name: g.Tool})
			}
		}
	}
	return found, nil
}
