package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// serveCalls serves the operations on single calls.
func (a *API) serveCalls() {
	serve(a, api.GetCall, a.getCall)
	serve(a, api.ListRuns, a.listRuns)
	serveAs(a, api.CallTool, a.callTool)
	serveAs(a, api.RunComposition, a.runComposition)
}

// maxPreferred bounds how many seconds a client may ask to wait for a call.
const maxPreferred = 60

type callAnswer struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed"`
	Applied  string `header:"Preference-Applied"`
	Body     api.CalledCall
}

func (a *API) callTool(ctx context.Context, in *api.CallToolRequest) (*callAnswer, error) {
	if err := jig.CheckToolName(in.Tool); err != nil {
		return nil, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	return a.call(ctx, in.CallHeaders, in.Body.ID, protocol.CallInput{
		Tool: in.Tool, Input: in.Body.Input, Pairs: in.Body.Pairs, Source: in.Body.From(), Check: true,
	})
}

func (a *API) runComposition(ctx context.Context, in *api.RunRequest) (*callAnswer, error) {
	b := in.Body
	if b.Name != "" && b.Document != "" {
		return nil, invalid("give a name or a document, not both").WithField("document")
	}
	if b.Document != "" {
		b.DocumentName = cmp.Or(b.DocumentName, "composition.yaml")
	}
	return a.call(ctx, in.CallHeaders, b.ID, protocol.CallInput{
		Tool: b.Name, Document: b.Document, DocumentName: b.DocumentName, Input: b.Input, Pairs: b.Pairs, Source: b.From(), Check: !b.Unchecked,
	})
}

// callOf makes a call of one of jig's own tools, for an operation that is a tool.
func (a *API) callOf(ctx context.Context, asked api.CallHeaders, tool string, input any) (*callAnswer, error) {
	arguments, err := jsontext.Encode(input)
	if err != nil {
		return nil, err
	}
	return a.call(ctx, asked, "", protocol.CallInput{Tool: tool, Input: arguments, Source: jig.SourceAPI, Check: true})
}

// mayCall returns an error if a tool changes what is registered and the credential does not have the scope for that.
func (a *API) mayCall(ctx context.Context, tool string) error {
	if slices.Contains(toolname.Authoring(), tool) {
		return a.needs(ctx, credential.ScopeAuthor)
	}
	return nil
}

// call starts a call as the principal of the credential and, if the client prefers that, waits for it.
func (a *API) call(ctx context.Context, asked api.CallHeaders, id string, input protocol.CallInput) (*callAnswer, error) {
	tenant, who := callerOf(ctx)
	if err := a.mayCall(ctx, input.Tool); err != nil {
		return nil, err
	}
	input.Tenant, input.Principal, input.Key = tenant, who, asked.Key
	if token := exchangeOf(ctx).caller.embed; token != nil {
		if id != "" {
			return nil, invalid("pages with an embed token cannot choose the id of a session").WithField("id").WithHint("send " + headerKey + " instead")
		}
		// The page has its own space of keys, and nobody typed its input to jig.
		id, input.Key, input.Source = token.NewCall(asked.Key), "", jig.SourceWeb
	}
	if err := a.mayStart(tenant); err != nil {
		return nil, err
	}
	started, err := a.options.Engine.StartCall(ctx, input, id)
	if err != nil {
		return nil, replayed(asked.Key, err)
	}
	call := jig.CallID(1, 1)
	answer := &callAnswer{
		Status: http.StatusAccepted, Location: "/v1/sessions/" + started.SessionID + "/call?call=" + url.QueryEscape(call),
		Body: api.CalledCall{CallResult: protocol.CallResult{SessionID: started.SessionID, ClientID: started.ClientID, Call: call, Status: jig.CallReserved}},
	}
	if started.Existing {
		answer.Replayed = "true"
	}
	wait := preferred(asked.Prefer)
	if wait > 0 {
		answer.Applied = "wait=" + strconv.Itoa(int(wait/time.Second))
	}
	if wait > 0 || started.Existing {
		if err := a.attend(ctx, tenant, wait, &answer.Body); err != nil {
			return nil, err
		}
	}
	if answer.Body.Status.Final() {
		answer.Status = http.StatusOK
	}
	return answer, nil
}

// attend waits until a call that was started has its result or waits for a person, and writes that to call. If the time is over first, it writes the
// present status of the call.
func (a *API) attend(ctx context.Context, tenant string, wait time.Duration, call *api.CalledCall) error {
	if wait > 0 {
		waiting, over := a.patiently(ctx, wait)
		defer over()
		result, err := a.options.Engine.AwaitCall(waiting, tenant, call.SessionID)
		if err == nil {
			call.CallResult = result
			return nil
		}
		if waiting.Err() == nil {
			if call.Held = jig.AsError(err).Reason; call.Held != client.ReasonNoWorker {
				return err
			}
		}
		if err := a.outlived(waiting); err != nil {
			return err
		}
	}
	record, err := a.options.Engine.Record(ctx, tenant, call.SessionID, call.Call)
	if jig.CodeOf(err) == jig.CodeNotFound { // no worker has picked it up yet
		return nil
	}
	call.Status, call.Result = record.Status, record.Result
	return err
}

// preferred returns how long a client prefers to wait, by the header Prefer (RFC 7240). Other preferences are ignored.
func preferred(header string) time.Duration {
	for _, preference := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		if n, err := strconv.Atoi(strings.Trim(value, `"`)); strings.EqualFold(name, "wait") && err == nil && n > 0 {
			return time.Duration(min(n, maxPreferred)) * time.Second
		}
	}
	return 0
}

func (a *API) getCall(ctx context.Context, in *api.CallPath) (protocol.CallRecord, error) {
	tenant, _ := callerOf(ctx)
	return a.options.Engine.Record(ctx, tenant, in.Session, in.Call)
}
