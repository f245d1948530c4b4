package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

func compiled(t *testing.T, name string, rules ...spec.PolicyRule) *policy.Rules {
	t.Helper()
	r, err := policy.Compile(spec.Policy{Name: name, Rules: rules}, "v1")
	require.NoError(t, err)
	return r
}

// The rules of all documents apply together. The order of the documents has no effect.
func TestPolicies_ApplyTogether(t *testing.T) {
	t.Parallel()
	lift := compiled(t, "lift", spec.PolicyRule{Name: "small", When: "call.input.amount < 10.0", Verdict: jig.VerdictRun, Reason: "small"})
	stop := compiled(t, "stop", spec.PolicyRule{Name: "night", When: "tenant == 'asleep'", Verdict: jig.VerdictDeny, Reason: "at night"})
	write := jig.Tool{Name: "a.pay", Permission: jig.PermissionWrite}.WithDefaults()
	for name, row := range map[string]struct {
		input, tenant string
		want          jig.Verdict
	}{
		"lifted by one":                {`{"amount": 5.5}`, "awake", jig.VerdictRun},
		"lifted by one, denied by one": {`{"amount": 5.5}`, "asleep", jig.VerdictDeny},
		"no rule applies":              {`{"amount": 50.5}`, "awake", jig.VerdictAsk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := jig.Call{ID: "1.1", Tool: "a.pay", Input: []byte(row.input)}
			session := jig.Session{ID: "ses_1", Tenant: row.tenant}
			got, err := policy.NewSet(lift, stop).Rule(t.Context(), write, call, session, time.Unix(0, 0))
			require.NoError(t, err)
			require.Equal(t, row.want, got.Verdict)
			require.Equal(t, "lift@v1 stop@v1", got.PolicyVersion)
			again, err := policy.NewSet(stop, lift).Rule(t.Context(), write, call, session, time.Unix(0, 0))
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
	ruling, err := policy.NewSet().Rule(t.Context(), write, jig.Call{Input: []byte(`{}`)}, jig.Session{}, time.Unix(0, 0))
	require.NoError(t, err)
	require.Equal(t, policy.BaseRuling(write), ruling)
}
