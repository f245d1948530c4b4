package client

import (
	"context"

	"github.com/jig-run/jig/workflows"
)

type (
	// PauseRequest says what to hold back, or to let go on, and who says so.
	PauseRequest = workflows.PauseRequest
	// PauseResult says what a tenant holds back now.
	PauseResult = workflows.PauseResult
)

// Pause holds back the calls of a session, a tool or a tenant that have not begun. What is held back already stays as it is;
// the answer says which it was, and is false for a request that was repeated on the way.
func (c *Client) Pause(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WritePause, request)
}

// Resume lets go on what Pause of the same scope and target held back; other pauses that concern the same calls stay.
func (c *Client) Resume(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WriteResume, request)
}

// Pauses says what a tenant holds back, the oldest first.
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
