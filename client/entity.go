package client

import (
	"context"
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Entity returns the state of an entity's latest extraction: its session and its tasks, but not the entity's content. It returns NOT_FOUND
// if the tenant has no such entity.
func (c *Client) Entity(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	var status jig.EntityStatus
	err := c.ask(ctx, string(protocol.ReadEntity), 0, protocol.EntityRequest{Tenant: tenant, EntityID: id}, &status)
	if err != nil {
		return jig.EntityStatus{}, err
	}
	return status, nil
}

// ReadWithTool returns what a tool that reads entities returns for a principal, without a session.
func (c *Client) ReadWithTool(ctx context.Context, request protocol.ToolReadRequest) (json.RawMessage, error) {
	var reading protocol.ToolReading
	err := c.ask(ctx, string(protocol.ReadWithTool), 0, request, &reading)
	return reading.Data, err
}
