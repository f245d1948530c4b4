package starter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// A call that waits below a call of the asked session is listed with the session that was asked for.
func TestApprovals_NameTheSessionThatWasAskedFor(t *testing.T) {
	t.Parallel()
	p := waitingCall()
	p.SessionID, p.Via = "ses_child", "1.1"
	got := jigCLI(t, &fake{pending: []jig.Pending{p}}, nil, "approvals", "--session", "ses_1")
	require.Contains(t, got.stdout, "ses_1 1.1 → ses_child 3.1 file.write waits for approval\n")
}

func TestPrettyJSON_ShowsCharactersAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a && b < c > d", `\u0026`, `\\u0026 & \`} {
		raw, err := json.Marshal([]string{text})
		require.NoError(t, err)
		shown := prettyJSON(raw)
		var back []string
		require.NoError(t, json.Unmarshal([]byte(shown), &back))
		require.Equal(t, []string{text}, back, "it means the same")
	}
	require.Equal(t, "[\n  \"a && b < c > d\"\n]", prettyJSON([]byte(`["a \u0026\u0026 b \u003c c \u003e d"]`)))
}

func TestUnknownCommands_SuggestTheRightOne(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"list": "sessions", "show": "status"} {
		require.Contains(t, jigCLI(t, &fake{}, nil, word, "x").stderr, "did you mean "+want)
	}
}
