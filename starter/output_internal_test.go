package starter

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// callView is an ended session of a call without a model that waited for people.
func callView(output string) jig.SessionView {
	view := doneView()
	view.Agent, view.Answer, view.Output = jig.CallAgent, "5 steps done", json.RawMessage(output)
	return view
}

func TestStatus_ShowsWhatACompositionReturned(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.view = callView(`{"id":"p1","status":"published"}`)
	got := jigCLI(t, e, nil, "status", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, `"id": "p1"`)
	require.NotContains(t, got.stdout, "5 steps done", "the output replaces its summary")

	got = jigCLI(t, e, nil, "status", "ses_1", "--output", "json")
	var view jig.SessionView
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &view))
	require.JSONEq(t, `{"id":"p1","status":"published"}`, string(view.Output))
}

func TestStatus_FetchesAnOutputThatWasCutShort(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.view = callView(`{"truncated":true,"size":90000,"preview":"{\"id\":"}`)
	e.view.OutputArtifact = "art_1"
	e.whole = &jig.ToolResult{Success: true, Data: json.RawMessage(`{"id":"whole"}`)}
	for _, command := range []string{"status", "watch"} {
		got := jigCLI(t, e, nil, command, "ses_1")
		require.Equal(t, exitDone, got.code, got.stderr)
		require.Contains(t, got.stdout, `"id": "whole"`, command)
		require.NotContains(t, got.stdout, "truncated", command)
	}
	require.Equal(t, []string{"art_1", "art_1"}, e.fetched)
}

func TestWatch_EndsWithWhatACompositionReturned(t *testing.T) {
	t.Parallel()
	e := doneEngine()
	e.view = callView(`{"id":"p1"}`)
	got := jigCLI(t, e, nil, "watch", "ses_1")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Contains(t, got.stdout, `"id": "p1"`)

	e.pages = doneEngine().pages
	got = jigCLI(t, e, nil, "watch", "ses_1", "--output", "json")
	require.NotContains(t, got.stdout, "p1", "programs read events, one per line")
}

// full is a stream that accepts some bytes, as a full disk does.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

func TestOutput_EndsWithTheFirstErrorOfWriting(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"a line":                     {"version"},
		"a line before an exit code": {"policy", "test", writeFile(t, "pay.yaml", payPolicy)},
		"a table":                    {"catalog"},
		"JSON":                       {"catalog", "--output", "json"},
	} {
		got := jigCLI(t, &fake{catalog: shopTools()}, func(a *app) { a.stdout = &full{left: 3} }, command...)
		require.Equal(t, exitFailed, got.code, name)
		require.Contains(t, got.stderr, "write output: no space left", name)
	}
}
