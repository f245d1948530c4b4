package starter

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

// waitingEngine has a session that waits for the approval of 3.1 and continues after the decision.
func waitingEngine() *fake {
	e := doneEngine()
	done := e.view
	e.view = jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pass: 3, Pending: []jig.Pending{waitingCall()}}
	e.onDecide = func(f *fake) { f.view = done }
	e.pages = append([]client.EventsPage{
		{Events: []jig.Event{{Seq: 1, At: noon, Type: jig.EventPassStarted, Pass: 3}}, Status: jig.StatusWorking},
		{Events: []jig.Event{{
			Seq: 2, At: noon, Type: jig.EventToolNeedsApproval, Pass: 3, CallID: "3.1", Tool: "file.write", Data: json.RawMessage(`{"summary":"write report.md"}`),
		}}, Status: jig.StatusInputRequired},
		{Status: jig.StatusInputRequired},
	}, e.pages...)
	return e
}

func TestYes_ApprovesAndReportsIt(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	got := jigCLI(t, e, nil, "run", "review", "--yes")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, []jig.Decision{{Call: "3.1", By: "ana", Answer: jig.AnswerApprove, Digest: "d1", Note: "approved by --yes"}}, e.decided)
	require.Contains(t, got.stderr, "\napproved 3.1 file.write (without asking, because of --yes)\n")
	require.NotContains(t, got.stderr, "waits for approval", "one line for each call")
}

func TestFollow_WithoutATerminalPrintsCommands(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	got := jigCLI(t, e, nil, "run", "review", "--follow")
	require.Empty(t, e.decided)
	require.Contains(t, got.stderr, `temporal workflow signal --workflow-id ses_1 --name approve --input '{"call":"3.1","by":"ana"}'`)
	require.Contains(t, got.stderr, "jig approve ses_1 3.1 --as ana\n")
	require.Contains(t, got.stderr, "jig deny ses_1 3.1 --reason … --as ana\n")
	require.Contains(t, got.stderr, "? 3.1 file.write waits for approval · write report.md")
}

func TestNoWait_EndsWhenNothingRuns(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, waitingEngine(), nil, "run", "review", "--no-wait", "--output", "json")
	require.Equal(t, exitWaiting, got.code)
	require.JSONEq(t, `{"session_id":"ses_1","status":"input_required","passes":3,"calls":{"succeeded":0,"failed":0,"denied":0},
		"pending":[{"session_id":"ses_1","call":"3.1","tool":"file.write","kind":"approval","digest":"d1"}]}`, got.stdout)
}

func TestFollow_PromptsOnATerminal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reply   reply
		err     error
		decided []jig.Decision
		code    int
	}{
		"approve": {
			reply: reply{answer: jig.AnswerApprove}, decided: []jig.Decision{{Call: "3.1", By: "ana", Answer: jig.AnswerApprove, Digest: "d1"}},
		},
		"deny": {
			reply:   reply{answer: jig.AnswerDeny, reason: "no"},
			decided: []jig.Decision{{Call: "3.1", By: "ana", Answer: jig.AnswerDeny, Digest: "d1", Reason: "no"}},
		},
		"skip":   {},
		"Ctrl-C": {err: errAborted, code: exitInterrupted},
	} {
		e := waitingEngine()
		asked := 0
		got := jigCLI(t, e, func(a *app) {
			a.interactive = true
			a.ask = func(context.Context, prompt) (reply, error) { asked++; return row.reply, row.err }
		}, "run", "review", "--follow")
		require.Equal(t, row.code, got.code, "%s: %s", name, got.stderr)
		require.Equal(t, row.decided, e.decided, name)
		require.Equal(t, 1, asked, "%s: a question is asked once", name)
	}
}

func TestTrigger_CallThatWaits(t *testing.T) {
	t.Parallel()
	newEngine := func() *fake {
		p := waitingCall()
		p.Call = "1.1"
		return &fake{
			trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting},
			pages:   []client.EventsPage{{Status: jig.StatusInputRequired}},
			view:    jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{p}},
			waited:  client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "written"}},
		}
	}
	got := jigCLI(t, newEngine(), nil, "trigger", "file.write", "--no-wait", "--output", "json")
	require.Equal(t, exitWaiting, got.code, got.stderr)
	require.JSONEq(t, `{"session_id":"ses_1","call":"1.1","status":"waiting",
		"pending":[{"session_id":"ses_1","call":"1.1","tool":"file.write","kind":"approval","digest":"d1"}]}`, got.stdout)

	e := newEngine()
	got = jigCLI(t, e, nil, "trigger", "file.write", "--input", "path=x", "--yes")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.decided, 1)
	require.Equal(t, map[string]string{"path": "x"}, e.input.Pairs)
	require.Equal(t, "file.write", e.input.Tool)
}

// askingAgain returns an engine with a triggered call that waits for approval and, once it is approved, waits for the second question.
func askingAgain(second jig.Pending, event jig.EventType) *fake {
	first := waitingCall()
	first.Call, second.Call = "1.1", "1.1"
	waits := func(p jig.Pending) jig.SessionView {
		return jig.SessionView{SessionID: "ses_1", Status: jig.StatusInputRequired, Pending: []jig.Pending{p}}
	}
	return &fake{
		trigger: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallWaiting},
		view:    waits(first),
		onDecide: func(f *fake) {
			f.view = waits(second)
			f.onDecide = func(f *fake) { f.view = jig.SessionView{SessionID: "ses_1", Status: jig.StatusCompleted} }
		},
		pages: []client.EventsPage{
			{Events: []jig.Event{{Seq: 1, At: noon, Type: jig.EventToolNeedsApproval, CallID: "1.1", Tool: "file.write"}}, Status: jig.StatusWorking},
			{Events: []jig.Event{{Seq: 2, At: noon, Type: event, CallID: "1.1", Tool: "file.write"}}, Status: jig.StatusInputRequired},
			{Events: []jig.Event{{Seq: 3, At: noon, Type: jig.EventSessionCompleted}}, Status: jig.StatusCompleted},
		},
		waited: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Summary: "written"}},
	}
}

func TestTrigger_ApprovesTheSecondQuestionToo(t *testing.T) {
	t.Parallel()
	edited := waitingCall()
	edited.Digest = "d2"
	e := askingAgain(edited, jig.EventToolEdited)
	got := jigCLI(t, e, nil, "trigger", "file.write", "--yes")
	require.Equal(t, exitDone, got.code, got.stderr)
	approve := jig.Decision{Call: "1.1", By: "ana", Answer: jig.AnswerApprove, Digest: "d1", Note: "approved by --yes"}
	again := approve
	again.Digest = "d2"
	require.Equal(t, []jig.Decision{approve, again}, e.decided)
	require.Contains(t, got.stderr, "written")
}

func TestTrigger_ShowsAnUnknownOutcomeAfterTheApproval(t *testing.T) {
	t.Parallel()
	doubtful := waitingCall()
	doubtful.Kind = jig.PendingReconcile
	for _, flags := range [][]string{{"--yes"}, {"--yes", "--no-wait"}} {
		e := askingAgain(doubtful, jig.EventToolOutcomeUnknown)
		got := jigCLI(t, e, nil, append([]string{"trigger", "file.write", "--output", "json"}, flags...)...)
		require.Len(t, e.decided, 1, "an unknown outcome is not approved")
		require.Equal(t, 1, strings.Count(got.stderr, "1.1 file.write: outcome unknown"), got.stderr)
		require.Contains(t, got.stderr, "jig reconcile ses_1 1.1 --outcome 'happened|not_happened|give_up'")
		if len(flags) == 1 {
			require.Equal(t, exitDone, got.code, got.stderr)
			require.Contains(t, got.stdout, `"succeeded"`, "it waits for the result")
		} else {
			require.Equal(t, exitWaiting, got.code, got.stderr)
			require.JSONEq(t, `{"session_id":"ses_1","call":"1.1","status":"waiting",
				"pending":[{"session_id":"ses_1","call":"1.1","tool":"file.write","kind":"reconcile","digest":"d1"}]}`, got.stdout)
		}
	}
}

func TestFollow_UnknownOutcomeOfALaterAttemptIsAnsweredByItsNumber(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.view.Pending[0].Kind, e.view.Pending[0].Attempt = jig.PendingReconcile, 2
	got := jigCLI(t, e, nil, "run", "review", "--yes")
	require.Contains(t, got.stderr, "outcome of attempt 2 unknown")
	require.Contains(t, got.stderr, "jig reconcile ses_1 3.1 --outcome 'happened|not_happened|give_up' --attempt 2")
	require.Contains(t, got.stderr, `"attempt":2`)
}

func TestFollow_UnknownOutcomeIsNeverApproved(t *testing.T) {
	t.Parallel()
	e := waitingEngine()
	e.view.Pending[0].Kind = jig.PendingReconcile
	got := jigCLI(t, e, nil, "run", "review", "--yes")
	require.Empty(t, e.decided)
	require.Contains(t, got.stderr, "jig reconcile ses_1 3.1 --outcome 'happened|not_happened|give_up'")
	require.Contains(t, got.stderr, "--name reconcile")
}

func TestWatch_PrintsEventsUntilTheEnd(t *testing.T) {
	t.Parallel()
	got := jigCLI(t, waitingEngine(), nil, "watch", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, "pass 3")
	require.Contains(t, got.stderr, "jig approve ses_1 3.1")

	got = jigCLI(t, waitingEngine(), nil, "events", "ses_1", "--follow", "--output", "json")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.NotContains(t, got.stderr, "approve")
	first, _, _ := strings.Cut(got.stdout, "\n")
	var event jig.Event
	require.NoError(t, json.Unmarshal([]byte(first), &event))
	require.EqualValues(t, 1, event.Seq)
}

func TestOutput_TextIsForPeople(t *testing.T) {
	t.Parallel()
	view := doneView()
	view.Status = jig.StatusInputRequired
	view.Pending = []jig.Pending{waitingCall()}
	view.Answer = "esc \x1b[31m here"
	got := jigCLI(t, &fake{view: view}, nil, "status", "ses_1")
	require.Equal(t, exitDone, got.code)
	require.Contains(t, got.stdout, "deps.list")
	require.Contains(t, got.stdout, "3.1 file.write waits for approval")
	require.NotContains(t, got.stdout, "\x1b", "neither colors nor escape sequences from tools")
}

func TestInputText_ShowsEachFieldApart(t *testing.T) {
	t.Parallel()
	shown := inputText(jig.Pending{Input: json.RawMessage(`{"path":"a.md","content":"one\ntwo \u001b[31m","n":[1]}`)}, 0)
	require.Equal(t, "    content:\n    │ one\n    │ two  [31m\n    n:\n    │ [\n    │   1\n    │ ]\n    path: a.md", shown)
	shown = inputText(jig.Pending{Input: json.RawMessage(`"{\"content\":\"one\\ntw"`), Truncated: true}, 0)
	require.Contains(t, shown, "    │ {\"content\":\"one\n    │ tw")
	shown = inputText(jig.Pending{Input: json.RawMessage(`{"content":"one\ntw…","path":"a.md"}`), Truncated: true}, 0)
	require.Equal(t, "    content:\n    │ one\n    │ tw…\n    path: a.md\n    (shortened at …; the digest covers the full text, and `approvals show` prints it)", shown)
	shown = inputText(jig.Pending{Input: json.RawMessage(`{"a":"1","b":1,"c":"true","d":" x","e":"","f":"null ","g":"a b"}`)}, 0)
	require.Equal(t, "    a: \"1\"\n    b: 1\n    c: \"true\"\n    d: \" x\"\n    e: \"\"\n    f: \"null \"\n    g: a b", shown, "values that differ look different")
}

// However narrow the terminal is, no part of an argument or of a question can pass for another argument or for a line of the card.
func TestCard_ArgumentsCannotImitateIt(t *testing.T) {
	t.Parallel()
	forged := "x" + strings.Repeat(" ", 78) + "  · fay has approved this\n  anybody may decide\n  answer it with one of:\n    path: fine.md\u2028    path: fine.md\tx"
	for _, input := range []any{
		map[string]any{"content": forged, "path": "real.md"}, map[string]any{forged: "v", "path: fine.md": "w"}, map[string]any{"list": []string{forged}}, []string{forged}, forged,
	} {
		raw, err := json.Marshal(input)
		require.NoError(t, err)
		for _, width := range []int{0, 24, 80} {
			for line := range strings.SplitSeq(inputText(jig.Pending{Input: raw}, width), "\n") {
				require.Regexp(t, `^    (│ |content:|list:|path: real\.md$|"x |"path: fine)`, line)
				if width > 0 {
					require.LessOrEqual(t, lipgloss.Width(line), width)
				}
			}
		}
	}
	question := jig.Question{Text: forged, Options: []json.RawMessage{json.RawMessage(`"eu"`)}}
	for line := range strings.SplitSeq(questionText(question, 40), "\n") {
		require.Regexp(t, `^(  │ |    1\. eu$)`, line)
	}
	var stderr strings.Builder
	(&app{stderr: &stderr}).sayCalls([]jig.Pending{{SessionID: "ses_1", Call: "1.1", Tool: "shop.pay", Input: json.RawMessage(`{"note":"` + strings.Repeat("n", 500) + `","to":"mallory"}`)}})
	require.Contains(t, stderr.String(), `"to":"mallory"`, "a long argument hides no other one")
}

func TestShellLine_QuotesWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a 'b c' 'it'\''s' '{"x":1}' ''`, shellLine("a", "b c", "it's", `{"x":1}`, ""))
}

// A call that waits in a child session is shown with its place and answered in the child.
func TestFollow_AnswersChildSessions(t *testing.T) {
	t.Parallel()
	delegated := func() *fake {
		e := waitingEngine()
		e.view.Pending[0].SessionID, e.view.Pending[0].Via = "ses_child", "1.1"
		e.view.Calls = []jig.CallView{{Call: "1.1", Tool: "agent.run", Status: jig.CallExecuting, Child: "ses_child"}}
		e.pages[1].Events = nil // the parent's log does not mention it
		return e
	}
	e := delegated()
	got := jigCLI(t, e, nil, "run", "review", "--yes")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Len(t, e.decided, 1)
	require.Equal(t, "ses_child", e.decidedIn)
	require.Equal(t, exitWaiting, jigCLI(t, delegated(), nil, "run", "review", "--no-wait").code)

	got = jigCLI(t, delegated(), nil, "status", "ses_1")
	require.Contains(t, got.stdout, "1.1 → ses_child 3.1 file.write waits for approval")
	require.Regexp(t, `1\.1 +agent\.run +executing.*→ ses_child`, got.stdout)
	require.Contains(t, got.stdout, "jig approve ses_child 3.1 --as ana\n")
}

func TestFollow_ShowsWhatTheModelSays(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.pages = []client.EventsPage{{Status: jig.StatusCompleted, Events: []jig.Event{
		{Type: jig.EventMessageAdded, Pass: 1, Data: json.RawMessage(`{"role":"assistant","by":"openai/x","text":"I create it.\u001b[2J"}`)},
	}}}
	got := jigCLI(t, e, nil, "run", "review", "--follow")
	require.Contains(t, got.stderr, "pass 1   · model says · I create it. [2J\n")
}

func TestRun_SaysThatItIsPaused(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.pages = []client.EventsPage{{Status: jig.StatusCompleted, Events: []jig.Event{
		{Type: jig.EventPassStarted, Pass: 1},
		{Type: jig.EventToolPaused, Pass: 1, CallID: "1.1", Tool: "a.b", Data: json.RawMessage(`{"scope":"tool","target":"a.b","by":"zoe","reason":"moving"}`)},
		{Type: jig.EventSessionPaused, Pass: 1, Data: json.RawMessage(`{"by":"zoe","reason":"look first"}`)},
	}}}
	got := jigCLI(t, e, nil, "run", "review")
	require.Contains(t, got.stderr, "? 1.1 a.b held back by a pause · tool a.b: moving (by zoe)\n")
	require.Contains(t, got.stderr, "? session paused · look first (by zoe)\n")
	require.NotContains(t, got.stderr, "pass started", "only --follow shows the other events")
}

func TestFollow_NamesTheChildThatACallWaitsFor(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.pages = []client.EventsPage{{Status: jig.StatusCompleted, Events: []jig.Event{
		{Type: jig.EventToolStarted, Pass: 1, CallID: "1.1", Tool: "agent.run", Data: json.RawMessage(`{"child_session_id":"ses_child"}`)},
		{
			Type: jig.EventToolNeedsApproval, Pass: 1, CallID: "1.1", Tool: "file.write",
			Data: json.RawMessage(`{"session_id":"ses_child","call":"3.1","via":"1.1","summary":"Writes a file."}`),
		},
	}}}
	got := jigCLI(t, e, nil, "run", "review", "--follow")
	require.Contains(t, got.stderr, "1.1 agent.run started · → ses_child\n")
	require.Contains(t, got.stderr, "? 1.1 file.write waits for approval · in ses_child 3.1: Writes a file.\n")
}

// A line says what a call is about to do, before there is a result.
func TestFollow_ShowsWhatACallIsAboutToDo(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	begun := func(tool, data string) jig.Event {
		return jig.Event{Type: jig.EventToolStarted, Pass: 1, CallID: "1.1", Tool: tool, Data: json.RawMessage(data)}
	}
	e.pages = []client.EventsPage{{Status: jig.StatusCompleted, Events: []jig.Event{
		begun("file.write", `{"attempt":1,"title":"path:a","input":{"path":"a"}}`),
		begun("agent.run", `{"attempt":1,"title":"agent:review","child_session_id":"ses_child"}`),
	}}}
	got := jigCLI(t, e, nil, "run", "review", "--follow")
	require.Contains(t, got.stderr, "1.1 file.write started · path:a\n")
	require.Contains(t, got.stderr, "1.1 agent.run started · agent:review → ses_child\n")
}

// The texts of children are printed as they are written, by whole lines, with the place of the child, before the end of its call.
func TestFollow_ShowsTheTextsOfChildren(t *testing.T) {
	t.Parallel()
	begins := func(call, child string) jig.Event {
		return jig.Event{Type: jig.EventToolStarted, CallID: call, Tool: "agent.run", Data: json.RawMessage(`{"child_session_id":"` + child + `"}`)}
	}
	ends := func(call string) jig.Event {
		return jig.Event{Type: jig.EventToolCompleted, CallID: call, Tool: "agent.run", Data: json.RawMessage(`{"summary":"it is over"}`)}
	}
	e := doneEngine()
	e.childPages = map[string][]client.EventsPage{
		"ses_a": {
			writing("x", 0, "One line.\nAnd "), writing("x", 14, "another."), happened(says("One line.\nAnd another.")),
			happened(begins("1.2", "ses_b"), ends("1.2")),
			{Status: jig.StatusCompleted, Events: []jig.Event{{Type: jig.EventSessionCompleted, Pass: 1, Data: json.RawMessage(`{"reason":"answered"}`)}}},
		},
		"ses_b": {happened(says("Deep down.")), {Status: jig.StatusCompleted}},
	}
	e.pages = []client.EventsPage{happened(begins("1.1", "ses_a")), happened(ends("1.1")), {Status: jig.StatusCompleted}}
	got := jigCLI(t, e, nil, "events", "ses_1", "--follow")
	require.Equal(t, exitDone, got.code, got.stderr)
	clocks := regexp.MustCompile(`\d\d:\d\d:\d\d pass 1   `)
	require.Equal(t, `· 1.1 agent.run started · → ses_a
1.1 → ses_a · model says
1.1 → ses_a   One line.
1.1 → ses_a   And another.
1.1 → ses_a 1.2 → ses_b · model says · Deep down.
1.1 → ses_a ✓ session completed · answered
✓ 1.1 agent.run completed · it is over
`, clocks.ReplaceAllString(got.stdout, ""))

	got = jigCLI(t, e, nil, "events", "ses_1", "--follow", "--output", "json")
	require.NotContains(t, got.stdout, "One line.", "each line is an event of the session")
}

// With --no-wait, a command returns as soon as nothing is running, and says what it waits for.
func TestNoWait_ReturnsWhateverHoldsTheSession(t *testing.T) {
	t.Parallel()
	for said, view := range map[string]jig.SessionView{
		"tool file.read":                      {Paused: []jig.Pause{{Scope: jig.PauseTool, Target: "file.read", By: "ana"}}, Calls: []jig.CallView{{Call: "1.1", Status: jig.CallReserved}}},
		"the limit mails":                     {Held: []string{"the limit mails"}},
		"1.1 waits: limit pay":                {Calls: []jig.CallView{{Call: "1.1", Status: jig.CallReserved, Summary: "waits: limit pay"}}},
		`1.1/paid waits for event "paid"`:     {Waits: []jig.Wait{{Call: "1.1/paid", Event: "paid"}}},
		"jig event ses_1 paid --data '{}'":    {Waits: []jig.Wait{{Call: "1.1/paid", Event: "paid"}}},
		"jig event ses_2 paid --data '{}'":    {Waits: []jig.Wait{{Call: "1.1/paid", Event: "paid", SessionID: "ses_2", Via: "2.1"}}},
		"waits until 2026-01-02 03:04:05 UTC": {Waits: []jig.Wait{{Call: "1.1/rest", Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}},
	} {
		view.SessionID, view.Status, view.Idle = "ses_1", jig.StatusWorking, true
		for _, args := range [][]string{
			{"run", "review", "--no-wait"},
			{"trigger", "file.read", "--no-wait"},
			{"trigger", "file.read", "--no-wait", "--yes"},
			{"catalog", "remove", "policy", "shop", "--no-wait"},
			{"bundle", "remove", "notes", "--no-wait"},
			{"grant", "create", "--tool", "file.write", "--uses", "1", "--no-wait"},
		} {
			e := &fake{view: view, pages: []client.EventsPage{{Status: jig.StatusWorking}}}
			got := jigCLI(t, e, nil, args...)
			require.Equal(t, exitWaiting, got.code, "%v: %s", args, got.stderr)
			require.Contains(t, got.stderr, said)
			view.Idle = false
			e = &fake{view: view, pages: []client.EventsPage{{Status: jig.StatusWorking}}, waited: client.CallResult{SessionID: "ses_1", Call: "1.1", Status: jig.CallSucceeded}}
			require.NotEqual(t, exitWaiting, jigCLI(t, e, nil, args...).code, "something is running")
			view.Idle = true
		}
	}
}
