package starter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestPolicyList_WarnsOfUnreadablePolicies(t *testing.T) {
	t.Parallel()
	e := &fake{}
	e.policies = []jig.PolicyState{
		{Name: "payments", Version: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", Rules: 1}, {Name: "odd", Version: "v2", Error: "unknown key: novelty\x1b"},
	}
	got := jigCLI(t, e, nil, "policy", "list", "--tenant", "acme")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "payments  0123456789abcdef  1 rule\nodd       v2                cannot be read: unknown key: novelty\n", got.stdout)
	require.Contains(t, got.stderr, "the calls of tenant acme are held back until 1 policy can be read")
	got = jigCLI(t, e, nil, "policy", "list", "--output", "json")
	require.JSONEq(t, `{"policies":[{"name":"payments","version":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","rules":1},
		{"name":"odd","version":"v2","rules":0,"error":"unknown key: novelty\u001b"}]}`, got.stdout)

	got = jigCLI(t, &fake{}, nil, "policy", "list")
	require.Equal(t, exitDone, got.code)
	require.Contains(t, got.stderr, "tenant default has no policies")
	got = jigCLI(t, &fake{}, nil, "policy", "list", "--output", "json")
	require.JSONEq(t, `{"policies":[]}`, got.stdout)
	e.failing = jig.Errorf(jig.CodeUnavailable, "no worker answers")
	require.NotEqual(t, exitDone, jigCLI(t, e, nil, "policy", "list").code)
}

// The status says if a session's calls are held back because a policy cannot be read.
func TestStatus_ShowsWhyCallsAreHeldBack(t *testing.T) {
	t.Parallel()
	e := &fake{view: jig.SessionView{SessionID: "ses_1", Status: jig.StatusWorking, Held: []string{"policy odd (version v2) cannot be read: newer"}}}
	got := jigCLI(t, e, nil, "status", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "held back  policy odd (version v2) cannot be read: newer\n")
}
