package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/tools/builtin/catalog"
)

var _ activities.Backtester = (*policies)(nil)

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
	return rulesOf(p, tenancy.Settings{}, nil).Backtest(t.Context(), "acme", document, calls)
}

func TestBacktestOfADocument(t *testing.T) {
	t.Parallel()
	read, put := jig.Tool{Name: "a.read", Permission: jig.PermissionRead}, jig.Tool{Name: catalog.PutTool, Permission: jig.PermissionWrite}
	const asks = "kind: policy\nname: closed\nrules: [{name: all, when: \"true\", verdict: ask, reason: asked}]\n"
	for name, row := range map[string]struct {
		inForce  papers
		document string
		now, new jig.Verdict
		rules    []string
	}{
		"a new one":                    {papers{}, denyAll, jig.VerdictRun, jig.VerdictDeny, []string{"closed/all"}},
		"in the place of its old self": {papers{"closed": denyAll}, asks, jig.VerdictDeny, jig.VerdictAsk, []string{"closed/all"}},
		"the same":                     {papers{"closed": denyAll}, denyAll, jig.VerdictDeny, jig.VerdictDeny, []string{"closed/all"}},
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

func TestBacktestMistakes(t *testing.T) {
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
