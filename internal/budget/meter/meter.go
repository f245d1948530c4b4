// Package meter asks models within the budgets of tenants: it reserves the most that a request may cost, asks the model, and charges what the
// answer really used. It does the same for calls of tools that have a price.
//
// The type budgets holds the prices and limits of a tenant's documents, compiled once per version. [Meter.Answer] is the entry for models,
// [Meter.Charge] that for tools. A session that waits for room or for a person is paused, and [Meter.Resume] lets it continue.
package meter

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/confine"
	"github.com/jig-run/jig/spec"
)

// Counters keeps what is spent and reserved.
type Counters interface {
	// ReserveBudget reserves all claims or none, and returns those that do not fit.
	ReserveBudget(ctx context.Context, r budget.Request) ([]budget.Exhausted, error)
	// RefuseBudget records that a call does not fit and, if the refusal has a reason, pauses the session.
	RefuseBudget(ctx context.Context, r budget.Refusal) error
	// SettleBudget charges what a call used and releases what it had reserved.
	SettleBudget(ctx context.Context, s budget.Settlement) error
	// WaitingForBudget returns the calls of a session that wait for room in a budget.
	WaitingForBudget(ctx context.Context, tenant, session string) ([]budget.Waiting, error)
	// ResumeBudget lifts the pause of a session that a budget made, if the claims fit now.
	ResumeBudget(ctx context.Context, tenant, session string, claims []budget.Claim) (bool, error)
	// SessionRoot returns the id of the first session of the tree that a session belongs to.
	SessionRoot(ctx context.Context, tenant, session string) (string, error)
	// Session returns a session, or NOT_FOUND.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
}

// Model answers prompts.
type Model interface {
	Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error)
	Check(model string) error
}

// Options configure a meter. All but Now are required.
type Options struct {
	Documents bundle.Documents
	Counters  Counters
	Model     Model
	Logger    *slog.Logger
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Meter asks models within the budgets of tenants. It reads each tenant's documents once and looks for changes once a second. It is safe for
// concurrent use.
type Meter struct {
	options Options
	tenants *bundle.Current[*budgets]
	turns   turns
}

// New returns a meter.
func New(o Options) *Meter {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Meter{options: o, tenants: bundle.NewCurrent(o.Documents, string(spec.KindBudget), readBudgets)}
}

// Check returns an error for a model name that no provider serves.
func (m *Meter) Check(model string) error { return m.options.Model.Check(model) }

// reservedFor is how long a reservation lasts that nobody settles. It is longer than an attempt to get an answer may take.
const reservedFor = 20 * time.Minute

// Answer asks the model once. Budgets may choose another model, which the turn names. The error is BUDGET_EXHAUSTED if the budget is used up;
// [budget.Waits] reports whether the session waits for a person instead.
func (m *Meter) Answer(ctx context.Context, request chat.Request, progress func(text string)) (chat.Turn, error) {
	if confine.IsReadOnly(ctx) { // nobody has approved the call that is previewed, and its cost could not be recorded
		return chat.Turn{}, jig.Errorf(jig.CodeNotPermitted, "a preview must not ask a model")
	}
	at, err := m.situation(ctx, request.Tenant, request.SessionID)
	if err != nil {
		return chat.Turn{}, err
	}
	at.pass, at.call, at.key = passOf(request), request.Call, keyOf(request)
	var r reserved
	if at.budgets.active() {
		var done func()
		if done, err = m.turns.wait(ctx, request.Tenant+"/"+request.SessionID+"/"+at.key); err != nil {
			return chat.Turn{}, err
		}
		defer done()
		ask := charge{Model: request.Model, Input: inputTokens(request), Output: int64(request.MaxTokens)}
		if r, err = m.reserve(ctx, at, ask); err != nil {
			return chat.Turn{}, err
		}
		request.Model = r.charge.Model
	}
	turn, failed := m.options.Model.Answer(ctx, request, progress)
	turn.Asked, turn.Usage = request.Model, budget.Counted(turn.Usage)
	broken := failed != nil && turn.Begun
	if broken {
		turn.Usage = atLeast(turn.Usage, request, turn)
	}
	price, _ := at.budgets.price(request.Model)
	if turn.Usage.Cost = 0; failed == nil || budget.TokensOf(turn.Usage) > 0 {
		turn.Usage.Cost = int64(price.Of(turn.Usage))
	}
	settlement := budget.Settlement{Reservation: r.Reservation}
	settlement.Tenant, settlement.SessionID = request.Tenant, request.SessionID
	for range r.Claims {
		settlement.Spent = append(settlement.Spent, budget.Amount{Tokens: budget.TokensOf(turn.Usage), Cost: budget.Money(turn.Usage.Cost)})
	}
	if request.Tenant != "" && (broken || request.Call != "" && failed == nil) { // the usage of a turn is recorded with it
		settlement.Record = &budget.Record{Pass: at.pass, CallID: request.Call, Model: request.Model, Usage: turn.Usage}
	}
	m.settle(ctx, settlement)
	return turn, failed
}

// keyOf names a request to a model within its session. The requests of a call share a key, so that a person allows all of them at once.
func keyOf(r chat.Request) string {
	switch {
	case r.Call != "":
		return "model " + r.Call
	case r.Summary:
		return "summary " + strconv.Itoa(r.Pass)
	}
	return "turn " + strconv.Itoa(r.Pass)
}

// passOf returns the pass of a request. The requests of a tool are numbered by themselves; their call begins with the pass.
func passOf(r chat.Request) int {
	pass, _, _ := strings.Cut(r.Call, ".")
	if n, err := strconv.Atoi(pass); err == nil {
		return n
	}
	return r.Pass
}

// settleFor is how long the outcome of a call is written while the database is unavailable.
const settleFor = 25 * time.Second

// settle charges what a call used, even if its activity was canceled meanwhile. If that fails, the reservation expires.
func (m *Meter) settle(ctx context.Context, s budget.Settlement) {
	if len(s.Claims) == 0 && s.Record == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	err := m.options.Counters.SettleBudget(ctx, s)
	for wait := 100 * time.Millisecond; jig.CodeOf(err) == jig.CodeUnavailable && ctx.Err() == nil; wait = min(2*wait, 2*time.Second) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			err = m.options.Counters.SettleBudget(ctx, s)
		}
	}
	if err != nil {
		m.options.Logger.WarnContext(ctx, "what a call used is not charged to its budget", slog.String("tenant", s.Tenant),
			slog.String("session_id", s.SessionID), slog.String("key", s.Key), slog.Any("error", err))
	}
}

// active reports whether calls must be reserved.
func (b *budgets) active() bool { return b != nil && (len(b.limits) > 0 || b.broken != nil) }

// readBudgets compiles the documents of a tenant.
func readBudgets(_ context.Context, _ string, stored []bundle.StoredDocument) (*budgets, error) {
	documents := make([]spec.Budget, len(stored))
	for i, s := range stored {
		var err error
		if documents[i], err = spec.LoadBudget(s.Name, s.Body); err != nil {
			broken := jig.Errorf(jig.CodeUnavailable, "the budget %s (version %s) cannot be read, so no model is called: %w", s.Name, jig.ShortVersion(s.Version), err).
				WithHint("register one that this worker reads: jig validate FILE, then jig catalog add FILE")
			return &budgets{broken: broken}, nil
		}
	}
	return newBudgets(documents)
}

// situation is a call of a model or tool, for which budgets are asked.
type situation struct {
	budgets *budgets
	session jig.Session
	pass    int
	// call is the call of a tool, tool its name, and key what names the reservation.
	call, tool, key string
}

func (m *Meter) situation(ctx context.Context, tenant, session string) (*situation, error) {
	at := &situation{budgets: &budgets{}}
	if tenant == "" {
		return at, nil
	}
	var err error
	if at.budgets, err = m.tenants.Of(ctx, tenant); err != nil || !at.budgets.active() {
		return at, err
	}
	if at.budgets.broken != nil {
		return at, at.budgets.broken
	}
	at.session, err = m.options.Counters.Session(ctx, tenant, session)
	return at, err
}

// variables returns what conditions read; see [spec.BudgetShapes].
func (at *situation) variables(w charge, now time.Time) map[string]any {
	s := at.session
	return map[string]any{
		"model": w.Model, "tool": at.tool, "tenant": s.Tenant, "now": now.UTC(),
		"agent":     map[string]any{"name": s.Agent.Name, "registered": s.Agent.Registered, "version": s.Agent.Version},
		"principal": map[string]any{"id": s.Principal.ID},
		"session": map[string]any{
			"id": s.ID, "pass": at.pass, "root_agent": cmp.Or(s.RootAgent, s.Agent.Name), "parent_agent": s.ParentAgent, "depth": s.Depth,
			"source": string(cmp.Or(s.Source, jig.SourceAPI)),
		},
		"limit": map[string]any{},
	}
}

// sizeOf returns about how many bytes a result takes in a prompt, or more.
func sizeOf(r jig.ToolResult) int {
	n := len(r.Data) + len(r.Markdown) + len(r.Summary)
	for _, warning := range r.Warnings {
		n += len(warning)
	}
	if raw, err := json.Marshal(r.Error); err == nil && r.Error != nil {
		n += len(raw)
	}
	return n
}

// atLeast returns the usage of an answer that broke off, with an estimate in place of what its provider has not reported.
func atLeast(u chat.Usage, request chat.Request, turn chat.Turn) chat.Usage {
	if u.InputTokens+u.CacheReadTokens+u.CacheCreateTokens == 0 {
		u.InputTokens = inputTokens(request)
	}
	n := len(turn.Text)
	for _, c := range turn.Calls {
		n += len(c.Name) + len(c.Input) + len(c.Malformed)
	}
	u.OutputTokens = max(u.OutputTokens, tokens(n))
	return u
}

// bytesPerToken is a low estimate of how many bytes of a prompt make a token, so that the estimate of the tokens is high.
const bytesPerToken = 3

// inputTokens estimates the tokens of a request. A script reads none.
func inputTokens(r chat.Request) int64 {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	for _, x := range r.Exchanges {
		for _, message := range x.Messages {
			n += len(message.Text)
		}
		if x.Turn != nil {
			n += max(len(x.Turn.Text), len(x.Turn.Opaque))
			for _, c := range x.Turn.Calls {
				n += len(c.Name) + len(c.Input)
			}
		}
		for _, c := range x.Calls {
			if c.Result != nil {
				n += sizeOf(*c.Result)
			}
		}
	}
	return tokens(n)
}

// tokens estimates the tokens of a text of n bytes.
func tokens(n int) int64 { return int64((n + bytesPerToken - 1) / bytesPerToken) }

// turns lets requests with the same key wait for each other. The reservation of a second one would replace that of the first. The zero value is
// ready to use.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// wait returns when no other request with this key is being answered. The caller calls done after its own.
func (t *turns) wait(ctx context.Context, key string) (done func(), err error) {
	for {
		t.mu.Lock()
		before, busy := t.busy[key]
		if !busy {
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.busy[key] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, key)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, jig.Errorf(jig.CodeCanceled, "waiting for the answer to another question of the call: %w", ctx.Err())
		}
	}
}
