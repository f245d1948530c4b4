package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// fake is an engine with prepared answers that records its requests.
type fake struct {
	schedules   // for tests of schedules
	reviewFakes // for tests of approvals and policies

	started  client.StartOptions
	existing bool
	startErr error
	pages    []client.EventsPage
	followed client.FollowOptions
	result   client.PassResult
	view     jig.SessionView
	viewErr  error
	pending  []jig.Pending
	trigger  client.CallResult
	waited   client.CallResult
	input    client.CallInput
	decided  []jig.Decision
	// decidedIn is the session of the latest decisions.
	decidedIn string
	ruled     []jig.Ruled
	word      jig.Reconciliation
	message   string
	canceled  string
	events    []jig.Event
	catalog   client.Catalog
	entity    jig.EntityStatus
	// documents holds the registered documents, by kind and name.
	documents map[string]string
	// versions holds the stored versions of documents, by kind and name; documents has the texts of versions under "kind name@version".
	versions map[string][]protocol.DocumentState
	// toolRead holds what tools return that read without a session, and toolReads records the requests.
	toolRead  map[string]json.RawMessage
	toolReads []protocol.ToolReadRequest
	// audit holds the pages of the tenant's audit chain; audited is the request for them.
	audit   []client.AuditPage
	audited client.AuditRequest
	err     error
	// replied, revoked, paused and resumed record requests; grants and pauses are prepared answers.
	replied jig.Reply
	revoked client.GrantsRequest
	paused  client.PauseRequest
	resumed client.PauseRequest
	grants  []jig.Grant
	// fits are the waiting calls that a grant covers, and fitsOf says for which grant and whom they were asked for.
	fits   []jig.Pending
	fitsOf string
	pauses client.PauseResult
	// onDecide changes the prepared answers after a decision.
	onDecide func(f *fake)
	// whole is the result that an artifact holds; fetched lists the artifacts that were read.
	whole   *jig.ToolResult
	fetched []string
	// outcome is the result of a session, and record a call of it.
	outcome protocol.SessionResult
	record  protocol.CallRecord
	// sessionPages are the pages of the list of sessions, and filters the filters that were asked for. transcripts are those of a transcript.
	sessionPages []protocol.SessionList
	filters      []protocol.SessionFilter
	transcripts  []protocol.Transcript
	// childPages are the pages of other sessions than the one that is followed.
	childPages map[string][]client.EventsPage
	// below says where the calls wait that the session's calls wait for.
	below     map[string]protocol.WaitingCall
	locateErr error
	// arguments is the whole input of a waiting call.
	arguments json.RawMessage
	// similar are earlier decisions about calls of its tool.
	similar []protocol.SimilarDecision
	// comparison says whether the shown call has changed.
	comparison *protocol.Comparison
}

func (f *fake) Start(_ context.Context, o client.StartOptions) (client.Started, error) {
	f.started = o
	id := o.ID
	if id == "" {
		id = "ses_1"
	}
	return client.Started{SessionID: id, Existing: f.existing}, f.startErr
}

func (f *fake) Result(context.Context, string, string) (client.PassResult, error) {
	return f.result, f.err
}

func (f *fake) Follow(ctx context.Context, o client.FollowOptions, fn func(client.EventsPage) error) error {
	if pages, ok := f.childPages[o.SessionID]; ok {
		for _, page := range pages {
			if err := fn(page); err != nil {
				return err
			}
		}
		return nil
	}
	f.followed = o
	for _, page := range f.pages {
		if err := fn(page); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *fake) Message(_ context.Context, _, id, text, by string) error {
	f.message = id + " " + by + " " + text
	return f.err
}

func (f *fake) Event(_ context.Context, _, id string, e client.Event) error {
	f.message = id + " " + e.By + " " + e.Name + " " + string(e.Data) + " " + e.ID
	return f.err
}

func (f *fake) CancelBecause(_ context.Context, _, id, reason, _ string) error {
	f.canceled = strings.TrimSpace(id + " " + reason)
	return f.err
}

func (f *fake) StartCall(_ context.Context, input client.CallInput, id string) (client.Started, error) {
	f.input = input
	if id == "" {
		id = "ses_1"
	}
	return client.Started{SessionID: id, Existing: f.existing}, f.startErr
}

func (f *fake) WholeResult(_ context.Context, _ string, r client.CallResult) (*jig.ToolResult, error) {
	if f.whole != nil && r.Result != nil && len(r.Result.Artifacts) > 0 {
		f.fetched = append(f.fetched, r.Result.Artifacts...)
		return f.whole, f.err
	}
	return r.Result, f.err
}

func (f *fake) Trigger(_ context.Context, input client.CallInput, _ string) (client.CallResult, error) {
	f.input = input
	return f.trigger, f.err
}

func (f *fake) WaitCall(context.Context, string, string) (client.CallResult, error) {
	return f.waited, f.err
}

func (f *fake) Approvals(context.Context, string, string) ([]jig.Pending, error) {
	return f.pending, f.err
}

func (f *fake) Locate(_ context.Context, _, session string, calls []string) ([]protocol.WaitingCall, error) {
	if f.locateErr != nil {
		return nil, f.locateErr
	}
	list := make([]protocol.WaitingCall, len(calls))
	for i, call := range calls {
		list[i] = protocol.WaitingCall{SessionID: session, Call: call}
		if below, ok := f.below[call]; ok {
			list[i] = below
		}
	}
	return list, nil
}

func (f *fake) Show(_ context.Context, _, _, call string) (protocol.ShownCall, error) {
	for _, p := range f.pending {
		if p.Call == call {
			return protocol.ShownCall{
				Pending: p, Input: f.arguments, Similar: f.similar, Comparison: f.comparison, Decisions: f.shownDecisions,
				ToSign: []protocol.SignedClaims{{Action: "approve", Digest: p.Digest}},
			}, f.err
		}
	}
	return protocol.ShownCall{}, jig.Errorf(jig.CodeNotFound, "call %s waits for nobody", call)
}

func (f *fake) Decide(_ context.Context, _, id string, decisions []jig.Decision) (client.DecideResult, error) {
	f.decided, f.decidedIn = append(f.decided, decisions...), id
	if f.onDecide != nil {
		f.onDecide(f)
	}
	ruled := f.ruled
	if ruled == nil {
		for _, d := range decisions {
			ruled = append(ruled, jig.Ruled{Call: d.Call, Outcome: jig.DecisionAccepted})
		}
	}
	return client.DecideResult{SessionID: id, Decisions: ruled}, f.err
}

func (f *fake) Reconcile(_ context.Context, _, id string, word jig.Reconciliation) (client.DecideResult, error) {
	f.word = word
	return client.DecideResult{SessionID: id, Decisions: []jig.Ruled{{Call: word.Call, Outcome: jig.DecisionAccepted}}}, f.err
}

func (f *fake) Reply(_ context.Context, _, id string, said jig.Reply) (client.DecideResult, error) {
	f.replied = said
	ruled := f.ruled
	if ruled == nil {
		ruled = []jig.Ruled{{Call: said.Call, Outcome: jig.DecisionAccepted, Status: jig.CallSucceeded}}
	}
	if f.onDecide != nil {
		f.onDecide(f)
	}
	return client.DecideResult{SessionID: id, Decisions: ruled}, f.err
}

// Grants returns all grants, or those that were not revoked.
func (f *fake) Grants(_ context.Context, _ string, all bool) ([]jig.Grant, error) {
	var list []jig.Grant
	for _, g := range f.grants {
		if all || g.RevokedAt == nil {
			list = append(list, g)
		}
	}
	return list, f.err
}

func (f *fake) RevokeGrant(_ context.Context, request client.GrantsRequest) (jig.Grant, error) {
	f.revoked = request
	for _, g := range f.grants {
		if g.ID == request.Revoke {
			return g, f.err
		}
	}
	return jig.Grant{}, jig.Errorf(jig.CodeNotFound, "there is no grant %q", request.Revoke).WithField("grant")
}

func (f *fake) GrantFits(_ context.Context, _, grant, principal string) ([]jig.Pending, error) {
	f.fitsOf = grant + " for " + principal
	return f.fits, f.err
}

func (f *fake) Pause(_ context.Context, request client.PauseRequest) (client.PauseResult, error) {
	f.paused = request
	return f.pauses, f.err
}

func (f *fake) Resume(_ context.Context, request client.PauseRequest) (client.PauseResult, error) {
	f.resumed = request
	return f.pauses, f.err
}

func (f *fake) Installation(context.Context, string) (string, error) { return "ins_fake", f.err }

func (f *fake) SessionResult(context.Context, string, string) (protocol.SessionResult, error) {
	return f.outcome, f.err
}

// Ask answers plain reads. The number of a page is the length of its cursor.
func (f *fake) Ask(_ context.Context, _ string, request, response any) error {
	switch r := request.(type) {
	case protocol.SessionsRequest:
		f.filters = append(f.filters, r.SessionFilter)
		return put(response, page(f.sessionPages, r.Cursor), f.err)
	case protocol.TranscriptRequest:
		return put(response, page(f.transcripts, r.Cursor), f.err)
	case protocol.PausesRequest:
		return put(response, protocol.PauseList{Pauses: f.pauses.Pauses}, f.err)
	case protocol.StatisticsRequest:
		f.since = r.Since
		return put(response, f.statistics, f.failing)
	case protocol.UsageRequest:
		f.asked = r
		return put(response, f.usage, f.failing)
	}
	return jig.Errorf(jig.CodeInternal, "the fake has no answer to %T", request)
}

// put sets a response.
func put[T any](response any, value T, err error) error {
	if into, ok := response.(*T); ok {
		*into = value
	}
	return err
}

// page returns the page with a cursor, or an empty one.
func page[T any](pages []T, cursor string) (none T) {
	if n := len(cursor); n < len(pages) {
		return pages[n]
	}
	return none
}

func (f *fake) Record(context.Context, string, string, string) (protocol.CallRecord, error) {
	return f.record, f.err
}

func (f *fake) Status(context.Context, string, string) (jig.SessionView, error) {
	return f.view, f.viewErr
}

func (f *fake) Answer(_ context.Context, _ string, view jig.SessionView) (string, error) {
	return view.Answer, nil
}

func (f *fake) Events(context.Context, string, string, int64) ([]jig.Event, error) {
	return f.events, f.err
}

func (f *fake) Entity(context.Context, string, string) (jig.EntityStatus, error) {
	return f.entity, f.err
}

func (f *fake) Catalog(context.Context, string) (client.Catalog, error) { return f.catalog, f.err }

func (f *fake) Document(_ context.Context, tenant, kind, name string) ([]byte, error) {
	body, ok := f.documents[kind+" "+name]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "tenant %s has no %s %q", tenant, kind, name).WithField("name")
	}
	return []byte(body), f.err
}

func (f *fake) DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error) {
	if version != "" {
		name += "@" + version
	}
	return f.Document(ctx, tenant, kind, name)
}

func (f *fake) DocumentVersions(_ context.Context, tenant, kind, name, _ string) ([]protocol.DocumentState, error) {
	list, ok := f.versions[kind+" "+name]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "tenant %s has no %s %q", tenant, kind, name).WithField("name")
	}
	return list, f.err
}

func (f *fake) ReadWithTool(_ context.Context, request protocol.ToolReadRequest) (json.RawMessage, error) {
	f.toolReads = append(f.toolReads, request)
	return f.toolRead[request.Tool], f.err
}

func (f *fake) Audit(_ context.Context, request client.AuditRequest, fn func(client.AuditPage) error) error {
	f.audited = request
	pages := f.audit
	if request.After == math.MaxInt64 && len(pages) > 0 {
		pages = []client.AuditPage{{HeadN: pages[0].HeadN, HeadHash: pages[0].HeadHash}}
	}
	for _, page := range pages {
		if err := fn(page); err != nil {
			return err
		}
	}
	return f.err
}

// outcome is the result of one run of the command line.
type outcome struct {
	code           int
	stdout, stderr string
}

// jigCLI runs the command line against an engine. The environment names the user ana and no configuration file of Temporal.
func jigCLI(t *testing.T, e any, change func(*app), args ...string) outcome {
	t.Helper()
	return jigCLIWith(t, t.Context(), e, change, args...)
}

// jigCLIAt is like jigCLI, with a fixed clock. It also returns the clock's time.
func jigCLIAt(t *testing.T, e any, args ...string) (got outcome, at time.Time) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		at = time.Now()
		got = jigCLI(t, e, nil, args...)
	})
	return got, at
}

func jigCLIWith(t *testing.T, ctx context.Context, e any, change func(*app), args ...string) outcome { //nolint:revive // in test helpers, t comes before the context
	t.Helper()
	var stdout, stderr bytes.Buffer
	environ := []string{"USER=ana", "TEMPORAL_CONFIG_FILE=" + t.TempDir() + "/none.toml", client.EnvDevEnv + "="}
	a := newApp("/usr/bin/jig", environ, strings.NewReader(""), &stdout, &stderr)
	a.connect = func(context.Context, client.Settings) (engine, error) { return engineOf(e), nil }
	if change != nil {
		change(a)
	}
	code := a.run(ctx, args)
	require.NotContains(t, stderr.String(), "goroutine ", "a stack trace")
	return outcome{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// engineOf returns an engine in which v serves every subject that it can.
func engineOf(v any) engine {
	return engine{
		Asker:    as[api.Asker](v),
		sessions: as[sessions](v), calls: as[calls](v), decisions: as[decisions](v), operations: as[operations](v), reviews: as[reviews](v),
		readings: as[readings](v), documents: as[documents](v), schedules: as[schedules](v), audits: as[audits](v), Close: func() {},
	}
}

// as returns v as a T, or nil if v does not implement T.
func as[T any](v any) T {
	if t, ok := v.(T); ok {
		return t
	}
	var none T
	return none
}
