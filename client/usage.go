package client

import (
	"context"

	"github.com/jig-run/jig/internal/protocol"
)

// Usage returns what a tenant's sessions used, grouped and filtered as requested, and how much of its budgets is used.
func (c *Client) Usage(ctx context.Context, request protocol.UsageRequest) (protocol.Usage, error) {
	request.Tenant, request.SessionID = named(request.Tenant, request.SessionID)
	var u protocol.Usage
	err := c.ask(ctx, string(protocol.ReadUsage), 0, request, &u)
	return u, err
}
