package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// gatherEvents is how long the events of a tenant are gathered before they are read.
	gatherEvents = 100 * time.Millisecond
	// tenantPage is how many events of a tenant are read at once.
	tenantPage = 200
)

func (a *API) getTenantEvents(ctx context.Context, in *api.TenantEventsRequest) (*written, error) {
	tenant, _ := callerOf(ctx)
	after := cmp.Or(in.Last, in.After)
	if !strings.Contains(in.Accept, api.EventStream) {
		page, err := a.tenantEvents(ctx, tenant, after, in.Limit, time.Duration(in.Wait)*time.Second)
		return &written{Body: func(c huma.Context) {
			_, w := humago.Unwrap(c)
			writeJSON(w, http.StatusOK, "application/json", page)
		}}, err
	}
	first, err := a.options.Log.TenantEvents(ctx, tenant, after, 1) // so that a wrong cursor is refused
	if err != nil {
		return nil, err
	}
	if err := a.enterStream(ctx); err != nil {
		return nil, err
	}
	after = cmp.Or(after, first.Next)
	return &written{Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		a.serveStream(c, func(ctx context.Context, s *stream) {
			s.send("id: " + after + "\nevent: ready\ndata: {}\n\n") // so that a client that never gets an event can continue, too
			a.streamTenant(ctx, s, tenant, after)
		})
	}}, nil
}

// tenantEvents returns a page of a tenant's events, and waits for the first one.
func (a *API) tenantEvents(ctx context.Context, tenant, after string, limit int, wait time.Duration) (page protocol.TenantEvents, err error) {
	page, err = a.options.Log.TenantEvents(ctx, tenant, after, limit)
	if err != nil || len(page.Events) > 0 || wait == 0 {
		return page, err
	}
	waiting, over := a.patiently(ctx, wait)
	defer over()
	a.attendTenant(waiting, tenant, func() (again time.Duration, going bool) {
		found, failed := a.options.Log.TenantEvents(ctx, tenant, page.Next, limit)
		if err = failed; err != nil {
			return 0, false
		}
		page = found
		return soon(page), len(page.Events) == 0
	}, func() bool { return true })
	if err == nil {
		err = a.outlived(waiting)
	}
	return page, err
}

// soon returns when to read again after a page: shortly if there are events that are not readable yet, otherwise when there is news.
func soon(page protocol.TenantEvents) time.Duration {
	if page.Waiting {
		return gatherEvents
	}
	return 0
}

// streamTenant sends a tenant's events until the client goes, its credential ends, the server stops, or the cursor no longer counts.
func (a *API) streamTenant(ctx context.Context, s *stream, tenant, after string) {
	a.attendTenant(ctx, tenant, func() (again time.Duration, going bool) {
		for {
			page, err := a.options.Log.TenantEvents(ctx, tenant, after, tenantPage)
			if err != nil { // the database may be back soon, unless it was restored: then the client must read its lists again
				return time.Second, ctx.Err() == nil && jig.CodeOf(err) != jig.CodeExpired
			}
			s.tenantEvents(page.Events)
			if after = page.Next; s.broken || len(page.Events) < tenantPage {
				return soon(page), !s.broken
			}
		}
	}, func() bool {
		s.send(": ping\n\n")
		return !s.broken
	})
	s.send("retry: " + milliseconds(reconnectElsewhere) + "\n\n")
}

// attendTenant calls read when events of a tenant may have been committed, and idle at each heartbeat, until one of them says that it is done,
// ctx ends, or the server stops. If read returns a time, it is called again after it.
func (a *API) attendTenant(ctx context.Context, tenant string, read func() (again time.Duration, going bool), idle func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := a.options.Log.WatchTenant(ctx, tenant)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var due <-chan time.Time
	for going := true; going; {
		select {
		case <-news:
			if due == nil {
				due = time.After(gatherEvents)
			}
		case <-due:
			due = nil
			var again time.Duration
			if again, going = read(); again > 0 {
				due = time.After(again)
			}
		case <-ticker.C:
			going = idle()
		case <-a.drained:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tenantEvents sends events. The id of each is the cursor after it.
func (s *stream) tenantEvents(list []protocol.TenantEvent) {
	var b strings.Builder
	for _, e := range list {
		data, err := jsontext.Encode(e)
		if err != nil {
			s.broken = true // the client connects again, and somebody finds the reason in the log
			return
		}
		_, _ = fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", e.Cursor, e.Type, data)
	}
	if b.Len() > 0 {
		s.send(b.String())
	}
}
