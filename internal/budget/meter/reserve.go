package meter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
)

// charge describes a call that is to be paid for: a model with an estimate of its tokens, or a tool with a price.
type charge struct {
	Model  string `json:"model,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Input  int64  `json:"input,omitempty"`
	Output int64  `json:"output,omitempty"`
	// Pass, Call and Reason are kept for a charge that waits.
	Pass int    `json:"pass,omitempty"`
	Call string `json:"call,omitempty"`
	// Reason says why it waits.
	Reason string `json:"reason,omitempty"`
}

// reserved is a charge that was granted, maybe with another model.
type reserved struct {
	budget.Reservation

	charge charge
}

// maxDegraded bounds how many models are tried one after the other.
const maxDegraded = 5

// reserve reserves what a call may use at most. If it does not fit, the rules of the limits decide.
func (m *Meter) reserve(ctx context.Context, at *situation, w charge) (reserved, error) {
	var events []jig.Event
	for range maxDegraded {
		now := m.options.Now()
		claims, err := m.claims(ctx, at, w, now)
		if err != nil {
			return reserved{}, m.refuse(ctx, at, w, nil, err)
		}
		r := budget.Reservation{
			Tenant: at.session.Tenant, SessionID: at.session.ID, Key: at.key, Attempt: jig.NewAttemptID(), Claims: claims,
		}
		if len(claims) == 0 && len(events) == 0 {
			return reserved{charge: w}, nil
		}
		exhausted, err := m.options.Counters.ReserveBudget(ctx, budget.Request{
			Reservation: r, Seconds: int(reservedFor / time.Second), Events: events,
		})
		if err != nil || len(exhausted) == 0 {
			return reserved{r, w}, err
		}
		chosen, e := at.choose(ctx, w, exhausted, now)
		if at.call != "" && at.key == toolKey(at.call) && chosen.action == budget.ActionDegrade {
			chosen.action = budget.ActionStop // no other tool can take its place
		}
		switch chosen.action {
		case budget.ActionDegrade:
			if chosen.model == w.Model {
				return reserved{}, m.refuse(ctx, at, w, at.events(w, e, budget.ActionStop, ""), at.exhausted(e))
			}
			events = append(events, at.events(w, e, budget.ActionDegrade, chosen.model)...)
			w.Model = chosen.model
		case budget.ActionAsk:
			return reserved{}, m.hold(ctx, at, w, exhausted, e)
		case budget.ActionStop:
			return reserved{}, m.refuse(ctx, at, w, at.events(w, e, budget.ActionStop, ""), at.exhausted(e))
		}
	}
	return reserved{}, m.refuse(ctx, at, w, nil, jig.Errorf(jig.CodeBudgetExhausted, "the budgets name more than %d models one after the other", maxDegraded).
		WithReason(jig.ReasonBudget))
}

// claims returns what the limits count for a call. The error is BUDGET_EXHAUSTED if a limit on the cost applies to a model without a price.
func (m *Meter) claims(ctx context.Context, at *situation, w charge, now time.Time) ([]budget.Claim, error) {
	most, priced := at.budgets.most(w)
	vars := at.variables(w, now)
	var claims []budget.Claim
	root := at.session.ID
	for _, l := range at.budgets.limits {
		if !l.applies(ctx, vars) {
			continue
		}
		c := budget.Claim{Reserved: most, Limits: budget.Amount{Tokens: l.Tokens, Cost: budget.MoneyOf(l.Cost)}}
		if c.Limits.Cost > 0 && !priced {
			return nil, jig.Errorf(jig.CodeBudgetExhausted, "the model %s has no price, and limit %s of budget %s bounds the cost", w.Model, l.Name, l.budget).
				WithReason(jig.ReasonBudget).WithHint("add its price to a budget of the tenant: jig catalog add FILE")
		}
		if (c.Limits.Tokens == 0 || most.Tokens == 0) && (c.Limits.Cost == 0 || most.Cost == 0) {
			continue
		}
		if l.Level == budget.LevelSession && at.session.Depth > 0 && root == at.session.ID {
			var err error
			if root, err = m.options.Counters.SessionRoot(ctx, at.session.Tenant, at.session.ID); err != nil {
				return nil, err
			}
		}
		c.Account = l.account(at, root, now)
		claims = append(claims, c)
	}
	return claims, nil
}

// most returns what a call uses at most, and whether its price is known.
func (b *budgets) most(w charge) (budget.Amount, bool) {
	if w.Model == "" {
		return budget.Amount{Cost: b.tools[w.Tool].Call}, true
	}
	price, known := b.price(w.Model)
	if scripted(w.Model) {
		w.Input, w.Output = 0, 0
	}
	return budget.Amount{Tokens: w.Input + w.Output, Cost: price.Most(w.Input, w.Output)}, known
}

// choose returns what happens to a call, and the limit that says so: the strictest rule of the limits that are exhausted.
func (at *situation) choose(ctx context.Context, w charge, exhausted []budget.Exhausted, now time.Time) (rule, budget.Exhausted) {
	var chosen rule
	var because budget.Exhausted
	for _, e := range exhausted {
		i := slices.IndexFunc(at.budgets.limits, func(l limit) bool { return l.budget == e.Budget && l.Name == e.Limit })
		if r := at.budgets.limits[i].rule(ctx, at.variables(w, now), e); r.action.Strictness() > chosen.action.Strictness() {
			chosen, because = r, e
		}
	}
	return chosen, because
}

// exhausted returns the error of a call that a budget stops.
func (at *situation) exhausted(e budget.Exhausted) *jig.Error {
	return jig.Errorf(jig.CodeBudgetExhausted, "%s", jig.Known(at.budgets.describe(e))).WithReason(jig.ReasonBudget).
		WithHint("raise the limit and register the document again, then send a message to continue the session")
}

// describe says which limit is exhausted, and how much of it is used.
func (b *budgets) describe(e budget.Exhausted) string {
	var parts []string
	if e.Limits.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tokens are used or reserved, and the call may need %d",
			e.Used.Spent.Tokens+e.Used.Held.Tokens, e.Limits.Tokens, e.Reserved.Tokens))
	}
	if e.Limits.Cost > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s %s are used or reserved, and the call may cost %s",
			e.Used.Spent.Cost+e.Used.Held.Cost, e.Limits.Cost, b.currency, e.Reserved.Cost))
	}
	return fmt.Sprintf("limit %s of budget %s is exhausted: %s", e.Limit, e.Budget, strings.Join(parts, "; "))
}

// exhaustedEvent is the data of the event budget.exhausted.
type exhaustedEvent struct {
	Budget string        `json:"budget"`
	Limit  string        `json:"limit"`
	Action budget.Action `json:"action"`
	Model  string        `json:"model,omitempty"`
	// Instead is the model that answers instead.
	Instead string `json:"instead,omitempty"`
	Message string `json:"message"`
}

func (at *situation) events(w charge, e budget.Exhausted, action budget.Action, instead string) []jig.Event {
	data, err := json.Marshal(exhaustedEvent{
		Budget: e.Budget, Limit: e.Limit, Action: action, Model: w.Model, Instead: instead, Message: at.budgets.describe(e),
	})
	if err != nil {
		data = []byte("{}")
	}
	return []jig.Event{{Type: jig.EventBudgetExhausted, Pass: at.pass, CallID: at.call, Tool: at.tool, Data: data}}
}

// refuse records that a budget stops a call and returns why. Other errors are returned as they are.
func (m *Meter) refuse(ctx context.Context, at *situation, w charge, events []jig.Event, why error) error {
	if jig.CodeOf(why) != jig.CodeBudgetExhausted {
		return why
	}
	if events == nil {
		data, err := json.Marshal(exhaustedEvent{Action: budget.ActionStop, Model: w.Model, Message: jig.AsError(why).Message})
		if err != nil {
			return why
		}
		events = []jig.Event{{Type: jig.EventBudgetExhausted, Pass: at.pass, CallID: at.call, Tool: at.tool, Data: data}}
	}
	err := m.options.Counters.RefuseBudget(ctx, budget.Refusal{
		Reservation: budget.Reservation{Tenant: at.session.Tenant, SessionID: at.session.ID, Key: at.key}, Events: events,
	})
	if err != nil {
		return err
	}
	return why
}

// hold pauses the session until there is room again or a person allows the call to exceed the limits.
func (m *Meter) hold(ctx context.Context, at *situation, w charge, exhausted []budget.Exhausted, e budget.Exhausted) error {
	w.Pass, w.Call, w.Reason = at.pass, at.call, at.budgets.describe(e)
	if w.Tool == "" {
		w.Tool = at.tool
	}
	call, err := json.Marshal(w)
	if err != nil {
		return jig.Errorf(jig.CodeInternal, "a waiting call cannot be stored: %w", err)
	}
	r := budget.Refusal{
		Reservation: budget.Reservation{Tenant: at.session.Tenant, SessionID: at.session.ID, Key: at.key},
		Call:        call, Reason: w.Reason, Events: at.events(w, e, budget.ActionAsk, ""),
	}
	for _, one := range exhausted {
		r.Exhausted = append(r.Exhausted, one.Account)
	}
	if err := m.options.Counters.RefuseBudget(ctx, r); err != nil {
		return err
	}
	return budget.Held(r.Reason)
}

// Resume lets a session go on that a budget has paused, if there is room again. Otherwise it returns why the session waits. It does nothing
// for other sessions.
func (m *Meter) Resume(ctx context.Context, tenant, session string) (held string, err error) {
	waiting, err := m.options.Counters.WaitingForBudget(ctx, tenant, session)
	if err != nil || len(waiting) == 0 {
		return "", err
	}
	at, err := m.situation(ctx, tenant, session)
	if err != nil {
		return "", err
	}
	var claims []budget.Claim
	for _, one := range waiting {
		var w charge
		if err := json.Unmarshal(one.Call, &w); err != nil {
			return "", jig.Errorf(jig.CodeInternal, "a waiting call cannot be read: %w", err)
		}
		at.pass, at.call, at.tool, at.key = w.Pass, w.Call, w.Tool, one.Key
		more, err := m.claims(ctx, at, w, m.options.Now())
		if err != nil {
			return w.Reason, nil //nolint:nilerr // the model has no price any more, so it still does not fit
		}
		claims, held = append(claims, more...), w.Reason
	}
	lifted, err := m.options.Counters.ResumeBudget(ctx, tenant, session, merged(claims))
	if err != nil || lifted {
		held = ""
	}
	return held, err
}

// merged adds up the claims of the same account.
func merged(claims []budget.Claim) []budget.Claim {
	var list []budget.Claim
	for _, c := range claims {
		if i := slices.IndexFunc(list, func(o budget.Claim) bool { return o.Account == c.Account }); i >= 0 {
			list[i].Reserved = list[i].Reserved.Plus(c.Reserved)
			continue
		}
		list = append(list, c)
	}
	return list
}
