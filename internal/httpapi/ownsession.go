package httpapi

import (
	"context"
	"net/http"

	"github.com/jig-run/jig"
)

// reasonOwnSession says that the principal of the credential started the session, or the one that it belongs to.
const reasonOwnSession = "own_session"

// mayDecide returns an error if a session acts for the principal: the principal started it, or it belongs to a session that the principal
// started. Where the tenant's document knows one person, nobody else could decide. A session that no worker has opened is NOT_FOUND: nobody
// knows yet for whom it acts, and a decision would wait for it in its workflow.
func (a *API) mayDecide(ctx context.Context, tenant, session string, who jig.Principal) error {
	asking, err := a.options.Log.Session(ctx, tenant, jig.SessionID(tenant, session))
	if jig.CodeOf(err) == jig.CodeNotFound {
		return jig.Errorf(jig.CodeNotFound, "there is no such session, or nothing in it waits yet").WithField("session")
	}
	if err != nil || asking.Principal.ID != who.ID {
		return err
	}
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	if err != nil || settings.OnlyPerson(who.ID) {
		return err
	}
	return failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "the session acts for you, so somebody else must decide").WithReason(reasonOwnSession).
		WithHint("`can_decide=true` lists the calls that you may decide"))
}
