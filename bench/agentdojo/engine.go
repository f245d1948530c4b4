package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// writesRun is the policy of the measurement: tools that write run, so that only the guard stops them.
const writesRun = `
kind: policy
name: measured
rules:
  - {name: writes-run, when: "tool.permission == 'write'", verdict: run}
`

// computedAsk is a rule for writesRun that also asks about computed values.
const computedAsk = `  - {name: computed-values-ask, when: "size(call.computed_arguments) > 0", verdict: ask}
`

// openStore opens jig's store in the database that the environment names, and brings its schema up to date.
func openStore(ctx context.Context) (*store.DB, error) {
	url, owner := os.Getenv("JIG_DATABASE_URL"), os.Getenv("JIG_DATABASE_OWNER_URL")
	if url == "" || owner == "" {
		return nil, fmt.Errorf("JIG_DATABASE_URL and JIG_DATABASE_OWNER_URL must be set; `make agentdojo DATA=FOLDER` starts a database")
	}
	role, err := store.RoleOf(url)
	if err == nil {
		err = store.Migrate(ctx, owner, role)
	}
	if err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	db, err := store.Open(ctx, url, store.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return db, nil
}

// engine replays the runs of a suite with jig's own activities and a real database. The recorded calls take the place of the model's, and the
// tools return the recorded texts.
type engine struct {
	*activities.Activities
	store    *store.DB
	registry *tools.Registry
	// sessions holds the *session of each id.
	sessions sync.Map
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

// newEngine returns an engine with the tools of a suite. If strict is true, it also asks about computed values.
func newEngine(db *store.DB, s *suite, strict bool) (*engine, error) {
	e := &engine{store: db}
	list := make([]tools.Tool, 0, len(s.tools))
	for _, t := range s.tools {
		list = append(list, tools.Raw(t.contract(), e.run))
	}
	var err error
	if e.registry, err = tools.NewRegistry(list...); err != nil {
		return nil, fmt.Errorf("register the tools: %w", err)
	}
	rules := writesRun
	if strict {
		rules += computedAsk
	}
	document, err := spec.LoadPolicy("measured.yaml", []byte(rules))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	compiled, err := policy.Compile(document, "v1")
	if err != nil {
		return nil, fmt.Errorf("compile the policy: %w", err)
	}
	expressions, err := expr.NewEngine()
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	e.Activities = activities.New(activities.Deps{
		Store: db, Catalog: e.registry, Policy: ruled{rules: policy.NewSet(compiled)}, Model: e, Expressions: expressions,
		Composer: composition.NewEngine(), ParseAgent: spec.ParseAgent, Tenants: e,
		Schemas: schema.NewChecker(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true}),
		Logger:  slog.New(slog.DiscardHandler),
	})
	return e, nil
}

// Settings returns the settings of a tenant that believes what decisions say about who sent them.
func (*engine) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{Proof: jig.ProofClaimed}, nil
}

// Latest returns the same: the settings never change.
func (e *engine) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	return e.Settings(ctx, tenant)
}

// Check accepts any model.
func (*engine) Check(string) error { return nil }

// Answer asks for the next recorded call of the session.
func (e *engine) Answer(_ context.Context, r chat.Request, _ func(string)) (chat.Turn, error) {
	s, err := e.session(r.SessionID)
	if err != nil {
		return chat.Turn{}, err
	}
	return chat.Turn{Stop: chat.StopCalls, Calls: []jig.ToolCall{
		{ProviderID: jig.CallID(r.Pass, 1), Name: toolPrefix + s.next.Tool, Input: s.next.Args},
	}}, nil
}

// run returns the recorded text of the session's call.
func (e *engine) run(_ context.Context, inv jig.Invocation, _ json.RawMessage) jig.ToolResult {
	s, err := e.session(inv.SessionID)
	if err != nil {
		return jig.Failure(err)
	}
	data, err := json.Marshal(map[string]string{"text": s.text})
	if err != nil {
		return jig.Failure(err)
	}
	return jig.ToolResult{Success: true, Data: data}
}

func (e *engine) session(id string) (*session, error) {
	if s, ok := e.sessions.Load(id); ok {
		return s.(*session), nil //nolint:errcheck // the map holds nothing else
	}
	return nil, fmt.Errorf("session %s is not being replayed", id)
}
