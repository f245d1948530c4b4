package model_test

import (
	"context"
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

func TestAnswer_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{Text: "a text that never comes to its end", Stall: true}, modeltest.Reply{Text: "another text that never comes to its end", Stall: true})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := router(s).Answer(ctx, request(provider), func(string) { cancel() })
		require.Equal(t, jig.CodeCanceled, jig.CodeOf(err))
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		_, err = router(s).Answer(ctx, request(provider), nil)
		require.Equal(t, jig.CodeTimeout, jig.CodeOf(err))
	})
}

func TestSlowStream_IsNotCutOff(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		until := make(chan struct{})
		s := modeltest.New(t, modeltest.Reply{Text: "a text in two halves, the second one late", Until: until})
		begun := false
		turn, err := router(s).Answer(t.Context(), request(provider), func(string) {
			if !begun {
				begun = true
				close(until)
			}
		})
		require.NoError(t, err)
		require.Equal(t, "a text in two halves, the second one late", turn.Text)
	})
}

// A failure says what the answer had used by then. A request that the provider refused has used nothing.
func TestFailedAnswer_SaysWhatItUsed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("half an answer ", 50)
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{Text: text, Break: true}, modeltest.Reply{Text: text, StreamError: "overloaded_error"}, modeltest.Fail(429, "slow down"))
		for _, begun := range []bool{true, true, false} {
			turn, err := router(s).Answer(t.Context(), request(provider), nil)
			require.True(t, jig.CodeOf(err).Retryable())
			require.Equal(t, begun, turn.Begun)
			require.Equal(t, begun, len(turn.Text) > 0)
		}
	})
}

func TestAnswer_UnreachableProviderIsUnavailable(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		down := model.Provider{BaseURL: "http://127.0.0.1:1/v1/"}
		_, err := model.NewRouter(model.Settings{Anthropic: down, OpenAI: down}).Answer(t.Context(), request(provider), nil)
		require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err))
	})
}

func TestCheck_NeedsProviderAndKey(t *testing.T) {
	t.Parallel()
	r := model.NewRouter(model.Settings{HTTPClient: http.DefaultClient})
	for _, name := range []string{"", "gpt", "nobody/x", "anthropic/", "script"} {
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(r.Check(name)), name)
	}
	for name, env := range map[string]string{"anthropic/x": "ANTHROPIC_API_KEY", "openai/x": "OPENAI_API_KEY"} {
		var e *jig.Error
		require.ErrorAs(t, r.Check(name), &e)
		require.Equal(t, jig.CodeNotPermitted, e.Code)
		require.Contains(t, e.Hint, env)
		_, err := r.Answer(t.Context(), chat.Request{Model: name}, nil)
		require.Equal(t, jig.CodeNotPermitted, jig.CodeOf(err))
	}
	require.NoError(t, r.Check("script/any"))
	require.NoError(t, model.NewRouter(model.Settings{OpenAI: model.Provider{BaseURL: "http://localhost:11434/v1"}}).Check("openai/llama/3"))
}

// A stream arrives in chunks that end anywhere, within an event and within a character.
func TestStream_InChunksOfOneByte(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Reply{
			Text: "Grüße, 你好 🙂", Piece: 1000, Chop: true, Calls: []modeltest.Call{{Name: "file__read", Args: `{"path":"ñ"}`}},
		})
		text := ""
		turn, err := router(s).Answer(t.Context(), request(provider), func(p string) { text += p })
		require.NoError(t, err)
		require.Equal(t, "Grüße, 你好 🙂", turn.Text)
		require.Equal(t, turn.Text, text)
		require.JSONEq(t, `{"path":"ñ"}`, string(turn.Calls[0].Input))
		require.Equal(t, chat.Usage{InputTokens: 10, OutputTokens: 5}, turn.Usage)
	})
}

// A model that cannot stream is asked for a document, which may take longer than a stream may be silent.
func TestUnstreamed_TakesPatterns(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"*", "some-*", "some-model"} {
		bothWires(t, func(t *testing.T, provider string) {
			t.Helper()
			s := modeltest.New(t, modeltest.Reply{
				Text: "Hello", Calls: []modeltest.Call{{Name: "file__read", Args: `{"path":"b"}`}}, Usage: modeltest.Usage{Input: 7, Output: 9, CacheRead: 100},
			})
			var pieces []string
			turn, err := router(s, func(s *model.Settings) {
				s.Unstreamed, s.IdleTimeout = []string{"other/*", provider + "/" + pattern}, time.Nanosecond
			}).Answer(t.Context(), request(provider), func(p string) { pieces = append(pieces, p) })
			require.NoError(t, err)
			require.False(t, s.Requests()[0].Stream)
			require.Equal(t, []string{"Hello"}, pieces)
			require.Equal(t, "Hello", turn.Text)
			require.Len(t, turn.Calls, 1)
			require.Equal(t, chat.StopCalls, turn.Stop)
			require.Equal(t, chat.Usage{InputTokens: 7, OutputTokens: 9, CacheReadTokens: 100}, turn.Usage)
		})
	}
}

func TestUnstreamed_OthersStream(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Text("Hello"), modeltest.Fail(400, "Your organization must be verified to stream this model."))
		r := router(s, func(s *model.Settings) { s.Unstreamed = []string{provider + "/some", provider + "/some-other*"} })
		_, err := r.Answer(t.Context(), request(provider), nil)
		require.NoError(t, err)
		require.True(t, s.Requests()[0].Stream)
		_, err = r.Answer(t.Context(), request(provider), nil)
		require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
		require.Contains(t, jig.AsError(err).Hint, model.EnvUnstreamed)
	})
}
