package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/policy"
)

var payTool = jig.Tool{
	Name: "billing.pay", Meaning: "pays", Risk: jig.RiskHigh,
	InputSchema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"}},"additionalProperties":false}`),
}.WithDefaults()

func TestNewGrant_HasDefaults(t *testing.T) {
	t.Parallel()
	week := approval.GrantCeiling{MaxUses: 5, MaxAge: 7 * 24 * time.Hour}
	for name, c := range map[string]struct {
		req     jig.GrantRequest
		ceiling approval.GrantCeiling
		want    jig.Grant
	}{
		"defaults": {jig.GrantRequest{}, approval.GrantCeiling{}, jig.Grant{When: "true", MaxUses: 10, ExpiresAt: noon.Add(24 * time.Hour)}},
		"defaults below the ceiling": {
			jig.GrantRequest{}, approval.GrantCeiling{MaxUses: 3, MaxAge: time.Hour}, jig.Grant{When: "true", MaxUses: 3, ExpiresAt: noon.Add(time.Hour)},
		},
		"all fields": {
			jig.GrantRequest{Tool: "billing.pay", Agent: "desk", When: "input.amount < 100 && call.input.to == 'bo'", MaxUses: 5, Expires: "7d", Note: "fine"},
			week,
			jig.Grant{Agent: "desk", When: "input.amount < 100 && call.input.to == 'bo'", MaxUses: 5, ExpiresAt: noon.Add(7 * 24 * time.Hour), Note: "fine"},
		},
		"all agents":    {jig.GrantRequest{Agent: "*"}, week, jig.Grant{When: "true", MaxUses: 5, ExpiresAt: noon.Add(24 * time.Hour)}},
		"known members": {jig.GrantRequest{When: "has(input.amount) && principal.id == 'ana' && now.getHours() < 18"}, week, jig.Grant{When: "has(input.amount) && principal.id == 'ana' && now.getHours() < 18", MaxUses: 5, ExpiresAt: noon.Add(24 * time.Hour)}},
	} {
		got, err := policy.NewGrant(c.req, c.ceiling, payTool, noon)
		require.NoError(t, err, name)
		c.want.Tool, c.want.Meaning, c.want.CreatedAt = "billing.pay", "pays", noon
		require.Equal(t, c.want, got, name)
		require.True(t, got.Live(noon), name)
		_, err = policy.CompileGrant(got)
		require.NoError(t, err, name)
	}
}

func TestNewGrant_Refuses(t *testing.T) {
	t.Parallel()
	destructive := jig.Tool{Name: "billing.pay", Permission: jig.PermissionDestructive}.WithDefaults()
	for name, c := range map[string]struct {
		req     jig.GrantRequest
		ceiling approval.GrantCeiling
		tool    jig.Tool
		field   string
		says    string
	}{
		"another tool":             {jig.GrantRequest{Tool: "billing.refund"}, approval.GrantCeiling{}, payTool, "grant.tool", "billing.refund"},
		"destructive":              {jig.GrantRequest{}, approval.GrantCeiling{}, destructive, "grant.tool", "destructive"},
		"always asks":              {jig.GrantRequest{}, approval.GrantCeiling{}, jig.Tool{Name: "a.b", Approval: jig.ApprovalAlwaysAsk}.WithDefaults(), "grant.tool", "always asks"},
		"unknown":                  {jig.GrantRequest{}, approval.GrantCeiling{}, jig.Tool{Name: "a.b", Risk: "low"}.WithDefaults(), "grant.tool", "not known"},
		"off":                      {jig.GrantRequest{}, approval.GrantCeiling{Off: true}, payTool, "grant.tool", "no standing approvals"},
		"an agent":                 {jig.GrantRequest{Agent: "The Desk"}, approval.GrantCeiling{}, payTool, "grant.agent", "The Desk"},
		"a long agent":             {jig.GrantRequest{Agent: "x" + strings.Repeat("é", 40)}, approval.GrantCeiling{}, payTool, "grant.agent", "x" + strings.Repeat("é", 19) + "… is not"},
		"no CEL":                   {jig.GrantRequest{When: "input.amount <"}, approval.GrantCeiling{}, payTool, "grant.when", "syntax"},
		"no condition":             {jig.GrantRequest{When: "input.to"}, approval.GrantCeiling{}, payTool, "grant.when", "true or false"},
		"no such member":           {jig.GrantRequest{When: "input.amuont < 1"}, approval.GrantCeiling{}, payTool, "grant.when", "amount"},
		"no such member of a call": {jig.GrantRequest{When: "call.input.amuont < 1"}, approval.GrantCeiling{}, payTool, "grant.when", "amount"},
		"no such member of a tool": {jig.GrantRequest{When: "tool.permision == 'write'"}, approval.GrantCeiling{}, payTool, "grant.when", "permission"},
		"no such name":             {jig.GrantRequest{When: "amount < 1"}, approval.GrantCeiling{}, payTool, "grant.when", "amount"},
		"too long":                 {jig.GrantRequest{When: "true" + strings.Repeat(" || true", 600)}, approval.GrantCeiling{}, payTool, "grant.when", "at most 4096"},
		"negative uses":            {jig.GrantRequest{MaxUses: -1}, approval.GrantCeiling{}, payTool, "grant.max_uses", "-1"},
		"many uses":                {jig.GrantRequest{MaxUses: 6}, approval.GrantCeiling{MaxUses: 5}, payTool, "grant.max_uses", "ceiling of 5"},
		"uses above the default":   {jig.GrantRequest{MaxUses: 1001}, approval.GrantCeiling{}, payTool, "grant.max_uses", "ceiling of 1000"},
		"no time":                  {jig.GrantRequest{Expires: "0s"}, approval.GrantCeiling{}, payTool, "grant.expires", "expired already"},
		"no duration":              {jig.GrantRequest{Expires: "a week"}, approval.GrantCeiling{}, payTool, "grant.expires", "not a duration"},
		"long":                     {jig.GrantRequest{Expires: "8d"}, approval.GrantCeiling{MaxAge: 7 * 24 * time.Hour}, payTool, "grant.expires", "ceiling of 7d"},
		"longer":                   {jig.GrantRequest{Expires: "31d"}, approval.GrantCeiling{}, payTool, "grant.expires", "ceiling of 30d"},
		"a long note":              {jig.GrantRequest{Note: strings.Repeat("é", 2_001)}, approval.GrantCeiling{}, payTool, "grant.note", "2001"},
	} {
		got, err := policy.NewGrant(c.req, c.ceiling, c.tool, noon)
		require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput}, name)
		require.Equal(t, c.field, jig.AsError(err).Field, name)
		require.Contains(t, err.Error()+jig.AsError(err).Hint, c.says, name)
		require.NotContains(t, jig.AsError(err).Message, string(jig.CodeInvalidInput), name)
		require.Empty(t, got, name)
	}
	_, err := policy.CompileGrant(jig.Grant{When: ""})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.Equal(t, "grant.when", jig.AsError(err).Field)
}

// Whether a grant covers a call depends on the call that will run. A condition that cannot be evaluated covers nothing, and the error says
// why.
func TestGrant_CoversOnlyItsCalls(t *testing.T) {
	t.Parallel()
	g := jig.Grant{
		Tenant: "acme", ID: "grant_1", Tool: "billing.pay", Meaning: "pays", Agent: "desk", MaxUses: 1, ExpiresAt: noon.Add(time.Minute), By: []string{"ana"},
		When: "input.amount < 100 && call.input == input && agent.name == 'desk' && principal.id == 'rex' && tenant == 'acme' && session.writes < 3 && tool.risk == 'high'",
	}
	rule := granted(t, g)[0]
	require.Equal(t, g, rule.Grant())
	session := jig.Session{Tenant: "acme", Agent: jig.Agent{Name: "desk"}, Principal: jig.Principal{ID: "rex"}}
	covers := func(input string) (bool, error) {
		return rule.Covers(t.Context(), payTool, jig.Call{Tool: "billing.pay", Input: []byte(input)}, session, noon)
	}
	got, err := covers(`{"amount": 99.5}`)
	require.NoError(t, err)
	require.True(t, got)
	got, err = covers(`{"amount": 100}`)
	require.NoError(t, err)
	require.False(t, got)
	for _, input := range []string{`{}`, ``, `{"amount": "1"}`, `{"amount":`} {
		got, err = covers(input)
		require.ErrorContains(t, err, "grant_1", input)
		require.False(t, got, input)
	}
	g.Used = g.MaxUses
	got, err = rule.With(g).Covers(t.Context(), payTool, jig.Call{Tool: "billing.pay", Input: []byte(`{"amount": 1}`)}, session, noon)
	require.NoError(t, err)
	require.False(t, got, "it was used up after it was compiled")
	for name, meanings := range map[string][2]string{"another contract": {"pays", "pays twice"}, "no contract": {"", ""}} {
		g, tool := rule.Grant(), payTool
		g.Meaning, tool.Meaning = meanings[0], meanings[1]
		got, err = rule.With(g).Covers(t.Context(), tool, jig.Call{Tool: "billing.pay", Input: []byte(`{"amount": 1}`)}, session, noon)
		require.NoError(t, err)
		require.False(t, got, name)
	}
	got, err = rule.Covers(t.Context(), payTool, jig.Call{Tool: "billing.refund", Input: []byte(`{"amount": 1}`)}, session, noon)
	require.NoError(t, err)
	require.False(t, got, "the call is of another tool than its contract")
}

// A compiled grant is matched by its current state: uses that were counted and revocations since count.
func TestGrants_CoverByTheCurrentState(t *testing.T) {
	t.Parallel()
	g := policy.NewGrants()
	call := jig.Call{ID: "1.1", Tool: payTool.Name, Input: []byte(`{"amount":1}`)}
	session := jig.Session{ID: "ses_1", Tenant: "acme"}
	grant, err := policy.NewGrant(jig.GrantRequest{When: "input.amount < 100", MaxUses: 2}, approval.GrantCeiling{}, payTool, noon)
	require.NoError(t, err)
	grant.Tenant, grant.ID = "acme", "grt_1"
	covers := func() bool {
		ok, err := g.Covers(t.Context(), grant, payTool, call, session, noon)
		require.NoError(t, err)
		return ok
	}
	require.True(t, covers())
	grant.Used = 2
	require.False(t, covers(), "it is used up")
}

func TestGrantFor_OnlyToolsOfTheTenant(t *testing.T) {
	t.Parallel()
	known := []jig.Tool{
		jig.Tool{Name: "a.write"}.WithDefaults(), jig.Tool{Name: "b.write", Tenants: []string{"zeta"}}.WithDefaults(),
	}
	for tool, code := range map[string]jig.Code{"a.write": "", "b.write": jig.CodeToolNotFound, "c.write": jig.CodeToolNotFound} {
		_, err := policy.GrantFor("acme", known, jig.GrantRequest{Tool: tool, MaxUses: 1}, approval.GrantCeiling{}, noon)
		require.Equal(t, code, jig.CodeOf(err), tool)
	}
}
