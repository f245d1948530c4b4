package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/ratelimit/limiter"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/tools"
	"github.com/jig-run/jig/workflows"
)

// engine holds the dependencies of a worker of this program.
type engine struct {
	store      *store.DB
	registry   *tools.Registry
	activities *activities.Activities
	tools      []string
	// specs reads documents as tools, starter starts the extractions of thin tools, and pages is for the baseline of P11.
	specs    executions
	starter  *starter
	pages    *pages
	models   models
	bareLoop *bareLoop
}

// ruled is a policy engine that applies policies which never change, and can do nothing else.
type ruled struct {
	*policy.Engine
	rules policy.Set
}

func (r ruled) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	return r.rules.Rule(ctx, tool, call, session, now)
}

func (ruled) Policies(context.Context, string) ([]jig.PolicyState, error) { return nil, nil }

// trusting provides tenant settings in which decisions need no proof.
type trusting struct{}

// Settings returns the same settings for every tenant.
func (trusting) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{Proof: jig.ProofClaimed}, nil
}

func (t trusting) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return t.Settings(ctx, tenant)
}

// newEngine opens the store and wires the activities. Models openai/… are served at modelURL, unless that is empty. It calls entered for each
// call of bench.write and bench.mark.
func newEngine(ctx context.Context, url, modelURL string, entered func(entry)) (*engine, error) {
	quiet := slog.New(slog.DiscardHandler)
	db, err := store.Open(ctx, url, store.Options{Logger: quiet})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	e := &engine{
		store: db, starter: &starter{store: db}, bareLoop: newBareLoop(modelURL),
		models: models{providers: model.NewRouter(model.Settings{OpenAI: model.Provider{BaseURL: modelURL}})},
	}
	if err := e.wire(ctx, url, entered, quiet); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *engine) wire(ctx context.Context, url string, entered func(entry), logger *slog.Logger) (err error) {
	own := entities.Options{Entities: guardedEntities(e.store), Store: entities.Store{Records: e.store, Texts: e.store, Finder: e.store}}
	if e.registry, err = tools.NewRegistry(append(benchTools(entered), entities.Tools(own)...)...); err != nil {
		return fmt.Errorf("register the tools: %w", err)
	}
	for _, t := range e.registry.Tools() {
		e.tools = append(e.tools, t.Name)
	}
	expressions, err := expr.NewEngine()
	if err != nil {
		return fmt.Errorf("set up expressions: %w", err)
	}
	if e.pages, err = newPages(ctx, url); err != nil {
		return err
	}
	e.specs = executions{
		Engine: composition.NewEngine(),
		thin:   thin.NewEngine(thin.Options{Records: records{store: e.store, entities: own.Entities}, Starter: e.starter, Tools: e.registry}),
	}
	e.activities = activities.New(activities.Deps{
		Store: e.store, Catalog: e.registry, Policy: ruled{rules: policy.NewSet()}, Model: e.models, Expressions: expressions,
		Composer: e.specs, Extractor: extractor.New(own.Entities, newSchemas().ValidateOutput), RateLimits: limiter.New(e.store, e.store),
		ParseAgent: parseAgent, Schemas: newSchemas(), Tenants: trusting{}, Logger: logger,
	})
	return nil
}

func (e *engine) close() {
	if e.pages != nil {
		e.pages.pool.Close()
	}
	e.store.Close()
}

// cachedSessions is the number of sessions that a worker keeps in memory; it equals the default of jig's worker.
const cachedSessions = 1500

// startWorker starts a worker tuned like jig's own: the number of pollers follows the load, as many activities start eagerly as calls run
// in parallel, and a session moves to another worker after a second. It executes up to tasks workflow tasks at the same time.
func startWorker(c sdk.Client, queue string, e *engine, tasks int) (worker.Worker, error) {
	worker.SetStickyWorkflowCacheSize(cachedSessions)
	eager := 10
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 5, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 50,
	})
	w := worker.New(c, queue, worker.Options{
		StickyScheduleToStartTimeout: time.Second, MaxEagerActivityReservationsPerWorkflowTask: &eager,
		MaxHeartbeatThrottleInterval: 2 * time.Second, WorkflowTaskPollerBehavior: pollers, ActivityTaskPollerBehavior: pollers,
		DisableRegistrationAliasing: true, MaxConcurrentWorkflowTaskExecutionSize: tasks,
	})
	e.starter.client = client.New(c, client.Options{TaskQueue: queue})
	workflows.Register(w, e.activities, e.tools, "")
	registerBaseline(w, e)
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	return w, nil
}

// registerBaseline registers the baselines. Their activities are jig's own, or do nothing.
func registerBaseline(w worker.Registry, e *engine) {
	w.RegisterWorkflow(Loop)
	w.RegisterWorkflow(Bare)
	w.RegisterWorkflow(BareLoop)
	w.RegisterWorkflow(Steps)
	w.RegisterWorkflow(BareSteps)
	w.RegisterWorkflow(Fill)
	w.RegisterWorkflow(FillOne)
	w.RegisterActivityWithOptions(e.OpenFill, activity.RegisterOptions{Name: "OpenFill"})
	w.RegisterActivityWithOptions(e.ReadPage, activity.RegisterOptions{Name: "ReadPage"})
	w.RegisterActivityWithOptions(e.FillTask, activity.RegisterOptions{Name: "FillTask"})
	w.RegisterActivityWithOptions(e.AdmitStep, activity.RegisterOptions{Name: "AdmitStep"})
	w.RegisterActivityWithOptions(e.StepOutput, activity.RegisterOptions{Name: "StepOutput"})
	w.RegisterActivityWithOptions(e.bareLoop.think, activity.RegisterOptions{Name: bareThink})
	w.RegisterActivityWithOptions(e.bareLoop.call, activity.RegisterOptions{Name: bareCall})
	w.RegisterActivityWithOptions(nothing, activity.RegisterOptions{Name: nothingActivity})
}

// plan is a session's input. It says which calls the planner makes.
type plan struct {
	// Passes is the number of passes that ask for calls; one more pass answers.
	Passes int `json:"passes"`
	// Calls is the number of calls in each pass.
	Calls int `json:"calls"`
	// Tool is the tool to call.
	Tool string `json:"tool"`
}

// turns returns the number of passes of a session, including the one that answers.
func (p plan) turns() int { return p.Passes + 1 }

// planner is a model that makes the calls of the session's input without delay.
type planner struct{}

// Check accepts any model.
func (planner) Check(string) error { return nil }

// Answer asks for the calls of the pass, each with a different input, or ends the session.
func (planner) Answer(_ context.Context, r chat.Request, _ func(string)) (chat.Turn, error) {
	if r.Pass == 0 {
		return chat.Turn{Text: "The passes so far called tools.", Stop: chat.StopEnd}, nil // pass 0 is a request for a summary
	}
	var p plan
	if err := json.Unmarshal(r.Input, &p); err != nil {
		return chat.Turn{}, jig.Errorf(jig.CodeInvalidInput, "reading the plan: %w", err)
	}
	if r.Pass > p.Passes {
		return chat.Turn{Text: "done", Stop: chat.StopEnd}, nil
	}
	turn := chat.Turn{Stop: chat.StopCalls, Calls: make([]jig.ToolCall, p.Calls)}
	for i := range turn.Calls {
		turn.Calls[i] = jig.ToolCall{
			ProviderID: jig.CallID(r.Pass, i+1), Name: p.Tool,
			Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, r.Pass*1_000_000+i)),
		}
	}
	return turn, nil
}

// parseAgent parses an agent written by agentSettings.document, in JSON.
func parseAgent(_ string, body []byte) (jig.Agent, error) {
	var a jig.Agent
	if err := json.Unmarshal(body, &a); err != nil {
		return a, jig.Errorf(jig.CodeInvalidInput, "reading the agent: %w", err)
	}
	return a, nil
}

// newSchemas returns the checker of the inputs and outputs of compositions.
func newSchemas() schema.Checker {
	return schema.NewChecker(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true})
}

// plannerModel is the model that planner serves.
const plannerModel = "bench/planner"

// models serves plannerModel by planner and every other model by jig's own providers.
type models struct {
	planner
	providers *model.Router
}

// Check returns an error for a model that nothing serves.
func (m models) Check(name string) error {
	if name == plannerModel {
		return nil
	}
	return m.providers.Check(name)
}

// Answer asks the model for the next turn.
func (m models) Answer(ctx context.Context, r chat.Request, progress func(string)) (chat.Turn, error) {
	if r.Model == plannerModel {
		return m.planner.Answer(ctx, r, progress)
	}
	return m.providers.Answer(ctx, r, progress)
}

// agentSettings are the parts of an agent document that differ between benchmarks.
type agentSettings struct {
	model string
	// tools is the name or the pattern of the tools that the agent may use.
	tools string
	// passesPerRun is the number of passes of a session that share a workflow run; 0 means jig's default.
	passesPerRun int
}

// document returns the agent as a document.
func (s agentSettings) document() (string, error) {
	b, err := json.Marshal(jig.Agent{
		Name: "bench", Version: "1", Model: s.model, Instructions: "Do as the input says.", Tools: []string{s.tools},
		Limits: jig.Limits{MaxPasses: 1_000_000, PassesPerRun: s.passesPerRun},
	})
	if err != nil {
		return "", fmt.Errorf("write the agent: %w", err)
	}
	return string(b), nil
}
