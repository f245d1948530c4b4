package client

import (
	"context"

	"github.com/jig-run/jig/workflows"
)

type (
	// PauseRequest names what to hold back or to release, and who asks for it.
	PauseRequest = workflows.PauseRequest
	// PauseResult lists what a tenant currently holds back.
	PauseResult = workflows.PauseResult
)

// Pause holds back the calls of a session, a tool or a tenant that have not started. Something that is already held back stays as it is.
// The result says whether this request changed anything; the answer to a retried request says that it did not.
func (c *Client) Pause(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WritePause, request)
}

// Resume releases what [Client.Pause] with the same scope and target held back. Other pauses that apply to the same calls stay in force.
func (c *Client) Resume(ctx context.Context, request workflows.PauseRequest) (workflows.PauseResult, error) {
	return c.pausing(ctx, workflows.WriteResume, request)
}

// Pauses lists what a tenant holds back, oldest first.
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
