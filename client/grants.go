package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// GrantsRequest names a grant to revoke and who revokes it; see [Client.RevokeGrant].
type GrantsRequest = protocol.GrantsRequest

// Grants lists a tenant's grants, latest first. Without all, it lists only grants that can be used, not those that are used up, expired or
// revoked.
func (c *Client) Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error) {
	list := []jig.Grant{}
	request := protocol.GrantsRequest{Tenant: tenant, All: all}
	for {
		var page protocol.GrantsPage
		if err := c.ask(ctx, string(protocol.ReadGrants), 0, request, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Grants...)
		if page.Next == "" || page.Next == request.Cursor {
			return list, nil
		}
		request.Cursor = page.Next
	}
}

// GrantFits returns the waiting calls that a grant covers and that a principal may decide, oldest first, at most as many as the grant has uses
// left. It approves none of them: decisions that name the grant do. An unknown grant is NOT_FOUND.
func (c *Client) GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error) {
	list := []jig.Pending{}
	request := protocol.FitsRequest{Tenant: tenant, Grant: grant, For: principal}
	for {
		var page protocol.FitsPage
		if err := c.ask(ctx, string(protocol.ReadFits), 0, request, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Approvals...)
		if left := page.Grant.MaxUses - page.Grant.Used; len(list) >= left {
			return list[:max(left, 0)], nil
		}
		if page.Next == "" || page.Next == request.Cursor {
			return list, nil
		}
		request.Cursor = page.Next
	}
}

// RevokeGrant revokes the grant that request.Revoke names and returns it. If the grant was already revoked, nothing changes and the
// returned grant names who revoked it first. An unknown grant is NOT_FOUND.
func (c *Client) RevokeGrant(ctx context.Context, request protocol.GrantsRequest) (jig.Grant, error) {
	if request.Revoke == "" {
		return jig.Grant{}, jig.Errorf(jig.CodeMissingParam, "no grant given").WithField("revoke").WithHint("give the id of a grant")
	}
	var page protocol.GrantsPage
	if err := c.ask(ctx, string(protocol.ReadGrants), 0, request, &page); err != nil {
		return jig.Grant{}, err
	}
	if len(page.Grants) != 1 || page.Grants[0].ID != request.Revoke {
		return jig.Grant{}, jig.Errorf(jig.CodeInternal, "the worker did not answer with grant %s", request.Revoke).
			WithHint("list all grants to see its current state")
	}
	return page.Grants[0], nil
}
