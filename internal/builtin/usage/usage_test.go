package usage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/builtin/usage"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools/tooltest"
)

func TestGet_ReturnsTheUsageOfTheCallsTenant(t *testing.T) {
	t.Parallel()
	var asked protocol.UsageRequest
	kit := tooltest.New(t, usage.Tools(usage.Options{Usage: func(_ context.Context, r protocol.UsageRequest) (protocol.Usage, error) {
		asked = r
		return protocol.Usage{
			Since: r.Since, Rows: []protocol.UsageRow{{Agent: "tidy", Requests: 2, Calls: 3, CacheReadTokens: 7, Cost: "0.02"}}, Budgets: []protocol.BudgetState{},
		}, nil
	}})...)
	kit.Invocation.Tenant = "acme"
	var got usage.Result
	result := kit.Succeed(usage.GetTool, map[string]any{"since": "2026-01-02T00:00:00Z", "by": []string{"agent"}, "model": "openai/x"}, &got)
	since := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	require.Equal(t, protocol.UsageRequest{Tenant: "acme", Since: since, By: []string{"agent"}, Model: "openai/x"}, asked)
	require.EqualValues(t, 7, got.Rows[0].CacheReadTokens)
	require.Equal(t, "2 answers of models and 3 calls since 2026-01-02", result.Summary)

	kit.Succeed(usage.GetTool, map[string]any{}, nil)
	require.NotZero(t, asked.Since, "the default is a week ago")
	require.Equal(t, "/by/0", kit.Fail(usage.GetTool, map[string]any{"by": []string{"color"}}).Field)
	require.Equal(t, "/tenant", kit.Fail(usage.GetTool, map[string]any{"tenant": "other"}).Field)
	require.Equal(t, tenancy.PermissionRead, usage.Tools(usage.Options{})[0].Contract().RequiredPermission)
}
