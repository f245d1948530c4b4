package httpapi

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/identity/embed"
	"github.com/jig-run/jig/internal/identity/history"
	"github.com/jig-run/jig/internal/identity/login"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

type dependentsRequest struct {
	Person string `query:"person" names:"person" maxLength:"200" doc:"A principal"`
	Key    string `query:"key" names:"key" maxLength:"100" doc:"Instead of a person: the id of an API key"`
}

type dependentsAnswer struct {
	Body struct {
		Dependents []identity.Dependent `json:"dependents"`
	} `nameHint:"Dependents"`
}

func (a *API) listDependents(ctx context.Context, in *dependentsRequest) (*dependentsAnswer, error) {
	tenant, _ := callerOf(ctx)
	if (in.Person == "") == (in.Key == "") {
		return nil, jig.Errorf(jig.CodeInvalidInput, "give either a person or a key").WithField("person")
	}
	list, err := a.options.Dependents(ctx, tenant, in.Person, in.Key)
	answer := &dependentsAnswer{}
	answer.Body.Dependents = append([]identity.Dependent{}, list...)
	return answer, err
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
	keys, err := o.Keys.APIKeys(ctx, tenant)
	if err != nil {
		return nil, err
	}
	roots := []string{key}
	for _, k := range keys {
		if person != "" && slices.Contains([]string{k.Principal, k.Maker, k.CreatedBy}, person) {
			roots = append(roots, k.ID)
		}
	}
	e := ending{person: person, key: key, settings: settings, keys: apikey.Descendants(keys, roots...)}
	tokens, _, err := o.Embeds.EmbedTokens(ctx, tenant, "", maxEmbeds)
	if err != nil {
		return nil, err
	}
	var logins []login.Login
	if person != "" {
		if logins, err = o.Logins.LoginsOf(ctx, tenant); err != nil {
			return nil, err
		}
	}
	found := e.credentials(keys, tokens, logins)
	work, err := o.work(ctx, tenant, e)
	return append(found, work...), err
}

// maxEmbeds is the maximum number of embed tokens that are searched, the newest first. They last minutes.
const maxEmbeds = 1_000

// credentials returns the credentials that end.
func (e ending) credentials(keys []apikey.Key, tokens []embed.Token, logins []login.Login) (found []identity.Dependent) {
	now := time.Now()
	for _, k := range keys {
		if e.keys[k.ID] && k.ID != e.key && k.Valid(now) {
			found = append(found, identity.Dependent{Kind: history.KindAPIKey, ID: k.ID, Name: k.Name, Principal: k.Principal})
		}
	}
	for _, t := range tokens {
		made := t.Maker.Kind == kindAPIKey && e.keys[t.Maker.ID]
		if t.RevokedAt == nil && t.ExpiresAt.After(now) && (made || e.is(t.Principal)) {
			found = append(found, identity.Dependent{Kind: history.KindEmbed, ID: t.ID, Principal: t.Principal})
		}
	}
	for _, l := range logins {
		who := l.Subject
		if l.Issuer != "" {
			who = e.settings.SignedIn(tenancy.Login{Issuer: l.Issuer, Subject: l.Subject}, nil).ID
		}
		if e.is(who) {
			found = append(found, identity.Dependent{Kind: history.KindLogin, ID: l.ID, Principal: who})
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
