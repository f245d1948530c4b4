package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/protocol"
)

// The states of a reservation.
const (
	reservationReserved = "reserved"
	reservationSettled  = "settled"
	reservationWaiting  = "waiting"
	reservationRefused  = "refused"
)

// reservationRow is a row of the query BudgetReservationLock.
type reservationRow struct {
	Attempt, State string
	Claims         []budget.Claim
	Asked          []budget.Account
}

// lockedReservation is a reservation that a transaction has locked.
type lockedReservation struct {
	reservationRow

	// free reports that no pause holds back the session.
	free bool
}

// counterRow is a row of budget_counters.
type counterRow struct {
	Budget, LimitName, Scope, Period             string
	SpentTokens, SpentCost, HeldTokens, HeldCost int64
}

func (r counterRow) used() budget.Used {
	return budget.Used{
		Account: budget.Account{Budget: r.Budget, Limit: r.LimitName, Scope: r.Scope, Period: r.Period},
		Spent:   budget.Amount{Tokens: r.SpentTokens, Cost: budget.Money(r.SpentCost)},
		Held:    budget.Amount{Tokens: r.HeldTokens, Cost: budget.Money(r.HeldCost)},
	}
}

// ReserveBudget reserves the claims of a call, all or none, and records r.Events with that. A reservation that an earlier attempt of the call
// left behind is replaced. It returns the claims that do not fit; if there are any, nothing is reserved. Limits that a person allowed the
// call to exceed are not enforced.
func (db *DB) ReserveBudget(ctx context.Context, r budget.Request) (exhausted []budget.Exhausted, err error) {
	claims, err := encode(r.Claims)
	if err != nil {
		return nil, err
	}
	err = db.transact(ctx, r.Tenant, func(t *tx) error {
		before, used, err := t.lockBudget(ctx, r.Reservation)
		if err != nil {
			return err
		}
		var asked []budget.Account
		if before.free {
			asked = before.Asked
		}
		held := before.held()
		if exhausted = budget.Decide(r.Claims, accounts(r.Claims, used, held), asked); len(exhausted) > 0 {
			return nil
		}
		changes := newCounterChanges()
		for _, c := range r.Claims {
			changes.add(c.Account, budget.Amount{}, c.Reserved)
		}
		changes.release(held)
		t.addToCounters(changes)
		t.queue("BudgetReservationPut", r.Tenant, r.SessionID, r.Key, r.Attempt, reservationReserved, claims, before.Asked, nil, r.Seconds)
		l := &log{}
		for _, e := range r.Events {
			l.add(e)
		}
		t.observeExhausted(r.Events)
		return t.finish(ctx, l, r.SessionID)
	})
	return exhausted, err
}

// lockBudget locks the row of a reservation, and then the counters of its claims in their order. It makes rows that do not exist yet.
func (t *tx) lockBudget(ctx context.Context, r budget.Reservation) (before lockedReservation, used map[budget.Account]budget.Used, err error) {
	var row *reservationRow
	var free *bool
	var counters []counterRow
	changes := newCounterChanges()
	for _, c := range r.Claims {
		changes.add(c.Account, budget.Amount{}, budget.Amount{})
	}
	t.queue("BudgetReservationEnsure", t.tenant, r.SessionID, r.Key)
	first(t.queue("BudgetReservationLock", t.tenant, r.SessionID, r.Key), &row)
	value(t.queue("BudgetSessionFree", t.tenant, r.SessionID), &free)
	t.queue("BudgetCountersEnsure", t.tenant, changes.budgets, changes.limits, changes.scopes, changes.periods)
	list(t.queue("BudgetCountersLock", t.tenant, changes.budgets, changes.limits, changes.scopes, changes.periods), &counters)
	if err := t.flush(ctx); state(err) == stateForeignKeyViolation {
		return before, nil, noSession(r.SessionID)
	} else if err != nil {
		return before, nil, err
	}
	if row == nil || free == nil {
		return before, nil, noSession(r.SessionID)
	}
	before = lockedReservation{*row, *free}
	used = map[budget.Account]budget.Used{}
	for _, c := range counters {
		used[c.used().Account] = c.used()
	}
	return before, used, nil
}

// held returns the claims that the reservation holds.
func (r *reservationRow) held() []budget.Claim {
	if r.State != reservationReserved {
		return nil
	}
	return r.Claims
}

// accounts returns the state of the claims' accounts without what the call itself already holds.
func accounts(claims []budget.Claim, used map[budget.Account]budget.Used, held []budget.Claim) []budget.Used {
	states := make([]budget.Used, len(claims))
	for i, c := range claims {
		states[i] = used[c.Account]
		states[i].Account = c.Account
		for _, h := range held {
			if h.Account == c.Account {
				states[i].Held.Tokens -= h.Reserved.Tokens
				states[i].Held.Cost -= h.Reserved.Cost
			}
		}
	}
	return states
}

// RefuseBudget records that a call does not fit. If r.Reason is set, the session is paused, so that a person can allow the call. What an
// earlier attempt of the call reserved is released. A refusal that is stored already changes nothing.
func (db *DB) RefuseBudget(ctx context.Context, r budget.Refusal) error {
	asked, err := encode(r.Exhausted)
	if err != nil {
		return err
	}
	return db.transact(ctx, r.Tenant, func(t *tx) error {
		before, _, err := t.lockBudget(ctx, budget.Reservation{Tenant: r.Tenant, SessionID: r.SessionID, Key: r.Key})
		if err != nil {
			return err
		}
		next := reservationRefused
		if r.Reason != "" {
			next = reservationWaiting
		}
		if before.State == next && (next == reservationRefused || !before.free) {
			return nil
		}
		changes := newCounterChanges()
		changes.release(before.held())
		t.addToCounters(changes)
		t.queue("BudgetReservationPut", r.Tenant, r.SessionID, r.Key, "", next, []byte("[]"), asked, r.Call, 0)
		l := &log{}
		for _, e := range r.Events {
			l.add(e)
		}
		t.observeExhausted(r.Events)
		if r.Reason != "" {
			t.queue("PausePut", r.Tenant, string(jig.PauseSession), r.SessionID, budget.Actor, false, text(r.Reason), time.Now(), budget.Actor)
			l.add(jig.Event{Type: jig.EventSessionPaused, Data: details{"by": budget.Actor, "reason": r.Reason}.json()})
		}
		return t.finish(ctx, l, r.SessionID)
	})
}

// SettleBudget charges what a call really used and releases what it had reserved, and records the usage. An attempt whose reservation was
// replaced or released meanwhile is charged all the same, because it was paid for. Settling an attempt again changes nothing, so that a caller can
// try again after a lost answer.
func (db *DB) SettleBudget(ctx context.Context, s budget.Settlement) error {
	return db.transact(ctx, s.Tenant, func(t *tx) error {
		if r := s.Record; r != nil {
			u := r.Usage
			t.queue("UsageInsert", s.Tenant, s.SessionID, r.Pass, text(r.CallID), text(r.Model), u.InputTokens, u.OutputTokens,
				u.CacheReadTokens, u.CacheCreateTokens, u.Cost)
		}
		if len(s.Claims) == 0 {
			return t.commit(ctx)
		}
		before, _, err := t.lockBudget(ctx, s.Reservation)
		if err != nil {
			return err
		}
		if before.State == reservationSettled && before.Attempt == s.Attempt {
			return nil
		}
		changes := newCounterChanges()
		for i, c := range s.Claims {
			changes.add(c.Account, s.Spent[i], budget.Amount{})
		}
		if before.State == reservationReserved && before.Attempt == s.Attempt {
			changes.release(s.Claims)
			t.queue("BudgetReservationPut", s.Tenant, s.SessionID, s.Key, s.Attempt, reservationSettled, before.Claims, before.Asked, nil, 0)
		}
		t.addToCounters(changes)
		return t.commit(ctx)
	})
}

// WaitingForBudget returns the calls of a session that wait for room in a budget or for a person.
func (db *DB) WaitingForBudget(ctx context.Context, tenant, session string) ([]budget.Waiting, error) {
	return ask(ctx, db, tenant, list[budget.Waiting], "BudgetWaiting", tenant, session)
}

// ResumeBudget lifts the pause that a budget made, if the claims of the waiting calls fit now. Nothing is reserved yet. It reports whether
// the pause was lifted.
func (db *DB) ResumeBudget(ctx context.Context, tenant, session string, claims []budget.Claim) (lifted bool, err error) {
	err = db.transact(ctx, tenant, func(t *tx) error {
		var counters []counterRow
		changes := newCounterChanges()
		for _, c := range claims {
			changes.add(c.Account, budget.Amount{}, budget.Amount{})
		}
		list(t.queue("BudgetCountersLock", tenant, changes.budgets, changes.limits, changes.scopes, changes.periods), &counters)
		if err := t.flush(ctx); err != nil {
			return err
		}
		used := map[budget.Account]budget.Used{}
		for _, c := range counters {
			used[c.used().Account] = c.used()
		}
		if len(budget.Decide(claims, accounts(claims, used, nil), nil)) > 0 {
			return nil
		}
		var n int64
		affected(t.queue("BudgetResume", tenant, session, budget.Actor), &n)
		if err := t.flush(ctx); err != nil || n == 0 {
			return err
		}
		lifted = true
		t.queue("BudgetForget", tenant, session)
		l := &log{}
		l.add(jig.Event{Type: jig.EventSessionResumed, Data: details{"by": budget.Actor, "reason": "there is room in the budget again"}.json()})
		return t.finish(ctx, l, session)
	})
	return lifted, err
}

// ReleaseBudgets releases at most limit reservations, of all tenants, whose workers died. It returns how many it released.
func (db *DB) ReleaseBudgets(ctx context.Context, limit int) (int64, error) {
	gone, err := ask(ctx, db, "", value[int64], "BudgetRelease", limit)
	return orZero(gone), err
}

// counterChanges are changes of counters, as columns. Each account occurs once.
type counterChanges struct {
	at                                             map[budget.Account]int
	budgets, limits, scopes, periods               []string
	spentTokens, spentCosts, heldTokens, heldCosts []int64
}

func newCounterChanges() *counterChanges {
	return &counterChanges{
		at: map[budget.Account]int{}, budgets: []string{}, limits: []string{}, scopes: []string{}, periods: []string{},
		spentTokens: []int64{}, spentCosts: []int64{}, heldTokens: []int64{}, heldCosts: []int64{},
	}
}

func (c *counterChanges) add(a budget.Account, spent, held budget.Amount) {
	i, ok := c.at[a]
	if !ok {
		i = len(c.budgets)
		c.at[a] = i
		c.budgets, c.limits = append(c.budgets, a.Budget), append(c.limits, a.Limit)
		c.scopes, c.periods = append(c.scopes, a.Scope), append(c.periods, a.Period)
		c.spentTokens, c.spentCosts = append(c.spentTokens, 0), append(c.spentCosts, 0)
		c.heldTokens, c.heldCosts = append(c.heldTokens, 0), append(c.heldCosts, 0)
	}
	c.spentTokens[i] += spent.Tokens
	c.spentCosts[i] += int64(spent.Cost)
	c.heldTokens[i] += held.Tokens
	c.heldCosts[i] += int64(held.Cost)
}

// release takes back what claims hold.
func (c *counterChanges) release(claims []budget.Claim) {
	for _, one := range claims {
		c.add(one.Account, budget.Amount{}, budget.Amount{Tokens: -one.Reserved.Tokens, Cost: -one.Reserved.Cost})
	}
}

func (t *tx) addToCounters(c *counterChanges) {
	if len(c.budgets) > 0 {
		t.queue("BudgetCountersAdd", t.tenant, c.budgets, c.limits, c.scopes, c.periods, c.spentTokens, c.spentCosts, c.heldTokens, c.heldCosts)
	}
}

// maxUsage is the maximum number of rows of a usage report.
const maxUsage = 500

// usageRow is a row of the query UsageGrouped.
type usageRow struct {
	protocol.UsageRow

	Cost budget.Money
}

// Usage returns what a tenant's sessions used, grouped and filtered as requested; at most 500 rows.
func (db *DB) Usage(ctx context.Context, r protocol.UsageRequest) ([]protocol.UsageRow, error) {
	var rows []usageRow
	until := r.Until
	if until.IsZero() {
		until = farFuture
	}
	by := slices.Clone(r.By)
	if by == nil {
		by = []string{}
	}
	err := db.once(ctx, r.Tenant, func(t *tx) {
		list(t.queue("UsageGrouped", r.Tenant, r.Since, until, by, text(r.Agent), text(r.Model), text(r.Tool), text(r.SessionID), maxUsage), &rows)
	})
	usage := make([]protocol.UsageRow, len(rows))
	for i, u := range rows {
		usage[i] = u.UsageRow
		usage[i].Cost = json.Number(u.Cost.String())
	}
	return usage, err
}

// maxCounters is the maximum number of counters of budgets that are listed.
const maxCounters = 500

// BudgetCounters returns counters of the given periods: those with the given scope, or all if it is empty; at most 500.
func (db *DB) BudgetCounters(ctx context.Context, tenant string, periods []string, scope string) ([]budget.Used, error) {
	rows, err := ask(ctx, db, tenant, list[counterRow], "BudgetCounters", tenant, periods, text(scope), maxCounters)
	used := make([]budget.Used, len(rows))
	for i, r := range rows {
		used[i] = r.used()
	}
	return used, err
}

// SessionRoot returns the id of the first session of the tree that a session belongs to.
func (db *DB) SessionRoot(ctx context.Context, tenant, session string) (string, error) {
	root, err := ask(ctx, db, tenant, value[string], "SessionRoot", tenant, session)
	if err == nil && root == nil {
		return "", noSession(session)
	}
	if err != nil {
		return "", err
	}
	return *root, nil
}
