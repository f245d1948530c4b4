package httpapi

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// pauseOf returns the request to pause a session, or to resume it.
func pauseOf(ctx context.Context, in *api.PauseSessionRequest) protocol.PauseRequest {
	tenant, who := callerOf(ctx)
	request := protocol.PauseRequest{
		Tenant: tenant, Scope: jig.PauseSession, Target: jig.SessionID(tenant, in.Session), By: who.ID, Decides: decides(ctx),
	}
	if in.Body != nil {
		request.Reason, request.Token = in.Body.Reason, in.Body.Token
	}
	return request
}

// decides says whether the credential of a request decides, for the rule about who ends which pause.
func decides(ctx context.Context) *bool {
	may := exchangeOf(ctx).caller.allows(credential.ScopeDecide)
	return &may
}

func (a *API) pauseSession(ctx context.Context, in *api.PauseSessionRequest) (protocol.PauseResult, error) {
	return a.options.Engine.Pause(ctx, pauseOf(ctx, in))
}

func (a *API) resumeSession(ctx context.Context, in *api.PauseSessionRequest) (protocol.PauseResult, error) {
	return a.options.Engine.Resume(ctx, pauseOf(ctx, in))
}

func pausing(result protocol.PauseResult, err error) (*body[protocol.PauseResult], error) {
	noNull(&result)
	return &body[protocol.PauseResult]{Body: result}, err
}

type pauseRequest struct {
	Body struct {
		api.Because
		Scope  jig.PauseScope `json:"scope" enum:"tenant,tool,session"`
		Target string         `json:"target,omitempty" names:"{scope}" maxLength:"192" doc:"The name of the tool or the id of the session; leave it out for the tenant"`
	} `nameHint:"PauseCalls"`
}

func (in *pauseRequest) request(ctx context.Context) protocol.PauseRequest {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.Scope == jig.PauseSession {
		b.Target = jig.SessionID(tenant, b.Target)
	}
	return protocol.PauseRequest{Tenant: tenant, Scope: b.Scope, Target: b.Target, Reason: b.Reason, Token: b.Token, By: who.ID, Decides: decides(ctx)}
}

// widely returns an error if a request is about more than one session and the credential does not decide. Who may end which pause follows from who
// set it; see MayResume in package tenancy.
func (a *API) widely(ctx context.Context, in *pauseRequest) error {
	if in.Body.Scope == jig.PauseSession {
		return nil
	}
	return a.needs(ctx, credential.ScopeDecide)
}

func (a *API) pause(ctx context.Context, in *pauseRequest) (*body[protocol.PauseResult], error) {
	if err := a.widely(ctx, in); err != nil {
		return nil, err
	}
	return pausing(a.options.Engine.Pause(ctx, in.request(ctx)))
}

func (a *API) resume(ctx context.Context, in *pauseRequest) (*body[protocol.PauseResult], error) {
	if err := a.widely(ctx, in); err != nil {
		return nil, err
	}
	return pausing(a.options.Engine.Resume(ctx, in.request(ctx)))
}

type pauseListAnswer struct {
	Body struct {
		Pauses []jig.Pause `json:"pauses"`
	} `nameHint:"PauseList"`
}

func (a *API) listPauses(ctx context.Context, _ *struct{}) (*pauseListAnswer, error) {
	tenant, _ := callerOf(ctx)
	result, err := a.options.Engine.Pauses(ctx, tenant)
	var answer pauseListAnswer
	answer.Body.Pauses = append([]jig.Pause{}, result.Pauses...)
	return &answer, err
}
