package starter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

// waiting is an engine with one waiting call of each kind, and one in another session.
func waiting() *fake {
	return &fake{pending: []jig.Pending{
		{SessionID: "ses_2", Call: "3.1", Kind: jig.PendingApproval, Digest: "another session's"},
		{SessionID: "ses_1", Call: "3.1", Kind: jig.PendingApproval, Digest: "d1"},
		{SessionID: "ses_1", Call: "3.2", Kind: jig.PendingQuestion, Digest: "d2"},
		{SessionID: "ses_1", Call: "3.3", Kind: jig.PendingReconcile, Digest: "d3"},
	}}
}

func TestToken_VerifiesForItsDecision(t *testing.T) {
	t.Parallel()
	edited := filepath.Join(t.TempDir(), "edited.json")
	require.NoError(t, os.WriteFile(edited, []byte(`{"amount": 1.0}`), 0o600))
	decision := func(d jig.Decision, digest string) func() (identity.Claim, error) {
		d.Call = "3.1"
		return func() (identity.Claim, error) { return token.ForDecision("default", "ses_1", d, digest) }
	}
	tests := map[string]struct {
		args []string
		want func() (identity.Claim, error)
	}{
		"approve": {[]string{"3.1", "--action", "approve"}, decision(jig.Decision{Answer: jig.AnswerApprove}, "d1")},
		"digest":  {[]string{"3.1", "--action", "approve", "--digest", "given"}, decision(jig.Decision{Answer: jig.AnswerApprove}, "given")},
		"input":   {[]string{"3.1", "--action", "approve", "--input", "@" + edited}, decision(jig.Decision{Answer: jig.AnswerApprove, Input: json.RawMessage(`{"amount":1}`)}, "d1")},
		"grant":   {[]string{"3.1", "--action", "approve", "--grant", `{"max_uses":3}`}, decision(jig.Decision{Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 3}}, "d1")},
		"note": {
			[]string{"3.1", "--action", "approve", "--note", "checked"}, decision(jig.Decision{Answer: jig.AnswerApprove, Note: "checked"}, "d1"),
		},
		"reason": {
			[]string{"3.1", "--action", "deny", "--reason", "too much", "--note", "for the log"},
			decision(jig.Decision{Answer: jig.AnswerDeny, Reason: "too much", Note: "for the log"}, "d1"),
		},
		"noted answer": {[]string{"3.2", "--action", "answer", "--value", "1", "--note", "n"}, func() (identity.Claim, error) {
			return token.ForReply("default", "ses_1", jig.Reply{Call: "3.2", Value: json.RawMessage(`1`), Note: "n"}, "d2")
		}},
		"noted word": {[]string{"3.3", "--action", "reconcile", "--outcome", "give_up", "--note", "n"}, func() (identity.Claim, error) {
			return token.ForReconciliation("default", "ses_1", jig.Reconciliation{Call: "3.3", Outcome: jig.OutcomeGiveUp, Note: "n"}, "d3")
		}},
		"deny":     {[]string{"3.1", "--action", "deny"}, decision(jig.Decision{Answer: jig.AnswerDeny}, "d1")},
		"delegate": {[]string{"3.1", "--action", "delegate", "--to", "ben"}, decision(jig.Decision{Answer: jig.AnswerDelegate, To: "ben"}, "d1")},
		"undelegate": {
			[]string{"3.1", "--action", "delegate", "--undo"}, decision(jig.Decision{Answer: jig.AnswerDelegate, Undo: true}, "d1"),
		},
		"lifetime": {[]string{"3.1", "--action", "deny", "--lifetime", "10m"}, decision(jig.Decision{Answer: jig.AnswerDeny}, "d1")},
		"answer": {[]string{"3.2", "--action", "answer", "--value", `"yes"`}, func() (identity.Claim, error) {
			return token.ForReply("default", "ses_1", jig.Reply{Call: "3.2", Value: json.RawMessage(`"yes"`)}, "d2")
		}},
		"reconcile": {[]string{"3.3", "--action", "reconcile", "--outcome", "happened", "--result", `{"id":7}`}, func() (identity.Claim, error) {
			word := jig.Reconciliation{Call: "3.3", Outcome: jig.OutcomeHappened, Result: json.RawMessage(`{"id":7}`)}
			return token.ForReconciliation("default", "ses_1", word, "d3")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, key := newKey(t, "ana")
			args := append([]string{"token", "ses_1"}, tt.args...)
			got := jigCLI(t, waiting(), nil, append(args, "--key", file)...)
			require.Equal(t, 0, got.code, got.stderr)
			require.Equal(t, 1, strings.Count(got.stdout, "\n"), "only the token, for use in $(jig token …)")
			want, err := tt.want()
			require.NoError(t, err)
			who, _, err := token.Verify(strings.TrimSpace(got.stdout), []identity.Key{key}, want, time.Now())
			require.NoError(t, err)
			require.Equal(t, "ana", who)
		})
	}
}

func TestToken_PrintsJSON(t *testing.T) {
	t.Parallel()
	file, key := newKey(t, "ana")
	began := time.Now().Truncate(time.Second)
	got := jigCLI(t, waiting(), func(a *app) { a.env[signingKeySetting] = file },
		"token", "ses_1", "3.1", "--action", "deny", "--lifetime", "10m", "--tenant", "acme", "--output", "json")
	ended := time.Now()
	require.Equal(t, 0, got.code, got.stderr)
	var made madeToken
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &made))
	want, err := token.ForDecision("acme", "ses_1", jig.Decision{Call: "3.1", Answer: jig.AnswerDeny}, "d1")
	require.NoError(t, err)
	_, evidence, err := token.Verify(made.Token, []identity.Key{key}, want, time.Now())
	require.NoError(t, err)
	require.Equal(t, evidence.Until, made.ExpiresAt)
	require.False(t, made.ExpiresAt.Before(began.Add(10*time.Minute)), made.ExpiresAt)
	require.False(t, made.ExpiresAt.After(ended.Add(10*time.Minute)), made.ExpiresAt)
	made.Token, made.ExpiresAt = "", time.Time{}
	require.Equal(t, madeToken{Key: key.ID, Principal: "ana", Action: "deny", SessionID: "ses_1", Call: "3.1", Digest: "d1"}, made)
}

func TestToken_RefusesMistakes(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t, "ana")
	tests := map[string]struct {
		args []string
		code int
		why  string
	}{
		"no action":         {[]string{"3.1"}, exitUsage, "--action is"},
		"unknown action":    {[]string{"3.1", "--action", "expire"}, exitUsage, "--action is"},
		"too long":          {[]string{"3.1", "--action", "deny", "--lifetime", "16m"}, exitUsage, "16m"},
		"no time":           {[]string{"3.1", "--action", "deny", "--lifetime", "0s"}, exitUsage, "--lifetime"},
		"input to deny":     {[]string{"3.1", "--action", "deny", "--input", "{}"}, exitUsage, "--input needs --action approve"},
		"reason to approve": {[]string{"3.1", "--action", "approve", "--reason", "r"}, exitUsage, "--reason needs --action deny"},
		"to nobody":         {[]string{"3.1", "--action", "delegate"}, exitUsage, "needs either --to or --undo"},
		"undo of approval":  {[]string{"3.1", "--action", "approve", "--undo"}, exitUsage, "--undo needs --action delegate"},
		"no value":          {[]string{"3.2", "--action", "answer"}, exitUsage, "needs --value"},
		"no outcome":        {[]string{"3.3", "--action", "reconcile"}, exitUsage, "needs --outcome"},
		"unknown outcome":   {[]string{"3.3", "--action", "reconcile", "--outcome", "maybe"}, exitUsage, "--outcome is"},
		"result of nothing": {[]string{"3.3", "--action", "reconcile", "--outcome", "give_up", "--result", "1"}, exitUsage, "--result needs"},
		"no JSON":           {[]string{"3.1", "--action", "approve", "--input", "{"}, exitUsage, "not JSON"},
		"twice in JSON":     {[]string{"3.1", "--action", "approve", "--input", `{"a":1,"a":2}`}, exitUsage, "appears twice"},
		"no grant":          {[]string{"3.1", "--action", "approve", "--grant", `{"uses":3}`}, exitUsage, "not a grant"},
		"nothing waits":     {[]string{"9.1", "--action", "approve"}, exitFailed, "no call 9.1 is waiting"},
		"another kind":      {[]string{"3.2", "--action", "approve"}, exitUsage, "question"},
		"no call":           {[]string{"x", "--action", "approve"}, exitUsage, "call"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := jigCLI(t, waiting(), nil, append([]string{"token", "ses_1", "--key", file}, tt.args...)...)
			require.Equal(t, tt.code, got.code, got.stderr)
			require.Contains(t, got.stderr, tt.why)
			require.Empty(t, got.stdout)
		})
	}
	got := jigCLI(t, waiting(), nil, "token", "ses_1", "3.1", "--action", "approve")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "there is no signing key")
	require.Contains(t, got.stderr, signingKeySetting)
	unreachable := waiting()
	unreachable.err = jig.Errorf(jig.CodeUnavailable, "nobody answers")
	got = jigCLI(t, unreachable, nil, "token", "ses_1", "3.1", "--action", "approve", "--key", file)
	require.Equal(t, exitFailed, got.code)
	got = jigCLI(t, unreachable, nil, "token", "ses_1", "3.1", "--action", "approve", "--key", file, "--digest", "d1")
	require.Equal(t, 0, got.code, "with a digest, the engine is not asked")
}
