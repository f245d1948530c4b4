package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// me says who a request acts for, and what its credential allows.
type me struct {
	Installation string `json:"installation" doc:"The id of this installation of jig, which tokens about pauses, standing approvals and keys bind"`

	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Name is for people to read.
	Name        string   `json:"name,omitempty" doc:"The display name from the identity provider; it does not identify the principal"`
	Groups      []string `json:"groups" doc:"The principal's groups in the tenant"`
	Roles       []string `json:"roles" doc:"The roles that the tenant's document gives the principal"`
	Permissions []string `json:"permissions" doc:"The permissions of the principal; * means all"`
	// Proof is how workers know the principal.
	Proof      jig.Proof      `json:"proof" enum:"claimed,vouched,key,passkey" doc:"How workers know the principal: vouched if the server signs its requests, otherwise claimed"`
	Credential usedCredential `json:"credential"`
}

// usedCredential describes the credential of a request.
type usedCredential struct {
	Kind      string     `json:"kind" enum:"api_key,access_token,login,dev_login"`
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty" doc:"What the credential is for"`
	Scopes    []string   `json:"scopes" doc:"What the credential allows"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

type meAnswer struct{ Body me }

func (a *API) getMe(ctx context.Context, _ *struct{}) (*meAnswer, error) {
	c := exchangeOf(ctx).caller
	proof := jig.ProofClaimed
	if a.options.Vouches {
		proof = jig.ProofVouched
	}
	return &meAnswer{Body: me{
		Installation: a.options.Installation, Tenant: c.tenant, Principal: c.principal.ID, Name: c.name, Groups: listed(c.holds.Groups), Roles: listed(c.roles),
		Permissions: listed(c.holds.Permissions), Proof: proof,
		Credential: usedCredential{Kind: c.kind, ID: c.id, Name: c.label, Scopes: listed(c.scopes), ExpiresAt: c.expires},
	}}, nil
}

// listed returns a list that is sorted and not null in JSON.
func listed(list []string) []string {
	sorted := append([]string{}, list...)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
