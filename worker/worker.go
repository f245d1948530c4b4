package worker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"

	sdk "go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/budget/meter"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/identity/vouch"
	"github.com/jig-run/jig/internal/metrics"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/ratelimit/limiter"
	"github.com/jig-run/jig/internal/startup"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/telemetry"
	"github.com/jig-run/jig/internal/tenancy/current"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/workflows"
)

// Worker is a running worker.
type Worker struct {
	store    *store.DB
	metrics  *metrics.Metrics
	tracing  *telemetry.Tracer
	temporal sdk.Client
	worker   sdkworker.Worker
	logger   *slog.Logger
	version  sdkworker.WorkerDeploymentVersion
	broken   chan error
	// others holds the functions that stop the background work beside Temporal's worker.
	others []func()
	stop   sync.Once
}

// BrokenError is the error that made a running worker unable to continue.
type BrokenError struct{ Cause error }

func (e *BrokenError) Error() string { return "the worker cannot continue: " + e.Cause.Error() }

func (e *BrokenError) Unwrap() error { return e.Cause }

// Start starts a worker with the built-in tools and the given ones, and returns once it polls for work. Its errors are written for the
// person who configured the worker; most are a [*jig.Error].
func Start(ctx context.Context, s Settings, logger *slog.Logger, more ...tools.Tool) (*Worker, error) {
	w := &Worker{logger: logger, metrics: metrics.New(), version: s.Deployment, broken: make(chan error, 1)}
	if err := w.start(ctx, s, more); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

func (w *Worker) start(ctx context.Context, s Settings, more []tools.Tool) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	if w.store, err = openStore(ctx, s, w.metrics, w.logger); err != nil {
		return err
	}
	if w.tracing, err = telemetry.Start(ctx, s.Tracing, "jig-worker", w.logger); err != nil {
		return err
	}
	w.others = append(w.others, func() {
		if err := w.tracing.Stop(ctx); err != nil {
			w.logger.WarnContext(ctx, "the last traces were not sent", slog.Any("error", err))
		}
	})
	if w.temporal, err = dial(ctx, s, w.metrics, w.tracing, w.logger); err != nil {
		return err
	}
	p, err := w.assemble(ctx, s, more)
	if err != nil {
		return err
	}
	return w.poll(ctx, s, p)
}

// parts holds the components that assemble builds and poll runs.
type parts struct {
	registry   *tools.Registry
	tenants    *current.Tenants
	rules      *policy.Engine
	budgets    *meter.Meter
	activities *activities.Activities
}

// assemble connects the parts with each other, the store and Temporal.
func (w *Worker) assemble(ctx context.Context, s Settings, more []tools.Tool) (_ *parts, err error) {
	models := meter.New(meter.Options{
		Documents: w.store, Counters: w.store, Logger: w.logger,
		Model: w.tracing.Model(w.metrics.Model(model.NewRouter(model.Settings{Anthropic: s.Anthropic, OpenAI: s.OpenAI, Unstreamed: s.Unstreamed}))),
	})
	tenants := current.NewTenants(current.Options{
		Documents: w.store, Proof: s.Proof, Starts: s.Starts, Signals: s.Signals, Environ: os.Getenv, Operator: s.OperatorKey, Everybody: s.Permissions, Logger: w.logger,
	})
	names := bundle.NewNames(w.store.BundleNames)
	p := &parts{tenants: tenants, budgets: models}
	docs := newDocuments(w.store, names, func() []jig.Tool { return p.registry.Tools() })
	own := slices.Concat(builtins(s, w.store, names, docs, tenants, models), taskTools(w.store, docs, w.temporal, s), more)
	if p.registry, err = tools.NewRegistry(own...); err != nil {
		return nil, err
	}
	advise(ctx, w.logger, p.registry)
	expressions, err := expr.NewEngine()
	if err != nil {
		return nil, err
	}
	if err := installBundles(ctx, w.store, bundleOptions(w.store, names, docs), w.logger); err != nil {
		return nil, err
	}
	p.rules = policy.NewEngine(policy.EngineOptions{Documents: w.store, Settings: tenants.Settings, Failed: w.metrics.RuleFailed})
	p.activities = activities.New(activities.Deps{
		Store:        w.store,
		Catalog:      p.registry,
		Policy:       p.rules,
		Tenants:      tenants,
		Model:        models,
		Servers:      vouch.NewKnown(s.RootKeys, w.store.ServerKeys),
		Budgets:      models,
		RateLimits:   limiter.New(w.store, w.store),
		RetryFor:     s.RetryFor,
		Expressions:  expressions,
		Composer:     newExecutions(w.store, docs.entities, w.temporal, s, p.registry),
		Extractor:    extractor.New(docs.entities, newSchemas().ValidateOutput),
		EntityStatus: extractor.NewProgress(w.store, docs.types).EntityStatus,
		ParseAgent:   spec.ParseAgent,
		Schemas:      newSchemas(),
		Runs:         runs{temporal: w.temporal, namespace: s.Temporal.Temporal.Namespace},
		Bundles:      names,
		Tracing:      w.tracing,
		Logger:       w.logger,
	})
	return p, nil
}

// poll starts Temporal's worker and the background work beside it.
func (w *Worker) poll(ctx context.Context, s Settings, p *parts) error {
	sdkworker.SetStickyWorkflowCacheSize(s.WorkflowCache)
	w.worker = sdkworker.New(w.temporal, s.Temporal.TaskQueue, workerOptions(s, w.fail, activities.RecordResets(p.activities)))
	workflows.Register(w.worker, p.activities, toolNames(p.registry), commandAddress(s.Temporal.Temporal.HostPort))
	if err := w.worker.Start(); err != nil {
		w.worker = nil
		return notStarted(err)
	}
	if err := w.serveMetrics(ctx, s, p); err != nil {
		return err
	}
	w.beside(ctx, newDispatcher(w.store, p.tenants.Settings, s, w.metrics, w.logger).Run)
	w.beside(ctx, rechecker{p.activities.Recheck, w.logger}.run)
	w.beside(ctx, sweeper{temporal: w.temporal, queue: s.Temporal.TaskQueue, logger: w.logger}.run)
	w.logger.InfoContext(ctx, "worker ready",
		slog.String("task_queue", s.Temporal.TaskQueue), slog.String("temporal", s.Temporal.Temporal.HostPort),
		slog.String("namespace", s.Temporal.Temporal.Namespace), slog.Int("tools", len(p.registry.Tools())),
		slog.String("installation", w.store.Installation()))
	return nil
}

// commandAddress returns the address of Temporal for the commands that the Web UI shows people. It is empty unless Temporal listens on this
// machine, on another port than the usual one: elsewhere, people may reach it under another address than the worker.
func commandAddress(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port == "7233" || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return ""
	}
	return hostPort
}

// serveMetrics serves the worker's metrics if the settings ask for it.
func (w *Worker) serveMetrics(ctx context.Context, s Settings, p *parts) error {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // Stop cancels it
	w.others = append(w.others, cancel)
	w.metrics.KnowTools(toolNames(p.registry))
	w.metrics.Read(reading, metrics.Sources{
		Store: w.store, Budgets: p.budgets, Policies: p.rules, Pool: poolOf(w.store), Backlogs: backlogsOf(w.temporal, s),
	})
	stop, err := w.metrics.Serve(ctx, EnvMetrics, s.MetricsAddress, w.logger)
	if err == nil {
		w.others = append(w.others, stop)
	}
	return err
}

// beside runs a function in the background until the worker stops.
func (w *Worker) beside(ctx context.Context, run func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	w.others = append(w.others, func() { cancel(); <-done })
}

// fail records an error after which Temporal's worker cannot continue.
func (w *Worker) fail(err error) {
	select {
	case w.broken <- err:
	default: // only the first error matters
	}
}

// Broken returns a channel that receives the error after which the worker cannot continue.
func (w *Worker) Broken() <-chan error { return w.broken }

// Stop stops taking new work, gives running work time to finish, and closes the connections. It may be called again.
func (w *Worker) Stop() {
	w.stop.Do(func() {
		if w.worker != nil {
			w.worker.Stop()
		}
		for _, stop := range w.others {
			stop()
		}
		if w.temporal != nil {
			w.temporal.Close()
		}
		if w.store != nil {
			w.store.Close()
		}
	})
}

// Run runs a worker with the built-in tools and the given ones until ctx ends. If PostgreSQL or Temporal does not answer yet, it waits for them. An
// error before the worker polls comes from [Start]; an error after that is a [*BrokenError].
func Run(ctx context.Context, s Settings, logger *slog.Logger, more ...tools.Tool) error {
	var w *Worker
	err := startup.Wait(ctx, s.StartTimeout, logger, func(ctx context.Context) (err error) {
		w, err = Start(ctx, s, logger, more...)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer w.Stop()
	w.sayCurrent(ctx)
	select {
	case err := <-w.Broken():
		return &BrokenError{Cause: err}
	case <-ctx.Done():
		logger.InfoContext(ctx, "worker is stopping: running work gets time to finish", slog.Duration("at_most", s.StopTimeout))
		return nil
	}
}

func openStore(ctx context.Context, s Settings, observer store.Observer, logger *slog.Logger) (*store.DB, error) {
	if err := s.needsDatabase(); err != nil {
		return nil, err
	}
	return store.Open(ctx, s.DatabaseURL, store.Options{MaxConns: s.DatabaseMaxConns, Installation: s.Installation, Observer: observer, Logger: logger})
}

// dial connects to Temporal. If nothing answers, its error says where the address came from.
func dial(ctx context.Context, s Settings, m *metrics.Metrics, tracing *telemetry.Tracer, logger *slog.Logger) (sdk.Client, error) {
	options := s.Temporal.Temporal
	options.Logger = sdklog.NewStructuredLogger(logger)
	options.ContextPropagators = append(options.ContextPropagators, tracing.Propagators()...)
	if s.MetricsAddress != "" {
		options.MetricsHandler = m.Temporal()
	}
	t, err := client.DialTemporal(ctx, options, 0)
	if err != nil {
		e := *jig.AsError(err)
		e.Message = fmt.Sprintf("%s (address from: %s)", e.Message, s.Temporal.Source)
		e.Hint = "start one with `jig-dev`, or give its address with " + client.EnvAddress + "; if it was started in another folder, set " + client.EnvDevEnv +
			" to the path of its " + client.DevEnvFile
		return nil, &e
	}
	return t, nil
}

// notStarted returns the error for a namespace or task queue that cannot be polled.
func notStarted(err error) error {
	return jig.Errorf(jig.CodeUnavailable, "the worker cannot poll: %w", err).
		WithHint("check with `temporal operator namespace list` that the namespace exists")
}
