package worker

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Failing rules are counted by policy and rule, and the number of series is bounded.
func TestFailingRulesAreCounted(t *testing.T) {
	t.Parallel()
	failures := newRuleFailures()
	failures.count("acme", "shop", "large")
	failures.count("acme", "shop", "large")
	url := served(t, failures)
	require.Contains(t, scrape(t, url), `jig_policy_rule_failures_total{policy="shop",rule="large",tenant="acme"} 2`+"\n")
	for i := range maxFailingRules + 10 {
		failures.count("acme", "shop", "rule"+strconv.Itoa(i))
	}
	text := scrape(t, url)
	require.Equal(t, maxFailingRules+1, strings.Count(text, "jig_policy_rule_failures_total{"))
	require.Contains(t, text, `jig_policy_rule_failures_total{policy="(other)",rule="(other)",tenant="(other)"} 11`+"\n")
}

// unread counts unreadable policies by tenant.
type unread map[string]int

func (u unread) Unreadable(context.Context) (map[string]int, error) { return u, nil }

func TestUnreadablePoliciesAreCounted(t *testing.T) {
	t.Parallel()
	url := served(t, newUnreadablePolicies(t.Context(), unread{"acme": 1, "zeta": 0}))
	require.Contains(t, scrape(t, url), `jig_policies_unreadable{tenant="acme"} 1`+"\n")
	require.Contains(t, scrape(t, url), `jig_policies_unreadable{tenant="zeta"} 0`+"\n")
}
