package modeltest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/modeltest"
)

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

func TestServer_RefusesBadRequests(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t)
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	hi := `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	for want, messages := range map[string]string{
		"begin with user":                use,
		"roles must alternate":           hi + "," + hi,
		"without tool_result":            hi + "," + use,
		"immediately after":              hi + "," + use + "," + hi,
		"unexpected tool_use_id":         hi + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]}`,
		"must be unique":                 hi + "," + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`,
		"must come first":                hi + "," + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`,
		"non-whitespace":                 `{"role":"user","content":[{"type":"text","text":" "}]}`,
		"content must not be empty":      `{"role":"user","content":[]}`,
		"invalid signature":              hi + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}`,
		"not a tool_use":                 hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"a.b","input":{}}]}`,
		"model, max_tokens and messages": "",
	} {
		status, answer := post(t, s.URL+"/v1/messages", `{"model":"m","max_tokens":1,"messages":[`+messages+`]}`)
		require.Equal(t, http.StatusBadRequest, status, want)
		require.Contains(t, answer, want)
	}
	for want, text := range map[string]string{`"\ud83d"`: "surrogate", `"\ude42"`: "surrogate", "\"\xff\"": "UTF-8", "1e400": "not JSON"} {
		status, answer := post(t, s.URL+"/v1/messages", `{"model":"m","max_tokens":1,"messages":[`+hi+`],"metadata":`+want+`}`)
		require.Equal(t, http.StatusBadRequest, status, want)
		require.Contains(t, answer, text)
	}
	call := `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for want, messages := range map[string]string{
		"did not have response":   `{"role":"user","content":"x"},` + call,
		"did not have response m": call + `,{"role":"user","content":"x"}`,
		"must be unique":          call + `,{"role":"tool","tool_call_id":"a","content":"x"},` + call + `,{"role":"tool","tool_call_id":"a","content":"x"}`,
		"answers no tool_calls":   `{"role":"tool","tool_call_id":"a","content":"x"}`,
		"needs content":           `{"role":"assistant"}`,
		"unknown role":            `{"role":"robot","content":"x"}`,
		"content is required":     `{"role":"user"}`,
		"not a tool call":         `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"a.b","arguments":"{}"}}]}`,
	} {
		status, answer := post(t, s.OpenAIURL()+"chat/completions", `{"model":"m","messages":[`+messages+`]}`)
		require.Equal(t, http.StatusBadRequest, status, want)
		require.Contains(t, answer, want)
	}
	require.Empty(t, s.Requests())
}

func TestFunc_SeesTheConversation(t *testing.T) {
	t.Parallel()
	s := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
		if r.Last().Role == "tool" {
			return modeltest.Text("it says " + r.Last().Text)
		}
		return modeltest.Calls(modeltest.Call{Name: r.Tools[0], Args: `{}`})
	})
	tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	_, answer := post(t, s.OpenAIURL()+"chat/completions", `{"model":"m",`+tools+`,"messages":[{"role":"user","content":"x"}]}`)
	require.Contains(t, answer, `"name":"f"`)
	_, answer = post(t, s.OpenAIURL()+"chat/completions", `{"model":"m",`+tools+`,"messages":[{"role":"user","content":"x"},`+
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},`+
		`{"role":"tool","tool_call_id":"a","content":"yes"}]}`)
	require.Contains(t, answer, "it says yes")
	require.Len(t, s.Requests(), 2)
}
