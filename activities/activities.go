package activities

import (
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
)

// Store is everything that the activities need from the database. Usually one value implements all of it.
type Store interface {
	Sessions
	Passes
	Ledger
	Approvals
	Events
	Artifacts
	Views
	Documents
	Frames
	Grants
	Pauses
	Audits
	Reviews
}

// Deps are the dependencies of the activities. All are required except Runs (without it the sweeper closes nothing and no workflow is
// told of late settlements), Bundles (without it no tenant has any bundles), Thin (without it thin tools do not run), Logger and Now.
type Deps struct {
	Store       Store
	Catalogue   Catalogue
	Policy      Policy
	Model       Model
	Expressions Expressions
	Composer    Composer
	Extractor   Extractor
	Entities    Entities
	Agents      Agents
	Schemas     Schemas
	Tenants     Tenants
	Proofs      Proofs
	GrantRules  GrantRules
	Runs        Runs
	Bundles     Bundles
	Thin        Thin
	// Logger gets one line for each failure that no event reports. The default is slog.Default.
	Logger *slog.Logger
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Activities are the engine's activities. Register them with a worker, and RunTool again under each tool's name.
type Activities struct {
	store       Store
	catalogue   Catalogue
	policy      Policy
	model       Model
	expressions Expressions
	composer    Composer
	extractor   Extractor
	entities    Entities
	contracts   contracts
	callers     callers
	agents      Agents
	schemas     Schemas
	tenants     Tenants
	proofs      Proofs
	grantRules  GrantRules
	runs        Runs
	bundles     Bundles
	thin        Thin
	logger      *slog.Logger
	now         func() time.Time
}

// New returns activities that use the given dependencies.
func New(d Deps) *Activities {
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Activities{
		store: d.Store, catalogue: d.Catalogue, policy: d.Policy, model: d.Model, expressions: d.Expressions,
		composer: d.Composer, extractor: d.Extractor, entities: d.Entities, agents: d.Agents, schemas: d.Schemas, tenants: d.Tenants, proofs: d.Proofs, grantRules: d.GrantRules,
		runs: d.Runs, bundles: d.Bundles, thin: d.Thin, logger: d.Logger, now: d.Now,
	}
}

// SessionRef names a session.
type SessionRef struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
}

// PassRef names a pass.
type PassRef struct {
	SessionRef
	Pass int `json:"pass"`
}

// temporalError converts an error into one that Temporal retries or not, depending on its code. Its details carry the jig.Error.
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
	if !e.Code.Retryable() {
		category = temporal.ApplicationErrorCategoryBenign // an answer for the caller; the worker's log does not need it
	}
	return temporal.NewApplicationErrorWithOptions(e.Message, string(e.Code), temporal.ApplicationErrorOptions{
		Category:       category,
		NonRetryable:   !e.Code.Retryable(),
		NextRetryDelay: e.RetryAfter,
		Details:        []any{e},
		Cause:          e.Cause,
	})
}

// ErrorFrom returns the [jig.Error] that an activity failed with. Errors without one become INTERNAL, or TIMEOUT and CANCELED for
// Temporal's own time-outs and cancellations.
func ErrorFrom(err error) *jig.Error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		var e *jig.Error // a pointer works whether or not the error has been serialized
		if app.HasDetails() && app.Details(&e) == nil && e != nil && e.Code != "" {
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
