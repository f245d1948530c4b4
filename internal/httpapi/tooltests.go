package httpapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// testCall makes the call of a test. It needs another scope in addition to that of its operation.
func (a *API) testCall(ctx context.Context, in *api.CallToolRequest) (*callAnswer, error) {
	if err := a.needs(ctx, credential.ScopeRun); err != nil {
		return nil, err
	}
	return a.callTool(ctx, in)
}

// testTool calls a tool and waits for the result.
func (a *API) testTool(ctx context.Context, in *api.CallToolRequest) (*callAnswer, error) {
	if preferred(in.Prefer) > 0 {
		return a.testCall(ctx, in)
	}
	in.Prefer = "wait=" + strconv.Itoa(maxPreferred)
	answer, err := a.testCall(ctx, in)
	if err != nil {
		return nil, err
	}
	answer.Applied = "" // the client preferred nothing
	return answer, nil
}

type toolTestRequest struct {
	api.Idempotent
	Tool string `path:"tool" names:"tool" maxLength:"64" doc:"The name of the tool"`
	Body api.CallToolBody
}

// toolTestAnswer writes a stream.
type toolTestAnswer struct {
	Replayed string `header:"Idempotent-Replayed"`
	Body     func(ctx huma.Context)
}

// streamToolTest calls a tool and sends the events of the call. All checks that can refuse the request happen before the stream begins.
func (a *API) streamToolTest(ctx context.Context, in *toolTestRequest) (*toolTestAnswer, error) {
	if err := a.roomForStream(ctx); err != nil {
		return nil, err
	}
	started, err := a.testCall(ctx, &api.CallToolRequest{CallHeaders: api.CallHeaders{Idempotent: in.Idempotent}, Tool: in.Tool, Body: in.Body})
	if err != nil {
		return nil, err
	}
	tenant, _ := callerOf(ctx)
	session := jig.SessionID(tenant, started.Body.SessionID)
	return &toolTestAnswer{Replayed: started.Replayed, Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		a.serveStream(c, func(ctx context.Context, s *stream) {
			s.only = ofCalls
			s.unnumbered("call", started.Body)
			if a.stream(ctx, s, tenant, session, 1) {
				a.sendRun(ctx, s, tenant, session, started.Body.Call)
			}
		})
	}}, nil
}

// ofCalls reports whether an event is about a call.
func ofCalls(e jig.Event) bool { return strings.HasPrefix(string(e.Type), "tool.") }

// sendRun sends a call that has ended as a flat object, if it has run. If it cannot be read now, the client finds it in the runs of the session.
func (a *API) sendRun(ctx context.Context, s *stream, tenant, id, call string) {
	session, calls, err := a.options.Log.CallsOf(ctx, tenant, id, []string{call})
	if err == nil && len(calls) == 1 && hasRun(calls[0]) {
		s.unnumbered("run", toolRun(session, calls[0]))
	}
}
