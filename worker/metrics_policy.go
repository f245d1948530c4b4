package worker

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxFailingRules bounds the number of rules with a counter of their own. The failures of all further rules share one counter.
const maxFailingRules = 1_000

// otherRules is the label of the shared counter.
const otherRules = "(other)"

// ruleFailures counts, per rule, how often the rule could not be evaluated since the worker started.
type ruleFailures struct {
	*prometheus.CounterVec

	mu   sync.Mutex
	seen map[[3]string]bool
}

func newRuleFailures() *ruleFailures {
	return &ruleFailures{
		CounterVec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "jig_policy_rule_failures_total",
			Help: "How often a rule of a policy could not be evaluated, since the worker's start.",
		}, []string{"tenant", "policy", "rule"}),
		seen: map[[3]string]bool{},
	}
}

func (f *ruleFailures) count(tenant, policy, rule string) {
	labels := [3]string{tenant, policy, rule}
	f.mu.Lock()
	if !f.seen[labels] && len(f.seen) >= maxFailingRules {
		labels = [3]string{otherRules, otherRules, otherRules}
	} else {
		f.seen[labels] = true
	}
	f.mu.Unlock()
	f.WithLabelValues(labels[:]...).Inc()
}

// policiesRead counts, by tenant, the policies that a worker cannot read.
type policiesRead interface {
	Unreadable(ctx context.Context) (map[string]int, error)
}

// unreadablePolicies is a Prometheus collector that reports how many policies this worker cannot read, for the tenants whose policies it
// has loaded.
type unreadablePolicies struct {
	ctx      context.Context //nolint:containedctx // Collect gets no context
	policies policiesRead
	desc     *prometheus.Desc
}

func newUnreadablePolicies(ctx context.Context, p policiesRead) *unreadablePolicies {
	return &unreadablePolicies{ctx: ctx, policies: p, desc: prometheus.NewDesc("jig_policies_unreadable",
		"Policies that this worker cannot read; the tenant's calls are held back meanwhile.", []string{"tenant"}, nil)}
}

// Describe implements prometheus.Collector.
func (u *unreadablePolicies) Describe(ch chan<- *prometheus.Desc) { ch <- u.desc }

// Collect implements prometheus.Collector.
func (u *unreadablePolicies) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(u.ctx, metricsTimeout)
	defer cancel()
	counts, err := u.policies.Unreadable(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(u.desc, err)
		return
	}
	for tenant, n := range counts {
		ch <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, float64(n), tenant)
	}
}
