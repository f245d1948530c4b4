package composition_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/spec"
)

// aRun is one case of spec/testdata/runs: a document with an input, what its tools return, and the expected result.
type aRun struct {
	Name     string          `json:"name"`
	Document string          `json:"document"`
	Input    json.RawMessage `json:"input"`
	// Results holds the results of calls, by path (of any attempt) or tool. With a list, the first call gets the first result and so on;
	// all further calls get the last one. A tool that is not listed returns {path, input}.
	Results map[string]results `json:"results"`
	// Send are the events that the session receives.
	Send []struct {
		After string          `json:"after"`
		Name  string          `json:"name"`
		Data  json.RawMessage `json:"data"`
	} `json:"send"`
	// CancelAfter cancels the run once that many calls have ended.
	CancelAfter int `json:"cancel_after"`

	Output json.RawMessage `json:"output"`
	Error  *struct {
		Code     jig.Code `json:"code"`
		Message  string   `json:"message"`
		Field    string   `json:"field"`
		Reason   string   `json:"reason"`
		Contains string   `json:"contains"`
	} `json:"error"`
	// Data is the data of a run that failed.
	Data    json.RawMessage `json:"data"`
	Summary string          `json:"summary"`
	// Calls lists the calls in the order in which they are requested. Inputs has the inputs of some of them. Canceled lists those that the
	// run gave up.
	Calls    []string                   `json:"calls"`
	Tools    map[string]string          `json:"tools"`
	Inputs   map[string]json.RawMessage `json:"inputs"`
	Canceled []string                   `json:"canceled"`
	// Events are the types of the events in the log, and EventData their data.
	Events    []string          `json:"events"`
	EventData []json.RawMessage `json:"event_data"`
	// Took is the time from the start to the end of the run.
	Took string `json:"took"`
}

type results []stub

// UnmarshalJSON accepts one result or a list of them.
func (r *results) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]stub)(r))
	}
	*r = make(results, 1)
	return json.Unmarshal(raw, &(*r)[0])
}

// stub is a result: data, an error, or no result at all (never).
type stub struct {
	Data  json.RawMessage `json:"data"`
	Error *jig.Error      `json:"error"`
	Never bool            `json:"never"`
}

func readRuns(t *testing.T) []aRun {
	t.Helper()
	files, err := filepath.Glob("../../../spec/testdata/runs/*.yaml")
	require.NoError(t, err)
	var all []aRun
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []map[string]any
		require.NoError(t, yaml.Unmarshal(text, &cases), file)
		raw, err := json.Marshal(cases)
		require.NoError(t, err, file)
		var runs []aRun
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&runs), file)
		all = append(all, runs...)
	}
	return all
}

func TestAdvance_ConformsToTheReference(t *testing.T) {
	t.Parallel()
	runs := readRuns(t)
	require.GreaterOrEqual(t, len(runs), 120)
	seen := map[string]bool{}
	for _, one := range runs {
		require.False(t, seen[one.Name], "two cases are called %q", one.Name)
		seen[one.Name] = true
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			one.check(t, nil)
			for seed := range uint64(3) {
				one.check(t, rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func (c aRun) check(t *testing.T, crash *rand.Rand) {
	t.Helper()
	x, err := spec.LoadExecution("test.yaml", []byte(c.Document))
	require.NoError(t, err)
	compiled, err := composition.Compile(x)
	require.NoError(t, err)
	input := c.Input
	if input == nil {
		input = json.RawMessage(`{}`)
	}
	w := worldOf(compiled, string(input), c.stubs())
	w.crash, w.cancelAfter = crash, c.CancelAfter
	for i, s := range c.Send {
		after, err := duration.Parse(s.After)
		require.NoError(t, err)
		w.coming = append(w.coming, timed{at: start.Add(after), event: plan.ReceivedEvent{ID: int64(i + 1), Name: s.Name, Data: s.Data}})
	}
	if c.Error == nil && c.Output == nil {
		c.Output = json.RawMessage(`null`)
	}
	c.compare(t, w, w.run(t))
}

// stubs answers calls as the case specifies.
func (c aRun) stubs() func(*row) (jig.ToolResult, bool) {
	used := map[string]int{}
	return func(r *row) (jig.ToolResult, bool) {
		step, _, _ := strings.Cut(r.path, "~")
		key := r.path
		for _, k := range []string{r.path, step, r.tool} {
			if _, ok := c.Results[k]; ok {
				key = k
				break
			}
		}
		list, ok := c.Results[key]
		if !ok {
			return echo(r)
		}
		s := list[min(used[key], len(list)-1)]
		switch {
		case s.Never:
			return jig.ToolResult{}, false
		case s.Error != nil:
			used[key]++
			return jig.Failure(s.Error), true
		}
		used[key]++
		return jig.ToolResult{Success: true, Data: s.Data}, true
	}
}

func (c aRun) compare(t *testing.T, w *world, result jig.ToolResult) {
	t.Helper()
	if c.Error == nil {
		require.True(t, result.Success, "it failed: %v", result.Error)
		require.JSONEq(t, string(c.Output), string(orNull(result.Data)))
	} else {
		require.False(t, result.Success, "it succeeded: %s", result.Data)
		require.Equal(t, c.Error.Code, result.Error.Code, "%v", result.Error)
		require.Contains(t, result.Error.Message, c.Error.Contains)
		if c.Error.Message != "" {
			require.Equal(t, c.Error.Message, result.Error.Message)
		}
		require.Equal(t, c.Error.Field, result.Error.Field)
		require.Equal(t, c.Error.Reason, result.Error.Reason)
		require.JSONEq(t, string(orNull(c.Data)), string(orNull(result.Data)))
	}
	if c.Summary != "" {
		require.Equal(t, c.Summary, result.Summary)
	}
	if c.Calls != nil {
		require.Equal(t, c.Calls, append([]string{}, w.asked...))
	}
	for path, tool := range c.Tools {
		require.Equal(t, tool, w.rows[path].tool, path)
	}
	for path, input := range c.Inputs {
		require.Contains(t, w.rows, path)
		require.JSONEq(t, string(input), string(w.rows[path].input), path)
	}
	var canceled, events []string
	for _, path := range w.asked {
		if w.rows[path].canceled {
			canceled = append(canceled, path)
		}
	}
	require.ElementsMatch(t, c.Canceled, canceled)
	log := slices.DeleteFunc(slices.Clone(w.log), func(e jig.Event) bool { return e.Type == jig.EventStepWaiting }) // TestWaits_AreShown
	for i, e := range log {
		name := string(e.Type)
		if e.CallID != "" {
			name += " " + e.CallID
		}
		if events = append(events, name); i < len(c.EventData) {
			require.JSONEq(t, string(c.EventData[i]), string(orNull(e.Data)))
		}
	}
	require.Equal(t, c.Events, events)
	if c.Took != "" {
		took, err := duration.Parse(c.Took)
		require.NoError(t, err)
		require.Equal(t, took.String(), w.at.Now.Sub(start).String())
	}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`null`)
	}
	return raw
}
