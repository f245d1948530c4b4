package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// maxPreferred bounds how many seconds a client may ask to wait for a call.
const maxPreferred = 60

type callRequest struct {
	Identified
	Tool   string `path:"tool" maxLength:"64" doc:"The name of the tool"`
	Prefer string `header:"Prefer" maxLength:"200" doc:"wait=SECONDS waits for the result, for 60 seconds at most"`
	Body   struct {
		ID    string          `json:"id,omitempty" doc:"An id of your own for the session of the call, unique in the tenant"`
		Input json.RawMessage `json:"input,omitempty" doc:"The arguments, an object that fits the tool's schema"`
	} `nameHint:"CallTool"`
}

type callAnswer struct {
	Status   int
	Location string `header:"Location"`
	Replayed string `header:"Idempotent-Replayed"`
	Applied  string `header:"Preference-Applied"`
	Body     protocol.CallResult
}

func (a *API) callTool(ctx context.Context, in *callRequest) (*callAnswer, error) {
	tenant, who := callerOf(ctx)
	if err := jig.CheckToolName(in.Tool); err != nil {
		return nil, jig.Errorf(jig.CodeToolNotFound, "there is no such tool").WithField("tool")
	}
	input := protocol.CallInput{
		Tenant: tenant, Tool: in.Tool, Input: in.Body.Input, Principal: who, Source: jig.SourceAPI, Check: true, Key: in.Key,
	}
	started, err := a.options.Engine.StartCall(ctx, input, in.Body.ID)
	if err != nil {
		return nil, replayed(in.Key, err)
	}
	call := jig.CallID(1, 1)
	answer := &callAnswer{
		Status: http.StatusAccepted, Location: "/v1/sessions/" + started.SessionID + "/call?call=" + url.QueryEscape(call),
		Body: protocol.CallResult{SessionID: started.SessionID, ClientID: started.ClientID, Call: call, Status: jig.CallReserved},
	}
	if started.Existing {
		answer.Replayed = "true"
	}
	wait := preferred(in.Prefer)
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

// attend waits until a call that was started has its result or waits for a person, and notes what became of it. Without a result in time, it
// notes where the call stands.
func (a *API) attend(ctx context.Context, tenant string, wait time.Duration, call *protocol.CallResult) error {
	if wait > 0 {
		waiting, over := a.patiently(ctx, wait)
		defer over()
		result, err := a.options.Engine.AwaitCall(waiting, tenant, call.SessionID)
		if err == nil {
			*call = result
			return nil
		}
		if waiting.Err() == nil && jig.AsError(err).Reason != client.ReasonNoWorker {
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
	Call string `query:"call" required:"true" maxLength:"512" doc:"The id of the call, e.g. 3.2 or 3.2/page"`
}

type recordAnswer struct{ Body protocol.CallRecord }

func (a *API) getCall(ctx context.Context, in *getCallRequest) (*recordAnswer, error) {
	tenant, _ := callerOf(ctx)
	record, err := a.options.Engine.Record(ctx, tenant, in.Session, in.Call)
	return &recordAnswer{Body: record}, err
}
