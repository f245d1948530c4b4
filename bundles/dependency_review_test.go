package bundles_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// session plays the engine's part for a script: it asks the model, answers the calls, and continues until the model answers.
type session struct {
	t       *testing.T
	agent   *jig.Agent
	input   string
	answers map[string]func(input map[string]any) (jig.CallStatus, jig.ToolResult)

	models    *model.Router
	exchanges []chat.Exchange
}

func newSession(t *testing.T, input string) *session {
	t.Helper()
	agents := documents(t)
	s := &session{t: t, input: input, models: model.NewRouter(model.Settings{}), answers: map[string]func(map[string]any) (jig.CallStatus, jig.ToolResult){
		"deps.list":    listed,
		"deps.license": licensed,
		"file.write":   written,
	}}
	for _, doc := range agents {
		if doc.Name == "dependency-review" {
			s.agent = doc.Agent()
		}
	}
	require.NotNil(t, s.agent)
	return s
}

// pass runs one pass and returns the model's turn.
func (s *session) pass(messages ...chat.Message) chat.Turn {
	s.t.Helper()
	number := len(s.exchanges) + 1
	s.exchanges = append(s.exchanges, chat.Exchange{Pass: number, Messages: messages})
	turn, err := s.models.Answer(s.t.Context(), chat.Request{
		Model: s.agent.Model, Exchanges: s.exchanges, Pass: number, Input: json.RawMessage(s.input), Script: s.agent.Script,
	}, nil)
	require.NoError(s.t, err)
	now := &s.exchanges[number-1]
	now.Turn = &turn
	for i, asked := range turn.Calls {
		var input map[string]any
		require.NoError(s.t, json.Unmarshal(asked.Input, &input))
		require.Contains(s.t, s.answers, asked.Name)
		status, result := s.answers[asked.Name](input)
		now.Calls = append(now.Calls, jig.Call{
			ID: jig.CallID(number, i+1), Pass: number, Ordinal: i + 1, Tool: asked.Name, Input: asked.Input, Status: status, Result: &result,
		})
	}
	return turn
}

// run runs passes until the model answers.
func (s *session) run() string {
	s.t.Helper()
	for range 10 {
		if turn := s.pass(); len(turn.Calls) == 0 {
			return turn.Text
		}
	}
	require.Fail(s.t, "no answer after ten passes")
	return ""
}

// calls returns the calls of a tool.
func (s *session) calls(tool string) []jig.Call {
	var found []jig.Call
	for _, e := range s.exchanges {
		for _, c := range e.Calls {
			if c.Tool == tool {
				found = append(found, c)
			}
		}
	}
	return found
}

// report returns the content that file.write was asked to write.
func (s *session) report() string {
	s.t.Helper()
	writes := s.calls("file.write")
	require.Len(s.t, writes, 1)
	var input struct{ Content string }
	require.NoError(s.t, json.Unmarshal(writes[0].Input, &input))
	return input.Content
}

func succeeded(data string) (jig.CallStatus, jig.ToolResult) {
	return jig.CallSucceeded, jig.ToolResult{Success: true, Data: json.RawMessage(data), Summary: "done"}
}

func failed(status jig.CallStatus, code jig.Code, message string) (jig.CallStatus, jig.ToolResult) {
	return status, jig.Failure(jig.Errorf(code, "%s", message))
}

func listed(map[string]any) (jig.CallStatus, jig.ToolResult) {
	return succeeded(`{"module": "example.com/shop", "go": "1.26.0", "modules": [
		{"path": "example.com/mit", "version": "v1.2.3", "indirect": false},
		{"path": "example.com/two", "version": "v0.1.0", "indirect": false},
		{"path": "example.com/gpl", "version": "v2.0.0", "indirect": false},
		{"path": "example.com/gone", "version": "v3.0.0", "indirect": false},
		{"path": "example.com/none", "version": "v4.0.0", "indirect": false},
		{"path": "example.com/deep", "version": "v5.0.0", "indirect": true}]}`)
}

func licensed(input map[string]any) (jig.CallStatus, jig.ToolResult) {
	const form = `{"module": %q, "version": %q, "licenses": [%s], "risk": %q}`
	module, version := fmt.Sprint(input["module"]), fmt.Sprint(input["version"])
	switch module {
	case "example.com/two":
		return succeeded(fmt.Sprintf(form, module, version,
			`{"spdx": "Apache-2.0", "coverage": 100, "file": "LICENSE"}, {"spdx": "BSD-3-Clause", "coverage": 98.4567, "file": "third/LICENSE"}`, "low"))
	case "example.com/gpl":
		return succeeded(fmt.Sprintf(form, module, version, `{"spdx": "GPL-3.0-only", "coverage": 99.9, "file": "COPYING"}`, "high"))
	case "example.com/gone":
		return failed(jig.CallFailed, jig.CodeNotFound, "example.com/gone v3.0.0 is not in the module cache | try go mod download")
	case "example.com/none":
		return succeeded(fmt.Sprintf(form, module, version, "", "unknown"))
	}
	return succeeded(fmt.Sprintf(form, module, version, `{"spdx": "MIT", "coverage": 97.25, "file": "LICENSE.md"}`, "low"))
}

func written(input map[string]any) (jig.CallStatus, jig.ToolResult) {
	return succeeded(fmt.Sprintf(`{"path": %q, "bytes": 7, "created": true}`, input["path"]))
}

func TestDependencyReview_WritesAReport(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{"path": "go.mod", "report": "out/report.md"}`)
	answer := s.run()

	require.Len(t, s.exchanges, 4, "list, licenses, write, answer")
	require.Len(t, s.calls("deps.license"), 5, "one call for each direct module")
	require.Len(t, s.exchanges[1].Calls, 5, "all in one pass")
	golden := filepath.Join("testdata", "dependency-review.md")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(s.report()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), s.report())
	require.Equal(t, "Reviewed 5 direct modules: 2 under a permissive licence, 3 for a person to look at: "+
		"example.com/gpl, example.com/gone, example.com/none.\n\nThe report is in out/report.md.", answer)
}

func TestDependencyReview_HasDefaults(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{}`)
	require.Contains(t, s.run(), "reports/dependency-review.md")
	require.JSONEq(t, `{"path": "go.mod"}`, string(s.calls("deps.list")[0].Input))
}

func TestDependencyReview_SaysThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  jig.CallStatus
		code    jig.Code
		message string
		want    string
	}{
		"denied":   {jig.CallDenied, jig.CodeDenied, "ana denied this: too much", "was not written: writing it was denied (ana denied this: too much)"},
		"expired":  {jig.CallExpired, jig.CodeExpired, "nobody decided within 7 days", "was not written: nobody allowed it in time (nobody decided"},
		"canceled": {jig.CallCanceled, jig.CodeCanceled, "the session was canceled", "was not written: writing it was canceled ("},
		"failed":   {jig.CallFailed, jig.CodeInternal, "disk full", "was not written: writing it failed (disk full)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, `{}`)
			s.answers["file.write"] = func(map[string]any) (jig.CallStatus, jig.ToolResult) { return failed(c.status, c.code, c.message) }
			answer := s.run()
			require.Contains(t, answer, c.want)
			require.Contains(t, answer, "3 for a person to look at: example.com/gpl", "it summarizes the review anyway")
			require.Len(t, s.calls("file.write"), 1, "it does not try again")
		})
	}
}

func TestDependencyReview_SaysThatTheListFailed(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{"path": "gone/go.mod"}`)
	s.answers["deps.list"] = func(map[string]any) (jig.CallStatus, jig.ToolResult) {
		return failed(jig.CallFailed, jig.CodeNotFound, "there is no file gone/go.mod")
	}
	answer := s.run()
	require.Contains(t, answer, "could not be listed: there is no file gone/go.mod")
	require.Contains(t, answer, "`gone/go.mod`")
	require.Len(t, s.exchanges, 2)
}

func TestDependencyReview_ReportsNoDirectModules(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{}`)
	s.answers["deps.list"] = func(map[string]any) (jig.CallStatus, jig.ToolResult) {
		return succeeded(`{"module": "example.com/alone", "go": "1.26.0", "modules": []}`)
	}
	require.Contains(t, s.run(), "Reviewed 0 direct modules: 0 under a permissive licence, 0 for a person to look at.")
	require.Contains(t, s.report(), "Nothing: every direct module has a permissive licence (risk class low).")
}

func TestDependencyReview_AnswersAMessageAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{}`)
	s.run()
	for _, text := range []string{"Is ${this} safe?", "And now?"} {
		turn := s.pass(chat.Message{Role: chat.RoleUser, Text: text, By: "ana", Pass: len(s.exchanges)})
		require.Empty(t, turn.Calls)
		require.True(t, strings.HasPrefix(turn.Text, `You wrote: "`+text+`"`), turn.Text)
		require.Contains(t, turn.Text, "The report is in reports/dependency-review.md.")
	}
}

func TestDependencyReview_ManyModules(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{}`)
	s.answers["deps.list"] = func(map[string]any) (jig.CallStatus, jig.ToolResult) {
		modules := make([]string, 500)
		for i := range modules {
			modules[i] = fmt.Sprintf(`{"path": "example.com/m%d", "version": "v1.0.%d", "indirect": false}`, i, i)
		}
		return succeeded(`{"module": "example.com/large", "go": "1.26.0", "modules": [` + strings.Join(modules, ",") + `]}`)
	}
	require.Contains(t, s.run(), "Reviewed 500 direct modules")
	require.Contains(t, s.report(), "| example.com/m499 | v1.0.499 | MIT | low | LICENSE.md (97.3% of its text) |")
}
