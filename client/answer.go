package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// SignalAnswer is the signal with which the stock Temporal CLI answers a question.
const SignalAnswer = workflows.SignalAnswer

// Reply answers a question that a session asks a person; see Decide. A value that does not fit the question is refused, in
// the result, and the question goes on waiting.
func (c *Client) Reply(ctx context.Context, tenant, id string, reply jig.Reply) (workflows.DecideResult, error) {
	if len(reply.Value) == 0 {
		return workflows.DecideResult{}, jig.Errorf(jig.CodeMissingParam, "no answer is given").WithField("value").
			WithHint(`give a JSON value, e.g. "yes"`)
	}
	return c.update(ctx, tenant, id, workflows.UpdateAnswer, reply)
}
