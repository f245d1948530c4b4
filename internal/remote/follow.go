package remote

import (
	"context"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// longestWait is how long one request waits for events.
	longestWait = 20 * time.Second
	// firstPause is the time between two requests if the server did not wait, for example because no worker has picked the session up.
	firstPause = 100 * time.Millisecond
)

// Follow calls fn with page after page of events, like [client.Client.Follow].
func (c *Client) Follow(ctx context.Context, o client.FollowOptions, fn func(protocol.EventsPage) error) error {
	wait := min(longestWait, o.Wait)
	if wait <= 0 {
		wait = longestWait
	}
	text := ""
	if o.Text {
		text = "start"
	}
	after, pause := o.After, firstPause
	for {
		began := time.Now()
		page, err := call(ctx, c, api.GetEvents, api.EventsRequest{
			SessionPath: api.SessionPath{Session: o.SessionID}, After: after, Wait: max(1, int(wait/time.Second)), Text: text,
		})
		if err != nil {
			if err := c.trouble(ctx, o, err); err != nil {
				return err
			}
			if !sleep(ctx, pause) {
				return ctx.Err() //nolint:wrapcheck // the caller's own
			}
			pause = min(2*pause, time.Second)
			continue
		}
		got := protocol.EventsPage{Events: page.Events, Status: page.Status, Draft: page.Draft}
		if err := fn(got); err != nil {
			return err
		}
		if n := len(page.Events); n > 0 {
			after = page.Events[n-1].Seq
		}
		if page.Position != "" {
			text = page.Position
		}
		if got.Last() {
			return nil
		}
		if len(page.Events) > 0 || page.Draft != nil || time.Since(began) > wait/2 {
			pause = firstPause
			continue
		}
		if !sleep(ctx, pause) {
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
		pause = min(2*pause, time.Second)
	}
}

// trouble decides whether following continues after an error.
func (c *Client) trouble(ctx context.Context, o client.FollowOptions, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the caller's own
	}
	if !jig.CodeOf(err).Retryable() && jig.CodeOf(err) != jig.CodeUnavailable {
		return err
	}
	if o.Trouble == nil {
		return nil
	}
	return o.Trouble(err)
}
