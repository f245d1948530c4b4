package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

func TestShow_PrintsAllArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	whole := json.RawMessage(`{"text":"` + long + `"}`)
	f := &fake{
		pending:   []jig.Pending{{Call: "1.1", Tool: "file.write", Kind: jig.PendingApproval, Digest: "d1", Input: json.RawMessage(`"{\"text\":\"xxx"`), Truncated: true}},
		arguments: whole,
		similar: []protocol.SimilarDecision{
			{SessionID: "ses_0", Call: "1.1", Answer: jig.AnswerDeny, By: "ben", Difference: "@@ -1 +1 @@\n-{\"text\":\"\u001b[2J\"}\n+{}"},
			{SessionID: "ses_9", Call: "2.1", Answer: jig.AnswerApprove, By: "ben"},
		},
	}
	got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, long)
	require.Contains(t, got.stdout, "digest d1")
	require.NotContains(t, got.stdout, "cut down")
	require.Contains(t, got.stdout, "earlier: ses_0 1.1, deny by ben")
	require.Contains(t, got.stdout, "    +{}")
	require.Contains(t, got.stdout, "earlier: ses_9 2.1, approve by ben, 0001-01-01T00:00:00Z; the same arguments")
	require.NotContains(t, got.stdout, "\x1b[2J")

	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var shown protocol.ShownCall
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
	require.JSONEq(t, string(whole), string(shown.Input))
	require.Equal(t, f.similar, shown.Similar)
	require.Equal(t, []protocol.SignedClaims{{Subject: "ana", Action: "approve", Digest: "d1"}}, shown.ToSign)

	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "2.1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "waits for nobody")
}

func TestShow_SaysWhatHasChangedSince(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		votes []jig.Vote
		found protocol.Comparison
		want  []string
	}{
		"nothing": {nil, protocol.Comparison{Status: protocol.ComparisonSame, At: moment}, []string{
			"compared at " + moment.Local().Format(time.DateTime) + ": nothing has changed since this was shown",
		}},
		"unknown": {nil, protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "no worker answered in time"}, []string{
			"not compared with what the call would do now: no worker answered in time",
		}},
		"the contract": {nil, protocol.Comparison{Status: protocol.ComparisonContract, At: moment, Detail: "the contract of shop.pay has changed\x1b[2J"}, []string{
			"  the contract of shop.pay has changed", "the first approval will not be taken",
		}},
		"the preview": {[]jig.Vote{{By: "ben"}}, protocol.Comparison{Status: protocol.ComparisonPreview, At: moment, Detail: "it would change more:\n-5 EUR\n+6 EUR"}, []string{
			"  it would change more:\n  │ -5 EUR\n  │ +6 EUR\n", "the approvals will be withdrawn when the call is about to run",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{
				pending:    []jig.Pending{{Call: "1.1", Tool: "shop.pay", Kind: jig.PendingApproval, Digest: "d1", Votes: row.votes}},
				comparison: &row.found, arguments: json.RawMessage(`{}`),
			}
			got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1")
			require.Equal(t, exitDone, got.code, got.stderr)
			for _, text := range row.want {
				require.Contains(t, got.stdout, text)
			}
			require.NotContains(t, got.stdout, "\x1b[2J")
			got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--output", "json")
			var shown protocol.ShownCall
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
			require.Equal(t, &row.found, shown.Comparison)
			require.NotContains(t, jigCLI(t, f, nil, "approvals").stdout, "compared", "lists do not compare")
		})
	}
}

func TestShow_PrintsOneDocument(t *testing.T) {
	t.Parallel()
	f := &fake{
		pending: []jig.Pending{{Call: "1.1", Tool: "catalog.put", Kind: jig.PendingApproval, Digest: "d1"}},
		arguments: json.RawMessage(`{"documents":[{"path":"a/shop.yaml","body":"kind: policy\nname: shop\nrules: [{name: never, when: 'true', verdict: deny}]\n"},` +
			`{"path":"b/shop.yaml","body":"kind: tenant\nname: shop\n"},{"path":"c.yaml","body":"kind: policy\n# \u001b[2Jend\n"}]}`),
	}
	for _, name := range []string{"a/shop.yaml", "policy shop"} {
		got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", name)
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Contains(t, got.stdout, "kind: policy\nname: shop\n")
		require.NotContains(t, got.stdout, "digest")
	}
	got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", "c.yaml")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.NotContains(t, got.stdout, "\x1b")
	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", "b/shop.yaml", "--output", "json")
	require.JSONEq(t, `{"path":"b/shop.yaml","body":"kind: tenant\nname: shop\n"}`, got.stdout)

	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", "shop")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "name the file")
	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", "policy shops")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "policy shop")
	f.arguments = json.RawMessage(`{"path":"x","content":"y"}`)
	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--document", "x")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "no documents")
}

func TestShow_FindsTheOnlyCallThatWaits(t *testing.T) {
	t.Parallel()
	question := jig.Pending{SessionID: "ses_1", Call: "3.1", Kind: jig.PendingQuestion, Tool: "person.ask"}
	f := &fake{pending: []jig.Pending{question}}
	f.page.Approvals = f.pending
	got := jigCLI(t, f, nil, "approvals", "show", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "ses_1 3.1 person.ask asks a person")
	require.Equal(t, "ses_1", f.filter.SessionID)

	f.page.Approvals = append(f.page.Approvals, jig.Pending{SessionID: "ses_child", Call: "1.2", Via: "2.1"})
	got = jigCLI(t, f, nil, "approvals", "show", "ses_1")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "2 calls in session ses_1 wait for a person")
	require.Contains(t, got.stderr, "  jig approvals show ses_child 1.2")

	got = jigCLI(t, &fake{}, nil, "approvals", "show", "ses_1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "no call in session ses_1 waits for a person")
}

func TestApprove_SaysInWhichSessionTheOnlyCallWaits(t *testing.T) {
	t.Parallel()
	p := jig.Pending{SessionID: "ses_child", Call: "3.1", Via: "1.1", Kind: jig.PendingApproval, Tool: "file.write"}
	f := &fake{ruled: []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted}}}
	f.page.Approvals = []jig.Pending{p}
	got := jigCLI(t, f, nil, "approve", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stderr, "ses_1 1.1 → ses_child 3.1 file.write waits for approval\n")
	require.Equal(t, "ses_child", f.decidedIn)
}
