package starter

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// promptedWith returns a change that answers prompts one after another, and a pointer to the prompts.
func promptedWith(replies ...reply) (change func(*app), asked *[]prompt) {
	asked = &[]prompt{}
	return func(a *app) {
		a.interactive = true
		a.ask = func(_ context.Context, about prompt) (reply, error) {
			*asked = append(*asked, about)
			if len(*asked) > len(replies) {
				return reply{}, nil
			}
			return replies[len(*asked)-1], nil
		}
	}, asked
}

// editor writes a script that replaces the text of its file, and returns the command that runs it.
func editor(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "edit.sh")
	require.NoError(t, os.WriteFile(file, []byte("cp \"$1\" \""+file+".before\"\ncat > \"$1\" <<'END'\n"+text+"\nEND\n"), 0o600))
	return "sh " + file
}

// On a terminal the call is shown once, without commands, and then there is the prompt.
func TestPrompt_ShowsTheCallOnce(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	got := jigCLI(t, e, terminal("1\n"), "run", "review", "--follow")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.decided, 1)
	require.Equal(t, 1, strings.Count(got.stderr, "\n3.1 file.write waits for approval\n"), got.stderr)
	require.Equal(t, 1, strings.Count(got.stderr, "path: report.md"))
	require.NotContains(t, got.stderr, "answer it with")
	for _, option := range []string{"Approve", "Deny", "Edit: change the arguments in an editor", "Show the whole text", "Skip: leave it to somebody else"} {
		require.Contains(t, got.stderr, option)
	}
	require.NotContains(t, got.stderr, "Approve all", "there is only one")
}

func TestPrompt_WhoeverMayNotDecideIsNotAsked(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.reviews = []protocol.Review{{SessionID: "ses_1", Call: "3.1", Refusal: "ana asked for this call and may not decide it"}}
	change, asked := promptedWith(reply{answer: jig.AnswerApprove})
	got := jigCLI(t, e, change, "run", "review", "--follow")
	require.Empty(t, *asked)
	require.Empty(t, e.decided)
	require.Contains(t, got.stderr, "\n  ana asked for this call and may not decide it\n")
}

func TestPrompt_Edit(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.pending, e.arguments = []jig.Pending{waitingCall()}, json.RawMessage(`{"path":"report.md","content":"everything"}`)
	change, asked := promptedWith(reply{action: actionEdit})
	command := editor(t, `{"path": "b.md"}`)
	got := jigCLI(t, e, func(a *app) { change(a); a.env["EDITOR"] = command }, "run", "review", "--follow")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, *asked, 1)
	require.Equal(t, []jig.Decision{{Call: "3.1", By: "ana", Answer: jig.AnswerApprove, Digest: "d1", Input: json.RawMessage(`{"path": "b.md"}`)}}, e.decided)
	before, err := os.ReadFile(strings.TrimPrefix(command, "sh ") + ".before")
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"report.md","content":"everything"}`, string(before), "the whole arguments, not those that a list shows")
	require.Equal(t, 4, strings.Count(string(before), "\n"), "indented")
}

// What cannot be sent is asked about again, and nothing is decided.
func TestPrompt_EditThatChangesNothingOrFails(t *testing.T) {
	t.Parallel()
	for says, command := range map[string]string{
		"nothing was changed":                     "true",
		"the changed arguments are not JSON":      editor(t, `{"path": `),
		"the editor no-such-editor-at-all failed": "no-such-editor-at-all",
	} {
		e := waitingEngine()
		e.pending, e.arguments = []jig.Pending{waitingCall()}, json.RawMessage(`{"path": "report.md"}`)
		change, asked := promptedWith(reply{action: actionEdit})
		got := jigCLI(t, e, func(a *app) { change(a); a.env["VISUAL"] = command }, "run", "review", "--follow")
		require.Contains(t, got.stderr, says)
		require.Len(t, *asked, 2, "it asks again")
		require.Empty(t, e.decided)
	}
	e := waitingEngine()
	e.pending, e.arguments = []jig.Pending{waitingCall()}, json.RawMessage(`{}`)
	e.pending[0].Digest = "d2"
	change, asked := promptedWith(reply{action: actionEdit})
	got := jigCLI(t, e, func(a *app) { change(a); a.env["EDITOR"] = "true" }, "run", "review", "--follow")
	require.Contains(t, got.stderr, "call 3.1 has changed since it was shown")
	require.Len(t, *asked, 1, "there is nothing to decide")
	require.Empty(t, e.decided)
}

func TestPrompt_Whole(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	long := strings.Repeat("x", 5000)
	e.pending, e.arguments = []jig.Pending{waitingCall()}, json.RawMessage(`{"content":"`+long+`"}`)
	change, asked := promptedWith(reply{action: actionWhole}, reply{answer: jig.AnswerApprove})
	got := jigCLI(t, e, change, "run", "review", "--follow")
	require.Contains(t, got.stderr, "content: "+long)
	require.Contains(t, got.stderr, "\n  digest d1\n")
	require.Len(t, *asked, 2)
	require.Len(t, e.decided, 1)
}

// "All like this one" approves the calls of the tool that wait, each bound to its digest, after showing them and asking.
func TestPrompt_All(t *testing.T) {
	t.Parallel()
	for words, decided := range map[string][]jig.Decision{
		"y\n": {
			{Call: "3.1", By: "ana", Answer: jig.AnswerApprove, Digest: "d1"}, {Call: "3.2", By: "ana", Answer: jig.AnswerApprove, Digest: "d2"},
		},
		"n\n": nil,
	} {
		e := waitingEngine()
		alike, other := waitingCall(), waitingCall()
		alike.Call, alike.Digest, alike.Input = "3.2", "d2", json.RawMessage(`{"path":"b.md"}`)
		other.Call, other.Digest, other.Tool = "3.3", "d3", "http.post"
		e.view.Pending = append(e.view.Pending, alike, other)
		change, asked := promptedWith(reply{action: actionAll})
		got := jigCLI(t, e, func(a *app) { terminal(words)(a); change(a) }, "run", "review", "--follow")
		require.Equal(t, 2, (*asked)[0].alike)
		require.Equal(t, decided, e.decided, got.stderr)
		require.NotContains(t, got.stderr, "\x1b", "a terminal without colors")
		require.Contains(t, got.stderr, "  ses_1 3.1 file.write  {\"path\":\"report.md\"}\n  ses_1 3.2 file.write  {\"path\":\"b.md\"}\n")
		if decided != nil {
			require.Contains(t, got.stderr, "ses_1 approved 3.2 file.write\n")
			require.Len(t, *asked, 2, "3.2 is not asked about, 3.3 is")
		}
	}
}

// With --yes a refusal shows who can decide instead.
func TestYes_ShowsTheCallThatItCannotApprove(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.ruled = []jig.Ruled{{Call: "3.1", Outcome: jig.DecisionRefused, Reason: "ana asked for this call and may not decide it"}}
	e.reviews = []protocol.Review{{SessionID: "ses_1", Call: "3.1", Refusal: e.ruled[0].Reason}}
	got := jigCLI(t, e, nil, "run", "review", "--yes")
	require.Contains(t, got.stderr, "3.1 the decision was refused: ana asked for this call and may not decide it\n3.1 file.write waits for approval\n")
	require.Contains(t, got.stderr, "jig approve ses_1 3.1 --as …\n")
}
