package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Policies counts, by tenant, the policies that a worker cannot read, for the tenants whose policies it has loaded.
type Policies interface {
	Unreadable(ctx context.Context) (map[string]int, error)
}

func newPolicyGauges(ctx context.Context, m *Metrics, p Policies) prometheus.Collector {
	unreadable := m.desc(ScopeStore, gauge, "jig_policies_unreadable",
		"Policies that this worker cannot read; the tenant's calls are held back meanwhile.", "tenant")
	return &reading[map[string]int]{
		ctx: ctx, descs: []*prometheus.Desc{unreadable}, read: p.Unreadable,
		show: func(counts map[string]int, _ time.Duration, gauge shown) {
			sums := map[string]int{}
			for tenant, n := range counts {
				sums[m.tenants.of(tenant)] += n
			}
			for tenant, n := range sums {
				gauge(unreadable, float64(n), tenant)
			}
		},
	}
}
