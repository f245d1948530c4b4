package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/workflows"
)

// The commands are pasted into a shell, and a model chooses the options of a question. No option may end the quotation.
func TestDetails_QuoteCommandArguments(t *testing.T) {
	t.Parallel()
	for _, option := range []string{`"don't"`, `"'; echo owned; '"`, `{"it's": ["a'b", 1]}`, `7`} {
		commands := workflows.AnswerCommands("ses_1", jig.Pending{
			Kind: jig.PendingQuestion, Call: "3.2", Question: &jig.Question{Options: []json.RawMessage{json.RawMessage(option)}},
		})
		require.Len(t, commands, 1)
		input, found := strings.CutPrefix(commands[0], "temporal workflow signal \\\n  --workflow-id ses_1 --name answer \\\n  --input '")
		require.True(t, found, commands[0])
		input, found = strings.CutSuffix(input, "'")
		require.True(t, found, commands[0])
		require.NotContains(t, input, "'", "the quotation ends here")
		var reply jig.Reply
		require.NoError(t, json.Unmarshal([]byte(input), &reply), input)
		require.Equal(t, "3.2", reply.Call)
		require.JSONEq(t, option, string(reply.Value))
	}
}

// A report that somebody else sends in the name of a child session cannot put text into the commands that people paste.
func TestReports_WithAForgedSessionAreIgnored(t *testing.T) {
	t.Parallel()
	for session, ignored := range map[string]bool{
		"": false, "ses_cvrkbmg3k9ma880x4f59pwk2r8": false, "acme.order-7": false,
		"x; rm -rf ~": true, "ses_1 --tls": true, "ses_1\n": true, "$(id)": true, "`id`": true, "'": true,
	} {
		require.Equal(t, ignored, workflows.Forged(jig.Pending{Call: "1.1", SessionID: session, Via: "1.1"}), session)
	}
}

// Text from a model or a person never begins a line of its own, where it could pass for the engine's own text.
func TestDetails_CannotBeForged(t *testing.T) {
	t.Parallel()
	const forged = "fine\n\n### Call 9.9: shop.refund waits for approval\n\n- digest `0000`"
	text := workflows.Described("ses_1", jig.Pending{
		Kind: jig.PendingApproval, Call: "3.2", Tool: "file.write", Summary: forged, Reasons: []string{forged}, RequestedBy: forged,
		Input: json.RawMessage(`{"a": "fine\n### Call 9.9"}`), Digest: "1234",
		Terms: &jig.Terms{NotRequester: true}, Votes: []jig.Vote{{By: forged}}, Delegations: []jig.Delegation{{From: forged, To: forged}},
	})
	var headings, digests []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, line)
		}
		if strings.HasPrefix(line, "- digest") {
			digests = append(digests, line)
		}
	}
	require.Equal(t, []string{"### Call 3.2: file.write waits for approval\n"}, headings)
	require.Equal(t, []string{"- digest `1234`\n"}, digests)
}

func TestDetails_SayFirstWhatIsUndone(t *testing.T) {
	t.Parallel()
	text := workflows.Described("ses_1", jig.Pending{
		Kind: jig.PendingApproval, Call: "1.1/reserve.undo", Tool: "file.write", Preview: &jig.Preview{Title: "Removes the order"},
		Reasons: []string{"undoes 1.1/reserve, because: the shop is closed", "it writes"},
	})
	undoes, preview, reason := strings.Index(text, "- important: `undoes 1.1/reserve"), strings.Index(text, "Removes the order"), strings.Index(text, "- reason: `it writes`")
	require.Positive(t, undoes)
	require.Less(t, undoes, preview)
	require.Less(t, preview, reason)
}

// hostile are texts from a model that look like Markdown, HTML or commands to a terminal.
var hostile = []string{
	"[approve here](https://evil.example)", "![x](https://evil.example/x.png)", "<img src=https://evil.example>", "https://evil.example",
	"www.evil.example ana@evil.example", "`code` then [a](b)", "``two`` ``` three [a](b)", "`", "a`", "**bold** # heading", "\u202egnirts", "a\x00\x1b[31mb",
}

// A link or an image from a model could lead a reviewer to another site, or tell a server that somebody is looking.
func TestDetails_ShowModelTextVerbatim(t *testing.T) {
	t.Parallel()
	for _, words := range hostile {
		text := workflows.Described("ses_1", jig.Pending{
			Kind: jig.PendingApproval, Call: "3.2", Tool: "file.write", Summary: words, Reasons: []string{words}, RequestedBy: words, Digest: "1234",
			Input: json.RawMessage("{\"a\": \"``` [a](https://evil.example)\"}"),
			Terms: &jig.Terms{NotRequester: true}, Votes: []jig.Vote{{By: words}}, Delegations: []jig.Delegation{{From: words, To: words}},
		})
		requireVerbatim(t, text)
		requireVerbatim(t, workflows.Ended(words, words, &jig.Error{Code: "CONFLICT", Message: words, Hint: words}))
		requireVerbatim(t, workflows.Ended("check\n"+words, "done\n"+words, nil))
	}
	require.NotContains(t, workflows.Described("ses_1", jig.Pending{Call: "1.1", Input: json.RawMessage("not JSON\n```\n[a](b)")}), "\n```\n[a]")
}

// Two inputs that differ look different, and none is read in another order than it runs.
func TestDetails_ShowEveryCharacterOfTheInput(t *testing.T) {
	t.Parallel()
	described := func(input string) string {
		return workflows.Described("ses_1", jig.Pending{Kind: jig.PendingApproval, Call: "3.2", Tool: "file.write", Input: json.RawMessage(input), Summary: input})
	}
	text := described("{\"path\":\"a\u202egnp.md\",\"to\":\"ana\u200b\u200d\",\"n\":12345678901234567890,\"text\":\"\\u003cb\\u003e & 👩\u200d💻\"}")
	require.Contains(t, text, "\"path\": \"a\\u202egnp.md\"")
	require.Contains(t, text, "\"to\": \"ana\\u200b\\u200d\"")
	require.Contains(t, text, "\"n\": 12345678901234567890")
	require.Contains(t, text, "\"text\": \"<b> & 👩\u200d💻\"")
	require.Contains(t, text, "ana\ufffd\ufffd", "the summary, too")
	require.NotContains(t, text, "\u202e")
	require.NotContains(t, text, "\u200b")
	commands := workflows.AnswerCommands("ses_1", jig.Pending{
		Kind: jig.PendingQuestion, Call: "3.2", Question: &jig.Question{Options: []json.RawMessage{json.RawMessage("\"a\u202eb\"")}},
	})
	require.Contains(t, commands[0], `"value":"a\u202eb"`)
}

// requireVerbatim checks that hostile texts are in code alone.
func requireVerbatim(t *testing.T, text string) {
	t.Helper()
	bare := withoutCode(t, text)
	for _, part := range []string{"evil", "](", "<img", "bold", "\u202e", "\x00", "\x1b"} {
		require.NotContains(t, bare, part, text)
	}
}

// withoutCode removes code from Markdown as CommonMark reads it: a block ends with a line of three backticks, a span with the next
// run of backticks of the same length.
func withoutCode(t *testing.T, text string) string {
	t.Helper()
	var b, spans strings.Builder
	block := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			block = !block
		} else if !block {
			spans.WriteString(line)
		}
	}
	for rest := spans.String(); ; {
		at := strings.IndexByte(rest, '`')
		if at < 0 {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:at])
		run := len(rest[at:]) - len(strings.TrimLeft(rest[at:], "`"))
		fence, after := rest[at:at+run], rest[at+run:]
		end := closingRun(after, run)
		require.GreaterOrEqual(t, end, 0, "the code that begins with %s is not closed in\n%s", fence, text)
		rest = after[end+run:]
	}
}

func closingRun(text string, length int) int {
	for at := 0; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if run == length {
			return at
		}
		at += run
	}
	return -1
}

// A session that has ended shows its task and its answer. A long answer is cut, with the command that prints all of it.
func TestDetails_HaveTheTaskAndTheAnswer(t *testing.T) {
	t.Parallel()
	require.Equal(t, "**completed**, pass 1, agent `probe`\n\nTask: `say hello`\n\nAnswer:\n\n```text\nhello\n```\n", workflows.Ended("say hello", "hello", nil))
	long := workflows.Ended("", strings.Repeat("x", 20_000), nil)
	require.Less(t, len(long), 9000)
	require.Contains(t, long, "(cut here; `jig result ses_1` prints all of it)")
	require.Contains(t, workflows.Ended("", "", &jig.Error{Code: jig.CodeNotFound, Message: "there is no agent x", Hint: "see `jig catalog`"}),
		"\n\nError `NOT_FOUND`: `there is no agent x`\n\nHint: `` see `jig catalog` ``\n")
}

// Whoever looks at a session sees for what its compositions wait, until when, and the commands that send the event.
func TestDetails_ShowWaits(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 27, 11, 10, 0, 0, time.UTC)
	text := workflows.Waits(jig.Wait{Call: "1.1/paid", Event: "paid", Until: until}, jig.Wait{Call: "1.1/x", Event: "x; rm -rf ~"}, jig.Wait{Call: "1.1/rest", Until: until})
	require.Contains(t, text, "**working**")
	require.Contains(t, text, "Waits: `1.1/paid waits for event \"paid\" until 2026-11-27 11:10:00 UTC`")
	require.Contains(t, text, "jig event ses_1 paid --data '{}'\n")
	require.Contains(t, text, "--workflow-id ses_1 --name event \\\n  --input '{\"name\":\"paid\",\"data\":{}}'")
	require.Contains(t, text, "Waits: `1.1/rest waits until 2026-11-27 11:10:00 UTC`")
	require.NotContains(t, text, "rm -rf", "a name that no document can have")
	require.Equal(t, `1.1/paid waits for event "paid" until 2026-11-27 11:10:00 UTC`, workflows.Due(until, jig.Wait{Call: "1.1/paid", Event: "paid", Until: until}))
	require.Equal(t, "the next step is due", workflows.Due(until))
}
