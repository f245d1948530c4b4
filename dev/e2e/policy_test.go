package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// A registered policy allows and denies calls at once. At execution it also denies calls that were approved before it was registered.
func TestPolicy_RulesApply(t *testing.T) {
	t.Parallel()
	d, r := joinEnv(t), newReceiver(t)
	tenant := "policy-" + d.name[:8]
	trigger := func(tool string, input any) protocol.CallResult {
		in := callInput(tool, input)
		in.Tenant = tenant
		result, err := d.Trigger(t.Context(), in, "")
		require.NoError(t, err)
		return result
	}
	write := func(name string) protocol.CallResult {
		return trigger("test.write", map[string]any{"url": r.URL, "name": name})
	}
	register := func(denied string) {
		result := trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": "shop.yaml", "body": fmt.Sprintf(`kind: policy
name: shop
rules:
  - {name: small, when: "tool.name == 'test.write' && call.input.name.startsWith('small')", verdict: run, reason: small writes run}
  - {name: never, when: "tool.name == 'test.write' && call.input.name == '%s'", verdict: deny, reason: never this one}
cases:
  - {name: a small one, tool: test.write, input: {url: "http://x", name: small-1}, expect: run, rules: [small]}
`, denied)}}})
		require.Equal(t, jig.CallWaiting, result.Status, "registering a policy always asks")
		d.signal(result.SessionID, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
		registered, err := d.WaitCall(t.Context(), tenant, result.SessionID)
		require.NoError(t, err)
		require.Equal(t, jig.CallSucceeded, registered.Status, "%+v", registered.Result)
	}
	require.Equal(t, jig.CallWaiting, write("small-0").Status)
	later := write("later")
	register("never")
	require.True(t, eventually(t.Context(), patience, func() bool { return write("small-1").Status == jig.CallSucceeded }))
	require.Equal(t, jig.CallDenied, write("never").Status)
	require.Equal(t, jig.CallWaiting, write("other").Status)

	register("later")
	require.True(t, eventually(t.Context(), patience, func() bool { return write("later").Status == jig.CallDenied }))
	d.signal(later.SessionID, protocol.SignalApprove, map[string]string{"call": "1.1", "by": "ana"})
	result, err := d.WaitCall(t.Context(), tenant, later.SessionID)
	require.NoError(t, err)
	require.Equal(t, jig.CallDenied, result.Status)
	requests, _ := r.count("later")
	require.Zero(t, requests, "a call that policy now denies does not run, even if it was approved before")
}
