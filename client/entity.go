package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// Entity says how the latest extraction of an entity stands: its session, and its tasks, and nothing of the entity's content.
// NOT_FOUND when the tenant has no such entity.
func (c *Client) Entity(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	var status jig.EntityStatus
	err := c.ask(ctx, workflows.ReadEntity, 0, workflows.EntityRequest{Tenant: tenant, EntityID: id}, &status)
	if err != nil {
		return jig.EntityStatus{}, err
	}
	return status, nil
}
