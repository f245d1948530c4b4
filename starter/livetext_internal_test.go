package starter

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/protocol"
)

// writing returns a page with a part of what a model writes in pass 1.
func writing(attempt string, offset int, text string) client.EventsPage {
	return client.EventsPage{Status: jig.StatusWorking, Draft: &protocol.Draft{Pass: 1, Attempt: attempt, Offset: offset, Text: text}}
}

// brokeOff returns a page that says that an attempt has failed.
func brokeOff(attempt string, offset int, why string) client.EventsPage {
	page := writing(attempt, offset, "")
	page.Draft.Over, page.Draft.Failed = true, why
	return page
}

// happened returns a page with events of pass 1.
func happened(events ...jig.Event) client.EventsPage {
	for i := range events {
		events[i].Pass = 1
	}
	return client.EventsPage{Status: jig.StatusWorking, Events: events}
}

func says(text string) jig.Event {
	data, err := json.Marshal(map[string]any{"role": "assistant", "by": "openai/x", "text": text})
	if err != nil {
		panic(err) // a map of texts has a JSON form
	}
	return jig.Event{Type: jig.EventMessageAdded, Data: data}
}

var timeAndPass = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d pass 1   `)

// followed returns what following prints for some pages, without times.
func followed(t *testing.T, pages ...client.EventsPage) string {
	t.Helper()
	e := doneEngine()
	e.pages = slices.Concat(pages, []client.EventsPage{{Status: jig.StatusCompleted}})
	got := jigCLI(t, e, nil, "events", "ses_1", "--follow")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.True(t, e.followed.Text)
	return timeAndPass.ReplaceAllString(got.stdout, "")
}

func TestLiveText_IsPrintedOnce(t *testing.T) {
	t.Parallel()
	calls := jig.Event{Type: jig.EventToolStarted, CallID: "1.1", Tool: "file.read"}
	require.Equal(t, `· model says
  I look at the files.
  Then I write.
· 1.1 file.read started
`, followed(t, writing("a", 0, "I look at"), writing("a", 9, " the files.\nThen"), happened(says("I look at the files.\nThen I write."), calls)))

	ended := jig.Event{Type: jig.EventSessionCompleted, Data: json.RawMessage(`{"answer":"All is well.","reason":"answered"}`)}
	require.Equal(t, `· model says
  All is well.
· pass completed
✓ session completed · answered
`, followed(t, writing("a", 0, "All is"), happened(jig.Event{Type: jig.EventPassCompleted}, ended)))

	require.Equal(t, "· model says · All at once.\n", followed(t, happened(says("All at once."))), "nothing was streamed")
}

func TestLiveText_OtherEventsInterruptIt(t *testing.T) {
	t.Parallel()
	hurry := jig.Event{Type: jig.EventMessageAdded, Data: json.RawMessage(`{"role":"user","text":"Hurry","by":"ana"}`)}
	require.Equal(t, `· model says
  I look
· message added · Hurry (by ana)
   at it.
`, followed(t, writing("a", 0, "I look"), happened(hurry), writing("a", 6, " at it."), happened(says("I look at it."))))
}

func TestLiveText_RepeatedRequestSaysSo(t *testing.T) {
	t.Parallel()
	want := `· model says
  I look at
? the answer broke off · the line is dead
· model was asked again and says
  I look at it.
`
	require.Equal(t, want, followed(t,
		writing("a", 0, "I look at"), brokeOff("a", 9, "the line is dead"), writing("b", 0, "I look"), writing("b", 6, " at it."), happened(says("I look at it."))))

	// A worker that was killed tells nothing.
	want = strings.Replace(want, " · the line is dead", "", 1)
	require.Equal(t, want, followed(t, writing("a", 0, "I look at"), writing("b", 0, "I look"), happened(says("I look at it."))))

	// Another attempt was stored whose text was not streamed, or that has none.
	require.Equal(t, `· model says
  I look at
? the answer above was not used
· model says · It is done.
`, followed(t, writing("a", 0, "I look at"), happened(says("It is done."))))
	require.Equal(t, `· model says
  I look at
? the answer above was not used
· 1.1 file.read started
`, followed(t, writing("a", 0, "I look at"), happened(jig.Event{Type: jig.EventToolStarted, CallID: "1.1", Tool: "file.read"})))
}

// If the answer of the repeated request was not streamed, it is printed when it is stored.
func TestLiveText_RepeatedRequestThatIsQuick(t *testing.T) {
	t.Parallel()
	ended := jig.Event{Type: jig.EventSessionCompleted, Data: json.RawMessage(`{"answer":"All is well.","reason":"answered"}`)}
	require.Equal(t, `· model says
  Nothing is
? the answer broke off · the line is dead
· model was asked again and says
  All is well.
✓ session completed · answered
`, followed(t, writing("a", 0, "Nothing is"), brokeOff("a", 10, "the line is dead"), happened(ended)))
	ended = jig.Event{Type: jig.EventSessionCompleted, Data: json.RawMessage(`{"answer":"All is well.","reason":"answered","truncated":true}`)}
	require.Equal(t, `· model says
  Nothing is
? the answer above was not used
· model says
  All is well. …
✓ session completed · answered
`, followed(t, writing("a", 0, "Nothing is"), happened(ended)))
}

// A follower that starts in the middle, or misses a part, sees the rest, and no text that is stored already.
func TestLiveText_Gaps(t *testing.T) {
	t.Parallel()
	require.Equal(t, "· model says\n  … the end of it.\n", followed(t, writing("a", 4, "the end"), happened(says("See the end of it."))))
	require.Equal(t, "· model says\n  One … three, four.\n", followed(t, writing("a", 0, "One"), writing("a", 8, "three"), happened(says("One two three, four."))))
	require.Equal(t, "· model says · It is done.\n", followed(t, happened(says("It is done.")), writing("a", 0, "It is done.")))
}

// An event has only the beginning of a long text.
func TestLiveText_LongText(t *testing.T) {
	t.Parallel()
	cut := says("The beginning")
	cut.Data = json.RawMessage(`{"role":"assistant","text":"The beginning","truncated":true}`)
	whole := writing("a", 0, "The beginning and the end")
	require.Equal(t, "· model says\n  The beginning and the end …\n", followed(t, whole, happened(cut)), "there may be more")
	whole.Draft.Over = true
	require.Equal(t, "· model says\n  The beginning and the end\n", followed(t, whole, happened(cut)))
}

func TestLiveText_CannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "· model says\n  a [2J\n\n  b\n", followed(t, writing("a", 0, "a\x1b[2J\n"), writing("a", 6, "\nb\n")))
}

// Programs get events only, and without --follow nothing of the text is printed.
func TestLiveText_IsForPeopleWhoFollow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"events", "ses_1", "--follow", "--output", "json"},
		{"watch", "ses_1", "--output", "json"},
		{"run", "review"},
		{"run", "review", "--follow", "--output", "json"},
	} {
		e := doneEngine()
		jigCLI(t, e, nil, args...)
		require.False(t, e.followed.Text, args)
	}
	e := doneEngine()
	e.pages = []client.EventsPage{writing("a", 0, "Hello"), {Status: jig.StatusCompleted}}
	got := jigCLI(t, e, nil, "run", "review", "--follow")
	require.True(t, e.followed.Text)
	require.Contains(t, got.stderr, "model says\n  Hello\n")
	require.NotContains(t, got.stdout, "Hello")
}
