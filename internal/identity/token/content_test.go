package token_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
)

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestContent_IsThatOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value any
		form  string
	}{
		"nothing":         {nil, ""},
		"null":            {json.RawMessage(" null "), ""},
		"no raw message":  {json.RawMessage(nil), ""},
		"no grant":        {(*jig.GrantRequest)(nil), ""},
		"empty object":    {map[string]any{}, "{}"},
		"order and space": {json.RawMessage(`{ "b": 1, "a": [ true ] }`), `{"a":[true],"b":1}`},
		"1.0":             {json.RawMessage(`{"n":1.0}`), `{"n":1}`},
		"1":               {json.RawMessage(`{"n":1}`), `{"n":1}`},
		"1e0":             {json.RawMessage(`{"n":1e0}`), `{"n":1}`},
		"a Go number":     {map[string]any{"n": 1.0}, `{"n":1}`},
		"escapes":         {json.RawMessage(`"\u003cb\u003e\u00e9"`), `"<b>é"`},
		"HTML":            {"<b>é", `"<b>é"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := token.Content(tt.value)
			require.NoError(t, err)
			want := ""
			if tt.form != "" {
				want = hash(tt.form)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestContent_RefusesUnencodableValues(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"not JSON": json.RawMessage(`{`), "a member twice": json.RawMessage(`{"a":1,"\u0061":2}`), "too large": json.RawMessage(`1e999`),
		"not a number": math.NaN(), "a channel": make(chan int),
	} {
		got, err := token.Content(v)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err), name)
		require.NotEmpty(t, jig.AsError(err).Hint, name)
		require.Empty(t, got, name)
	}
}

func TestForDecision_BindsEachMember(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"amount": 1.0}`)
	tests := map[string]struct {
		decision jig.Decision
		form     string
	}{
		"approve":              {jig.Decision{Answer: jig.AnswerApprove}, ""},
		"approve with input":   {jig.Decision{Answer: jig.AnswerApprove, Input: input}, `{"input":{"amount":1}}`},
		"approve with a null":  {jig.Decision{Answer: jig.AnswerApprove, Input: json.RawMessage("null")}, `{"input":null}`},
		"approve with a grant": {jig.Decision{Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 3}}, `{"grant":{"max_uses":3}}`},
		"approve, empty grant": {jig.Decision{Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{}}, `{"grant":{}}`},
		"approve by a grant":   {jig.Decision{Answer: jig.AnswerApprove, GrantID: "grt_1"}, `{"grant_id":"grt_1"}`},
		"approve with a note":  {jig.Decision{Answer: jig.AnswerApprove, Note: "é"}, `{"note":"é"}`},
		"deny":                 {jig.Decision{Answer: jig.AnswerDeny}, ""},
		"deny with words":      {jig.Decision{Answer: jig.AnswerDeny, Reason: "too much", Note: "n"}, `{"note":"n","reason":"too much"}`},
		"delegate":             {jig.Decision{Answer: jig.AnswerDelegate, To: "ben"}, `{"to":"ben"}`},
		"a delegation undone":  {jig.Decision{Answer: jig.AnswerDelegate, Undo: true}, `{"undo":true}`},
		"everything at once":   {jig.Decision{Answer: jig.AnswerApprove, To: "b", Input: input, Grant: &jig.GrantRequest{}}, `{"grant":{},"input":{"amount":1},"to":"b"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.decision
			d.Call, d.By, d.Digest, d.Token = "3.1", "ana", "what the sender says", "t"
			got, err := token.ForDecision("acme", "ses_1", d, "d1")
			require.NoError(t, err)
			want := identity.Claim{Tenant: "acme", Principal: "ana", Action: string(d.Answer), SessionID: "ses_1", Call: "3.1", Digest: "d1"}
			if tt.form != "" {
				want.Content = hash(tt.form)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestForDecision_BothSidesBindTheSame(t *testing.T) {
	t.Parallel()
	// Temporal decodes and encodes the JSON of a decision, which may change spaces and the notation of numbers.
	sent := jig.Decision{Call: "3.1", Answer: jig.AnswerApprove, Input: json.RawMessage(`{"n": 1.0, "a":"<é>"}`), Grant: &jig.GrantRequest{When: "input.n < 2"}}
	raw, err := json.Marshal(sent)
	require.NoError(t, err)
	var received jig.Decision
	require.NoError(t, json.Unmarshal(raw, &received))
	received.Input = json.RawMessage(`{"a":"\u003c\u00e9\u003e","n":1}`)
	mine, err := token.ForDecision("acme", "ses_1", sent, "d1")
	require.NoError(t, err)
	theirs, err := token.ForDecision("acme", "ses_1", received, "d1")
	require.NoError(t, err)
	require.Equal(t, mine, theirs)
}

func TestForDecision_RefusesOtherAnswers(t *testing.T) {
	t.Parallel()
	for field, d := range map[string]jig.Decision{
		"answer": {Answer: jig.AnswerExpire},
		"input":  {Answer: jig.AnswerApprove, Input: json.RawMessage(`{"a":1,"a":2}`)},
	} {
		got, err := token.ForDecision("acme", "ses_1", d, "d1")
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		require.Equal(t, field, jig.AsError(err).Field)
		require.Zero(t, got)
	}
	_, err := token.ForDecision("acme", "ses_1", jig.Decision{}, "d1")
	require.Equal(t, "answer", jig.AsError(err).Field)
}

func TestForReply_AndOtherActions(t *testing.T) {
	t.Parallel()
	reply, err := token.ForReply("acme", "ses_1", jig.Reply{Call: "3.1", By: "ana", Value: json.RawMessage(`"yes"`), Note: "n"}, "d1")
	require.NoError(t, err)
	require.Equal(t, identity.Claim{
		Tenant: "acme", Principal: "ana", Action: "answer", SessionID: "ses_1", Call: "3.1", Digest: "d1", Content: hash(`{"note":"n","value":"yes"}`),
	}, reply)
	null, err := token.ForReply("acme", "ses_1", jig.Reply{Value: json.RawMessage(`null`)}, "d1")
	require.NoError(t, err)
	require.Equal(t, hash(`{"value":null}`), null.Content)
	_, err = token.ForReply("acme", "ses_1", jig.Reply{Value: json.RawMessage(`{`)}, "d1")
	require.Equal(t, "value", jig.AsError(err).Field)

	word := jig.Reconciliation{Call: "2.1", By: "ana", Outcome: jig.OutcomeHappened, Result: json.RawMessage(`{"id": 7.0}`)}
	happened, err := token.ForReconciliation("acme", "ses_1", word, "d1")
	require.NoError(t, err)
	require.Equal(t, identity.Claim{
		Tenant: "acme", Principal: "ana", Action: "reconcile", SessionID: "ses_1", Call: "2.1", Digest: "d1",
		Content: hash(`{"outcome":"happened","result":{"id":7}}`),
	}, happened)
	word.Outcome = jig.OutcomeNotHappened
	other, err := token.ForReconciliation("acme", "ses_1", word, "d1")
	require.NoError(t, err)
	require.NotEqual(t, happened.Content, other.Content)
	word.Note = "seen in their log"
	noted, err := token.ForReconciliation("acme", "ses_1", word, "d1")
	require.NoError(t, err)
	require.Equal(t, hash(`{"note":"seen in their log","outcome":"not_happened","result":{"id":7}}`), noted.Content)
	for attempt, content := range map[int]string{0: `{"outcome":"give_up"}`, 1: `{"outcome":"give_up"}`, 2: `{"attempt":2,"outcome":"give_up"}`} {
		word = jig.Reconciliation{Call: "2.1", By: "ana", Outcome: jig.OutcomeGiveUp, Attempt: attempt}
		about, err := token.ForReconciliation("acme", "ses_1", word, "d1")
		require.NoError(t, err)
		require.Equal(t, hash(content), about.Content, "attempt %d", attempt)
	}

	pause, err := token.ForSubject("ins_1", "acme", token.ActionPause, "tool:mail.send", "")
	require.NoError(t, err)
	require.Equal(t, identity.Claim{Installation: "ins_1", Tenant: "acme", Action: "pause", Subject: "tool:mail.send"}, pause)
	pause, err = token.ForSubject("ins_1", "acme", token.ActionPause, "tool:mail.send", "incident 12")
	require.NoError(t, err)
	require.Equal(t, hash(`{"reason":"incident 12"}`), pause.Content)
}
