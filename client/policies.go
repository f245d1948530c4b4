package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Policies lists a tenant's policies by name, as the worker that answers has loaded them. If the worker cannot read a policy, its state
// says why.
func (c *Client) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	list := []jig.PolicyState{}
	request := protocol.PoliciesRequest{Tenant: tenant}
	for {
		var page protocol.PoliciesPage
		if err := c.ask(ctx, protocol.ReadPolicies, 0, request, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Policies...)
		if !page.More || len(page.Policies) == 0 {
			return list, nil
		}
		request.After = page.Policies[len(page.Policies)-1].Name
	}
}
