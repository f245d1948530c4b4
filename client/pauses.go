package client

import (
	"context"

	"github.com/jig-run/jig/internal/protocol"
)

type (
	// PauseRequest names the target to pause or to resume, and the principal who asks for it.
	PauseRequest = protocol.PauseRequest
	// PauseResult lists a tenant's current pauses.
	PauseResult = protocol.PauseResult
)

// Pause holds back the calls of a session, a tool or a tenant that have not started. If the target is already paused, nothing changes. The
// result says whether this request changed anything; the answer to a retried request says that it did not.
func (c *Client) Pause(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error) {
	return c.pausing(ctx, string(protocol.WritePause), request)
}

// Resume ends the pause that [Client.Pause] began with the same scope and target. Other pauses that apply to the same calls stay in force.
func (c *Client) Resume(ctx context.Context, request protocol.PauseRequest) (protocol.PauseResult, error) {
	return c.pausing(ctx, string(protocol.WriteResume), request)
}

// Pauses lists a tenant's pauses, oldest first.
func (c *Client) Pauses(ctx context.Context, tenant string) (protocol.PauseResult, error) {
	var list protocol.PauseList
	err := c.ask(ctx, string(protocol.ReadPauses), 0, protocol.PausesRequest{Tenant: tenant}, &list)
	return protocol.PauseResult{Pauses: list.Pauses}, err
}

// Installation returns the id of the installation of jig, which tokens about pauses, grants and keys bind.
func (c *Client) Installation(ctx context.Context, tenant string) (id string, err error) {
	err = c.ask(ctx, string(protocol.ReadInstallation), 0, protocol.InstallationRequest{Tenant: tenant}, &id)
	return id, err
}

func (c *Client) pausing(ctx context.Context, name string, request protocol.PauseRequest) (protocol.PauseResult, error) {
	var result protocol.PauseResult
	if err := c.ask(ctx, name, 0, request, &result); err != nil {
		return protocol.PauseResult{}, err
	}
	return result, nil
}
