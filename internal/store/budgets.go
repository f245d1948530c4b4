package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	for range tries {
		var before lockedReservation
		exceeded := false
		err = db.transact(ctx, r.Tenant, func(t *tx) (err error) {
			if before, err = t.lockReservation(ctx, r.Reservation); err != nil {
				return err
			}
			t.queue("BudgetReservationPut", r.Tenant, r.SessionID, r.Key, r.Attempt, reservationReserved, claims, before.Asked, nil, r.Seconds)
			changes := newCounterChanges()
			for _, c := range r.Claims {
				changes.reserve(c, before.allowed())
			}
			changes.release(before.held())
			t.count(changes)
			l := &log{}
			for _, e := range r.Events {
				l.add(e)
			}
			t.observeExhausted(r.Events)
			err = t.finish(ctx, l, r.SessionID)
			exceeded = state(err) == stateBudgetExceeded
			return err
		})
		if !exceeded {
			return nil, err
		}
		var used map[budget.Account]budget.Used
		if err := db.once(ctx, r.Tenant, func(t *tx) { t.counters(r.Claims, &used) }); err != nil {
			return nil, err
		}
		if exhausted = budget.Decide(r.Claims, accounts(r.Claims, used, before.held()), before.allowed()); len(exhausted) > 0 {
			return exhausted, nil
		}
	}
	return nil, jig.Errorf(jig.CodeUnavailable, "the budgets changed while they were read").WithHint("try again")
}

// lockReservation locks the row of a reservation, which it makes if it does not exist.
func (t *tx) lockReservation(ctx context.Context, r budget.Reservation) (lockedReservation, error) {
	var row *reservationRow
	var free *bool
	t.queue("BudgetReservationEnsure", t.tenant, r.SessionID, r.Key)
	first(t.queue("BudgetReservationLock", t.tenant, r.SessionID, r.Key), &row)
	value(t.queue("BudgetSessionFree", t.tenant, r.SessionID), &free)
	err := t.flush(ctx)
	switch {
	case state(err) == stateForeignKeyViolation, err == nil && (row == nil || free == nil):
		return lockedReservation{}, noSession(r.SessionID)
	case err != nil:
		return lockedReservation{}, err
	}
	return lockedReservation{*row, *free}, nil
}

// counters reads the state of the accounts of claims.
func (t *tx) counters(claims []budget.Claim, used *map[budget.Account]budget.Used) {
	*used = map[budget.Account]budget.Used{}
	changes := newCounterChanges()
	for _, c := range claims {
		changes.add(c.Account, budget.Amount{}, budget.Amount{})
	}
	t.queue("BudgetCountersOf", t.tenant, changes.budgets, changes.limits, changes.scopes, changes.periods).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[counterRow])
		for _, c := range all {
			(*used)[c.used().Account] = c.used()
		}
		return err //nolint:wrapcheck // translated by retried
	})
}

// allowed returns the limits that a person allowed the call to exceed.
func (r *lockedReservation) allowed() []budget.Account {
	var asked []budget.Account
	if r.free {
		asked = r.Asked
	}
	return asked
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
		before, err := t.lockReservation(ctx, budget.Reservation{Tenant: r.Tenant, SessionID: r.SessionID, Key: r.Key})
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
		t.count(changes)
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
		before, err := t.lockReservation(ctx, s.Reservation)
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
		t.count(changes)
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
		var used map[budget.Account]budget.Used
		t.counters(claims, &used)
		if err := t.flush(ctx); err != nil {
			return err
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
	// maxTokens and maxCosts are what may not be exceeded by the change; 0 if anything may.
	maxTokens, maxCosts []int64
}

func newCounterChanges() *counterChanges {
	return &counterChanges{
		at: map[budget.Account]int{}, budgets: []string{}, limits: []string{}, scopes: []string{}, periods: []string{},
		spentTokens: []int64{}, spentCosts: []int64{}, heldTokens: []int64{}, heldCosts: []int64{}, maxTokens: []int64{}, maxCosts: []int64{},
	}
}

// add adds to an account, and returns its place.
func (c *counterChanges) add(a budget.Account, spent, held budget.Amount) int {
	i, ok := c.at[a]
	if !ok {
		i = len(c.budgets)
		c.at[a] = i
		c.budgets, c.limits = append(c.budgets, a.Budget), append(c.limits, a.Limit)
		c.scopes, c.periods = append(c.scopes, a.Scope), append(c.periods, a.Period)
		c.spentTokens, c.spentCosts = append(c.spentTokens, 0), append(c.spentCosts, 0)
		c.heldTokens, c.heldCosts = append(c.heldTokens, 0), append(c.heldCosts, 0)
		c.maxTokens, c.maxCosts = append(c.maxTokens, 0), append(c.maxCosts, 0)
	}
	c.spentTokens[i] += spent.Tokens
	c.spentCosts[i] += int64(spent.Cost)
	c.heldTokens[i] += held.Tokens
	c.heldCosts[i] += int64(held.Cost)
	return i
}

// reserve takes a claim, within its limits unless a person allowed the call to exceed them. A claim of nothing fits also into an account that is
// overdrawn.
func (c *counterChanges) reserve(claim budget.Claim, allowed []budget.Account) {
	i := c.add(claim.Account, budget.Amount{}, claim.Reserved)
	bound := claim.Bound(allowed)
	c.maxTokens[i], c.maxCosts[i] = bound.Tokens, int64(bound.Cost)
}

// release takes back what claims hold.
func (c *counterChanges) release(claims []budget.Claim) {
	for _, one := range claims {
		c.add(one.Account, budget.Amount{}, budget.Amount{Tokens: -one.Reserved.Tokens, Cost: -one.Reserved.Cost})
	}
}

// count queues changes of counters. Nothing that waits may follow before the commit, because all sessions of a tenant share some counters.
func (t *tx) count(c *counterChanges) {
	if len(c.budgets) > 0 {
		t.queue("BudgetCount", c.budgets, c.limits, c.scopes, c.periods, c.spentTokens, c.spentCosts, c.heldTokens, c.heldCosts, c.maxTokens, c.maxCosts)
	}
}

// maxUsage is the maximum number of rows of a usage report.
const maxUsage = 500

// usageRow is a row of the query UsageGrouped.
type usageRow struct {
	protocol.UsageRow

	Cost budget.Money
}

// Usage returns what a tenant's sessions used, grouped and filtered as requested; at most 500 rows. Whole days that have been summed up are read
// as sums, the rest row by row.
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
	summed, err := ask(ctx, db, r.Tenant, value[time.Time], "UsageSummed", r.Tenant)
	if err != nil {
		return nil, err
	}
	from, to := summedDays(r, until, orZero(summed))
	err = db.once(ctx, r.Tenant, func(t *tx) {
		list(t.queue("UsageGrouped", r.Tenant, r.Since, until, by, text(r.Agent), text(r.Model), text(r.Tool), text(r.SessionID), maxUsage, from, to), &rows)
	})
	usage := make([]protocol.UsageRow, len(rows))
	for i, u := range rows {
		usage[i] = u.UsageRow
		usage[i].Cost = json.Number(u.Cost.String())
	}
	return usage, err
}

// summedDays returns the whole days of a report that have been summed up, when all days before summed are. There are none in a report of one session.
func summedDays(r protocol.UsageRequest, until, summed time.Time) (from, to time.Time) {
	const day = 24 * time.Hour
	if from = r.Since.Truncate(day); from.Before(r.Since) {
		from = from.Add(day)
	}
	if to = until.Truncate(day); summed.Before(to) {
		to = summed
	}
	if r.SessionID != "" || !from.Before(to) {
		return r.Since, r.Since
	}
	return from, to
}

// SumUsage sums up the usage of days that are over, of up to limit tenants and up to a week each. It returns how many tenants it worked on.
func (db *DB) SumUsage(ctx context.Context, limit int) (int64, error) {
	worked, err := ask(ctx, db, "", value[int64], "UsageSum", limit)
	return orZero(worked), err
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
