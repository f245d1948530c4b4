package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
)

// serveTools serves the operations on tools and on the large values that their calls leave.
func (a *API) serveTools() {
	serve(a, api.ListTools, a.listTools)
	serve(a, api.GetTool, a.getTool)
	serveAs(a, api.TestTool, a.testTool)
	serveAs(a, api.StreamToolTest, a.streamToolTest)
	a.describe(api.StreamToolTest.Operation, eventStream, &huma.Schema{Type: huma.TypeString, Description: "Server-sent events: call with session_id, call and " +
		"status; events tool.* as get-events returns them; run with a run as list-runs returns it."})
	serveAs(a, api.GetArtifact, a.getArtifact)
	a.describe(api.GetArtifact.Operation, binary, &huma.Schema{Type: huma.TypeString, Format: "binary"})
}

func (a *API) listTools(ctx context.Context, _ *struct{}) (client.Catalog, error) {
	tenant, _ := callerOf(ctx)
	return a.options.Engine.Catalog(ctx, tenant)
}

func (a *API) getTool(ctx context.Context, in *api.ToolPath) (jig.Tool, error) {
	tenant, _ := callerOf(ctx)
	catalog, err := a.options.Engine.Catalog(ctx, tenant)
	if err != nil {
		return jig.Tool{}, err
	}
	at := slices.IndexFunc(catalog.Tools, func(t jig.Tool) bool { return t.Name == in.Tool })
	if at < 0 {
		return jig.Tool{}, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool").WithHint("GET /v1/tools lists them")
	}
	return catalog.Tools[at], nil
}

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

// toolTestAnswer writes a stream.
type toolTestAnswer struct {
	Replayed string `header:"Idempotent-Replayed"`
	Body     func(ctx huma.Context)
}

// streamToolTest calls a tool and sends the events of the call. All checks that can refuse the request happen before the stream begins.
func (a *API) streamToolTest(ctx context.Context, in *api.StreamToolTestRequest) (*toolTestAnswer, error) {
	if err := a.roomForStream(ctx); err != nil {
		return nil, err
	}
	started, err := a.testCall(ctx, &api.CallToolRequest{CallHeaders: api.CallHeaders{Idempotent: in.Idempotent}, ToolPath: in.ToolPath, Body: in.Body})
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

func (a *API) getArtifact(ctx context.Context, in *api.ArtifactPath) (*written, error) {
	tenant, _ := callerOf(ctx)
	content, err := a.options.Engine.Artifact(ctx, tenant, in.Artifact)
	if err != nil {
		return nil, err
	}
	return &written{Body: func(c huma.Context) {
		_, w := humago.Unwrap(c)
		h := w.Header()
		h.Set("Content-Type", binary)
		h.Set("Content-Disposition", `attachment; filename="`+fileName(in.Artifact)+`"`)
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(content) //nolint:errcheck // the client is gone
	}}, nil
}

// binary is the media type of downloads, which no browser interprets.
const binary = "application/octet-stream"

// fileName returns an id as the name of a file.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			return '_'
		}
		return r
	}, id)
}
