package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Simulate rules on a call that nobody makes, by the policies in force or by a document that takes the place of one of them.
func (c *Client) Simulate(ctx context.Context, request protocol.VerdictRequest) (protocol.Verdict, error) {
	var v protocol.Verdict
	err := c.ask(ctx, string(protocol.ReadVerdict), 0, request, &v)
	return v, err
}

// PolicyCases runs the cases of a policy document.
func (c *Client) PolicyCases(ctx context.Context, tenant, document string) (protocol.CasesPage, error) {
	var page protocol.CasesPage
	err := c.ask(ctx, string(protocol.ReadCases), 0, protocol.CasesRequest{Tenant: tenant, Document: document}, &page)
	return page, err
}

// Policies lists a tenant's policies by name, as the worker that answers has loaded them. If the worker cannot read a policy, its state
// says why.
func (c *Client) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	list := []jig.PolicyState{}
	request := protocol.PoliciesRequest{Tenant: tenant}
	for {
		var page protocol.PoliciesPage
		if err := c.ask(ctx, string(protocol.ReadPolicies), 0, request, &page); err != nil {
			return nil, err
		}
		list = append(list, page.Policies...)
		if !page.More || len(page.Policies) == 0 {
			return list, nil
		}
		request.After = page.Policies[len(page.Policies)-1].Name
	}
}
