package model_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/modeltest"
)

var broken = flag.Int("broken", 400, "how many broken answers each wire format gets")

// Whatever a provider breaks: an answer says something, no call appears that no entry asked for, and the next request is one that every
// provider accepts. A failure names its seed.
func TestBrokenAnswers_HaveTheirOutcome(t *testing.T) {
	t.Parallel()
	bothWires(t, func(t *testing.T, provider string) {
		t.Helper()
		var next modeltest.Broken
		s := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
			if next.Asked == nil {
				return modeltest.Text("ok")
			}
			return next.Reply
		})
		r := router(s)
		answered := 0
		for seed := range uint64(*broken) {
			var said []chat.Exchange
			for n := range 2 {
				next = modeltest.NewBroken(2*seed+uint64(n), modeltest.Wire(provider), "file__read", n)
				what := fmt.Sprintf("seed %d.%d: %s", seed, n, next.Reply.Body)
				turn, err := r.Answer(t.Context(), request(provider, append(said, chat.Exchange{Messages: user("go")})...), nil)
				if err != nil {
					code := jig.CodeOf(err)
					require.Contains(t, []jig.Code{jig.CodeUnavailable, jig.CodeInvalidOutput, jig.CodeRateLimited}, code, what)
					continue
				}
				answered++
				says := strings.TrimSpace(turn.Text) != "" || len(turn.Calls) > 0 || turn.Stop == chat.StopLength || turn.Stop == chat.StopRefusal
				require.True(t, says, what)
				if !next.Noise {
					requireAsked(t, next, turn, what)
				}
				said = append(said, answering(turn))
			}
			next = modeltest.Broken{}
			for _, other := range []string{"openai", "anthropic"} {
				_, err := r.Answer(t.Context(), request(other, append(said, chat.Exchange{Messages: user("go")})...), nil)
				require.NoError(t, err, "seed %d", seed)
			}
		}
		require.Greater(t, answered, *broken/4, "most answers can be read")
	})
}

// requireAsked requires that each call whose arguments can be read is one that the answer has an entry for, and that none comes twice.
func requireAsked(t *testing.T, b modeltest.Broken, turn chat.Turn, what string) {
	t.Helper()
	require.LessOrEqual(t, len(turn.Calls), len(b.Asked), what)
	seen := map[string]bool{}
	for _, c := range turn.Calls {
		input := string(c.Input)
		if c.Malformed != "" || input == "{}" || strings.Contains(input, `"value":2}`) || strings.Contains(input, "1e400") || strings.Contains(input, ` \ud83d"}`) {
			continue // it is refused
		}
		call := strings.ReplaceAll(c.Name, ".", "__") + " " + input
		require.True(t, b.Asked[call], "%s\n%s", call, what)
		require.False(t, seen[call], what)
		seen[call] = true
	}
}
