package starter

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

// proves checks that a token proves a claim and returns the principal.
func proves(t *testing.T, text string, key identity.Key, want identity.Claim, err error) string {
	t.Helper()
	require.NoError(t, err)
	who, _, err := token.Verify(text, []identity.Key{key}, want, time.Now())
	require.NoError(t, err)
	return who
}

func TestDecide_SignsForTheWaitingCall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want jig.Decision
		// digest is the digest that the token must contain.
		digest string
	}{
		"approve": {[]string{"approve", "ses_1", "3.1", "--note", "fine"}, jig.Decision{Call: "3.1", Answer: jig.AnswerApprove, Note: "fine"}, "d1"},
		"edit": {
			[]string{"approve", "ses_1", "3.1", "--input", `{"amount": 1.0}`},
			jig.Decision{Call: "3.1", Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount": 1.0}`)},
			"d1",
		},
		"digest": {[]string{"approve", "ses_1", "3.1", "--digest", "seen"}, jig.Decision{Call: "3.1", Answer: jig.AnswerApprove, Digest: "seen"}, "seen"},
		"grant": {
			[]string{"approve", "ses_1", "3.1", "--grant-when", "input.amount < 100", "--grant-uses", "3", "--grant-expires", "7d", "--grant-agent", "*"},
			jig.Decision{
				Call: "3.1", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{When: "input.amount < 100", MaxUses: 3, Expires: "7d", Agent: "*"},
			},
			"d1",
		},
		"deny": {[]string{"deny", "ses_1", "3.1", "--reason", "no"}, jig.Decision{Call: "3.1", Answer: jig.AnswerDeny, Reason: "no"}, "d1"},
		"delegate": {
			[]string{"delegate", "ses_1", "3.1", "--to", "ben", "--note", "he knows"},
			jig.Decision{Call: "3.1", Answer: jig.AnswerDelegate, To: "ben", Note: "he knows"},
			"d1",
		},
		"undelegate":    {[]string{"delegate", "ses_1", "3.1", "--undo"}, jig.Decision{Call: "3.1", Answer: jig.AnswerDelegate, Undo: true}, "d1"},
		"nothing waits": {[]string{"approve", "ses_1", "9.1"}, jig.Decision{Call: "9.1", Answer: jig.AnswerApprove}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, key := newKey(t, "dora")
			e := waiting()
			got := jigCLI(t, e, nil, append(tt.args, "--key", file)...)
			require.Equal(t, 0, got.code, got.stderr)
			require.Len(t, e.decided, 1)
			sent := e.decided[0]
			claim, err := token.ForDecision("default", "ses_1", tt.want, tt.digest)
			require.Equal(t, "dora", proves(t, sent.Token, key, claim, err))
			tt.want.By, tt.want.Token = "dora", sent.Token
			require.Equal(t, tt.want, sent, "the key says who decides, not the operating system")
		})
	}
}

func TestSign_EachCallHasItsOwnToken(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "ana")
	e := waiting()
	got := jigCLI(t, e, func(a *app) { a.env[signingKeySetting] = file }, "approve", "ses_1", "3.1", "3.2", "--tenant", "acme")
	require.Equal(t, 0, got.code, got.stderr)
	require.Len(t, e.decided, 2)
	for i, digest := range []string{"d1", "d2"} {
		d := e.decided[i]
		claim, err := token.ForDecision("acme", "ses_1", jig.Decision{Call: d.Call, Answer: jig.AnswerApprove}, digest)
		require.Equal(t, "ana", proves(t, d.Token, key, claim, err))
	}
}

func TestSign_SignsAnswersAndReconciliations(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "ana")
	e := waiting()
	e.pending[2].Question = &jig.Question{Text: "Which?"}
	for _, args := range [][]string{{"answer", "ses_1", "3.2", "yes"}, {"answer", "ses_1", "3.2", "--value", `"yes"`}} {
		got := jigCLI(t, e, nil, append(args, "--key", file)...)
		require.Equal(t, 0, got.code, got.stderr)
		claim, err := token.ForReply("default", "ses_1", jig.Reply{Call: "3.2", Value: json.RawMessage(`"yes"`)}, "d2")
		require.Equal(t, "ana", proves(t, e.replied.Token, key, claim, err))
		require.Equal(t, "ana", e.replied.By)
	}
	got := jigCLI(t, e, nil, "reconcile", "ses_1", "3.3", "--outcome", "happened", "--result", `{"id":7}`, "--key", file)
	require.Equal(t, 0, got.code, got.stderr)
	claim, err := token.ForReconciliation("default", "ses_1",
		jig.Reconciliation{Call: "3.3", Outcome: jig.OutcomeHappened, Result: json.RawMessage(`{"id":7}`)}, "d3")
	require.Equal(t, "ana", proves(t, e.word.Token, key, claim, err))
	require.Equal(t, "ana", e.word.By)
}

func TestToken_NeedsNoPrincipalFlag(t *testing.T) {
	t.Parallel()
	e := waiting()
	e.pending[2].Question = &jig.Question{Text: "Which?"}
	file, _ := newKey(t, "dora")
	withKey := func(a *app) { a.env[signingKeySetting] = file }
	got := jigCLI(t, e, withKey, "approve", "ses_1", "3.1", "--token", " tok\n")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, []jig.Decision{{Call: "3.1", Answer: jig.AnswerApprove, Token: "tok"}}, e.decided)
	e.decided = nil
	got = jigCLI(t, e, nil, "deny", "ses_1", "3.1", "--token", "tok", "--as", "ben")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, []jig.Decision{{Call: "3.1", By: "ben", Answer: jig.AnswerDeny, Token: "tok"}}, e.decided)
	e.decided = nil
	got = jigCLI(t, e, nil, "delegate", "ses_1", "3.1", "--to", "ben", "--token", "tok")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, []jig.Decision{{Call: "3.1", Answer: jig.AnswerDelegate, To: "ben", Token: "tok"}}, e.decided)
	got = jigCLI(t, e, withKey, "answer", "ses_1", "3.2", "yes", "--token", "tok")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, jig.Reply{Call: "3.2", Value: json.RawMessage(`"yes"`), Token: "tok"}, e.replied)
	got = jigCLI(t, e, withKey, "reconcile", "ses_1", "3.3", "--outcome", "give_up", "--token", "tok")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, jig.Reconciliation{Call: "3.3", Outcome: jig.OutcomeGiveUp, Attempt: 1, Token: "tok"}, e.word)
	got = jigCLI(t, e, withKey, "reconcile", "ses_1", "3.3", "--outcome", "give_up", "--attempt", "2", "--token", "tok")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, 2, e.word.Attempt)
}

func TestProof_Mistakes(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t, "dora")
	for name, tt := range map[string]struct {
		args []string
		why  string
	}{
		"empty token":        {[]string{"approve", "ses_1", "3.1", "--token", ""}, "--token is empty"},
		"token for two":      {[]string{"approve", "ses_1", "3.1", "3.2", "--token", "t"}, "one call"},
		"token for all":      {[]string{"deny", "--all", "--tool", "*", "--yes", "--token", "t"}, "one call"},
		"token and key":      {[]string{"deny", "ses_1", "3.1", "--token", "t", "--key", file}, "cannot be combined"},
		"another's key":      {[]string{"approve", "ses_1", "3.1", "--as", "ben", "--key", file}, "belongs to dora, but you act as ben"},
		"no such key":        {[]string{"approve", "ses_1", "3.1", "--key", file + ".none"}, "no such file"},
		"pause by another":   {[]string{"pause", "--tenant-wide", "--as", "ben", "--key", file}, "belongs to dora, but you act as ben"},
		"revoke by another":  {[]string{"grant", "revoke", "grt_1", "--as", "ben", "--key", file}, "belongs to dora, but you act as ben"},
		"grant for two":      {[]string{"approve", "ses_1", "3.1", "3.2", "--grant-uses", "3"}, "one call"},
		"grant for all":      {[]string{"approve", "--all", "--tool", "*", "--yes", "--grant-uses", "3"}, "one call"},
		"grant of no use":    {[]string{"approve", "ses_1", "3.1", "--grant-uses", "0"}, "--grant-uses is 0"},
		"grant without time": {[]string{"approve", "ses_1", "3.1", "--grant-expires", "soon"}, "--grant-expires"},
		"empty condition":    {[]string{"approve", "ses_1", "3.1", "--grant-when", " "}, "--grant-when is empty"},
		"delegate to nobody": {[]string{"delegate", "ses_1", "3.1"}, "--to is missing"},
		"delegate and undo":  {[]string{"delegate", "ses_1", "3.1", "--to", "ben", "--undo"}, "--to and --undo cannot be combined"},
	} {
		e := waiting()
		got := jigCLI(t, e, nil, tt.args...)
		require.Equal(t, exitUsage, got.code, "%s: %s", name, got.stderr)
		require.Contains(t, got.stderr, tt.why, name)
		require.Empty(t, e.decided, name)
		require.Empty(t, e.paused, name)
		require.Empty(t, e.revoked, name)
	}
}

func TestApprove_ReportsMissingVotes(t *testing.T) {
	t.Parallel()
	ruled := jig.Ruled{Call: "3.1", Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "1 of 2 approvals by group finance, 1 missing"}
	for name, tt := range map[string]struct {
		ruled jig.Ruled
		args  []string
		want  string
		code  int
	}{
		"vote":      {ruled, []string{"approve", "ses_1", "3.1"}, "approved 3.1: 1 of 2 approvals by group finance, 1 missing\n", 0},
		"grant":     {jig.Ruled{Call: "3.1", Outcome: jig.DecisionAccepted, Grant: "grt_1"}, []string{"approve", "ses_1", "3.1"}, "approved 3.1, with the standing approval grt_1\n", 0},
		"delegated": {jig.Ruled{Call: "3.1", Outcome: jig.DecisionAccepted, Reason: "delegated to ben"}, []string{"delegate", "ses_1", "3.1", "--to", "ben"}, "delegated 3.1 to ben\n", 0},
		"undone":    {jig.Ruled{Call: "3.1", Outcome: jig.DecisionAccepted, Reason: "taken back from ben"}, []string{"delegate", "ses_1", "3.1", "--undo"}, "took back 3.1 from ben\n", 0},
		"refused":   {jig.Ruled{Call: "3.1", Outcome: jig.DecisionRefused, Reason: "ana may not"}, []string{"delegate", "ses_1", "3.1", "--to", "ben"}, "3.1 the decision was refused: ana may not\n", 1},
	} {
		got := jigCLI(t, &fake{ruled: []jig.Ruled{tt.ruled}}, nil, tt.args...)
		require.Equal(t, tt.code, got.code, name)
		require.Equal(t, tt.want, got.stdout, name)
	}
	got := jigCLI(t, &fake{ruled: []jig.Ruled{ruled}}, nil, "approve", "ses_1", "3.1", "--output", "json")
	require.Equal(t, 0, got.code)
	var result client.DecideResult
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &result))
	require.Equal(t, client.DecideResult{SessionID: "ses_1", Decisions: []jig.Ruled{ruled}}, result)
}

func TestSign_SignsPromptsAndYes(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "dora")
	for name, args := range map[string][]string{"yes": {"run", "review", "--yes"}, "prompt": {"run", "review", "--follow"}} {
		e := waitingEngine()
		got := jigCLI(t, e, func(a *app) {
			a.env[signingKeySetting] = file
			a.interactive = true
			a.ask = func(context.Context, prompt) (reply, error) { return reply{answer: jig.AnswerApprove}, nil }
		}, args...)
		require.Equal(t, 0, got.code, "%s: %s", name, got.stderr)
		require.Len(t, e.decided, 1, name)
		claim, err := token.ForDecision("default", "ses_1", jig.Decision{Call: "3.1", Answer: jig.AnswerApprove, Note: e.decided[0].Note}, "d1")
		require.Equal(t, "dora", proves(t, e.decided[0].Token, key, claim, err), name)
		require.Equal(t, "dora", e.decided[0].By, name)
	}
	e := waitingEngine()
	got := jigCLI(t, e, func(a *app) { a.env[signingKeySetting] = file }, "run", "review", "--yes", "--as", "ben")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "belongs to dora, but you act as ben")
	require.Empty(t, e.decided)
}

func TestFollow_AsksForEachVoteOnce(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.onDecide = nil
	e.ruled = []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionAccepted, Status: jig.CallWaiting, Reason: "1 of 2 approvals by ben, 1 missing"}}
	e.pages = append(e.pages[:3:3], e.pages[2])
	got := jigCLI(t, e, nil, "run", "review", "--yes", "--no-wait")
	require.Equal(t, exitWaiting, got.code, got.stderr)
	require.Len(t, e.decided, 1)
	require.Contains(t, got.stderr, "approved 3.1 file.write: 1 of 2 approvals by ben, 1 missing")
}
