package activities

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// Thought tells the workflow how many calls a model's answer asks for. It holds nothing of the answer's content.
type Thought struct {
	Calls int `json:"calls"`
	// Paused reports that a pause holds the session back and that the model was not asked.
	Paused bool `json:"paused,omitempty"`
}

// Think asks the model for the turn of the pass and stores it. If the pass already has a turn, the model is not asked again, so a
// retry after a crash does not pay for the model twice.
func (a *Activities) Think(ctx context.Context, in PassRef) (Thought, error) {
	session, turn, err := a.store.BeginPass(ctx, in.Tenant, in.SessionID, in.Pass)
	if err != nil {
		return Thought{}, temporalError(err)
	}
	if turn == nil && session.Paused != "" {
		return Thought{Paused: true}, nil
	}
	if turn == nil {
		if turn, err = a.ask(ctx, session, in.Pass); err != nil {
			return Thought{}, temporalError(err)
		}
	}
	return Thought{Calls: len(turn.Calls)}, nil
}

// AwaitResume succeeds once nothing holds the session back any more. Until then each attempt fails, and Temporal retries it without
// growing the history.
func (a *Activities) AwaitResume(ctx context.Context, in PassRef) error {
	session, _, err := a.store.BeginPass(ctx, in.Tenant, in.SessionID, in.Pass)
	if err == nil && session.Paused != "" {
		return pausedError("pass "+strconv.Itoa(in.Pass), "")
	}
	return temporalError(err)
}

func (a *Activities) ask(ctx context.Context, session jig.Session, pass int) (*chat.Turn, error) {
	stop := heartbeat(ctx)
	defer stop()
	if err := a.acting(ctx, &session); err != nil {
		return nil, err
	}
	request, spent, err := a.prompt(ctx, session, pass)
	if err != nil {
		return nil, err
	}
	answer, err := a.model.Answer(ctx, request, func(string) {})
	if err != nil {
		return nil, err
	}
	answer.Usage = answer.Usage.Plus(spent)
	stored, err := a.store.SaveTurn(ctx, session.Tenant, session.ID, pass, answer)
	if err != nil {
		return nil, err
	}
	return &stored, nil
}

// prompt builds the request to the model: instructions, menu, working state, and the transcript within the budget. If the transcript must
// be summarized for that, spent is the usage of the summary.
func (a *Activities) prompt(ctx context.Context, session jig.Session, pass int) (request chat.Request, spent chat.Usage, err error) {
	exchanges, err := a.store.Transcript(ctx, session.Tenant, session.ID, session.SummaryThrough)
	if err != nil {
		return request, spent, err
	}
	menu, err := a.menu(ctx, session)
	if err != nil {
		return request, spent, err
	}
	limits := session.Agent.Limits.WithDefaults()
	request = chat.Request{
		Model: session.Agent.Model, MaxTokens: limits.MaxTokens, Tools: menu,
		SessionID: session.ID, Pass: pass, Input: session.Input, Script: session.Agent.Script,
	}
	request.System = systemPrompt(session, request.Tools)
	if strings.HasPrefix(request.Model, "script/") {
		request.Exchanges, err = a.wholeResults(ctx, session, exchanges)
		return request, spent, err
	}
	known, err := a.remember(ctx, session, exchanges)
	if err != nil {
		return request, spent, err
	}
	exchanges = withInput(session, exchanges)
	budget := limits.TokenBudget - tokens(len(request.System)) - toolTokens(request.Tools) - tokens(len(known.note()))
	fitted, overflow := fit(session.ID, exchanges, budget)
	if overflow > 0 {
		if session.Summary, spent, err = a.summarize(ctx, session, exchanges[:overflow], limits); err != nil {
			return request, spent, err
		}
		if err := a.store.SaveSummary(ctx, session.Tenant, session.ID, exchanges[overflow-1].Pass, session.Summary); err != nil {
			return request, spent, err
		}
		fitted = fitted[overflow:]
	}
	request.Exchanges = withTodo(session, withMemory(known, withSummary(session, fitted)))
	return request, spent, nil
}

// menu returns the tools that the session may call, sorted by name: those pinned at its start that this worker still has. The tool
// that starts agents is included only if the agent's document lists agents to start.
func (a *Activities) menu(ctx context.Context, session jig.Session) ([]jig.Tool, error) {
	names := slices.Sorted(maps.Keys(session.Catalogue))
	tools := make([]jig.Tool, 0, len(names))
	for _, name := range names {
		tool, ok, err := a.tool(ctx, session.Tenant, name, session.Catalogue[name])
		if err != nil {
			return nil, err
		}
		if childOf(tool) == ChildAgent && len(session.Agent.Agents) == 0 {
			continue
		}
		if ok && allowed(tool, session) == nil && jig.CheckToolName(name) == nil {
			tools = append(tools, tool)
		}
	}
	return tools, nil
}

// heartbeat tells Temporal every two seconds that the activity is alive, so that a dead worker is noticed within the heartbeat
// timeout. It does nothing in a local activity, which has no heartbeats.
func heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) || activity.GetInfo(ctx).HeartbeatTimeout == 0 {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { close(over); <-done }
}
