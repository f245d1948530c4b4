package wire

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools/bundles"
	"github.com/jig-run/jig/tools/catalog"
)

// papers are policy documents by name.
type papers map[string]string

func (p papers) CurrentDocuments(context.Context, string, string) ([]jig.DocumentVersion, error) {
	list := make([]jig.DocumentVersion, 0, len(p))
	for name := range p {
		list = append(list, jig.DocumentVersion{Kind: "policy", Name: name, Version: "v1"})
	}
	return list, nil
}

func (p papers) DocumentAt(_ context.Context, _, _, name, _ string) ([]byte, error) {
	return []byte(p[name]), nil
}

func ruled(t *testing.T, p papers, tool jig.Tool) jig.Ruling {
	t.Helper()
	call := jig.Call{ID: "1.1", Tool: tool.Name, Input: []byte(`{}`)}
	ruling, err := newPolicies(p).Rule(t.Context(), tool.WithDefaults(), call, jig.Session{ID: "ses_1", Tenant: "acme"}, time.Unix(0, 0))
	require.NoError(t, err)
	return ruling
}

const denyAll = `kind: policy
name: closed
rules: [{name: all, when: "true", verdict: deny, reason: closed}]
`

func TestPolicyRules(t *testing.T) {
	t.Parallel()
	read := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}
	require.Equal(t, jig.VerdictRun, ruled(t, papers{}, read).Verdict)
	require.Equal(t, jig.VerdictDeny, ruled(t, papers{"closed": denyAll}, read).Verdict)
}

// Tenants are whatever sessions name: a worker does not remember all that were ever named.
func TestWhatIsKnownOfTenantsIsBounded(t *testing.T) {
	t.Parallel()
	p := newPolicies(papers{})
	s := newTenants(papers{}, jig.SignalsSigned, func(string) string { return "" }, slog.New(slog.DiscardHandler))
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

func TestNobodyIsLockedOutOfThePolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{catalog.PutTool, bundles.InstallTool, bundles.RemoveTool} {
		ruling := ruled(t, papers{"closed": denyAll}, jig.Tool{Name: name, Permission: jig.PermissionWrite})
		require.Equal(t, jig.VerdictAsk, ruling.Verdict)
		require.Contains(t, ruling.Reasons, "policy closed, rule all: closed")
	}
}

// A document more takes nothing from what another one wants.
func TestADenialTakesNoTermsFromTheApprovalOfAPolicy(t *testing.T) {
	t.Parallel()
	const two = "kind: policy\nname: two\nrules: [{name: operators, when: true, verdict: ask, quorum: 2, approvers: {groups: [operations]}, expires: 1h}]\n"
	put := jig.Tool{Name: catalog.PutTool, Permission: jig.PermissionWrite}
	alone := ruled(t, papers{"two": two}, put)
	require.Equal(t, 2, alone.Terms.Requirements[0].Quorum)
	both := ruled(t, papers{"two": two, "closed": denyAll}, put)
	require.Equal(t, jig.VerdictAsk, both.Verdict)
	require.Equal(t, alone.Terms, both.Terms)
	require.Equal(t, alone.Expires, both.Expires)
}

func TestUnreadablePolicyLetsNothingRun(t *testing.T) {
	t.Parallel()
	ruling := ruled(t, papers{"odd": "kind: policy\nname: odd\nnovelty: 3\n"}, jig.Tool{Name: "a.read", Permission: jig.PermissionRead})
	require.Equal(t, jig.VerdictAsk, ruling.Verdict)
	require.Contains(t, ruling.Reasons[0], "policy odd")
}
