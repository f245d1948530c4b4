package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// side is one of the implementations that a benchmark compares.
type side struct {
	name string
	// tool is the tool that its sessions call.
	tool string
	// start starts a session with the given id.
	start func(ctx context.Context, c caller, id string, p plan) error
}

// caller starts sessions on a task queue for a tenant.
type caller struct {
	temporal sdk.Client
	jig      *client.Client
	queue    string
	tenant   string
	agent    agentSettings
}

func (b *bench) caller() caller {
	return caller{
		temporal: b.temporal, jig: b.jig, queue: taskQueue, tenant: jig.DefaultTenant,
		agent: agentSettings{model: plannerModel, tools: "bench.*", passesPerRun: b.passesPerRun},
	}
}

// at returns a copy of c for another task queue and tenant.
func (c caller) at(queue, tenant string) caller {
	c.jig, c.queue, c.tenant = client.New(c.temporal, client.Options{TaskQueue: queue}), queue, tenant
	return c
}

// The sides, in the order in which the benchmarks use them.
func jigSide() side   { return side{name: "jig", tool: noopTool, start: startJig} }
func localSide() side { return side{name: "jig local", tool: quickTool, start: startJig} }
func loopSide() side  { return side{name: "B0", tool: noopTool, start: startBaseline("Loop")} }
func bareSide() side  { return side{name: "bare B0", tool: noopTool, start: startBaseline("Bare")} }

// allSides returns the sides of P1 and P2. B0 is the third.
func allSides() []side { return []side{jigSide(), localSide(), loopSide(), bareSide()} }

// startOptions returns how a caller starts a session with a plan; its id is missing.
func startOptions(c caller, p plan) (client.StartOptions, error) {
	document, err := c.agent.document()
	if err != nil {
		return client.StartOptions{}, err
	}
	input, err := planInput(p)
	return client.StartOptions{
		Tenant: c.tenant, Agent: "bench", Document: document, DocumentName: "bench", Input: input, Principal: jig.Principal{ID: "bench"},
	}, err
}

func startJig(ctx context.Context, c caller, id string, p plan) error {
	o, err := startOptions(c, p)
	if err != nil {
		return err
	}
	o.ID = id
	if _, err = c.jig.Start(ctx, o); err != nil {
		return fmt.Errorf("start a session: %w", err)
	}
	return nil
}

func startBaseline(workflow string) func(context.Context, caller, string, plan) error {
	return func(ctx context.Context, c caller, id string, p plan) error {
		document, err := c.agent.document()
		if err != nil {
			return err
		}
		input, err := planInput(p)
		if err != nil {
			return err
		}
		start := protocol.StartSession{
			Agent: "bench", Document: document, DocumentName: "bench", Input: input, Principal: jig.Principal{ID: "bench"},
		}
		_, err = c.temporal.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: id, TaskQueue: c.queue, EnableEagerStart: true},
			workflow, LoopInput{Tenant: c.tenant, Start: start, Plan: p})
		if err != nil {
			return fmt.Errorf("start a baseline: %w", err)
		}
		return nil
	}
}

// newID returns a new session id that a client chose, with the tenant prefix.
func newID(tenant string) string {
	return jig.SessionID(tenant, strings.TrimPrefix(jig.NewSessionID(), jig.SessionPrefix))
}

// runSession runs one session to its end and returns its id.
func (b *bench) runSession(ctx context.Context, s side, p plan) (string, error) {
	return b.runSessionOf(ctx, s, b.caller(), p)
}

// runSessionOf runs one session of a caller's agent to its end and returns its id.
func (b *bench) runSessionOf(ctx context.Context, s side, c caller, p plan) (string, error) {
	id := newID(c.tenant)
	if err := s.start(ctx, c, id, p); err != nil {
		return id, err
	}
	if err := b.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		return id, fmt.Errorf("session %s of %s: %w", id, s.name, err)
	}
	return id, nil
}

// runs describes the workflow runs of a session.
type runs struct {
	count int
	// events is the number of history events of all runs; maxEvents and maxBytes are those of the largest run.
	events, maxEvents, maxBytes int64
}

// runsOf describes all runs of a session, following the chain from the first run.
func (b *bench) runsOf(ctx context.Context, id string) (runs, error) {
	latest, err := b.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return runs{}, fmt.Errorf("describe %s: %w", id, err)
	}
	var r runs
	for run := latest.GetWorkflowExecutionInfo().GetFirstRunId(); run != ""; {
		described, err := b.temporal.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			return r, fmt.Errorf("describe %s: %w", id, err)
		}
		info := described.GetWorkflowExecutionInfo()
		r.count++
		r.events += info.GetHistoryLength()
		r.maxEvents = max(r.maxEvents, info.GetHistoryLength())
		r.maxBytes = max(r.maxBytes, info.GetHistorySizeBytes())
		if run, err = b.nextRun(ctx, id, run); err != nil {
			return r, err
		}
	}
	return r, nil
}

// nextRun returns the id of the run that follows a run that continued as new, or "" if it did not.
func (b *bench) nextRun(ctx context.Context, id, run string) (string, error) {
	history := b.temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("history of %s: %w", id, err)
		}
		if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); next != nil {
			return next.GetNewExecutionRunId(), nil
		}
	}
	return "", nil
}
