package activities

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/telemetry"
)

// Deps holds the dependencies of the activities. Runs, Bundles, Logger and Now may be left out; all others are required. Without Runs the
// sweeper closes no sessions, workflows are not told about late settlements, and the audit does not say who ended sessions. Without Bundles no
// tenant has bundles.
type Deps struct {
	Store       Store
	Catalog     toolRegistry
	Policy      policyEngine
	Model       modelRouter
	Expressions *expr.Engine
	Composer    composer
	Extractor   extractor
	Schemas     schema.Checker
	Tenants     tenantSettings
	Runs        workflowRuns
	Bundles     bundleNames
	// Servers may be nil: then no server's statement about a principal counts.
	Servers serverVerifier
	// Budgets may be nil: then calls of tools cost nothing, and no session waits for a budget.
	Budgets budgetMeter
	// RateLimits may be nil: then no call waits for a rate limit.
	RateLimits rateLimiter
	// RetryFor is how long after the first failure of a call an attempt may begin, for tools that do not say. The default is [jig.DefaultRetryFor].
	RetryFor time.Duration
	// Tracing writes spans; nil writes none.
	Tracing *telemetry.Tracer
	// EntityStatus returns the state of the latest extraction of an entity, or NOT_FOUND if the tenant has no entity with that id.
	EntityStatus func(ctx context.Context, tenant, id string) (jig.EntityStatus, error)
	// ParseAgent reads an agent document. Errors carry line, path and hint.
	ParseAgent func(document string, body []byte) (jig.Agent, error)
	// Logger receives one line for each failure that is not recorded as an event. The default is slog.Default.
	Logger *slog.Logger
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Activities implements the engine's activities. Register it with a worker, and register RunTool again under the name of each tool.
type Activities struct {
	Deps
	pace      pace
	grants    *policy.Grants
	contracts *cache.Cache[contractKey, contract]
	// seen holds results that the arguments of a session's calls are compared with.
	seen    *cache.Cache[sessionKey, []ledger.OriginCall]
	callers *cache.Cache[string, *atomic.Bool]
	// resets holds the runs whose reset is known to be in the audit.
	resets *cache.Cache[string, struct{}]
}

// New returns activities that use the given dependencies.
func New(d Deps) *Activities {
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.Servers == nil {
		d.Servers = noServers{}
	}
	if d.Budgets == nil {
		d.Budgets = noBudgets{}
	}
	if d.RateLimits == nil {
		d.RateLimits = noRateLimits{}
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.RetryFor = cmp.Or(d.RetryFor, jig.DefaultRetryFor)
	return &Activities{
		Deps:      d,
		grants:    policy.NewGrants(),
		contracts: cache.New[contractKey, contract](0, maxContracts),
		seen:      cache.New[sessionKey, []ledger.OriginCall](0, maxSeen),
		callers:   cache.New[string, *atomic.Bool](0, maxCallers),
		resets:    cache.New[string, struct{}](0, maxResets),
	}
}

// PassRef identifies a pass.
type PassRef struct {
	protocol.SessionRef
	Pass int `json:"pass"`
}

// temporalError converts an error to one for Temporal. Its code decides whether Temporal retries it, and its details carry the jig.Error.
func temporalError(err error) error {
	if err == nil {
		return nil
	}
	var already *temporal.ApplicationError
	if errors.As(err, &already) {
		return err
	}
	e := jig.AsError(err)
	category := temporal.ApplicationErrorCategoryUnspecified
	if !e.Code.Retryable() || e.Code == jig.CodeCanceled {
		category = temporal.ApplicationErrorCategoryBenign // the caller expects such an error; the worker need not log it
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		Category:       category,
		NonRetryable:   !e.Code.Retryable() && !interrupted(e),
		NextRetryDelay: e.RetryAfter,
		Details:        protocol.FailureDetails(e),
		Cause:          e.Cause,
	})
}

// asTemporal converts the error that an activity is about to return; see [temporalError].
func asTemporal(err *error) { *err = temporalError(*err) }

// interrupted reports whether an activity failed only because its own context was canceled: its worker stops, and another one may run it again. If
// the workflow canceled it, Temporal does not retry it.
func interrupted(e *jig.Error) bool {
	return e.Code == jig.CodeCanceled && errors.Is(e, context.Canceled)
}

// ErrorFrom returns the [jig.Error] that an activity failed with. Errors without one become INTERNAL, or TIMEOUT and CANCELED for
// Temporal's own timeouts and cancellations.
func ErrorFrom(err error) *jig.Error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		var e *jig.Error // a pointer works whether or not the error has been serialized
		if words, err := protocol.ReadFailure(app.Details, &e); err == nil && e != nil && e.Code != "" {
			words.Apply(e)
			return e
		}
		return &jig.Error{Code: jig.CodeInternal, Message: app.Message()}
	}
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &timeout):
		return &jig.Error{Code: jig.CodeTimeout, Message: timeout.Error()}
	case temporal.IsCanceledError(err):
		return &jig.Error{Code: jig.CodeCanceled, Message: "canceled"}
	}
	return jig.AsError(err)
}
