package policy_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// papers maps names to policy documents. The version of a document is its text.
type papers map[string]string

func (p papers) CurrentDocuments(context.Context, string, string) ([]bundle.DocumentVersion, error) {
	list := make([]bundle.DocumentVersion, 0, len(p))
	for _, name := range slices.Sorted(maps.Keys(p)) {
		list = append(list, bundle.DocumentVersion{Kind: "policy", Name: name, Version: versionOf(p[name])})
	}
	return list, nil
}

func versionOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func (p papers) DocumentAt(_ context.Context, _, _, name, _ string) ([]byte, error) {
	return []byte(p[name]), nil
}

// engineOf returns an engine that reads p, in a tenant with the given settings.
func engineOf(p bundle.Documents, settings tenancy.Settings, err error) *policy.Engine {
	return policy.NewEngine(policy.EngineOptions{
		Documents: p, Settings: func(context.Context, string) (tenancy.Settings, error) { return settings, err },
	})
}

func ruledBy(t *testing.T, e *policy.Engine, tool jig.Tool) policy.Ruling {
	t.Helper()
	call := jig.Call{ID: "1.1", Tool: tool.Name, Input: []byte(`{}`)}
	ruling, err := e.Rule(t.Context(), tool.WithDefaults(), call, jig.Session{ID: "ses_1", Tenant: "acme"}, time.Unix(0, 0))
	require.NoError(t, err)
	return ruling
}

func ruled(t *testing.T, p papers, tool jig.Tool) policy.Ruling {
	t.Helper()
	return ruledBy(t, engineOf(p, tenancy.Settings{}, nil), tool)
}

const (
	denyAll = `kind: policy
name: closed
rules: [{name: all, when: "true", verdict: deny, reason: closed}]
`
	newer = "kind: policy\nname: odd\nnovelty: 3\n"
)

func TestEngine_Rule(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}
	require.Equal(t, jig.VerdictRun, ruled(t, papers{}, read).Verdict)
	require.Equal(t, jig.VerdictDeny, ruled(t, papers{"closed": denyAll}, read).Verdict)
}

// Package policy lists the operator tools. Every shipped one is on the list and asks for approval whatever the rules say.
func TestEngine_OperatorToolsAreThoseThatAreShipped(t *testing.T) {
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
func TestEngine_OwnersDecideAboutOperatorTools(t *testing.T) {
	t.Parallel()
	put, write := jig.Tool{Name: catalog.PutTool, Approval: jig.ApprovalAlwaysAsk}, jig.Tool{Name: "a.write"}
	settings := tenancy.Settings{People: []jig.Principal{{ID: "ana"}, {ID: "bo"}}}
	require.True(t, ruledBy(t, engineOf(papers{}, settings, nil), put).Terms.NotRequester)
	require.True(t, ruledBy(t, engineOf(papers{}, settings, nil), write).Terms.Plain())
	require.True(t, ruledBy(t, engineOf(papers{}, tenancy.Settings{}, nil), put).Terms.Plain(), "as before the first document of a new tenant")
	gone := engineOf(papers{}, tenancy.Settings{}, errors.New("newer"))
	require.Equal(t, "the owners of the tenant cannot be read: newer", ruledBy(t, gone, put).Held)
	require.Equal(t, jig.VerdictAsk, ruledBy(t, gone, write).Verdict)
}

// A policy that a worker cannot read holds calls back until a readable version is registered. Until then it is listed and counted.
func TestEngine_UnreadablePolicyHoldsCallsBackUntilItCanBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}
		shelf := papers{"odd": newer, "closed": denyAll}
		e := engineOf(shelf, tenancy.Settings{}, nil)
		unreadable := func() map[string]int {
			counts, err := e.Unreadable(t.Context())
			require.NoError(t, err)
			return counts
		}
		require.Empty(t, unreadable(), "the policies of a tenant without calls are not loaded")
		held := ruledBy(t, e, read)
		require.Contains(t, held.Held, "policy odd (version "+jig.ShortVersion(versionOf(newer))+") cannot be read: ")
		require.Contains(t, held.Held, "novelty")
		require.Empty(t, held.Verdict)
		states, err := e.Policies(t.Context(), "acme")
		require.NoError(t, err)
		require.Equal(t, []string{"closed", "odd"}, []string{states[0].Name, states[1].Name})
		require.Equal(t, 1, states[0].Rules)
		require.Contains(t, states[1].Error, "novelty")
		require.Equal(t, map[string]int{"acme": 1}, unreadable())

		shelf["odd"] = strings.ReplaceAll(denyAll, "closed", "odd")
		require.NotEmpty(t, ruledBy(t, e, read).Held, "the policies are cached for a second")
		time.Sleep(time.Second) //nolint:forbidigo // the bubble's clock, not the machine's
		require.Equal(t, map[string]int{"acme": 0}, unreadable(), "the policies are read again")
		require.Equal(t, jig.VerdictDeny, ruledBy(t, e, read).Verdict)
	})
}

// Rules that cannot be evaluated are reported, the others are not.
func TestEngine_ReportsFailingRules(t *testing.T) {
	t.Parallel()
	var failed []string
	e := policy.NewEngine(policy.EngineOptions{
		Documents: papers{"shop": `kind: policy
name: shop
rules: [{name: large, when: input.amount > 5, verdict: deny}, {name: fine, when: "false", verdict: deny}]
`},
		Settings: func(context.Context, string) (tenancy.Settings, error) { return tenancy.Settings{}, nil },
		Failed:   func(tenant, policy, rule string) { failed = append(failed, tenant+" "+policy+"/"+rule) },
	})
	require.Equal(t, jig.VerdictDeny, ruledBy(t, e, jig.Tool{Name: "a.read", Permission: jig.PermissionRead}).Verdict)
	ruledBy(t, e, jig.Tool{Name: "a.write"})
	require.Equal(t, []string{"acme shop/large", "acme shop/large"}, failed)
}

func backtested(t *testing.T, p papers, document string, tools ...jig.Tool) ([]protocol.BacktestResult, error) {
	t.Helper()
	calls := make([]ledger.RecordedCall, len(tools))
	for i, tool := range tools {
		tool = tool.WithDefaults()
		calls[i] = ledger.RecordedCall{
			Call:    jig.Call{SessionID: "ses_1", ID: jig.CallID(1, i+1), Tool: tool.Name, Input: []byte(`{}`), CreatedAt: time.Unix(0, 0), Verdict: jig.VerdictAsk},
			Session: jig.Session{ID: "ses_1", Tenant: "acme"}, Tool: &tool,
		}
	}
	return engineOf(p, tenancy.Settings{}, nil).Backtest(t.Context(), "acme", document, calls)
}

func TestEngine_Backtest(t *testing.T) {
	t.Parallel()
	read, put := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}, jig.Tool{Name: catalog.PutTool, Permission: jig.PermissionWrite}
	const asks = "kind: policy\nname: closed\nrules: [{name: all, when: \"true\", verdict: ask, reason: asked}]\n"
	for name, row := range map[string]struct {
		inForce  papers
		document string
		now, new jig.Verdict
		rules    []string
	}{
		"a new one":     {papers{}, denyAll, jig.VerdictRun, jig.VerdictDeny, []string{"closed/all"}},
		"a new version": {papers{"closed": denyAll}, asks, jig.VerdictDeny, jig.VerdictAsk, []string{"closed/all"}},
		"the same":      {papers{"closed": denyAll}, denyAll, jig.VerdictDeny, jig.VerdictDeny, []string{"closed/all"}},
	} {
		got, err := backtested(t, row.inForce, row.document, read, put)
		require.NoError(t, err, name)
		require.Equal(t, row.now, got[0].Now, name)
		require.Equal(t, row.new, got[0].New, name)
		require.Equal(t, row.rules, got[0].Rules, name)
		require.Equal(t, jig.VerdictAsk, got[0].Recorded, name)
		require.Equal(t, jig.VerdictAsk, got[1].New, "%s: nobody is locked out of the policies", name)
	}
}

func TestEngine_BacktestMistakes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		inForce  papers
		document string
		code     jig.Code
	}{
		"not readable":    {papers{}, "kind: policy\nname: a\nnovelty: 1\n", jig.CodeInvalidInput},
		"another kind":    {papers{}, "kind: composition\nname: a.b\ndescription: d\nsteps: [{id: a, tool: file.read, input: {path: a}}]\n", jig.CodeInvalidInput},
		"no document":     {papers{}, "", jig.CodeInvalidInput},
		"a broken policy": {papers{"odd": newer}, denyAll, jig.CodeConflict},
	} {
		_, err := backtested(t, row.inForce, row.document)
		require.Error(t, err, name)
		require.Equal(t, row.code, jig.CodeOf(err), name)
		require.NotEmpty(t, jig.AsError(err).Hint, name)
	}
}

// A simulated call is judged by the policies in force, and by a document in the place of the one of the same name.
func TestEngine_Simulate(t *testing.T) {
	t.Parallel()
	const asks = "kind: policy\nname: closed\nrules: [{name: all, when: \"true\", verdict: ask, reason: asked}]\n"
	call, session := jig.Call{Tenant: "acme", ID: "1.1", Tool: "a.read", Input: []byte(`{}`)}, jig.Session{Tenant: "acme", Principal: jig.Principal{ID: "ana"}}
	for name, row := range map[string]struct {
		inForce       papers
		document      string
		verdict, base jig.Verdict
		held          bool
	}{
		"no policy":          {papers{}, "", jig.VerdictRun, jig.VerdictRun, false},
		"one in force":       {papers{"closed": denyAll}, "", jig.VerdictDeny, jig.VerdictRun, false},
		"another version":    {papers{"closed": denyAll}, asks, jig.VerdictAsk, jig.VerdictRun, false},
		"one more":           {papers{}, denyAll, jig.VerdictDeny, jig.VerdictRun, false},
		"one cannot be read": {papers{"odd": newer}, "", "", "", true},
	} {
		got, err := engineOf(row.inForce, tenancy.Settings{}, nil).Simulate(t.Context(), row.document, jig.Tool{Name: "a.read", Permission: jig.PermissionRead}.WithDefaults(), call, session, noon)
		require.NoError(t, err, name)
		require.Equal(t, []jig.Verdict{row.verdict, row.base}, []jig.Verdict{got.Verdict, got.Base.Verdict}, name)
		require.Equal(t, row.held, got.Held != "", name)
		require.Equal(t, row.verdict == jig.VerdictDeny || row.verdict == jig.VerdictAsk, len(got.Rules) == 1, name)
	}
	_, err := engineOf(papers{}, tenancy.Settings{}, nil).Simulate(t.Context(), "kind: policy\nname: a\nnovelty: 1\n", jig.Tool{}, call, session, noon)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}

func TestEngine_Cases(t *testing.T) {
	t.Parallel()
	const cases = denyAll + "cases:\n  - {name: denied, tool: a.read, input: {}, expect: deny}\n  - {name: wrong, tool: a.read, input: {}, expect: run}\n"
	known := func(name string) (jig.Tool, bool) {
		return jig.Tool{Name: name, Permission: jig.PermissionRead}.WithDefaults(), name == "a.read"
	}
	page, err := engineOf(papers{}, tenancy.Settings{}, nil).Cases(t.Context(), cases, known)
	require.NoError(t, err)
	require.False(t, page.OK)
	require.Equal(t, []bool{true, false}, []bool{page.Cases[0].OK, page.Cases[1].OK})
	page, err = engineOf(papers{}, tenancy.Settings{}, nil).Cases(t.Context(), denyAll, known)
	require.NoError(t, err)
	require.True(t, page.OK)
	require.Empty(t, page.Cases)
	_, err = engineOf(papers{}, tenancy.Settings{}, nil).Cases(t.Context(), "nothing", known)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
}
