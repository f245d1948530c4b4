package client

import (
	"context"

	"github.com/jig-run/jig/internal/protocol"
)

// Sessions returns a page of a tenant's sessions that match a filter, the newest first, at most limit (default 50, at most 100). The cursor
// is Next of the previous page with the same filter; "" means the first page. A page may have fewer sessions although more follow.
func (c *Client) Sessions(
	ctx context.Context, tenant string, filter protocol.SessionFilter, cursor string, limit int,
) (protocol.SessionList, error) {
	tenant, filter.ParentID = namedOrNone(tenant, filter.ParentID)
	page := protocol.SessionList{}
	err := c.ask(ctx, string(protocol.ReadSessions), 0, protocol.SessionsRequest{Tenant: tenant, SessionFilter: filter, Cursor: cursor, Limit: limit}, &page)
	return page, err
}

// namedOrNone is like named, but leaves an empty id empty.
func namedOrNone(tenant, id string) (owner, session string) {
	owner, session = named(tenant, id)
	if id == "" {
		session = ""
	}
	return owner, session
}

// Transcript returns a page of what was asked, said and done in a session, oldest first. The cursor is Next of the previous page; "" means
// the first page, which also says what the session was started with.
func (c *Client) Transcript(ctx context.Context, tenant, id, cursor string) (protocol.Transcript, error) {
	tenant, id = named(tenant, id)
	var page protocol.Transcript
	err := c.ask(ctx, string(protocol.ReadTranscript), 0, protocol.TranscriptRequest{Tenant: tenant, SessionID: id, Cursor: cursor}, &page)
	return page, err
}
