package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/token"
)

// bulkEngine records requests; refuse and fail choose the decisions and sessions that do not succeed.
type bulkEngine struct {
	*fake

	requests []string
	sent     []jig.Decision
	refuse   string
	fail     map[string]error
}

func (e *bulkEngine) Decide(_ context.Context, _, id string, decisions []jig.Decision) (client.DecideResult, error) {
	var words []string
	e.sent = append(e.sent, decisions...)
	for _, d := range decisions {
		words = append(words, fmt.Sprintf("%s %s %s by %s", d.Answer, d.Call, d.Digest, d.By))
	}
	e.requests = append(e.requests, id+": "+strings.Join(words, ", "))
	result := client.DecideResult{SessionID: id}
	for _, d := range decisions {
		ruled := jig.Ruled{Call: d.Call, Outcome: jig.DecisionAccepted, Status: jig.CallReserved}
		if d.Call == e.refuse {
			ruled.Outcome, ruled.Reason = jig.DecisionRefused, "it is not for you"
		}
		result.Decisions = append(result.Decisions, ruled)
	}
	return result, e.fail[id]
}

func waitingIn(calls ...string) *bulkEngine {
	e := &bulkEngine{fake: &fake{}, fail: map[string]error{}}
	for _, call := range calls {
		session, id, _ := strings.Cut(call, " ")
		e.page.Approvals = append(e.page.Approvals, jig.Pending{SessionID: session, Call: id, Tool: "file.write", Digest: "d" + id, Kind: jig.PendingApproval})
	}
	return e
}

// terminal simulates a person at a terminal who types words.
func terminal(words string) func(*app) {
	return func(a *app) {
		a.interactive, a.stdin = true, strings.NewReader(words)
		a.env["TERM"] = "dumb"
	}
}

func TestApproveAll_DecidesWhatMatchesTheFilter(t *testing.T) {
	t.Parallel()
	e := waitingIn("ses_1 1.1", "ses_2 4.2", "ses_1 1.2")
	got := jigCLI(t, e, nil, "approve", "--all", "--tool", "file.*", "--agent", "docs", "--yes", "--note", "ok")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, []string{"ses_1: approve 1.1 d1.1 by ana, approve 1.2 d1.2 by ana", "ses_2: approve 4.2 d4.2 by ana"}, e.requests)
	require.Equal(t, "ses_1 approved 1.1 file.write\nses_1 approved 1.2 file.write\nses_2 approved 4.2 file.write\n", got.stdout)
	require.Contains(t, got.stderr, "3 accepted, 0 not")
	require.Equal(t, jig.PendingFilter{Tool: "file.*", Agent: "docs", Kind: jig.PendingApproval}, e.filter)
	require.Zero(t, e.limit)
}

func TestDenyAll_ReportsEachCall(t *testing.T) {
	t.Parallel()
	e := waitingIn("ses_1 1.1", "ses_1 1.2", "ses_2 1.1", "ses_3 1.9")
	e.refuse = "1.2"
	e.fail["ses_2"] = jig.Errorf(jig.CodeConflict, "session ses_2 has ended")
	got := jigCLI(t, e, nil, "deny", "--all", "--tool", "*", "--yes", "--output", "json")
	require.Equal(t, exitFailed, got.code)
	require.JSONEq(t, `{"accepted":2,"refused":2,"decisions":[
		{"session_id":"ses_1","tool":"file.write","call":"1.1","outcome":"accepted","status":"reserved"},
		{"session_id":"ses_1","tool":"file.write","call":"1.2","outcome":"refused","reason":"it is not for you","status":"reserved"},
		{"session_id":"ses_2","tool":"file.write","call":"1.1","outcome":"failed","reason":"session ses_2 has ended"},
		{"session_id":"ses_3","tool":"file.write","call":"1.9","outcome":"accepted","status":"reserved"}]}`, got.stdout)

	got = jigCLI(t, e, nil, "deny", "--all", "--tool", "*", "--yes")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stdout, "ses_1 1.2 the decision was refused: it is not for you\n")
	require.Contains(t, got.stdout, "ses_2 1.1 the decision failed: session ses_2 has ended\n")

	e.fail["ses_2"] = jig.Errorf(jig.CodeUnavailable, "no worker is answering")
	got = jigCLI(t, e, nil, "deny", "--all", "--tool", "*", "--yes")
	require.Contains(t, got.stdout, "ses_3 1.9 the decision failed: not tried: no worker is answering\n")
}

func TestApproveAll_SendsBatches(t *testing.T) {
	t.Parallel()
	var calls []string
	for i := range 120 {
		calls = append(calls, "ses_1 "+jig.CallID(1, i+1))
	}
	e := waitingIn(calls...)
	got := jigCLI(t, e, nil, "approve", "--all", "--session", "ses_1", "--yes", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.requests, 3)
	var report bulkReport
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report))
	require.Len(t, report.Decisions, 120)
	require.Equal(t, 120, report.Accepted)
}

// Each decision is signed for the digest that was listed.
func TestApproveAll_SignsEachDigest(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	e := waitingIn("ses_1 1.1", "ses_2 1.1")
	got := jigCLI(t, e, nil, "deny", "--all", "--tool", "*", "--yes", "--reason", "no", "--key", file)
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.sent, 2)
	for i, session := range []string{"ses_1", "ses_2"} {
		require.Equal(t, "dora", e.sent[i].By)
		claim, err := token.ForDecision("default", session, jig.Decision{Call: "1.1", Answer: jig.AnswerDeny, Reason: "no"}, "d1.1")
		require.Equal(t, "dora", proves(t, e.sent[i].Token, key, claim, err))
	}
	got = jigCLI(t, e, nil, "deny", "--all", "--tool", "*", "--yes", "--token", "t")
	require.Equal(t, exitUsage, got.code)
}

// Nothing is decided without confirmation: a person sees the waiting calls and says yes, or --yes was given.
func TestApproveAll_AsksFirst(t *testing.T) {
	t.Parallel()
	for words, row := range map[string]struct{ code, requests int }{"y\n": {exitDone, 1}, "n\n": {exitFailed, 0}, "\n": {exitFailed, 0}} {
		e := waitingIn("ses_1 1.1")
		got := jigCLI(t, e, terminal(words), "approve", "--all", "--tool", "file.write")
		require.Equal(t, row.code, got.code, "%q: %s", words, got.stderr)
		require.Len(t, e.requests, row.requests, "%q", words)
		require.Contains(t, got.stderr, "  ses_1 1.1 file.write\n  see one as a whole with: jig approvals show ses_1 1.1\n")
		require.Contains(t, got.stderr, "Approve 1 call?")
	}
	for name, change := range map[string]func(*app){"no terminal": nil, "for a program": terminal("y\n")} {
		e := waitingIn("ses_1 1.1")
		args := []string{"approve", "--all", "--tool", "file.write"}
		if change != nil {
			args = append(args, "--output", "json")
		}
		got := jigCLI(t, e, change, args...)
		require.Equal(t, exitUsage, got.code, name)
		require.Contains(t, got.stderr, "jig approvals --tool file.write", name)
		require.Contains(t, got.stderr, "--yes", name)
		require.Empty(t, e.requests, name)
	}
}

func TestBulk_NoMatchingCalls(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, waitingIn(), nil, "approve", "--all", "--tool", "a.b", "--yes")
	require.Equal(t, exitDone, got.code)
	require.Contains(t, got.stderr, "no waiting call matches")
	got = jigCLI(t, waitingIn(), nil, "approve", "--all", "--tool", "a.b", "--yes", "--output", "json")
	require.JSONEq(t, `{"decisions":[],"accepted":0,"refused":0}`, got.stdout)
}

func TestApproveAll_RefusesMistakes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no filter":             {"approve", "--all"},
		"no filter but yes":     {"deny", "--all", "--yes"},
		"calls as well":         {"approve", "ses_1", "1.1", "--all", "--tool", "a.b"},
		"a filter without all":  {"approve", "ses_1", "1.1", "--tool", "a.b"},
		"yes without all":       {"deny", "ses_1", "1.1", "--yes"},
		"a digest for all":      {"approve", "--all", "--tool", "a.b", "--digest", "d", "--yes"},
		"an input for all":      {"approve", "--all", "--tool", "a.b", "--input", "{}", "--yes"},
		"a digest for all, too": {"deny", "--all", "--tool", "a.b", "--digest", "d", "--yes"},
		"an odd time":           {"deny", "--all", "--older", "x", "--yes"},
	} {
		e := waitingIn("ses_1 1.1")
		got := jigCLI(t, e, nil, args...)
		require.Equal(t, exitUsage, got.code, name)
		require.NotEmpty(t, got.stderr, name)
		require.Empty(t, e.requests, name)
	}
}

// grantingEngine answers decisions that ask for a grant as prepared, and the others like bulkEngine.
type grantingEngine struct{ *bulkEngine }

func (e *grantingEngine) Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (client.DecideResult, error) {
	if decisions[0].Grant != nil {
		return e.fake.Decide(ctx, tenant, id, decisions)
	}
	return e.bulkEngine.Decide(ctx, tenant, id, decisions)
}
