package model_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/model"
)

// bothWires runs a test with the real client of each provider.
func bothWires(t *testing.T, test func(t *testing.T, provider string)) {
	t.Helper()
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, provider)
		})
	}
}

func router(s *modeltest.Server, change ...func(*model.Settings)) *model.Router {
	settings := model.Settings{
		Anthropic: model.Provider{APIKey: "sk-ant-secret", BaseURL: s.URL},
		OpenAI:    model.Provider{APIKey: "sk-secret", BaseURL: s.OpenAIURL()},
	}
	for _, c := range change {
		c(&settings)
	}
	return model.NewRouter(settings)
}

func request(provider string, exchanges ...chat.Exchange) chat.Request {
	if len(exchanges) == 0 {
		exchanges = []chat.Exchange{{Messages: []chat.Message{{Role: chat.RoleUser, Text: "hello"}}}}
	}
	return chat.Request{
		Model: provider + "/some-model", System: "You help.", Exchanges: exchanges, MaxTokens: 100, Pass: 1,
		Tools: []jig.Tool{
			{Name: "data.searchRecords", Description: "Searches.", InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
			{Name: "file.read", InputSchema: json.RawMessage(`{"type":"object"}`)},
		},
	}
}

func TestAnswer_StreamsText(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		bothWires(t, func(t *testing.T, provider string) {
			t.Helper()
			s := modeltest.New(t, modeltest.Reply{
				Text: "Hello, this is a longer answer.", Plain: plain,
				Usage: modeltest.Usage{Input: 7, Output: 9, CacheRead: 100},
			})
			var pieces []string
			turn, err := router(s).Answer(t.Context(), request(provider), func(p string) { pieces = append(pieces, p) })
			require.NoError(t, err)
			require.Equal(t, "Hello, this is a longer answer.", turn.Text)
			require.Equal(t, turn.Text, strings.Join(pieces, ""))
			require.Equal(t, !plain, len(pieces) > 1)
			require.Equal(t, chat.StopEnd, turn.Stop)
			require.Equal(t, "some-model", turn.Model)
			require.Equal(t, chat.Usage{InputTokens: 7, OutputTokens: 9, CacheReadTokens: 100}, turn.Usage)
			require.Empty(t, turn.Calls)
			require.Nil(t, turn.Opaque)
			require.True(t, s.Requests()[0].Stream)
		})
	}
}

func TestAnswer_AssemblesCalls(t *testing.T) {
	t.Parallel()
	two := []modeltest.Call{
		{Name: "data__searchRecords", Args: `{"q": "a longer text, so that it comes in pieces"}`},
		{Name: "file__read", Args: `{"path": "b"}`},
	}
	cases := []struct {
		name  string
		reply modeltest.Reply
	}{
		{"parallel", modeltest.Reply{Text: "Looking.", Calls: two}},
		{"index 0 for all", modeltest.Reply{Text: "Looking.", Calls: two, ZeroIndex: true}},
		{"index 0, whole calls", modeltest.Reply{Text: "Looking.", Calls: two, ZeroIndex: true, Piece: 1000}},
		{"no ids", modeltest.Reply{Text: "Looking.", Calls: two, NoIDs: true}},
		{"index 0, no ids", modeltest.Reply{Text: "Looking.", Calls: two, NoIDs: true, ZeroIndex: true}},
		{"same ids", modeltest.Reply{Text: "Looking.", Plain: true, Calls: []modeltest.Call{two[0], two[1]}}},
		{"plain", modeltest.Reply{Text: "Looking.", Calls: two, Plain: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bothWires(t, func(t *testing.T, provider string) {
				t.Helper()
				turn, err := router(modeltest.New(t, c.reply)).Answer(t.Context(), request(provider), nil)
				require.NoError(t, err)
				require.Equal(t, chat.StopCalls, turn.Stop)
				require.Equal(t, "Looking.", turn.Text)
				require.Len(t, turn.Calls, 2)
				require.Equal(t, "data.searchRecords", turn.Calls[0].Name)
				require.JSONEq(t, two[0].Args, string(turn.Calls[0].Input))
				require.Equal(t, "file.read", turn.Calls[1].Name)
				require.JSONEq(t, two[1].Args, string(turn.Calls[1].Input))
				require.NotEmpty(t, turn.Calls[0].ProviderID)
				require.NotEmpty(t, turn.Calls[1].ProviderID)
				require.NotEqual(t, turn.Calls[0].ProviderID, turn.Calls[1].ProviderID)
			})
		})
	}
}

func TestAnswer_ParsesArguments(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, args, input, malformed string }{
		{"empty", "", "{}", ""},
		{"null", "null", "{}", ""},
		{"cut", `{"q": "unfin`, "", `{"q": "unfin`},
		{"prose", "search for a", "", "search for a"},
		{"two documents", "{}{}", "", "{}{}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bothWires(t, func(t *testing.T, provider string) {
				t.Helper()
				s := modeltest.New(t, modeltest.Calls(modeltest.Call{Name: "file__read", Args: c.args}))
				turn, err := router(s).Answer(t.Context(), request(provider), nil)
				require.NoError(t, err)
				require.Len(t, turn.Calls, 1)
				require.Equal(t, c.input, string(turn.Calls[0].Input))
				require.Equal(t, c.malformed, turn.Calls[0].Malformed)
			})
		})
	}
}

func TestAnswer_StopReasons(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		bothWires(t, func(t *testing.T, provider string) {
			t.Helper()
			s := modeltest.New(t,
				modeltest.Reply{Refusal: "I will not.", Plain: plain},
				modeltest.Reply{Text: "It goes on and", CutOff: true, Plain: plain},
				modeltest.Reply{Calls: []modeltest.Call{{Name: "nobody__offered", Args: "{}"}}, Plain: plain})
			r := router(s)
			turn, err := r.Answer(t.Context(), request(provider), nil)
			require.NoError(t, err)
			require.Equal(t, chat.StopRefusal, turn.Stop)
			require.Equal(t, "I will not.", turn.Text)
			turn, err = r.Answer(t.Context(), request(provider), nil)
			require.NoError(t, err)
			require.Equal(t, chat.StopLength, turn.Stop)
			turn, err = r.Answer(t.Context(), request(provider), nil)
			require.NoError(t, err)
			require.Equal(t, "nobody.offered", turn.Calls[0].Name)
		})
	}
}

// The engine refuses the last call of an answer that was cut off, whatever its arguments; this is how the engine recognizes it.
func TestCutOffCalls_AreToldApart(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		bothWires(t, func(t *testing.T, provider string) {
			t.Helper()
			s := modeltest.New(t, modeltest.Reply{Calls: []modeltest.Call{{Name: "nobody__offered", Args: ""}}, CutOff: true, Plain: plain})
			turn, err := router(s).Answer(t.Context(), request(provider), nil)
			require.NoError(t, err)
			require.Equal(t, chat.StopLength, turn.Stop)
			require.Len(t, turn.Calls, 1)
		})
	}
}

func TestAnswer_RefusesHugeOnes(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("0123456789abcdef", 2<<20/16)
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{Text: huge, Piece: 1 << 20}, modeltest.Text(huge))
		turn, err := router(s).Answer(t.Context(), request(provider), nil)
		require.NoError(t, err)
		require.Len(t, turn.Text, 2<<20)
		_, err = router(s, func(s *model.Settings) { s.MaxAnswer = 1 << 20 }).Answer(t.Context(), request(provider), nil)
		require.Equal(t, jig.CodeInvalidOutput, jig.CodeOf(err))
	})
}

func TestRouter_ReadsNoEnvironment(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_API_KEY", "OPENAI_ORG_ID",
		"OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS",
	} {
		t.Setenv(name, "X-Leak: leaked")
	}
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	for _, provider := range []string{"anthropic", "openai"} {
		s := modeltest.New(t, modeltest.Text("fine"))
		_, err := router(s, func(s *model.Settings) { s.Anthropic.APIKey, s.OpenAI.APIKey = "", "" }).
			Answer(t.Context(), request(provider), nil)
		require.NoError(t, err)
		for name, values := range s.Requests()[0].Header {
			require.NotContains(t, strings.Join(values, " "), "leaked", name)
		}
		require.Empty(t, s.Requests()[0].Header.Get("Authorization"))
		require.Empty(t, s.Requests()[0].Header.Get("X-Api-Key"))
	}
}

func TestErrors_HaveCodesAndNoKeys(t *testing.T) {
	t.Parallel()
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	cases := []struct {
		name  string
		reply modeltest.Reply
		code  jig.Code
		after func(time.Duration) bool
	}{
		{"429 seconds", modeltest.RateLimited("7"), jig.CodeRateLimited, func(d time.Duration) bool { return d == 7*time.Second }},
		{"429 date", modeltest.RateLimited(date), jig.CodeRateLimited, func(d time.Duration) bool { return d > 50*time.Minute && d <= time.Hour }},
		{"429 ms", modeltest.Reply{Status: 429, Header: map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}}, jig.CodeRateLimited, func(d time.Duration) bool { return d == 1500*time.Millisecond }},
		{"429 nothing", modeltest.Fail(429, "slow down"), jig.CodeRateLimited, nil},
		{"500", modeltest.Fail(500, "oops"), jig.CodeUnavailable, nil},
		{"529", modeltest.Fail(529, "overloaded"), jig.CodeUnavailable, nil},
		{"401", modeltest.Fail(401, "invalid key sk-secret sk-ant-secret"), jig.CodeNotPermitted, nil},
		{"403", modeltest.Fail(403, "no"), jig.CodeNotPermitted, nil},
		{"400", modeltest.Fail(400, "bad"), jig.CodeInvalidInput, nil},
		{"404", modeltest.Fail(404, "no such model"), jig.CodeInvalidInput, nil},
		{"413", modeltest.Fail(413, "too large"), jig.CodeInvalidInput, nil},
		{"422", modeltest.Fail(422, "no"), jig.CodeInvalidInput, nil},
		{"truncated stream", modeltest.Reply{Text: strings.Repeat("x", 200), Truncate: true}, jig.CodeUnavailable, nil},
		{"broken stream", modeltest.Reply{Text: strings.Repeat("x", 200), Break: true}, jig.CodeUnavailable, nil},
		{"overloaded stream", modeltest.Reply{Text: strings.Repeat("x", 200), StreamError: "overloaded_error"}, jig.CodeUnavailable, nil},
		{"limited stream", modeltest.Reply{Text: strings.Repeat("x", 200), StreamError: "rate_limit_error"}, jig.CodeRateLimited, nil},
		{"silent stream", modeltest.Reply{Text: strings.Repeat("x", 200), Stall: true}, jig.CodeUnavailable, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bothWires(t, func(t *testing.T, provider string) {
				t.Helper()
				s := modeltest.New(t, c.reply)
				_, err := router(s, func(s *model.Settings) { s.IdleTimeout = 300 * time.Millisecond }).
					Answer(t.Context(), request(provider), nil)
				var e *jig.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, c.code, e.Code, e.Error())
				require.NotContains(t, e.Error(), "secret")
				if c.reply.Message != "" && c.name != "401" {
					require.Contains(t, e.Message, c.reply.Message)
				}
				if c.after != nil {
					require.True(t, c.after(e.RetryAfter), e.RetryAfter)
				} else {
					require.Zero(t, e.RetryAfter)
				}
				if c.code == jig.CodeNotPermitted {
					require.Contains(t, e.Hint, strings.ToUpper(provider)+"_API_KEY")
				}
				require.Len(t, s.Requests(), 1, "the SDK retried")
			})
		})
	}
}
