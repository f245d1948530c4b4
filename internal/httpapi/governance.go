package httpapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// serveGovernance serves the operations with which a tenant is governed: grants, pauses, policies, audit and usage.
func (a *API) serveGovernance() {
	serve(a, api.ListGrants, a.listGrants)
	serveAs(a, api.CreateGrant, a.createGrant)
	serve(a, api.ListGrantCalls, a.listGrantCalls)
	serve(a, api.RevokeGrant, a.revokeGrant)
	read(a, api.ListPauses)
	serve(a, api.Pause, a.pause)
	serve(a, api.Resume, a.resume)
	serve(a, api.ListPolicies, a.listPolicies)
	serve(a, api.CheckPolicy, a.checkPolicy)
	serve(a, api.SimulateCall, a.simulateCall)
	serve(a, api.BacktestPolicy, a.backtestPolicy)
	read(a, api.GetAudit)
	serve(a, api.GetAuditHead, a.getAuditHead)
	serveAs(a, api.ExportAudit, a.exportAudit)
	serveAs(a, api.VerifyAudit, a.verifyAudit)
	read(a, api.GetStatistics)
	read(a, api.GetUsage)
}

func (a *API) listGrants(ctx context.Context, in *api.ListGrantsRequest) (api.GrantList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Grants(ctx, tenant, in.All)
	return api.GrantList{Grants: list}, err
}

func (a *API) createGrant(ctx context.Context, in *api.CreateGrantRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.GrantsCreate, in.Body)
}

func (a *API) listGrantCalls(ctx context.Context, in *api.GrantPath) (api.GrantCalls, error) {
	tenant, who := callerOf(ctx)
	list, err := a.options.Engine.GrantFits(ctx, tenant, in.Grant, who.ID)
	return api.GrantCalls{Approvals: list}, err
}

func (a *API) revokeGrant(ctx context.Context, in *api.RevokeGrantRequest) (jig.Grant, error) {
	tenant, who := callerOf(ctx)
	request := protocol.GrantsRequest{Tenant: tenant, Revoke: in.Grant, By: who.ID}
	if in.Body != nil {
		request.Token = in.Body.Token
	}
	return a.options.Engine.RevokeGrant(ctx, request)
}

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

// pauseCalls returns the request to pause or to resume something.
func pauseCalls(ctx context.Context, in *api.PauseRequest) protocol.PauseRequest {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.Scope == jig.PauseSession {
		b.Target = jig.SessionID(tenant, b.Target)
	}
	return protocol.PauseRequest{Tenant: tenant, Scope: b.Scope, Target: b.Target, Reason: b.Reason, Token: b.Token, By: who.ID, Decides: decides(ctx)}
}

// widely returns an error if a request is about more than one session and the credential does not decide. Who may end which pause follows from who
// set it; see MayResume in package tenancy.
func (a *API) widely(ctx context.Context, in *api.PauseRequest) error {
	if in.Body.Scope == jig.PauseSession {
		return nil
	}
	return a.needs(ctx, credential.ScopeDecide)
}

func (a *API) pause(ctx context.Context, in *api.PauseRequest) (protocol.PauseResult, error) {
	if err := a.widely(ctx, in); err != nil {
		return protocol.PauseResult{}, err
	}
	return a.options.Engine.Pause(ctx, pauseCalls(ctx, in))
}

func (a *API) resume(ctx context.Context, in *api.PauseRequest) (protocol.PauseResult, error) {
	if err := a.widely(ctx, in); err != nil {
		return protocol.PauseResult{}, err
	}
	return a.options.Engine.Resume(ctx, pauseCalls(ctx, in))
}

func (a *API) listPolicies(ctx context.Context, _ *struct{}) (api.PolicyList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Policies(ctx, tenant)
	return api.PolicyList{Policies: list}, err
}

func (a *API) simulateCall(ctx context.Context, in *api.SimulateCallRequest) (protocol.Verdict, error) {
	tenant, who := callerOf(ctx)
	b := in.Body
	if b.By != "" && b.By != who.ID {
		if err := a.needs(ctx, credential.ScopeAuthor, credential.ScopeManage); err != nil {
			return protocol.Verdict{}, err
		}
	}
	return a.options.Engine.Simulate(ctx, protocol.VerdictRequest{
		Tenant: tenant, Document: b.Document, Tool: b.Tool, Input: b.Input, Agent: b.Agent, By: cmp.Or(b.By, who.ID),
	})
}

func (a *API) checkPolicy(ctx context.Context, in *api.CheckPolicyRequest) (protocol.CasesPage, error) {
	tenant, _ := callerOf(ctx)
	return a.options.Engine.PolicyCases(ctx, tenant, in.Body.Document)
}

func (a *API) backtestPolicy(ctx context.Context, in *api.BacktestRequest) (protocol.BacktestPage, error) {
	tenant, _ := callerOf(ctx)
	request := protocol.BacktestRequest{Tenant: tenant, Document: in.Body.Document, Since: in.Body.Since.UTC(), All: in.Body.All}
	mark, from, err := continued(in.Body.Cursor, request)
	if err != nil {
		return protocol.BacktestPage{}, err
	}
	request.Cursor = from
	page, err := a.options.Engine.BacktestOnce(ctx, request)
	if page.Next != "" {
		page.Next = mark + page.Next
	}
	return page, err
}

func (a *API) getAuditHead(ctx context.Context, _ *struct{}) (audit.Head, error) {
	tenant, _ := callerOf(ctx)
	page, err := a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: math.MaxInt64})
	return audit.Head{N: page.HeadN, Hash: page.HeadHash}, err
}

// fromAudit returns a response that serve writes, with as much time as it needs. rows writes an export of the rows beginning with from.
func (a *API) fromAudit(
	ctx context.Context, from int64, serve func(ctx context.Context, w http.ResponseWriter, r *http.Request, rows func(to io.Writer) error),
) (*written, error) {
	tenant, _ := callerOf(ctx)
	if err := a.enterAudit(ctx); err != nil {
		return nil, err
	}
	first, err := a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: from - 1})
	if err != nil {
		return nil, err
	}
	if from > first.HeadN+1 {
		return nil, invalid("the record has fewer rows").WithField("from").WithHint("GET /v1/audit/head returns the number of the last row")
	}
	return &written{Body: func(c huma.Context) { //nolint:contextcheck // it gets the request's context from huma
		r, w := humago.Unwrap(c)
		x := exchangeOf(c.Context())
		x.streams = true
		ctx, over := a.requests.hold(c.Context(), x.place)
		defer over()
		serve(ctx, w, r, func(to io.Writer) error { return a.writeAudit(ctx, to, unhurried(w), tenant, from, first) })
	}}, nil
}

func (a *API) exportAudit(ctx context.Context, in *api.ExportAuditRequest) (*written, error) {
	return a.fromAudit(ctx, in.From, func(ctx context.Context, w http.ResponseWriter, _ *http.Request, rows func(to io.Writer) error) {
		h := w.Header()
		h.Set("Content-Type", api.JSONLines)
		h.Set("Content-Disposition", `attachment; filename="audit.jsonl"`)
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		if err := rows(w); err != nil {
			a.options.Logger.WarnContext(ctx, "an export of the audit ended early", slog.String("request_id", exchangeOf(ctx).id), slog.Any("error", err))
			panic(http.ErrAbortHandler) // the client must notice that rows are missing
		}
	})
}

// errStopping ends exports when the server stops.
var errStopping = errors.New("the server is stopping")

// unhurried returns a function that extends the write deadline, for responses that make progress.
func unhurried(w http.ResponseWriter) func() {
	control := http.NewResponseController(w)
	return func() {
		_ = control.SetWriteDeadline(time.Now().Add(answerTimeout)) //nolint:errcheck // not every writer has deadlines
	}
}

// writeAudit writes an export page by page, and calls progress before each page. The export ends with the row that was the last one when the first
// page was read.
func (a *API) writeAudit(ctx context.Context, w io.Writer, progress func(), tenant string, from int64, page protocol.AuditPage) error {
	progress()
	head := audit.Head{N: page.HeadN, Hash: page.HeadHash}
	out, err := audit.NewWriter(w, audit.Header{Tenant: tenant, From: from, Head: head, ExportedAt: time.Now()})
	for next := from; err == nil && next <= head.N; {
		if len(page.Rows) == 0 {
			return io.ErrUnexpectedEOF
		}
		for _, row := range page.Rows {
			if row.N > head.N {
				break
			}
			if err := out.Write(row); err != nil {
				return err
			}
			next = row.N + 1
		}
		if next > head.N {
			break
		}
		select {
		case <-a.drained:
			return errStopping
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own
		default:
		}
		progress()
		page, err = a.options.Engine.AuditOnce(ctx, protocol.AuditRequest{Tenant: tenant, After: next - 1})
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// verifyAudit verifies the record as `jig audit verify` verifies an export, row by row.
func (a *API) verifyAudit(ctx context.Context, in *api.VerifyAuditRequest) (*written, error) {
	return a.fromAudit(ctx, in.From, func(ctx context.Context, w http.ResponseWriter, r *http.Request, rows func(to io.Writer) error) {
		reader, writer := io.Pipe()
		var report audit.Report
		var err error
		verified := make(chan struct{})
		go func() {
			defer close(verified)
			report, err = audit.Verify(reader, audit.Options{Head: in.Head})
			_ = reader.Close() // a broken chain is not read to its end
		}()
		_ = writer.CloseWithError(rows(writer))
		<-verified
		if err != nil {
			a.refuse(w, r, a.problemOf(ctx, err))
			return
		}
		writeJSON(w, http.StatusOK, "application/json", report)
	})
}
