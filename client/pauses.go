package client

import (
	"context"

	"github.com/jig-run/jig/workflows"
)

type (
	// PauseRequest names the target to pause or to resume, and the principal who asks for it.
	PauseRequest = workflows.PauseRequest
	// PauseResult lists a tenant's current pauses.
	PauseResult = workflows.PauseResult
)

// Pause holds back the calls of a session, a tool or a tenant that have not started. If the target is already paused, nothing changes. The
// result says whether this request changed anything; the answer to a retried request says that it did not.
func (c *Client) Pause(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WritePause, request)
}

// Resume ends the pause that [Client.Pause] began with the same scope and target. Other pauses that apply to the same calls stay in force.
func (c *Client) Resume(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WriteResume, request)
}

// Pauses lists a tenant's pauses, oldest first.
func (c *Client) Pauses(ctx context.Context, tenant string) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.ReadPauses, workflows.PauseRequest{Tenant: tenant})
}

func (c *Client) pausing(ctx context.Context, name string, request workflows.PauseRequest) (workflows.PauseResult, error) {
	var result workflows.PauseResult
	if err := c.ask(ctx, name, 0, request, &result); err != nil {
		return workflows.PauseResult{}, err
	}
	return result, nil
}
