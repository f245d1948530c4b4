package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/ratelimit"
	"github.com/jig-run/jig/internal/tenancy"
)

// toolRegistry holds the tools that this worker can run.
type toolRegistry interface {
	// Tool returns a sealed contract. It returns false if there is no tool of that name.
	Tool(name string) (jig.Tool, bool)
	// Tools returns all contracts sorted by name.
	Tools() []jig.Tool
	// Validate checks an input against the tool's schema. It returns nil if the input fits, and otherwise one Error with every
	// violation: MISSING_PARAM if only required parameters are missing, else INVALID_INPUT.
	Validate(name string, input []byte) error
	// Fill completes an input that fits the tool's schema when a call is admitted; see tools.Fill.
	Fill(ctx context.Context, name string, input []byte, inv jig.Invocation) ([]byte, error)
	// Preview describes what a call of a tool will change; see tools.WithPreview. The error says why there is no preview.
	Preview(ctx context.Context, name string, input []byte, inv jig.Invocation) (jig.Preview, error)
	// Run runs the tool once. This is the only execution path. It never panics; a tool's panic becomes an INTERNAL result.
	Run(ctx context.Context, name string, input []byte, inv jig.Invocation) jig.ToolResult
}

// policyEngine decides whether calls run, wait for a person or are denied.
type policyEngine interface {
	// Rule returns the verdict on a call that is well-formed and permitted, under the tenant's current policies. An error means that the
	// policies could not be read; callers must not decide.
	Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error)
	// Policies lists a tenant's policies by name, including those that cannot be read.
	Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error)
	// Simulate rules on a call that nobody makes. document, unless empty, takes the place of the policy of the same name. Here and below, a
	// document that cannot be read is INVALID_INPUT.
	Simulate(ctx context.Context, document string, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (protocol.Verdict, error)
	// Cases runs the cases of a policy document. tools returns the contracts of tools that cases only name.
	Cases(ctx context.Context, document string, tools func(name string) (jig.Tool, bool)) (protocol.CasesPage, error)
	// Backtest evaluates recorded calls twice: with the tenant's current policies, and with document, the text of a policy that replaces
	// the one of the same name or is added. It returns one result for each call, in the same order, and changes nothing.
	Backtest(ctx context.Context, tenant, document string, calls []ledger.RecordedCall) ([]protocol.BacktestResult, error)
}

// tenantSettings returns the settings of tenants.
type tenantSettings interface {
	// Settings returns a tenant's settings, with the defaults of this worker filled in. An error means that they could not be read;
	// callers must not decide.
	Settings(ctx context.Context, tenant string) (tenancy.Settings, error)
	// Latest is like Settings, but never a second old. Use it before something that cannot be undone.
	Latest(ctx context.Context, tenant string) (tenancy.Settings, error)
}

// modelRouter answers prompts.
type modelRouter interface {
	// Answer asks the model once. It calls progress as text streams in. Errors are *jig.Error: RATE_LIMITED and UNAVAILABLE (with
	// RetryAfter if known) may be retried, others may not.
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
	// Check returns an error for a model name that no provider serves or that lacks its settings, before a session starts.
	Check(model string) error
}

// composer reads execution specs and works out the next moves of their runs.
type composer interface {
	// Load reads an execution spec as a tool. Errors carry line, path and hint.
	Load(document string, body []byte) (plan.Tool, error)
	// Advance works out the next move of a run of the spec from its state (empty at the beginning). It is pure: the same facts give
	// the same answer. An error means that the run is broken (its state cannot be read) or that ctx has ended.
	Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts plan.Facts, at plan.Situation) (plan.Move, error)
}

// extractor reads entity types and works out the next moves of extractions.
type extractor interface {
	// Begin returns the extraction that a call runs, after checking that its principal may run it. tool is a tool that fills entities. An
	// error becomes the call's result (NOT_FOUND, NOT_PERMITTED or INVALID_INPUT), except UNAVAILABLE, which asks for a retry.
	Begin(ctx context.Context, tool string, inv jig.Invocation, input json.RawMessage) (plan.Extraction, error)
	// Sources returns the sources that an entity's values may be based on, as far as the principal may read them. body is the document of
	// the entity's type.
	Sources(ctx context.Context, inv jig.Invocation, body []byte, entity string) (entity.Sources, error)
	// Advance works out the next move for the document of an entity type, like that of a composer. An extraction of many entities has
	// no version and no document. The situation's input is the input of the Extraction or, for many entities, that of the call.
	Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts plan.ExtractionFacts, at plan.Situation) (plan.Move, error)
}

// workflowRuns finds workflow runs and sends signals to them.
type workflowRuns interface {
	// Open reports whether the workflow of a tenant's session is running. A workflow of another tenant with the same id does not count.
	Open(ctx context.Context, tenant, session string) (bool, error)
	// Ended returns the ids that have an ended run. Another run with the same id may still be open. Temporal lists a run as ended only
	// after a short delay.
	Ended(ctx context.Context, workflowIDs []string) ([]string, error)
	// Ending says how the latest run of a tenant's workflow was ended, or is being ended, by somebody else. A workflow of another tenant with the
	// same id does not count.
	Ending(ctx context.Context, tenant, workflowID string) (ledger.Ending, error)
	// ResetReason returns the reason that was given for the reset from which a run came.
	ResetReason(ctx context.Context, workflowID, runID string) (string, error)
	// Settled tells a workflow that a call which it considers unknown was settled. It returns no error if the workflow has ended.
	Settled(ctx context.Context, workflowID string, call protocol.Settlement) error
}

// bundleNames reports which bundles each tenant has. A tenant cannot see the contents of other bundles.
type bundleNames interface {
	// BundleNames lists the bundles that a tenant has. The answer may be up to a second old.
	BundleNames(ctx context.Context, tenant string) ([]string, error)
}

// serverVerifier checks the statements of servers about the principals for whom they send requests.
type serverVerifier interface {
	// Verify checks a signed statement against the wanted one. at is when Temporal recorded the request, or now. The error is
	// NOT_PERMITTED.
	Verify(ctx context.Context, text string, want protocol.Statement, at time.Time) (protocol.Statement, error)
}

// budgetMeter charges calls to the budgets of tenants. The Model asks models within the same budgets.
type budgetMeter interface {
	// Priced reports whether the calls of a tool have a price, so that each must be reserved before it runs.
	Priced(ctx context.Context, tenant, tool string) (bool, error)
	// Charge runs an attempt of a call and charges its price. If the budget does not allow it, the result says that nothing happened.
	Charge(ctx context.Context, call jig.Call, run func() jig.ToolResult) jig.ToolResult
	// Resume lets a session go on that a budget has paused, if there is room again. Otherwise it returns why the session waits; "" if it does
	// not wait for a budget.
	Resume(ctx context.Context, tenant, session string) (held string, err error)
	// Periods returns the periods that limits count now. Limits adds the limits to their counters.
	Periods() []string
	Limits(ctx context.Context, tenant string, used []budget.Used) (currency string, states []protocol.BudgetState, err error)
}

// rateLimiter holds back calls that would exceed the rate limits of their tenants.
type rateLimiter interface {
	// Limited reports whether a limit may concern the calls of a tool, so that each attempt must ask before it begins. An empty name stands
	// for starts of sessions.
	Limited(ctx context.Context, tenant, tool string) (bool, error)
	// Ask lets an attempt of a call begin, or says how long it should wait before it asks again. whole reports that a composition, an
	// extraction or a session answers the call. A call without a tool is the start of its session.
	Ask(ctx context.Context, session jig.Session, call jig.Call, whole bool) (ratelimit.Answer, error)
}
