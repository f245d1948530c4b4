package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// GrantsRequest names a standing approval to end, and who ends it; see RevokeGrant.
type GrantsRequest = workflows.GrantsRequest

// Grants lists a tenant's standing approvals, the latest first: those that can be used, or all with those that are used up,
// expired or revoked.
func (c *Client) Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error) {
	list := []jig.Grant{}
	request := workflows.GrantsRequest{Tenant: tenant, All: all}
	for {
		var page workflows.GrantsPage
		if err := c.ask(ctx, workflows.ReadGrants, 0, request, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Grants...)
		if page.Next == "" || page.Next == request.Cursor {
			return list, nil
		}
		request.Cursor = page.Next
	}
}

// RevokeGrant ends the standing approval that request.Revoke names, and returns it as it was ended: by whoever was the first.
// Repeated, it changes nothing. An unknown one is NOT_FOUND.
func (c *Client) RevokeGrant(ctx context.Context, request workflows.GrantsRequest) (jig.Grant, error) {
	if request.Revoke == "" {
		return jig.Grant{}, jig.Errorf(jig.CodeMissingParam, "no grant is named").WithField("revoke").WithHint("give the id of a grant")
	}
	var page workflows.GrantsPage
	if err := c.ask(ctx, workflows.ReadGrants, 0, request, &page); err != nil {
		return jig.Grant{}, err
	}
	if len(page.Grants) != 1 || page.Grants[0].ID != request.Revoke {
		return jig.Grant{}, jig.Errorf(jig.CodeInternal, "the worker did not answer with grant %s", request.Revoke).
			WithHint("see what it is like now among all grants")
	}
	return page.Grants[0], nil
}
