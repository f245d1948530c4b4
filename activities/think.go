package activities

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/livetext"
)

// ThinkInput asks for the turn of a pass.
type ThinkInput struct {
	PassRef
	// Limit is the maximum number of calls in [Thought].Admitted, not counting those that wait for a person. At 0, as in older workflow
	// code, Think neither admits calls nor ends the session.
	Limit int `json:"limit,omitempty"`
}

// Thought tells the workflow what follows from a model's answer. It holds nothing of the answer's content.
type Thought struct {
	// Calls is how many calls the answer asks for.
	Calls int `json:"calls"`
	// Paused reports that a pause holds the session back and that the model was not asked.
	Paused bool `json:"paused,omitempty"`
	// Admitted lists the open calls; nil if the workflow must have them admitted.
	Admitted *Admitted `json:"admitted,omitempty"`
	// Continues reports that another pass follows once the calls have their results. Otherwise the workflow must settle the pass.
	Continues bool `json:"continues,omitempty"`
	// Quick reports whether the model has been quick on this worker; nil if the model is a script or was not asked.
	Quick *bool `json:"quick,omitempty"`
	// Ended says how the answer ended the session; nil if it did not.
	Ended *Settled `json:"ended,omitempty"`
}

// Think asks the model for the turn of the pass and stores it, together with the admission of its calls or, if it has none to run, the end
// of the session. If the pass already has a turn, the model is not asked again, so a retry after a crash does not pay for the model twice.
func (a *Activities) Think(ctx context.Context, in ThinkInput) (Thought, error) {
	begun, err := a.Store.BeginPass(ctx, in.Tenant, in.SessionID, in.Pass)
	switch {
	case err != nil:
		return Thought{}, temporalError(err)
	case begun.Turn != nil:
		return Thought{Calls: len(begun.Turn.Calls)}, nil
	case begun.Session.Paused != "":
		return Thought{Paused: true}, temporalError(a.Store.NoteHeld(ctx, in.Tenant, in.SessionID, ""))
	}
	stop := heartbeat(ctx)
	defer stop()
	ctx, end := a.Tracing.Pass(ctx, begun.Session, in.Pass)
	thought, err := a.turn(ctx, begun, in)
	if !thought.Paused {
		end(err)
	}
	return thought, temporalError(err)
}

// turn asks the model for the turn of a pass that has begun, and stores what follows from it.
func (a *Activities) turn(ctx context.Context, begun ledger.Beginning, in ThinkInput) (Thought, error) {
	turn, err := a.ask(ctx, begun, in.Pass)
	switch {
	case budget.Waits(err):
		return Thought{Paused: true}, nil
	case err != nil:
		return Thought{}, err
	}
	var quick *bool
	if model := begun.Session.Agent.Model; !scripted(model) {
		quick = new(a.pace.quick(model))
	}
	if in.Limit > 0 {
		thought, err := a.conclude(ctx, begun, in, turn)
		if err == nil {
			thought.Quick = quick
			return thought, nil
		}
		// The answer is paid for, so it is kept, and the workflow has its calls admitted.
		a.Logger.WarnContext(ctx, "an answer could not be stored together with what follows from it",
			slog.String("session_id", in.SessionID), slog.Int("pass", in.Pass), slog.Any("error", err))
	}
	err = retryWhileUnavailable(ctx, func() (err error) {
		turn, err = a.Store.SaveTurn(ctx, in.Tenant, in.SessionID, in.Pass, turn)
		return err
	})
	return Thought{Calls: len(turn.Calls), Quick: quick}, err
}

// conclude stores a turn with the admission of its calls. If no call is left to run, it also ends the session as [next] decides, unless a
// message has arrived.
func (a *Activities) conclude(ctx context.Context, begun ledger.Beginning, in ThinkInput, turn chat.Turn) (Thought, error) {
	session := begun.Session
	session.Tokens += turn.Usage.InputTokens + turn.Usage.OutputTokens
	if err := a.acting(ctx, &session); err != nil { // the answer may have taken minutes
		return Thought{}, err
	}
	for _, x := range begun.Exchanges { // a call that ended late may not be counted in the session as it was read
		for _, c := range x.Calls {
			if c.Result != nil && c.Fence > 0 {
				session.ReadPrivate, session.ReadUntrusted = session.ReadPrivate || c.ReadsPrivate, session.ReadUntrusted || c.ReadsUntrusted
			}
		}
	}
	known := signatures(begun.Exchanges)
	if session.SummaryThrough > 0 {
		known = nil // the exchanges do not include all calls
	}
	admission, err := a.admission(ctx, session, in.Pass, turn, known)
	if err != nil {
		return Thought{}, err
	}
	state := ledger.PassState{Session: session, Turn: turn, MessagePass: begun.MessagePass, Counts: map[jig.CallStatus]int{}}
	for _, c := range admission.Calls {
		state.Counts[c.Status]++
	}
	answer := ledger.Answer{Admission: admission, Turn: turn}
	end := next(state, in.Pass, a.Now())
	settles := end.Status.Final()
	if settles && state.Counts[jig.CallDuplicate] == len(admission.Calls) && len(end.Answer) <= jig.InlineBytes {
		state.Unread = 1
		end.Tenant, end.SessionID, end.Pass = in.Tenant, in.SessionID, in.Pass
		answer.End, answer.EndsAnyway = &end, next(state, in.Pass, a.Now()).Status.Final()
	}
	ended, err := a.Store.StoreAnswer(ctx, answer)
	if err != nil {
		return Thought{}, err
	}
	a.admitted(ctx, session, admission)
	thought := Thought{Calls: len(turn.Calls), Continues: !settles || answer.End != nil && ended == nil}
	if ended != nil {
		a.Tracing.SessionEnded(ctx, *ended)
		thought.Ended = new(settled(*ended))
		return thought, nil
	}
	admitted, err := a.admittedNow(ctx, session, admission, in.Limit)
	thought.Admitted = &admitted
	return thought, err
}

// AwaitResume succeeds once nothing holds the session back any more. Until then each attempt fails, and Temporal retries it without
// growing the history.
func (a *Activities) AwaitResume(ctx context.Context, in PassRef) error {
	held, err := a.Budgets.Resume(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return temporalError(err)
	}
	begun, err := a.Store.BeginPass(ctx, in.Tenant, in.SessionID, in.Pass)
	if err == nil && begun.Session.Paused != "" {
		return pausedError("pass "+strconv.Itoa(in.Pass), held, pauseRetry)
	}
	return temporalError(err)
}

// ask asks the model for the turn of a pass.
func (a *Activities) ask(ctx context.Context, begun ledger.Beginning, pass int) (chat.Turn, error) {
	if err := a.acting(ctx, &begun.Session); err != nil {
		return chat.Turn{}, err
	}
	request, spent, err := a.prompt(ctx, begun, pass)
	if err != nil {
		return chat.Turn{}, err
	}
	asked, text := a.Now(), a.text(request)
	answer, err := a.Model.Answer(ctx, request, text.Add)
	text.End(failureOf(err))
	if !budget.Waits(err) && jig.CodeOf(err) != jig.CodeBudgetExhausted { // otherwise the model was not asked
		a.pace.note(request.Model, a.Now().Sub(asked), err)
	}
	answer.Usage, answer.Asked = answer.Usage.Plus(spent), cmp.Or(answer.Asked, request.Model)
	return answer, a.modelFailed(ctx, begun.Session, pass, err)
}

// text returns a writer that passes what the model writes on to those who follow the session. It is nil for a script, which answers at once.
func (a *Activities) text(request chat.Request) *livetext.Writer {
	if scripted(request.Model) {
		return nil
	}
	return a.Store.WriteText(request.Tenant, request.SessionID, request.Pass)
}

// failureOf returns the message of an error, or "".
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	return cmp.Or(jig.AsError(err).Message, string(jig.CodeOf(err)))
}

// prompt builds the request to the model: instructions, menu, working state, and the transcript within the budget. If the transcript must
// be summarized for that, spent is the usage of the summary.
func (a *Activities) prompt(ctx context.Context, begun ledger.Beginning, pass int) (request chat.Request, spent chat.Usage, err error) {
	session, exchanges := begun.Session, begun.Exchanges
	menu, err := a.menu(ctx, session)
	if err != nil {
		return request, spent, err
	}
	limits := session.Agent.Limits.WithDefaults()
	request = chat.Request{
		Model: session.Agent.Model, MaxTokens: limits.MaxTokens, Tools: menu,
		SessionID: session.ID, Pass: pass, Input: session.Input, Script: session.Agent.Script, Tenant: session.Tenant,
	}
	request.System = systemPrompt(session, request.Tools)
	if scripted(request.Model) {
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
		if session.Summary, spent, err = a.summarize(ctx, session, pass, exchanges[:overflow], limits); err != nil {
			return request, spent, err
		}
		if err := a.Store.SaveSummary(ctx, session.Tenant, session.ID, exchanges[overflow-1].Pass, session.Summary); err != nil {
			return request, spent, err
		}
		fitted = fitted[overflow:]
	}
	request.Exchanges = withTodo(session, withMemory(known, withSummary(session, fitted)))
	return request, spent, nil
}

// scripted reports whether a model is a script, which answers at once.
func scripted(model string) bool { return strings.HasPrefix(model, "script/") }

// menu returns the tools that the session may call, sorted by name: those pinned at its start that this worker still has. The tool
// that starts agents is included only if the agent's document lists agents to start.
func (a *Activities) menu(ctx context.Context, session jig.Session) ([]jig.Tool, error) {
	names := slices.Sorted(maps.Keys(session.Catalog))
	tools := make([]jig.Tool, 0, len(names))
	for _, name := range names {
		tool, ok, err := a.tool(ctx, session.Tenant, name, session.Catalog[name])
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

const (
	// quickAnswer is how long an answer of a quick model takes at most.
	quickAnswer = time.Second
	// quickAnswers is how many answers in a row must have been quick for a model to be known as quick. An answer that is given up because it
	// was not quick is asked for again, so at most one request in quickAnswers is paid for in vain.
	quickAnswers = 10
	// maxPaces limits the models that are remembered.
	maxPaces = 1000
)

// pace remembers how quickly models have answered in this process. The zero value is ready to use.
type pace struct {
	mu sync.Mutex
	// inARow counts the latest quick answers of each model, up to quickAnswers.
	inARow map[string]int
}

// note records how long a model took to answer, or that it did not.
func (p *pace) note(model string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || took > quickAnswer {
		delete(p.inARow, model)
		return
	}
	if p.inARow == nil || len(p.inARow) >= maxPaces && p.inARow[model] == 0 {
		p.inARow = map[string]int{} // a model that is used will soon be known again
	}
	p.inARow[model] = min(p.inARow[model]+1, quickAnswers)
}

// quick reports whether a model is known to answer at once: because it is a script, or because its latest answers were quick.
func (p *pace) quick(model string) bool {
	if scripted(model) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inARow[model] >= quickAnswers
}

// The waits between the requests for a turn, or of a call that asks a model, that fail: ModelBackoff at first, twice as long each time, at most
// MaxModelBackoff. A turn is requested at most ModelAttempts times.
const (
	ModelBackoff    = time.Second
	MaxModelBackoff = time.Minute
	ModelAttempts   = chat.MaxRequests
)

// modelFailed returns the error of a request for a turn that failed with err. If the model is asked again, it records when, and why; an answer
// that is broken again and again is final.
func (a *Activities) modelFailed(ctx context.Context, session jig.Session, pass int, err error) error {
	if err == nil || budget.Waits(err) || !jig.AsError(err).Code.Retryable() {
		return err
	}
	wait, e := a.modelRetry(ctx, session.Tenant, session.ID, ledger.ModelWait{Pass: pass}, jig.AsError(err))
	if e.Code.Retryable() && max(wait.Attempt, attemptOf(ctx)) < ModelAttempts {
		a.noteModelWait(ctx, session.Tenant, session.ID, wait)
	}
	return e
}

// modelRetry completes what is known of a wait before a model is asked again, because a request failed with err. It returns the error to fail
// with, whose RetryAfter is the length of the wait. An answer that is broken again and again is final.
func (a *Activities) modelRetry(ctx context.Context, tenant, id string, wait ledger.ModelWait, err *jig.Error) (ledger.ModelWait, *jig.Error) {
	wait.Code, wait.Reason, wait.Message, wait.Attempt, wait.Same = err.Code, err.Reason, err.Message, max(wait.Attempt, 1), 1
	last, failed := a.Store.ModelWait(ctx, tenant, id, wait.Call)
	if failed != nil {
		return wait, err // the database is down, so the retry will not come far
	}
	if last != nil && last.Pass == wait.Pass {
		wait.Attempt = max(wait.Attempt, last.Attempt+1)
		if last.Reason == err.Reason {
			wait.Same = last.Same + 1
		}
	}
	e := *chat.AskedAgain(err, wait.Same-1)
	if e.Code.Retryable() {
		e.RetryAfter = max(e.RetryAfter, min(ModelBackoff<<(wait.Attempt-1), MaxModelBackoff))
		wait.Next = a.Now().Add(e.RetryAfter).UTC()
	}
	return wait, &e
}

// noteModelWait records a wait, with an event, unless its end is not known.
func (a *Activities) noteModelWait(ctx context.Context, tenant, id string, wait ledger.ModelWait) {
	if wait.Next.IsZero() {
		return
	}
	if err := a.Store.NoteModelWait(ctx, tenant, id, wait); err != nil {
		a.Logger.WarnContext(ctx, "a wait for a model could not be recorded", slog.String("session_id", id), slog.Any("error", err))
	}
}

// callModelRetry returns the wait before a call asks a model again, because its provider failed; nil if the call failed for another reason. It
// puts the error to fail with into the outcome.
func (a *Activities) callModelRetry(ctx context.Context, r ledger.Reservation, outcome *jig.ToolResult) *ledger.ModelWait {
	if outcome.Success || !chat.FromProvider(outcome.Error) {
		return nil
	}
	wait, e := a.modelRetry(ctx, r.Call.Tenant, r.Call.SessionID, ledger.ModelWait{Pass: r.Call.Pass, Call: r.Call.ID, Attempt: r.Fence}, outcome.Error)
	outcome.Error = e
	return &wait
}

// attemptOf returns how often the activity has been tried. Outside an activity, it is the first attempt.
func attemptOf(ctx context.Context) int {
	if !activity.IsActivity(ctx) {
		return 1
	}
	return int(activity.GetInfo(ctx).Attempt)
}
