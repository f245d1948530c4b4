package temporalserver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRelay_KeepsLevelMessageAndAttributes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	p := &process{}
	w := &lines{each: func(line []byte) { p.relay(t.Context(), log, line) }}
	for _, part := range []string{
		`{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"slow","shard":3,"a":"b"}` + "\n" + `{"level":"IN`,
		`FO","msg":"not wanted"}` + "\n\n" + "panic: no JSON\n", "no end",
	} {
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
	}
	require.Equal(t, "level=WARN msg=slow a=b shard=3\n", out.String())
	require.Equal(t, "; it wrote:\npanic: no JSON", p.said.String())
}

// A normal stop shows no errors of services that end before others.
func TestRelay_LowersTheLevelDuringTheShutdown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	p, line := &process{}, []byte(`{"level":"ERROR","msg":"service failures","error":"task queue closed"}`)
	p.relay(t.Context(), log, line)
	require.Contains(t, out.String(), "level=ERROR")
	out.Reset()
	p.asked.Store(true)
	p.relay(t.Context(), log, line)
	require.Empty(t, out.String())
	p.relay(t.Context(), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), line)
	require.Contains(t, out.String(), "level=DEBUG")
}

func TestHead_KeepsTheFirstLines(t *testing.T) {
	t.Parallel()
	var h head
	require.Empty(t, h.String())
	for range 3 * headLines {
		h.add([]byte("line"))
	}
	require.Equal(t, headLines, strings.Count(h.String(), "\nline"))
}

func TestLowest_FollowsTheLogger(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	require.Equal(t, slog.LevelWarn, lowest(ctx, slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	require.Greater(t, lowest(ctx, slog.New(slog.DiscardHandler)), slog.LevelError)
}
