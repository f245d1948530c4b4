package client

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// SignalAnswer is the name of the signal that answers a question with the stock Temporal CLI.
const SignalAnswer = protocol.SignalAnswer

// Reply answers a question of a session; it works like [Client.Decide]. If the value does not fit the question, the result says so and the
// question keeps waiting. An empty value is MISSING_PARAM.
func (c *Client) Reply(ctx context.Context, tenant, id string, reply jig.Reply) (protocol.DecideResult, error) {
	if len(reply.Value) == 0 {
		return protocol.DecideResult{}, jig.Errorf(jig.CodeMissingParam, "no answer is given").WithField("value").
			WithHint(`give a JSON value, e.g. "yes"`)
	}
	payload := protocol.Answered{Reply: reply}
	var err error
	if payload.Proof, err = c.vouchDecision(ctx, tenant, id, reply.By, payload.Content()); err != nil {
		return protocol.DecideResult{}, err
	}
	return c.update(ctx, tenant, id, protocol.UpdateAnswer, payload, []string{protocol.Again(reply.By, reply)})
}
