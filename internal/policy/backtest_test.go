package policy_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

func TestBacktest_ComparesPolicies(t *testing.T) {
	t.Parallel()
	night := spec.PolicyRule{Name: "night", When: "now.getHours() < 6", Verdict: jig.VerdictDeny, Reason: "at night"}
	small := spec.PolicyRule{Name: "small", When: "call.input.amount < 10.0 && session.writes == 0", Verdict: jig.VerdictRun, Reason: "small"}
	inForce := policy.Tenant{Policies: policy.NewSet(compiled(t, "shop", small), compiled(t, "other"))}
	instead := inForce.With(compiled(t, "shop", night, small))
	require.Equal(t, "other@v1 shop@v1", instead.Policies.Version(), "it replaces the policy of the same name")
	require.Equal(t, "more@v1 other@v1 shop@v1", inForce.With(compiled(t, "more")).Policies.Version())
	require.Len(t, inForce.Policies, 2, "a set never changes")

	pay := jig.Tool{Name: "a.pay", Permission: jig.PermissionWrite}.WithDefaults()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	call := func(id, input string, at time.Time, tool *jig.Tool, writes int) ledger.RecordedCall {
		return ledger.RecordedCall{
			Call: jig.Call{
				SessionID: "ses_1", ID: id, Tool: "a.pay", Input: []byte(input), CreatedAt: at, Verdict: jig.VerdictAsk, Status: jig.CallSucceeded,
			},
			Session: jig.Session{ID: "ses_1", Tenant: "acme", Writes: writes}, Tool: tool,
		}
	}
	got, err := policy.Backtest(t.Context(), inForce, instead, []ledger.RecordedCall{
		call("1.1", `{"amount":5.5}`, noon, &pay, 0),
		call("1.2", `{"amount":5.5}`, noon.Add(-10*time.Hour), &pay, 0),
		call("1.3", `{"amount":50.5}`, noon, &pay, 0),
		call("1.4", `{"amount":5.5}`, noon, &pay, 1),
		call("1.5", `{"amount":5.5}`, noon, nil, 0),
	})
	require.NoError(t, err)
	result := func(id string, at time.Time, now, then jig.Verdict, reason string, rules ...string) protocol.BacktestResult {
		return protocol.BacktestResult{
			SessionID: "ses_1", Call: id, Tool: "a.pay", At: at, Recorded: jig.VerdictAsk, Now: now, New: then, Status: jig.CallSucceeded,
			Rules: rules, Reason: reason,
		}
	}
	require.Equal(t, []protocol.BacktestResult{
		result("1.1", noon, jig.VerdictRun, jig.VerdictRun, "small", "shop/small"),
		result("1.2", noon.Add(-10*time.Hour), jig.VerdictRun, jig.VerdictDeny, "at night", "shop/night", "shop/small"),
		result("1.3", noon, jig.VerdictAsk, jig.VerdictAsk, ""),
		result("1.4", noon, jig.VerdictAsk, jig.VerdictAsk, ""),
		result("1.5", noon, "", "", ""),
	}, got)
	require.False(t, got[0].Changed())
	require.True(t, got[1].Changed())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = policy.Backtest(ctx, inForce, instead, []ledger.RecordedCall{call("1.1", `{}`, noon, &pay, 0)})
	require.ErrorIs(t, err, context.Canceled)
}
