package client

import (
	"context"
	"errors"

	"github.com/jig-run/jig"
)

// requestMemo is the memo of a session's workflow: what the session was started with, so that a second start under its id can be
// told from another request.
func requestMemo(r jig.SessionRequest) map[string]any { return map[string]any{memoRequest: r.Digest()} }

// memoRequest is the field of the memo that holds the digest of the request.
const memoRequest = "jig_request"

// chosen checks the id that a client chose for a session and returns the session's own; with no id it makes one.
func chosen(tenant, id string) (owner, session string, err error) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	if err := jig.CheckTenant(tenant); err != nil {
		return tenant, id, translate(err)
	}
	if id == "" {
		return tenant, jig.NewSessionID(), nil
	}
	return tenant, jig.SessionID(tenant, id), CheckID(tenant, id)
}

// CheckID refuses an id that cannot be chosen for a session of a tenant. It may be given with or without the tenant in front.
func CheckID(tenant, id string) error {
	if client := jig.ClientID(jig.SessionID(tenant, id)); client != "" {
		id = client
	}
	return translate(jig.CheckClientID(id))
}

// named returns the id of a session of a tenant, by default of the default tenant, from either form.
func named(tenant, id string) (owner, session string) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	return tenant, jig.SessionID(tenant, id)
}

// sameRequest finds the session that is there under an id and refuses one that another request started.
func (c *Client) sameRequest(ctx context.Context, tenant, session string, r jig.SessionRequest) (sighting, error) {
	sighted, err := c.look(ctx, tenant, session)
	switch {
	case errors.Is(err, &jig.Error{Code: jig.CodeNotFound}), err == nil && sighted.request != r.Digest():
		return sighted, jig.Errorf(jig.CodeConflict, "the id %s was used for another request", session).WithField("id").
			WithHint("repeat the first request exactly, or choose another id")
	}
	return sighted, err
}
