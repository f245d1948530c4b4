package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
)

// Tests replace these dependencies.
type (
	Catalog    = toolRegistry
	Policy     = policyEngine
	Model      = modelRouter
	Composer   = composer
	Extractor  = extractor
	Runs       = workflowRuns
	Servers    = serverVerifier
	Budgets    = budgetMeter
	RateLimits = rateLimiter
)

// These are exported for the tests of this package.
var (
	Next         = next
	Fit          = fit
	SystemPrompt = systemPrompt
	WithDefaults = withDefaults
	Signature    = signature
	Digest       = digest
	CutDown      = cutDown
	FitView      = fitView
	Shorten      = shorten
	Patched      = patched
	AnsweredBy   = answeredBy
	// Progress is the function that gives tools their report function. It is not exported as a method because every exported method
	// is an activity.
	Progress = (*Activities).progress
	// StepTools returns the whitelist of a session that a call starts. It is not exported as a method for the same reason.
	StepTools = (*Activities).stepTools
	// RecheckTenant checks the open approvals of a tenant.
	RecheckTenant = (*Activities).recheck
)

// Prompt returns the request to the model for a pass.
func (a *Activities) Prompt(ctx context.Context, session jig.Session, exchanges []chat.Exchange, pass int) (chat.Request, error) {
	request, _, err := a.prompt(ctx, ledger.Beginning{Session: session, Exchanges: exchanges}, pass)
	return request, err
}

// MemoryOf returns the working memory after some exchanges.
func MemoryOf(exchanges ...chat.Exchange) string {
	m := newMemory(exchanges)
	return m.note()
}

// VerdictOn returns the ledger's verdict on an attempt that ended in ctx.
func VerdictOn(ctx context.Context, tool jig.Tool, outcome jig.ToolResult, number int, doubt bool) (jig.CallStatus, bool) {
	return attempt{tool: tool, number: number, retryFor: time.Minute, doubt: doubt, ended: interruptionOf(ctx)}.verdict(outcome)
}

// Answered is [Answering] for requests that have been decoded.
func Answered[Q, A any](a *Activities, name string, do func(context.Context, Q) (A, error)) func(context.Context, Q, string) (A, error) {
	return func(ctx context.Context, request Q, proof string) (A, error) {
		text, err := json.Marshal(request)
		if err != nil {
			return *new(A), err
		}
		found, err := Answering(a, protocol.Read[Q, A](name).AnsweredBy(do))(ctx, text, proof)
		answer, _ := found.(A) //nolint:errcheck // nil if there is an error
		return answer, err
	}
}
