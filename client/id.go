package client

import (
	"context"
	"errors"

	"github.com/jig-run/jig"
)

// memoRequest is the field of a workflow's memo that holds a digest of the request that started the session, so that a repeated start can be
// distinguished from a different request under the same id.
const memoRequest = "jig_request"

// chosen checks the id that a client chose for a session and returns the tenant and the session's id. Without an id it makes one, from the
// idempotency key if there is one; the default tenant is "default".
func chosen(tenant, id, key string) (owner, session string, err error) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	if err := jig.CheckTenant(tenant); err != nil {
		return tenant, id, translate(err)
	}
	switch {
	case key != "" && id != "":
		return tenant, id, jig.Errorf(jig.CodeInvalidInput, "give an id or an idempotency key, not both").WithField("id")
	case key != "":
		return tenant, jig.KeyedSessionID(tenant, key), nil
	case id == "":
		return tenant, jig.NewSessionID(), nil
	}
	return tenant, jig.SessionID(tenant, id), CheckID(tenant, id)
}

// CheckID returns an error if a client cannot choose id for a session of the tenant. The id may be given with or without the tenant prefix.
func CheckID(tenant, id string) error {
	if client := jig.ClientID(jig.SessionID(tenant, id)); client != "" {
		id = client
	}
	return translate(jig.CheckClientID(id))
}

// named returns a session's tenant and id. The id may be given with or without the tenant prefix; the default tenant is "default".
func named(tenant, id string) (owner, session string) {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	return tenant, jig.SessionID(tenant, id)
}

// sameRequest looks up the session with the given id. It returns CONFLICT if another request started it.
func (c *Client) sameRequest(ctx context.Context, tenant, session string, r jig.SessionRequest) (sighting, error) {
	sighted, err := c.look(ctx, tenant, session)
	switch {
	case errors.Is(err, &jig.Error{Code: jig.CodeNotFound}), err == nil && sighted.request != r.Digest():
		return sighted, jig.Errorf(jig.CodeConflict, "the id %s was used for another request", session).WithField("id").
			WithHint("repeat the first request exactly, or choose another id")
	}
	return sighted, err
}
