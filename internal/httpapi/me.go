package httpapi

import (
	"context"
	"time"

	"github.com/jig-run/jig"
)

// me says who a request acts for, and what its credential allows.
type me struct {
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Proof is how workers know the principal.
	Proof      jig.Proof  `json:"proof" enum:"claimed,vouched,key,passkey" doc:"How workers know the principal: vouched if the server signs what it says, else claimed"`
	Credential credential `json:"credential"`
}

// credential describes the credential of a request.
type credential struct {
	Kind      string     `json:"kind" enum:"api_key"`
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

type meAnswer struct{ Body me }

func (a *API) getMe(ctx context.Context, _ *struct{}) (*meAnswer, error) {
	tenant, who := callerOf(ctx)
	key := exchangeOf(ctx).key
	proof := jig.ProofClaimed
	if a.options.Vouches {
		proof = jig.ProofVouched
	}
	return &meAnswer{Body: me{
		Tenant: tenant, Principal: who.ID, Proof: proof,
		Credential: credential{Kind: securityScheme, ID: key.ID, Name: key.Name, Scopes: key.Scopes, ExpiresAt: key.ExpiresAt},
	}}, nil
}
