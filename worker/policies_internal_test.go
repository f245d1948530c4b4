package worker

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools/builtin/bundles"
	"github.com/jig-run/jig/tools/builtin/catalog"
	"github.com/jig-run/jig/tools/builtin/grants"
)

// papers maps names to policy documents.
type papers map[string]string

func (p papers) CurrentDocuments(context.Context, string, string) ([]bundle.DocumentVersion, error) {
	list := make([]bundle.DocumentVersion, 0, len(p))
	for name := range p {
		list = append(list, bundle.DocumentVersion{Kind: "policy", Name: name, Version: "v1"})
	}
	return list, nil
}

func (p papers) DocumentAt(_ context.Context, _, _, name, _ string) ([]byte, error) {
	return []byte(p[name]), nil
}

// rulesOf returns policies that read p, in a tenant with the given settings.
func rulesOf(p policyDocuments, settings tenancy.Settings, err error) *policies {
	return newPolicies(p, func(context.Context, string) (tenancy.Settings, error) { return settings, err })
}

func (p *policies) rule(t *testing.T, tool jig.Tool) policy.Ruling {
	t.Helper()
	call := jig.Call{ID: "1.1", Tool: tool.Name, Input: []byte(`{}`)}
	ruling, err := p.Rule(t.Context(), tool.WithDefaults(), call, jig.Session{ID: "ses_1", Tenant: "acme"}, time.Unix(0, 0))
	require.NoError(t, err)
	return ruling
}

func ruled(t *testing.T, p papers, tool jig.Tool) policy.Ruling {
	t.Helper()
	return rulesOf(p, tenancy.Settings{}, nil).rule(t, tool)
}

const (
	denyAll = `kind: policy
name: closed
rules: [{name: all, when: "true", verdict: deny, reason: closed}]
`
	newer = "kind: policy\nname: odd\nnovelty: 3\n"
)

func TestPolicyRules(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}
	require.Equal(t, jig.VerdictRun, ruled(t, papers{}, read).Verdict)
	require.Equal(t, jig.VerdictDeny, ruled(t, papers{"closed": denyAll}, read).Verdict)
}

// Callers choose the tenant of a session, so a worker must not remember every tenant that was ever named.
func TestWhatIsKnownOfTenantsIsBounded(t *testing.T) {
	t.Parallel()
	p := rulesOf(papers{}, tenancy.Settings{}, nil)
	s := newTenants(papers{}, tenancy.SignalsSigned, func(string) string { return "" }, slog.New(slog.DiscardHandler))
	for i := range maxKnownTenants + 5 {
		tenant := "t" + strconv.Itoa(i)
		_, err := p.of(t.Context(), tenant)
		require.NoError(t, err)
		_, err = s.Settings(t.Context(), tenant)
		require.NoError(t, err)
	}
	require.Less(t, len(p.known), maxKnownTenants)
	require.Less(t, len(s.known), maxKnownTenants)
	kept := len(p.known)
	remember(p.known, "t"+strconv.Itoa(maxKnownTenants+4), tenantPolicies{})
	require.Equal(t, kept, len(p.known), "what is there is replaced") //nolint:testifylint // a failure would print thousands
}

// Package policy lists the operator tools. Every shipped one is on the list and asks for approval whatever the rules say.
func TestOperatorToolsAreThoseThatAreShipped(t *testing.T) {
	t.Parallel()
	for _, tool := range append(append(catalog.Tools(catalog.Options{}), bundles.Tools(bundles.Options{})...), grants.Tools(grants.Options{})...) {
		contract := tool.Contract()
		require.True(t, policy.Operator(contract.Name), contract.Name)
		if contract.Permission != jig.PermissionRead {
			require.Equal(t, jig.ApprovalAlwaysAsk, contract.Approval, contract.Name)
		}
	}
	for _, name := range []string{catalog.PutTool, bundles.InstallTool, bundles.RemoveTool} {
		ruling := ruled(t, papers{"closed": denyAll}, jig.Tool{Name: name, Permission: jig.PermissionWrite})
		require.Equal(t, jig.VerdictAsk, ruling.Verdict, "nobody is locked out of the policies")
		require.Contains(t, ruling.Reasons, "policy closed, rule all: closed")
	}
}

// The owners come from the tenant's current settings, which are read only for operator tools.
func TestOwnersDecideAboutOperatorTools(t *testing.T) {
	t.Parallel()
	put, write := jig.Tool{Name: catalog.PutTool, Approval: jig.ApprovalAlwaysAsk}, jig.Tool{Name: "a.write"}
	settings := tenancy.Settings{People: []jig.Principal{{ID: "ana"}, {ID: "bo"}}}
	require.True(t, rulesOf(papers{}, settings, nil).rule(t, put).Terms.NotRequester)
	require.True(t, rulesOf(papers{}, settings, nil).rule(t, write).Terms.Plain())
	require.True(t, rulesOf(papers{}, tenancy.Settings{}, nil).rule(t, put).Terms.Plain(), "as before the first document of a new tenant")
	gone := rulesOf(papers{}, tenancy.Settings{}, errors.New("newer"))
	require.Equal(t, "the owners of the tenant cannot be read: newer", gone.rule(t, put).Held)
	require.Equal(t, jig.VerdictAsk, gone.rule(t, write).Verdict)
}

// A policy that this worker cannot read holds calls back until a readable version is registered. Until then it is listed and counted in the
// metrics.
func TestUnreadablePolicyHoldsCallsBackUntilItCanBeRead(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}
	shelf := papers{"odd": newer, "closed": denyAll}
	p := rulesOf(shelf, tenancy.Settings{}, nil)
	url := served(t, newUnreadablePolicies(t.Context(), p))
	require.NotContains(t, scrape(t, url), "acme", "nothing is known of a tenant without calls")
	held := p.rule(t, read)
	require.Contains(t, held.Held, "policy odd (version v1) cannot be read: ")
	require.Contains(t, held.Held, "novelty")
	require.Empty(t, held.Verdict)
	states, err := p.Policies(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, []string{"closed", "odd"}, []string{states[0].Name, states[1].Name})
	require.Equal(t, 1, states[0].Rules)
	require.Contains(t, states[1].Error, "novelty")
	require.Contains(t, scrape(t, url), `jig_policies_unreadable{tenant="acme"} 1`+"\n")

	shelf["odd"] = strings.ReplaceAll(denyAll, "closed", "odd")
	known := p.known["acme"]
	known.read, known.versions = time.Time{}, nil // as after policyAge, with another version
	p.known["acme"] = known
	require.NotContains(t, scrape(t, url), `acme"} 1`, "the tenant is looked at again")
	require.Equal(t, jig.VerdictDeny, p.rule(t, read).Verdict)
}

// Failing rules are counted by policy and rule, and the number of series is bounded.
func TestFailingRulesAreCounted(t *testing.T) {
	t.Parallel()
	p := rulesOf(papers{"shop": `kind: policy
name: shop
rules: [{name: large, when: input.amount > 5, verdict: deny}, {name: fine, when: "false", verdict: deny}]
`}, tenancy.Settings{}, nil)
	require.Equal(t, jig.VerdictDeny, p.rule(t, jig.Tool{Name: "a.read", Permission: jig.PermissionRead}).Verdict)
	p.rule(t, jig.Tool{Name: "a.write"})
	url := served(t, p.failures)
	require.Contains(t, scrape(t, url), `jig_policy_rule_failures_total{policy="shop",rule="large",tenant="acme"} 2`+"\n")
	require.NotContains(t, scrape(t, url), "fine")
	for i := range maxFailingRules + 10 {
		p.failures.count("acme", "shop", "rule"+strconv.Itoa(i))
	}
	text := scrape(t, url)
	require.Equal(t, maxFailingRules+1, strings.Count(text, "jig_policy_rule_failures_total{"))
	require.Contains(t, text, `jig_policy_rule_failures_total{policy="(other)",rule="(other)",tenant="(other)"} 11`+"\n")
}
