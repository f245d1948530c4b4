package client

import (
	"context"
	"crypto/rand"

	"github.com/jig-run/jig/internal/protocol"
)

// Event is an event for a session, for which its compositions may wait. See [Client.Event].
type Event = protocol.Event

// Event sends an event to a session. A composition of the session takes it as soon as it waits for an event with that name. A session takes
// only one event with the same id, however often it is sent. An unknown session is NOT_FOUND, and one that has ended is CONFLICT. If nothing
// in the session can wait for an event, its log has an event decision.refused.
func (c *Client) Event(ctx context.Context, tenant, id string, e Event) error {
	tenant, id = named(tenant, id)
	if err := e.Check(); err != nil {
		return translate(err)
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	sighted, err := c.look(ctx, tenant, id)
	if err != nil {
		return err
	}
	if !sighted.live {
		return hasEnded(id, sighted).WithHint("it takes no more events")
	}
	if err := c.vouchEvent(ctx, tenant, id, &e); err != nil {
		return err
	}
	err = translate(c.repeat(ctx, func(ctx context.Context) error {
		return c.signals.SignalWorkflow(ctx, id, "", protocol.SignalEvent, e)
	}, busy))
	if !isNotFound(err) {
		return err
	}
	if sighted, err = c.look(ctx, tenant, id); err != nil { // it ended meanwhile
		return err
	}
	return hasEnded(id, sighted).WithHint("it takes no more events")
}
