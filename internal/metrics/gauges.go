package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jig-run/jig/internal/protocol"
)

// shown passes a value to a scrape.
type shown = func(d *prometheus.Desc, value float64, labels ...string)

func newSessionGauges(ctx context.Context, m *Metrics, db Store) prometheus.Collector {
	open := m.desc(ScopeStore, gauge, "jig_sessions_open", "Sessions that have not ended, by status.", "tenant", "status")
	return &reading[[]protocol.SessionCount]{
		ctx: ctx, descs: []*prometheus.Desc{open}, age: readAge, read: db.OpenSessions,
		show: func(counts []protocol.SessionCount, _ time.Duration, gauge shown) {
			sums := map[[2]string]int64{}
			for _, c := range counts {
				sums[[2]string{m.tenants.of(c.Tenant), string(c.Status)}] += c.Count
			}
			for labels, n := range sums {
				gauge(open, float64(n), labels[:]...)
			}
		},
	}
}

func newDeliveryGauges(ctx context.Context, m *Metrics, db Store) prometheus.Collector {
	pending := m.desc(ScopeStore, gauge, "jig_notice_deliveries_pending", "Notices that a webhook has not received yet.", "tenant")
	oldest := m.desc(ScopeStore, gauge, "jig_notice_deliveries_oldest_age_seconds", "How long ago the oldest of them was written.", "tenant")
	type state struct {
		count int64
		age   time.Duration
	}
	return &reading[map[string]state]{
		ctx: ctx, descs: []*prometheus.Desc{pending, oldest}, age: readAge,
		read: func(ctx context.Context) (map[string]state, error) {
			now, err := db.Now(ctx)
			if err != nil {
				return nil, err
			}
			counts, err := db.PendingDeliveries(ctx)
			states := map[string]state{}
			for _, c := range counts {
				tenant := m.tenants.of(c.Tenant)
				states[tenant] = state{states[tenant].count + c.Count, max(states[tenant].age, now.Sub(c.Oldest))}
			}
			return states, err
		},
		show: func(states map[string]state, age time.Duration, gauge shown) {
			for tenant, s := range states {
				gauge(pending, float64(s.count), tenant)
				gauge(oldest, (s.age + age).Seconds(), tenant)
			}
		},
	}
}

func newBacklogGauges(ctx context.Context, m *Metrics, read func(ctx context.Context) ([]Backlog, error)) prometheus.Collector {
	tasks := m.desc(ScopeStore, gauge, "jig_task_queue_backlog", "Tasks that wait for a worker, by type: workflow or activity.", "type")
	age := m.desc(ScopeStore, gauge, "jig_task_queue_backlog_age_seconds", "How long the oldest of them has waited.", "type")
	return &reading[[]Backlog]{
		ctx: ctx, descs: []*prometheus.Desc{tasks, age}, age: readAge, read: read,
		show: func(backlogs []Backlog, _ time.Duration, gauge shown) {
			for _, b := range backlogs {
				gauge(tasks, float64(b.Tasks), b.Type)
				gauge(age, b.Age.Seconds(), b.Type)
			}
		},
	}
}

// budgetGauge is the state of a limit: that of the account that is nearest to it.
type budgetGauge struct {
	tenant, budget, limit string
	ratio                 float64
	tokens, cost          [3]float64 // spent, reserved, limit
}

func newBudgetGauges(ctx context.Context, m *Metrics, db Store, limits Budgets) prometheus.Collector {
	labels := []string{"tenant", "budget", "limit"}
	desc := func(name, help string) *prometheus.Desc { return m.desc(ScopeStore, gauge, name, help, labels...) }
	ratio := desc("jig_budget_used_ratio", "How much of a limit of a tenant or agent is spent or reserved; 1 is all of it. The agent nearest to its limit counts.")
	tokens := [3]*prometheus.Desc{
		desc("jig_budget_spent_tokens", "Tokens that are spent of a limit."),
		desc("jig_budget_reserved_tokens", "Tokens that are reserved of a limit by requests that have not been answered."),
		desc("jig_budget_limit_tokens", "The limit, in tokens."),
	}
	cost := [3]*prometheus.Desc{
		desc("jig_budget_spent_cost", "Cost that is spent of a limit, in the budget's currency."),
		desc("jig_budget_reserved_cost", "Cost that is reserved of a limit by requests that have not been answered, in the budget's currency."),
		desc("jig_budget_limit_cost", "The limit, in the budget's currency."),
	}
	return &reading[[]budgetGauge]{
		ctx: ctx, descs: slices.Concat([]*prometheus.Desc{ratio}, tokens[:], cost[:]), age: readAge,
		read: func(ctx context.Context) ([]budgetGauge, error) { return readBudgets(ctx, db, limits) },
		show: func(states []budgetGauge, _ time.Duration, gauge shown) {
			for _, s := range states {
				gauge(ratio, s.ratio, s.tenant, s.budget, s.limit)
				for i := range 3 {
					if s.tokens[2] > 0 {
						gauge(tokens[i], s.tokens[i], s.tenant, s.budget, s.limit)
					}
					if s.cost[2] > 0 {
						gauge(cost[i], s.cost[i], s.tenant, s.budget, s.limit)
					}
				}
			}
		},
	}
}

// readBudgets returns the state of each limit of tenants and agents that something was charged to: at most maxLimits, the fullest.
func readBudgets(ctx context.Context, db Store, limits Budgets) ([]budgetGauge, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}
	used, err := db.BudgetsUsed(ctx, now.UTC().Format(time.DateOnly))
	if err != nil {
		return nil, err
	}
	fullest := map[[3]string]budgetGauge{}
	for tenant, counters := range used {
		_, states, err := limits.Limits(ctx, tenant, counters)
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			key := [3]string{tenant, s.Budget, s.Limit}
			if g := gaugeOf(tenant, s); fullest[key].tenant == "" || g.ratio > fullest[key].ratio {
				fullest[key] = g
			}
		}
	}
	list := make([]budgetGauge, 0, len(fullest))
	for _, g := range fullest {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b budgetGauge) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.budget, b.budget), cmp.Compare(a.limit, b.limit))
	})
	return list[:min(len(list), maxLimits)], nil
}

func gaugeOf(tenant string, s protocol.BudgetState) budgetGauge {
	g := budgetGauge{
		tenant: tenant, budget: s.Budget, limit: s.Limit,
		tokens: [3]float64{float64(s.UsedTokens), float64(s.ReservedTokens), float64(s.Tokens)},
		cost:   [3]float64{number(s.UsedCost), number(s.ReservedCost), number(s.Cost)},
	}
	for _, amounts := range [][3]float64{g.tokens, g.cost} {
		if amounts[2] > 0 {
			g.ratio = max(g.ratio, (amounts[0]+amounts[1])/amounts[2])
		}
	}
	return g
}

// number converts a decimal number; it returns 0 for an empty one.
func number(n json.Number) float64 {
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return 0
	}
	return f
}

// newPoolMetrics reports the connections to the database.
func newPoolMetrics(e *exported, stats func() Pool) prometheus.Collector {
	desc := func(kind, name, help string, labels ...string) *prometheus.Desc {
		return e.desc(ScopeProcess, kind, name, help, labels...)
	}
	connections := desc(gauge, "jig_store_connections", "Connections to the database, by state: in_use or idle.", "state")
	most := desc(gauge, "jig_store_connections_max", "The maximum number of connections to the database.")
	acquired := desc(counter, "jig_store_acquires_total", "How often a connection to the database was asked for.")
	waits := desc(counter, "jig_store_acquire_waits_total", "How often none was idle, so that the caller waited.")
	waited := desc(counter, "jig_store_acquire_wait_seconds_total", "How long callers have waited for a connection, in total.")
	return &reading[Pool]{
		ctx:   context.Background(), //nolint:forbidigo // nothing is waited for: the values are in memory
		descs: []*prometheus.Desc{connections, most, acquired, waits, waited}, counters: []*prometheus.Desc{acquired, waits, waited},
		read: func(context.Context) (Pool, error) { return stats(), nil },
		show: func(s Pool, _ time.Duration, value shown) {
			value(connections, float64(s.InUse), "in_use")
			value(connections, float64(s.Idle), "idle")
			value(most, float64(s.Max))
			value(acquired, float64(s.Acquired))
			value(waits, float64(s.Waited))
			value(waited, s.WaitTime.Seconds())
		},
	}
}
