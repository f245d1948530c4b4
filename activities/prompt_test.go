package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
)

func transcript(passes, bytes int) []chat.Exchange {
	list := make([]chat.Exchange, passes)
	for i := range list {
		id := jig.CallID(i+1, 1)
		list[i] = chat.Exchange{
			Pass: i + 1, Turn: &chat.Turn{Text: "thinking"},
			Calls: []jig.Call{{ID: id, Tool: "data.get", Input: []byte(`{}`), Status: jig.CallSucceeded, Result: &jig.ToolResult{
				Success: true, Summary: fmt.Sprintf("read %s", id), Data: json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`),
			}}},
		}
	}
	return list
}

func TestFit_KeepsNewestResultsWhole(t *testing.T) {
	t.Parallel()
	list := transcript(10, 4000) // about 1,000 tokens each
	fitted, overflow := activities.Fit("ses_1", list, 5000)
	require.Zero(t, overflow)
	require.NotEmpty(t, fitted[9].Calls[0].Result.Data, "the newest stays whole")
	require.Empty(t, fitted[0].Calls[0].Result.Data, "the oldest becomes a reference")
	require.Contains(t, fitted[0].Calls[0].Result.Markdown, `"ses_1/1.1"`)
	require.NotEmpty(t, list[0].Calls[0].Result.Data, "the transcript itself is not changed")
}

func TestFit_OverflowsToASummary(t *testing.T) {
	t.Parallel()
	_, overflow := activities.Fit("ses_1", transcript(200, 4000), 3000)
	require.Positive(t, overflow)
	require.Less(t, overflow, 199, "the latest two passes are never summarized")
}

func TestFit_NeverTouchesTheLatestTwo(t *testing.T) {
	t.Parallel()
	fitted, _ := activities.Fit("ses_1", transcript(3, 40_000), 10)
	require.NotEmpty(t, fitted[1].Calls[0].Result.Data)
	require.NotEmpty(t, fitted[2].Calls[0].Result.Data)
}

// The menu of tools has a heading for each category.
func TestSystemPrompt_GroupsToolsByCategory(t *testing.T) {
	t.Parallel()
	session := jig.Session{Agent: jig.Agent{Instructions: "Do it."}}
	got := activities.SystemPrompt(session, []jig.Tool{
		{Name: "file.read", Category: "file", Description: "Reads a file. At most 1 MB."},
		{Name: "file.write", Category: "file", Description: "Writes a file."},
		{Name: "http.get", Category: "http", Description: "Fetches a page."},
	})
	require.Contains(t, got, "Do it.\n\n# Tools\n\n## file\n- file.read: Reads a file.\n- file.write: Writes a file.\n\n## http\n- http.get: Fetches a page.\n")
	require.Equal(t, "Do it.", activities.SystemPrompt(session, nil))
}

// What a tool wrote as Markdown and its data both reach the model, and both count in the budget.
func TestFit_ShowsMarkdownAndData(t *testing.T) {
	t.Parallel()
	list := transcript(3, 8000)
	for i := range list {
		list[i].Calls[0].Result.Markdown = "a table with " + strings.Repeat("-", 8000)
	}
	list[1].Calls[0].ResultArtifact = "art_1"
	list[2].Calls[0].Patch, list[2].Calls[0].EditedBy = []byte(`[]`), "ana"
	fitted, _ := activities.Fit("ses_1", list, 10_000)
	for i, want := range []string{"left out", "cut down", "ana changed the arguments"} {
		r := fitted[i].Calls[0].Result
		require.Contains(t, r.Markdown, want)
		require.Empty(t, r.Data, "it is a part of the text")
		require.Equal(t, i > 0, strings.Contains(r.Markdown, "a table with"), want)
		require.Equal(t, min(i, 1), strings.Count(r.Markdown, "\n\nData: \"xxx"), want)
	}
	fitted, _ = activities.Fit("ses_1", list[:1], 10_000)
	require.True(t, strings.HasPrefix(fitted[0].Calls[0].Result.Markdown, "a table"))
	require.Contains(t, fitted[0].Calls[0].Result.Markdown, "\n\nData: \"xxx")
}

// Shortening a preview again gives a preview of the original input, not a preview of a preview.
func TestShorten_ShortensAPreviewOnce(t *testing.T) {
	t.Parallel()
	input := `{"text":"` + strings.Repeat(`\"é`, 2000) + `"}`
	p := activities.Shorten(jig.Pending{Input: json.RawMessage(input)}, jig.ExcerptBytes)
	again := activities.Shorten(*p, jig.ExcerptBytes)
	require.Equal(t, p, again)
	less := activities.Shorten(*again, 100)
	var whole, shown struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(input), &whole))
	require.NoError(t, json.Unmarshal(less.Input, &shown))
	require.True(t, strings.HasPrefix(whole.Text, strings.TrimSuffix(shown.Text, "…")), shown.Text)
	require.Greater(t, len(less.Input), 90)
	require.True(t, less.Truncated)
}

// Waiting questions fit into an answer to a client and into a workflow's history, however large their options are.
func TestShorten_KeepsQuestionsUnderTheLimit(t *testing.T) {
	t.Parallel()
	question := jig.Question{Text: strings.Repeat("q", 4000), Options: []json.RawMessage{json.RawMessage(`"` + strings.Repeat("o", 60_000) + `"`)}}
	store := &asked{}
	for i := range 500 {
		store.view.Pending = append(store.view.Pending, jig.Pending{SessionID: "ses_1", Call: jig.CallID(1, i+1), Question: &question, Input: json.RawMessage(`{}`)})
	}
	page, err := activities.New(activities.Deps{Policy: noPolicies{}, Store: store, Tenants: who{}}).ListApprovals(t.Context(), protocol.ApprovalsRequest{Tenant: "t", SessionID: "ses_1"})
	require.NoError(t, err)
	require.Len(t, page.Approvals, 500)
	require.Equal(t, "ses_1", page.Approvals[499].SessionID, "the commands that answer need it")
	require.True(t, page.Approvals[0].Truncated)
	b, err := json.Marshal(page)
	require.NoError(t, err)
	require.Less(t, len(b), 256<<10)
	require.Len(t, question.Options, 1, "the question itself stays as it is")
}

// asked is a store of one session.
type asked struct {
	activities.Store
	view jig.SessionView
}

func (a *asked) SessionView(context.Context, string, string) (jig.SessionView, error) {
	return a.view, nil
}

func TestFitView_StaysUnderTheLimit(t *testing.T) {
	t.Parallel()
	v := jig.SessionView{Answer: strings.Repeat("a", 1<<20)}
	for i := range 500 {
		v.Calls = append(v.Calls, jig.CallView{Call: jig.CallID(1, i+1), Summary: strings.Repeat("s", 200)})
		v.Pending = append(v.Pending, jig.Pending{Call: jig.CallID(1, i+1), Input: json.RawMessage(`"` + strings.Repeat("i", 2000) + `"`)})
	}
	b, err := json.Marshal(activities.FitView(v))
	require.NoError(t, err)
	require.Less(t, len(b), 256<<10)
}
