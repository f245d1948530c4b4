package activities_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

func transcript(passes, bytes int) []jig.Exchange {
	list := make([]jig.Exchange, passes)
	for i := range list {
		id := jig.CallID(i+1, 1)
		list[i] = jig.Exchange{
			Pass: i + 1, Turn: &jig.Turn{Text: "thinking"},
			Calls: []jig.Call{{ID: id, Tool: "data.get", Input: []byte(`{}`), Status: jig.CallSucceeded, Result: &jig.ToolResult{
				Success: true, Summary: fmt.Sprintf("read %s", id), Data: json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`),
			}}},
		}
	}
	return list
}

func TestFitKeepsNewestResultsWhole(t *testing.T) {
	t.Parallel()
	list := transcript(10, 4000) // about 1,000 tokens each
	fitted, overflow := activities.Fit("ses_1", list, 5000)
	require.Zero(t, overflow)
	require.NotEmpty(t, fitted[9].Calls[0].Result.Data, "the newest stays whole")
	require.Empty(t, fitted[0].Calls[0].Result.Data, "the oldest becomes a reference")
	require.Contains(t, fitted[0].Calls[0].Result.Markdown, `"ses_1/1.1"`)
	require.NotEmpty(t, list[0].Calls[0].Result.Data, "the transcript itself is not changed")
}

func TestFitOverflowsToASummary(t *testing.T) {
	t.Parallel()
	_, overflow := activities.Fit("ses_1", transcript(200, 4000), 3000)
	require.Positive(t, overflow)
	require.Less(t, overflow, 199, "the latest two passes are never summarised")
}

func TestFitNeverTouchesTheLatestTwo(t *testing.T) {
	t.Parallel()
	fitted, _ := activities.Fit("ses_1", transcript(3, 40_000), 10)
	require.NotEmpty(t, fitted[1].Calls[0].Result.Data)
	require.NotEmpty(t, fitted[2].Calls[0].Result.Data)
}

func TestFitViewStaysUnderTheLimit(t *testing.T) {
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
