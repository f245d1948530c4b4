package policy_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
)

const denyEverything = "{kind: policy, name: closed, rules: [{name: all, when: true, verdict: deny, reason: closed}]}"

// operatorTool returns a tool like those that set up a tenant.
func operatorTool(name string) jig.Tool {
	return jig.Tool{Name: name, Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk}.WithDefaults()
}

func decided(t *testing.T, by policy.Tenant, tool jig.Tool) policy.Ruling {
	t.Helper()
	x, err := by.Decide(t.Context(), tool, jig.Call{Input: []byte(`{}`)}, jig.Session{Tenant: "acme"}, noon)
	require.NoError(t, err)
	return x.Ruling
}

// While a policy cannot be read, calls of all tools are held back: they neither run nor ask on the terms of the other rules.
func TestUnreadablePolicy_HoldsEveryCallBack(t *testing.T) {
	t.Parallel()
	readable := load(t, "{kind: policy, name: mild, rules: [{name: all, when: true, verdict: run}]}")
	tenant := policy.Tenant{
		Policies:   policy.NewSet(readable),
		Unreadable: []jig.PolicyState{policy.Unreadable("odd", "v7", errors.New("unknown key: novelty\nline 3"))},
	}
	for _, tool := range append(everyTool(), operatorTool("grants.create"), operatorTool("sessions.retry")) {
		require.Equal(t, policy.Ruling{Held: "policy odd (version v7) cannot be read: unknown key: novelty line 3"}, decided(t, tenant, tool), tool.Name)
	}
	require.Equal(t, []jig.PolicyState{
		{Name: "mild", Version: readable.Version()[len("mild@"):], Rules: 1}, {Name: "odd", Version: "v7", Error: "unknown key: novelty line 3"},
	}, tenant.States())
	require.Equal(t, []jig.PolicyState{}, policy.Tenant{}.States())
}

// A policy that cannot be read can be replaced, on the terms of the owners and of the rules that can be read.
func TestUnreadablePolicy_CanBeReplaced(t *testing.T) {
	t.Parallel()
	owners := jig.Terms{NotRequester: true, Requirements: []jig.Requirement{{Rule: "owners", Quorum: 2}}}
	tenant := policy.Tenant{
		Policies:   policy.NewSet(load(t, "{kind: policy, name: two, rules: [{name: finance, when: true, verdict: ask, approvers: {groups: [finance]}}]}")),
		Unreadable: []jig.PolicyState{policy.Unreadable("odd", "v7", errors.New("unknown"))}, Owners: owners,
	}
	for _, name := range []string{"catalog.put", "catalog.remove", "bundle.install", "bundle.remove"} {
		got := decided(t, tenant, operatorTool(name))
		require.Equal(t, jig.VerdictAsk, got.Verdict)
		require.True(t, got.Terms.NotRequester)
		require.Equal(t, []string{"owners", "two/finance"}, []string{got.Terms.Requirements[0].Rule, got.Terms.Requirements[1].Rule})
		require.Contains(t, got.Reasons, "policy odd (version v7) cannot be read: unknown, so its rules for "+name+" are not applied")
	}
}

func TestTenantRule_StopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tenant := policy.Tenant{Policies: policy.NewSet(load(t, denyEverything))}
	_, err := tenant.Decide(ctx, operatorTool("file.write"), jig.Call{}, jig.Session{}, noon)
	require.ErrorIs(t, err, context.Canceled)
}

// The tools that register policies ask where a rule denies them, on the terms of the rules that ask.
func TestTenant_IsNotLockedOutByAPolicy(t *testing.T) {
	t.Parallel()
	const two = "{kind: policy, name: two, rules: [{name: operators, when: true, verdict: ask, quorum: 2, approvers: {groups: [operations]}, expires: 1h}]}"
	const fails = "{kind: policy, name: broken, rules: [{name: fails, when: input.x == 1, verdict: deny}]}"
	for _, name := range []string{"catalog.put", "catalog.remove", "bundle.install", "bundle.remove"} {
		for _, document := range []string{denyEverything, fails} {
			got := decided(t, policy.Tenant{Policies: policy.NewSet(load(t, document), load(t, two))}, operatorTool(name))
			require.Equal(t, jig.VerdictAsk, got.Verdict)
			require.Equal(t, 2, got.Terms.Requirements[0].Quorum)
			require.Contains(t, got.Reasons, "calls of the tools that register and remove policies ask; they are never denied")
		}
	}
	for _, name := range []string{"grants.create", "catalog.putter", "file.write"} {
		require.Equal(t, jig.VerdictDeny, decided(t, policy.Tenant{Policies: policy.NewSet(load(t, denyEverything))}, operatorTool(name)).Verdict)
	}
}

func TestOwnerTerms_DependOnWhoIsListed(t *testing.T) {
	t.Parallel()
	people := func(ids ...string) []jig.Principal {
		var list []jig.Principal
		for _, id := range ids {
			list = append(list, jig.Principal{ID: id})
		}
		return list
	}
	owners := func(quorum int, a jig.Approvers) *tenancy.Owners {
		return &tenancy.Owners{Approvers: a, Quorum: quorum}
	}
	only := func(id string) jig.Terms {
		return jig.Terms{Requirements: []jig.Requirement{{Rule: "owners", Approvers: jig.Approvers{People: []string{id}}, Quorum: 1}}}
	}
	named := func(quorum int, a jig.Approvers) jig.Terms {
		return jig.Terms{NotRequester: true, Requirements: []jig.Requirement{{Rule: "owners", Approvers: a, Quorum: quorum}}}
	}
	admins, ana, both := jig.Approvers{Groups: []string{"admins"}}, jig.Approvers{People: []string{"ana"}}, jig.Approvers{People: []string{"ana", "bo"}}
	for name, c := range map[string]struct {
		settings tenancy.Settings
		want     jig.Terms
	}{
		"a new tenant": {tenancy.Settings{}, jig.Terms{}},
		"one person":   {tenancy.Settings{People: people("ana")}, only("ana")},
		"one person, and a disabled stranger": {tenancy.Settings{
			People: people("ana", "ci"), Disabled: []string{"ci"}, Directory: tenancy.Directory{People: []tenancy.DirectoryPerson{{Principal: "ci", Disabled: true}}},
		}, only("ana")},
		"one person who is an owner":         {tenancy.Settings{People: people("ana"), Owners: owners(0, ana)}, only("ana")},
		"one person, owners by group":        {tenancy.Settings{People: people("ana"), Owners: owners(2, admins)}, only("ana")},
		"an owner who is not listed":         {tenancy.Settings{Owners: owners(0, ana)}, only("ana")},
		"a person and an owner who is not":   {tenancy.Settings{People: people("bo"), Owners: owners(0, ana)}, named(1, ana)},
		"two owners who are not listed":      {tenancy.Settings{Owners: owners(2, both)}, named(2, both)},
		"several people":                     {tenancy.Settings{People: people("ana", "bo")}, jig.Terms{NotRequester: true}},
		"several people and owners":          {tenancy.Settings{People: people("ana", "bo"), Owners: owners(0, admins)}, named(1, admins)},
		"several people, two of the owners":  {tenancy.Settings{People: people("ana", "bo", "carl"), Owners: owners(2, both)}, named(2, both)},
		"several people, any two":            {tenancy.Settings{People: people("ana", "bo"), Owners: owners(2, jig.Approvers{})}, named(2, jig.Approvers{})},
		"one person, and an operator":        {tenancy.Settings{People: people("ana"), Operator: "op"}, jig.Terms{Requirements: []jig.Requirement{{Rule: "owners", Approvers: jig.Approvers{People: []string{"ana", "op"}}, Quorum: 1}}}},
		"owners, and an operator":            {tenancy.Settings{People: people("ana", "bo"), Owners: owners(2, admins), Operator: "op"}, named(2, jig.Approvers{People: []string{"op"}, Groups: []string{"admins"}})},
		"an operator who is an owner":        {tenancy.Settings{People: people("ana", "bo"), Owners: owners(1, both), Operator: "bo"}, named(1, both)},
		"any two, and an operator":           {tenancy.Settings{People: people("ana", "bo"), Owners: owners(2, jig.Approvers{}), Operator: "op"}, named(2, jig.Approvers{})},
		"an operator alone":                  {tenancy.Settings{Operator: "op"}, jig.Terms{}},
		"owners by group, and nobody listed": {tenancy.Settings{Owners: owners(1, admins)}, jig.Terms{}},
	} {
		require.Equal(t, c.want, policy.OwnerTerms(c.settings), name)
	}
}

// Owners decide about operator tools, and rules can only add demands.
func TestOwners_RulesOnlyAddToTheirTerms(t *testing.T) {
	t.Parallel()
	admins := jig.Requirement{Rule: "owners", Quorum: 2, Approvers: jig.Approvers{Groups: []string{"admins"}}}
	owned := policy.Tenant{Owners: jig.Terms{NotRequester: true, Requirements: []jig.Requirement{admins}}}
	for _, name := range []string{"catalog.put", "catalog.remove", "bundle.install", "bundle.remove", "grants.create", "tenants.create"} {
		for document, rules := range map[string][]string{
			"":             {"owners"},
			denyEverything: {"owners"},
			"{kind: policy, name: p, rules: [{name: r, when: true, verdict: run}]}":                                {"owners"},
			"{kind: policy, name: p, rules: [{name: r, when: true, verdict: ask, approvers: {people: [eve]}}]}":    {"owners", "p/r"},
			"{kind: policy, name: a, rules: [{name: r, when: input.x, verdict: ask, quorum: 3, on_expiry: fail}]}": {"owners", "a/r"},
		} {
			tenant := owned
			if document != "" {
				tenant.Policies = policy.NewSet(load(t, document))
			}
			got := decided(t, tenant, operatorTool(name))
			if document == denyEverything && !slices.Contains([]string{"catalog.put", "catalog.remove", "bundle.install", "bundle.remove"}, name) {
				require.Equal(t, jig.VerdictDeny, got.Verdict)
				require.True(t, got.Terms.Plain())
				continue
			}
			require.Equal(t, jig.VerdictAsk, got.Verdict, name)
			require.True(t, got.Terms.NotRequester, name)
			require.False(t, got.Base, "%s: no confirmation flag lifts it", name)
			require.Contains(t, got.Reasons, "owners of the tenant decide about "+name)
			require.Equal(t, admins, got.Terms.Requirements[0])
			var named []string
			for _, r := range got.Terms.Requirements {
				named = append(named, r.Rule)
			}
			require.Equal(t, rules, named, document)
		}
	}
	list := jig.Tool{Name: "bundle.list", Permission: jig.PermissionRead}.WithDefaults()
	require.Equal(t, jig.VerdictRun, decided(t, owned, list).Verdict, "a tool that only reads needs no approval")
	other := decided(t, owned, operatorTool("file.write"))
	require.True(t, other.Terms.Plain())
	require.NotContains(t, other.Reasons, "owners of the tenant decide about file.write")
}

// If a tenant's document cannot be read, its owners are unknown, so the tools that they decide about are held back.
func TestOwnerTerms_UnknownOwnersHoldOperatorToolsBack(t *testing.T) {
	t.Parallel()
	tenant := policy.Tenant{OwnersUnknown: errors.New("the document cannot be read")}
	require.Equal(t, "the owners of the tenant cannot be read: the document cannot be read", decided(t, tenant, operatorTool("catalog.put")).Held)
	require.Empty(t, decided(t, tenant, operatorTool("file.write")).Held)
}
