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
)

// Thought is what the workflow learns of a model's answer: how much it asks for, nothing of what it says.
type Thought struct {
	Calls int `json:"calls"`
	// Paused says that a pause holds the session back: the model was not asked.
	Paused bool `json:"paused,omitempty"`
}

// Think asks the model for the pass's turn and stores it. A pass that has its turn already is not asked again, so a
// retry after a crash does not pay the model twice.
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

// AwaitResume ends once nothing holds a session back any more. Until then each attempt fails, and Temporal brings it back without a
// trace in the history.
func (a *Activities) AwaitResume(ctx context.Context, in PassRef) error {
	session, _, err := a.store.BeginPass(ctx, in.Tenant, in.SessionID, in.Pass)
	if err == nil && session.Paused != "" {
		return pausedError("pass "+strconv.Itoa(in.Pass), "")
	}
	return temporalError(err)
}

func (a *Activities) ask(ctx context.Context, session jig.Session, pass int) (*jig.Turn, error) {
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

// prompt builds what the model is asked: instructions, menu, working state, and the transcript within the budget. spent is what a
// summary took on the way.
func (a *Activities) prompt(ctx context.Context, session jig.Session, pass int) (request jig.ModelRequest, spent jig.Usage, err error) {
	exchanges, err := a.store.Transcript(ctx, session.Tenant, session.ID, session.SummaryThrough)
	if err != nil {
		return request, spent, err
	}
	menu, err := a.menu(ctx, session)
	if err != nil {
		return request, spent, err
	}
	limits := session.Agent.Limits.WithDefaults()
	request = jig.ModelRequest{
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
// that starts agents is among them when the agent's document lists some.
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

// heartbeat tells Temporal every two seconds that the activity lives, so that a dead worker is noticed within the
// heartbeat time-out. It does nothing in a local activity, which has none.
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
