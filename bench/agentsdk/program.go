package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agenticenv/agent-sdk-go/pkg/agent"
	"github.com/agenticenv/agent-sdk-go/pkg/interfaces"
	"github.com/agenticenv/agent-sdk-go/pkg/llm"
	"github.com/agenticenv/agent-sdk-go/pkg/llm/openai"
	"go.temporal.io/sdk/client"
)

// program holds the agents that run the jobs.
type program struct {
	// free holds the agents that are not running anything: an agent runs one session at a time.
	free chan *agent.Agent
	all  []*agent.Agent
	// asking is the agent whose calls need an approval, which p.approve gives after a while.
	asking *agent.Agent
	after  time.Duration
	// sent and entered get the times at which an approval was sent and the tool was entered.
	sent, entered chan time.Time
}

// newProgram starts the agents, each with a worker and a task queue of its own, as the framework does.
func newProgram(temporal client.Client, queue, model string, atOnce int) (*program, error) {
	asked, err := openai.NewClient(llm.WithAPIKey("none"), llm.WithModel("stand-in"), llm.WithBaseURL(model))
	if err != nil {
		return nil, fmt.Errorf("set up the model: %w", err)
	}
	p := &program{free: make(chan *agent.Agent, atOnce), sent: make(chan time.Time, 1), entered: make(chan time.Time, 1)}
	start := func(name string, t tool, more ...agent.Option) (*agent.Agent, error) {
		a, err := agent.NewAgent(append([]agent.Option{
			agent.WithName("bench"), agent.WithDescription("Benchmark."), agent.WithSystemPrompt("Do as the input says."),
			agent.WithTemporalClient(temporal, queue+name), agent.WithLLMClient(asked), agent.WithTools(t),
			agent.WithMaxIterations(1000), agent.WithLogger(agent.NoopLogger()),
		}, more...)...)
		if err != nil {
			return nil, fmt.Errorf("start an agent: %w", err)
		}
		p.all = append(p.all, a)
		return a, nil
	}
	for i := range atOnce {
		a, err := start(fmt.Sprintf("-%d", i), tool{}, agent.WithToolApprovalPolicy(agent.AutoToolApprovalPolicy()))
		if err != nil {
			p.close()
			return nil, err
		}
		p.free <- a
	}
	p.asking, err = start("-asking", tool{entered: func() { p.entered <- time.Now() }},
		agent.WithToolApprovalPolicy(agent.RequireAllToolApprovalPolicy{}), agent.WithApprovalHandler(p.approve))
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *program) close() {
	for _, a := range p.all {
		a.Close()
	}
}

// approve answers as a person would, without blocking the framework's loop.
func (p *program) approve(_ context.Context, request *agent.ApprovalRequest) {
	time.AfterFunc(p.after, func() {
		p.sent <- time.Now()
		_ = request.Respond(agent.ApprovalStatusApproved) //nolint:errcheck // then the session does not end, and the benchmark says so
	})
}

// do carries out a command.
func (p *program) do(ctx context.Context, c command) (answer, error) {
	switch c.Do {
	case "sessions":
		return p.sessions(ctx, c)
	case "approvals":
		return p.approvals(ctx, c)
	}
	return answer{}, fmt.Errorf("unknown command %q", c.Do)
}

// sessions runs sessions, at most c.AtOnce at a time.
func (p *program) sessions(ctx context.Context, c command) (answer, error) {
	prompt := fmt.Sprintf(`{"passes":%d,"calls":%d}`, c.Passes, c.Calls)
	times, errs := make([]float64, c.Sessions), make([]error, c.Sessions)
	next := make(chan int)
	began := time.Now()
	var running sync.WaitGroup
	for range min(c.AtOnce, c.Sessions) {
		running.Go(func() {
			for i := range next {
				a := <-p.free
				start := time.Now()
				errs[i] = ask(ctx, a, prompt)
				times[i] = milliseconds(time.Since(start))
				p.free <- a
			}
		})
	}
	for i := range c.Sessions {
		next <- i
	}
	close(next)
	running.Wait()
	return answer{Times: times, Elapsed: milliseconds(time.Since(began))}, errors.Join(errs...)
}

// approvals runs sessions whose only call waits for an approval, one after another.
func (p *program) approvals(ctx context.Context, c command) (answer, error) {
	p.after = time.Duration(c.After * float64(time.Millisecond))
	times := make([]float64, c.Sessions)
	for i := range times {
		if err := ask(ctx, p.asking, `{"passes":1,"calls":1}`); err != nil {
			return answer{}, err
		}
		times[i] = milliseconds((<-p.entered).Sub(<-p.sent))
	}
	return answer{Times: times}, nil
}

// ask runs a session.
func ask(ctx context.Context, a *agent.Agent, prompt string) error {
	response, err := a.Run(ctx, prompt, "")
	if err != nil {
		return fmt.Errorf("run a session: %w", err)
	}
	if response.Content != "done" {
		return fmt.Errorf("the session answered %q", response.Content)
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tool does nothing.
type tool struct{ entered func() }

// Name returns the name that the model uses.
func (tool) Name() string { return "noop" }

// Description describes the tool to the model.
func (tool) Description() string { return "Does nothing." }

// Parameters returns the schema of the input.
func (tool) Parameters() interfaces.JSONSchema {
	return interfaces.JSONSchema{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
}

// Execute returns its argument.
func (t tool) Execute(_ context.Context, args map[string]any) (any, error) {
	if t.entered != nil {
		t.entered()
	}
	return args["n"], nil
}
