package starter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
)

// fitting returns an engine in which a new standing approval grt_1 covers two calls that wait.
func fitting() *bulkEngine {
	e := waitingIn()
	e.ruled = []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted, Grant: "grt_1"}}
	e.fits = waitingIn("ses_1 3.2", "ses_2 1.1").page.Approvals
	return e
}

func TestGrant_ReleasesWaitingCalls(t *testing.T) {
	t.Parallel()
	const listed = "2 waiting calls fit the standing approval grt_1:\n  ses_1 3.2 file.write\n  ses_2 1.1 file.write\n"
	for name, row := range map[string]struct {
		change   func(*app)
		args     []string
		code     int
		requests int
		says     string
	}{
		"yes":             {nil, []string{"grant", "apply", "grt_1", "--yes"}, exitDone, 2, listed},
		"at the terminal": {terminal("y\n"), []string{"grant", "apply", "grt_1"}, exitDone, 2, listed},
		"and no":          {terminal("n\n"), []string{"grant", "apply", "grt_1"}, exitDone, 0, "they keep waiting"},
		"no terminal":     {nil, []string{"grant", "apply", "grt_1"}, exitUsage, 0, "not a terminal, so jig cannot ask: add --yes"},
	} {
		e := fitting()
		got := jigCLI(t, e, row.change, row.args...)
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, row.says, name)
		require.Len(t, e.requests, row.requests, name)
		for _, d := range e.sent {
			require.Equal(t, "grt_1", d.GrantID, name)
			require.Equal(t, "d"+d.Call, d.Digest, "%s: bound to what was listed", name)
			require.Equal(t, "ana", d.By, name)
		}
		if row.code == exitDone {
			require.Equal(t, "grt_1 for ana", e.fitsOf, name)
		}
	}
	e := fitting()
	e.fits = nil
	got := jigCLI(t, e, nil, "grant", "apply", "grt_1", "--yes")
	require.Equal(t, exitDone, got.code)
	require.Equal(t, "no waiting call fits the standing approval grt_1\n", got.stderr)
}

// An approval with which a grant comes goes on with the calls that wait and that the grant covers.
func TestApprove_WithAGrantReleasesWaitingCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*app)
		yes    bool
		sent   int
		says   string
	}{
		"yes":         {nil, true, 2, "2 waiting calls fit the standing approval grt_1:\n  ses_1 3.2 file.write\n"},
		"a terminal":  {terminal("y\n"), false, 2, "Approve 2 calls?"},
		"no terminal": {nil, false, 0, "  approve with: jig grant apply grt_1 --yes --as ana\n"},
	} {
		e := &grantingEngine{bulkEngine: fitting()}
		args := []string{"approve", "ses_1", "3.1", "--grant-uses", "5"}
		if row.yes {
			args = append(args, "--yes")
		}
		got := jigCLI(t, e, row.change, args...)
		require.Equal(t, exitDone, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stdout, "approved 3.1, with the standing approval grt_1\n", name)
		require.Contains(t, got.stderr, row.says, name)
		require.Len(t, e.sent, row.sent, name)
	}
	e := &grantingEngine{bulkEngine: fitting()}
	got := jigCLI(t, e, nil, "approve", "ses_1", "3.1", "--grant-uses", "5", "--yes", "--output", "json")
	require.JSONEq(t, `{"session_id":"ses_1","decisions":[{"call":"3.1","outcome":"accepted","grant":"grt_1"}],"released":[
		{"session_id":"ses_1","tool":"file.write","call":"3.2","outcome":"accepted","status":"reserved"},
		{"session_id":"ses_2","tool":"file.write","call":"1.1","outcome":"accepted","status":"reserved"}]}`, got.stdout)
	got = jigCLI(t, &grantingEngine{bulkEngine: fitting()}, nil, "approve", "ses_1", "3.1", "--grant-uses", "5", "--output", "json")
	require.NotContains(t, got.stdout, "released", "nobody has agreed")
}

// The decisions that release calls are signed, with the standing approval as part of what the token binds.
func TestGrant_ReleaseIsSigned(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	e := fitting()
	got := jigCLI(t, e, nil, "grant", "apply", "grt_1", "--yes", "--key", file)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.sent, 2)
	claim, err := token.ForDecision("default", "ses_1", jig.Decision{Call: "3.2", Answer: jig.AnswerApprove, GrantID: "grt_1"}, "d3.2")
	require.Equal(t, "dora", proves(t, e.sent[0].Token, key, claim, err))
}
