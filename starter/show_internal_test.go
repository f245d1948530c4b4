package starter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestShow_PrintsAllArguments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	whole := json.RawMessage(`{"text":"` + long + `"}`)
	f := &fake{
		pending:   []jig.Pending{{Call: "1.1", Tool: "file.write", Kind: jig.PendingApproval, Digest: "d1", Input: json.RawMessage(`"{\"text\":\"xxx"`), Truncated: true}},
		arguments: whole,
	}
	got := jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, long)
	require.Contains(t, got.stdout, "digest d1")
	require.NotContains(t, got.stdout, "cut down")

	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "1.1", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	var shown shownCall
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
	require.JSONEq(t, string(whole), string(shown.Input))

	got = jigCLI(t, f, nil, "approvals", "show", "ses_1", "2.1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "waits for nobody")
}
