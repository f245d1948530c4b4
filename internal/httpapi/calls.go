package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/apikey"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// maxPreferred bounds how many seconds a client may ask to wait for a call.
const maxPreferred = 60

// Asked holds what every operation that makes a call takes.
type Asked struct {
	Identified
	Prefer string `header:"Prefer" maxLength:"200" doc:"wait=SECONDS waits up to that long for the result, at most 60 seconds"`
}

// Origin says how a client starts something.
type Origin struct {
	Source jig.Source `json:"source,omitempty" enum:"api,cli,web" doc:"The kind of client, as it claims. Default: api"`
}

func (o Origin) source() jig.Source { return cmp.Or(o.Source, jig.SourceAPI) }

type callRequest struct {
	Asked
	Tool string `path:"tool" names:"tool" maxLength:"64" doc:"The name of the tool"`
	Body callTool
}

// callTool is the body of a request that calls a tool.
type callTool struct {
	Origin
	ID    string            `json:"id,omitempty" doc:"An id of your own for the session of the call, unique in the tenant"`
	Input json.RawMessage   `json:"input,omitempty" doc:"The arguments, an object that fits the tool's schema"`
	Pairs map[string]string `json:"pairs,omitempty" doc:"More arguments, as strings that the tool's schema converts"`
}

type callAnswer struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed"`
	Applied  string `header:"Preference-Applied"`
	Body     calledCall
}

// calledCall is the present state of a call.
type calledCall struct {
	protocol.CallResult
	Held string `json:"held,omitempty" enum:"no_worker" doc:"no_worker if no worker answers; the call runs as soon as one does"`
}

func (a *API) callTool(ctx context.Context, in *callRequest) (*callAnswer, error) {
	if err := jig.CheckToolName(in.Tool); err != nil {
		return nil, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	return a.call(ctx, in.Asked, in.Body.ID, protocol.CallInput{
		Tool: in.Tool, Input: in.Body.Input, Pairs: in.Body.Pairs, Source: in.Body.source(), Check: true,
	})
}

type compositionRequest struct {
	Asked
	Body struct {
		Origin
		ID           string            `json:"id,omitempty" doc:"An id of your own for the session of the call, unique in the tenant"`
		Name         string            `json:"name,omitempty" names:"tool" maxLength:"64" doc:"The name of a tool or a registered composition"`
		Document     string            `json:"document,omitempty" doc:"The document of a composition that is not registered, instead of a name"`
		DocumentName string            `json:"document_name,omitempty" maxLength:"512" doc:"The file name of the document, for messages"`
		Input        json.RawMessage   `json:"input,omitempty" doc:"The arguments, an object that fits the schema"`
		Pairs        map[string]string `json:"pairs,omitempty" doc:"More arguments, as strings that the schema converts"`
		Unchecked    bool              `json:"unchecked,omitempty" doc:"Start it without checking it first"`
	} `nameHint:"RunComposition"`
}

func (a *API) runComposition(ctx context.Context, in *compositionRequest) (*callAnswer, error) {
	b := in.Body
	if b.Name != "" && b.Document != "" {
		return nil, invalid("give a name or a document, not both").WithField("document")
	}
	if b.Document != "" {
		b.DocumentName = cmp.Or(b.DocumentName, "composition.yaml")
	}
	return a.call(ctx, in.Asked, b.ID, protocol.CallInput{
		Tool: b.Name, Document: b.Document, DocumentName: b.DocumentName, Input: b.Input, Pairs: b.Pairs, Source: b.source(), Check: !b.Unchecked,
	})
}

// callOf makes a call of one of jig's own tools, for an operation that is a tool.
func (a *API) callOf(ctx context.Context, asked Asked, tool string, input any) (*callAnswer, error) {
	arguments, err := jsontext.Encode(input)
	if err != nil {
		return nil, err
	}
	return a.call(ctx, asked, "", protocol.CallInput{Tool: tool, Input: arguments, Source: jig.SourceAPI, Check: true})
}

// mayCall returns an error if a tool changes what is registered and the credential does not have the scope for that.
func (a *API) mayCall(ctx context.Context, tool string) error {
	if slices.Contains(toolname.Authoring(), tool) {
		return a.needs(ctx, apikey.ScopeAuthor)
	}
	return nil
}

// call starts a call as the principal of the credential and, if the client prefers that, waits for it.
func (a *API) call(ctx context.Context, asked Asked, id string, input protocol.CallInput) (*callAnswer, error) {
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
		Body: calledCall{CallResult: protocol.CallResult{SessionID: started.SessionID, ClientID: started.ClientID, Call: call, Status: jig.CallReserved}},
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
func (a *API) attend(ctx context.Context, tenant string, wait time.Duration, call *calledCall) error {
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

type getCallRequest struct {
	One
	Call string `query:"call" names:"call" required:"true" maxLength:"512" doc:"The id of the call, e.g. 3.2 or 3.2/page"`
}

type recordAnswer struct{ Body protocol.CallRecord }

func (a *API) getCall(ctx context.Context, in *getCallRequest) (*recordAnswer, error) {
	tenant, _ := callerOf(ctx)
	record, err := a.options.Engine.Record(ctx, tenant, in.Session, in.Call)
	return &recordAnswer{Body: record}, err
}
