package model_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/model"
)

// session plays a script: it answers the calls of each turn with results and asks again.
type session struct {
	t         *testing.T
	router    *model.Router
	request   chat.Request
	exchanges []chat.Exchange
}

func newSession(t *testing.T, script, input string) *session {
	t.Helper()
	return &session{t: t, router: model.NewRouter(model.Settings{}), request: chat.Request{
		Model: "script/test", Script: json.RawMessage(script), Input: json.RawMessage(input),
	}}
}

func (s *session) pass(message string) chat.Turn {
	s.t.Helper()
	e := chat.Exchange{Pass: len(s.exchanges) + 1}
	if message != "" {
		e.Messages = []chat.Message{{Role: chat.RoleUser, Text: message, By: "ana"}}
	}
	s.request.Pass, s.request.Exchanges = e.Pass, slices.Concat(s.exchanges, []chat.Exchange{e})
	turn, err := s.router.Answer(s.t.Context(), s.request, nil)
	require.NoError(s.t, err)
	e.Turn = &turn
	s.exchanges = append(s.exchanges, e)
	return turn
}

func (s *session) results(results ...jig.ToolResult) {
	e := &s.exchanges[len(s.exchanges)-1]
	for i, asked := range e.Turn.Calls {
		status := jig.CallSucceeded
		if !results[i].Success {
			status = jig.CallFailed
		}
		e.Calls = append(e.Calls, jig.Call{
			ID: jig.CallID(e.Pass, i+1), Pass: e.Pass, Tool: asked.Name, ProviderID: asked.ProviderID,
			Input: asked.Input, Status: status, Result: &results[i],
		})
	}
}

func data(format string, args ...any) jig.ToolResult {
	return jig.ToolResult{Success: true, Data: json.RawMessage(fmt.Sprintf(format, args...))}
}

func TestScript_LicenseReport(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/license_report.json")
	require.NoError(t, err)
	require.Empty(t, model.CheckScript(script))
	s := newSession(t, string(script), `{"path": "go.mod", "report": "out.md"}`)

	turn := s.pass("Review the licences.")
	require.Equal(t, chat.StopCalls, turn.Stop)
	require.Equal(t, []jig.ToolCall{{ProviderID: "call_1", Name: "deps.list", Input: json.RawMessage(`{"path":"go.mod"}`)}}, turn.Calls)
	require.Equal(t, "script/test", turn.Model)
	require.Zero(t, turn.Usage)

	s.results(data(`{"module":"example.com/m","go":"1.26","modules":[
		{"path":"z.org/last","version":"v1.0.0","indirect":false},
		{"path":"a.org/first","version":"v0.2.0","indirect":false},
		{"path":"m.org/hidden","version":"v9.0.0","indirect":true},
		{"path":"g.org/copyleft","version":"v3.0.0","indirect":false},
		{"path":"x.org/missing","version":"v0.0.1","indirect":false}]}`))
	turn = s.pass("")
	require.Equal(t, "I look up the licences of 4 direct modules.", turn.Text)
	require.Len(t, turn.Calls, 4)
	require.JSONEq(t, `{"module":"z.org/last","version":"v1.0.0"}`, string(turn.Calls[0].Input))
	require.Equal(t, "call_5", turn.Calls[3].ProviderID)

	s.results(
		data(`{"module":"z.org/last","version":"v1.0.0","licenses":[{"spdx":"MIT","coverage":98.5,"file":"LICENSE"}],"risk":"permissive"}`),
		data(`{"module":"a.org/first","version":"v0.2.0","licenses":[{"spdx":"MIT","coverage":100,"file":"LICENSE"},{"spdx":"Apache-2.0","coverage":99,"file":"NOTICE"}],"risk":"permissive"}`),
		data(`{"module":"g.org/copyleft","version":"v3.0.0","licenses":[{"spdx":"GPL-3.0","coverage":100,"file":"COPYING"}],"risk":"strong copyleft"}`),
		jig.Failure(jig.Errorf(jig.CodeNotFound, "the module is not in the cache")))
	turn = s.pass("")
	require.Len(t, turn.Calls, 1)
	require.Equal(t, "file.write", turn.Calls[0].Name)
	var write struct{ Path, Content string }
	require.NoError(t, json.Unmarshal(turn.Calls[0].Input, &write))
	require.Equal(t, "out.md", write.Path)
	golden(t, "license_report.md", []byte(write.Content))

	s.results(data(`{"path":"out.md","bytes":7,"created":true}`))
	turn = s.pass("")
	require.Equal(t, chat.StopEnd, turn.Stop)
	require.Empty(t, turn.Calls)
	require.Equal(t, "The report is in `out.md`: 3 of 4 modules have a licence that was recognised.", turn.Text)
}

func TestScript_Variables(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{"rules":[
		{"when":"pass == 1","let":[{"name":"n","value":"input.n + 1"},{"name":"m","value":"vars.n * 2"}],
		 "for_each":"[10, 20]","calls":[{"tool":"t.${task}","input":{"i":"${index}","item":"${item}","m":"${vars.m}","text":"n is ${vars.n}","keep":[true,null,"$${x}"]}}]},
		{"when":"messages.exists(m, m.text == 'stop')","answer":"stopped by ${messages[1].by} in pass ${pass}: ${last.map(c, c.id)}"},
		{"for_each":"[]","calls":[{"tool":"never.called"}]},
		{"answer":"end"}]}`, `{"n": 3}`)
	turn := s.pass("go")
	require.Len(t, turn.Calls, 2)
	require.Equal(t, "t.go", turn.Calls[1].Name)
	require.JSONEq(t, `{"i":1,"item":20,"m":8,"text":"n is 4","keep":[true,null,"${x}"]}`, string(turn.Calls[1].Input))
	s.results(data(`1`), data(`2`))
	require.Equal(t, `stopped by ana in pass 2: ["1.1","1.2"]`, s.pass("stop").Text)
}

// A rule can make one call and repeat another.
func TestScript_RepeatsSingleCalls(t *testing.T) {
	t.Parallel()
	s := newSession(t, `{"rules":[
		{"when":"pass == 1","calls":[{"tool":"cms.createPage"},{"for_each":"input.texts","tool":"cms.addText","input":{"at":"${index}","text":"${item}"}},{"tool":"cms.done"}]},
		{"calls":[{"for_each":"[]","tool":"never.called"}]},
		{"answer":"end"}]}`, `{"texts": ["a", "b"]}`)
	turn := s.pass("go")
	var asked []string
	for _, call := range turn.Calls {
		asked = append(asked, call.Name+string(call.Input))
	}
	require.Equal(t, []string{"cms.createPage{}", `cms.addText{"at":0,"text":"a"}`, `cms.addText{"at":1,"text":"b"}`, "cms.done{}"}, asked)
	s.results(data(`1`), data(`1`), data(`1`), data(`1`))
	require.Equal(t, "end", s.pass("").Text, "a rule without calls does not match")
}

func TestScript_Errors(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, script, field, message string }{
		{"no rule", `{"rules":[{"when":"pass > 1","answer":"x"}]}`, "rules", "no rule matched"},
		{"runtime", `{"rules":[{"when":"input.x == 1","answer":"x"}]}`, "rules[0].when", "no such key: 'x'"},
		{"input", `{"rules":[{"calls":[{"tool":"a.b","input":{"x":["${input.y}"]}}]}]}`, "rules[0].calls[0].input.x[0]", "no such key: 'y'"},
		{"compile", `{"rules":[{"answer":"${inptu}"}]}`, "rules[0].answer", "did you mean 'input'?"},
		{"no script", ``, "", "this is not a script"},
		{"no list", `{"rules":[{"calls":[{"for_each":"input","tool":"a.b"}]}]}`, "rules[0].calls[0].for_each", "a list is needed"},
		{"too many", `{"rules":[{"for_each":"'` + strings.Repeat("x ", 200) + `'.split(' ')","calls":[` + strings.Repeat(`{"tool":"a.b"},`, 60) + `{"tool":"a.b"}]}]}`, "rules[0]", "more than 10000 calls"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := model.NewRouter(model.Settings{}).Answer(t.Context(), chat.Request{
				Model: "script/x", Pass: 1, Script: json.RawMessage(c.script), Input: json.RawMessage(`{}`),
			}, nil)
			var e *jig.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, jig.CodeInvalidInput, e.Code)
			require.Equal(t, c.field, e.Field)
			require.Contains(t, e.Message, c.message)
		})
	}
}

func TestScript_CheckFindsMistakes(t *testing.T) {
	t.Parallel()
	problems := model.CheckScript(json.RawMessage(`{"rules":[
		{"when":"pass == 'a'","answer":"x"},
		{"when":"pass","answer":"x","calls":[{"tool":"a.b"}]},
		{"let":[{"name":"1x","value":"1"},{"name":"a","value":""}],"for_each":"1","calls":[{"tool":"nodots","input":{"path":"${foo(}","list":[{"a":"ok ${1 +}"}]}}]},
		{},
		{"for_each":"[1]","calls":[{"for_each":"[2]","tool":"a.b"}]}]}`))
	var got []string
	for _, p := range problems {
		require.Equal(t, jig.CodeInvalidInput, p.Err.Code)
		got = append(got, p.Path)
	}
	require.ElementsMatch(t, []string{
		"rules[0].when", "rules[1].when", "rules[1]", "rules[2].for_each", "rules[2].let[0].name", "rules[2].let[1].value",
		"rules[2].calls[0].input.list[0].a", "rules[2].calls[0].input.path", "rules[2].calls[0].tool", "rules[3]",
		"rules[4].calls[0].for_each",
	}, got)
	for _, bad := range []string{``, `[]`, `{"rules":[]}`, `{"rulez":[]}`, `{"rules":[{"wen":"x"}]}`} {
		require.Len(t, model.CheckScript(json.RawMessage(bad)), 1, bad)
	}
}

func BenchmarkScript(b *testing.B) {
	script, err := os.ReadFile("testdata/license_report.json")
	require.NoError(b, err)
	e := chat.Exchange{Pass: 2, Turn: &chat.Turn{}}
	for i := range 300 {
		r := data(`{"module":"m%d.org/x","version":"v1","licenses":[{"spdx":"MIT","coverage":98.5,"file":"LICENSE"}],"risk":"permissive"}`, i)
		e.Calls = append(e.Calls, jig.Call{ID: jig.CallID(2, i+1), Pass: 2, Tool: "deps.license", Result: &r})
	}
	list := data(`{"module":"x"}`)
	first := chat.Exchange{Pass: 1, Turn: &chat.Turn{}, Calls: []jig.Call{{ID: "1.1", Pass: 1, Tool: "deps.list", Result: &list}}}
	r := model.NewRouter(model.Settings{})
	for b.Loop() {
		_, err := r.Answer(b.Context(), chat.Request{
			Model: "script/x", Pass: 3, Script: script, Input: json.RawMessage(`{}`), Exchanges: []chat.Exchange{first, e},
		}, nil)
		require.NoError(b, err)
	}
}
