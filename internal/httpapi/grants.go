package httpapi

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

type listGrantsRequest struct {
	All bool `query:"all" doc:"Include those that are used up, expired or revoked"`
}

type grantsAnswer struct {
	Body struct {
		Grants []jig.Grant `json:"grants"`
	} `nameHint:"GrantList"`
}

func (a *API) listGrants(ctx context.Context, in *listGrantsRequest) (*grantsAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Grants(ctx, tenant, in.All)
	var answer grantsAnswer
	answer.Body.Grants = append([]jig.Grant{}, list...)
	return &answer, err
}

type createGrantRequest struct {
	api.CallHeaders
	Body jig.GrantRequest
}

func (a *API) createGrant(ctx context.Context, in *createGrantRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.GrantsCreate, in.Body)
}

// OneGrant names a grant in the path.
type OneGrant struct {
	Grant string `path:"grant" names:"grant" maxLength:"128" doc:"The id of the grant"`
}

type grantCallsAnswer struct {
	Body struct {
		Approvals []jig.Pending `json:"approvals" doc:"The oldest first, at most as many as the grant has uses left"`
	} `nameHint:"GrantCalls"`
}

func (a *API) listGrantCalls(ctx context.Context, in *OneGrant) (*grantCallsAnswer, error) {
	tenant, who := callerOf(ctx)
	list, err := a.options.Engine.GrantFits(ctx, tenant, in.Grant, who.ID)
	var answer grantCallsAnswer
	answer.Body.Approvals = append([]jig.Pending{}, list...)
	return &answer, err
}

type revokeGrantRequest struct {
	OneGrant
	Body *struct {
		Token string `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"RevokeGrant"`
}

type grantAnswer struct{ Body jig.Grant }

func (a *API) revokeGrant(ctx context.Context, in *revokeGrantRequest) (*grantAnswer, error) {
	tenant, who := callerOf(ctx)
	request := protocol.GrantsRequest{Tenant: tenant, Revoke: in.Grant, By: who.ID}
	if in.Body != nil {
		request.Token = in.Body.Token
	}
	grant, err := a.options.Engine.RevokeGrant(ctx, request)
	return &grantAnswer{Body: grant}, err
}
