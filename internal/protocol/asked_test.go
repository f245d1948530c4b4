package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/protocol"
)

func TestSummary_NamesTheAgentAndTheTask(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		want  string
		start protocol.StartSession
	}{
		{"review", protocol.StartSession{}},
		{"review: check it", protocol.StartSession{Task: " check it\nand more"}},
		{"review: check it", protocol.StartSession{Task: "check it", Input: json.RawMessage(`{"path":"."}`)}},
		{"review: depth=2, path=.", protocol.StartSession{Pairs: map[string]string{"path": ".", "depth": "2"}}},
		{"review: path=.", protocol.StartSession{Input: json.RawMessage("{\n  \"path\": \".\"\n}")}},
		{"review: input in artifact art_1234", protocol.StartSession{InputArtifact: "art_1234"}},
	} {
		require.Equal(t, row.want, protocol.Summary("review", row.start.Asked()))
	}
	require.Equal(t, "check it", protocol.Summary("", "check it"))
	require.Less(t, len(protocol.Summary("review", strings.Repeat("x", 5000))), 210)
}

func TestAsked_HasTheTaskAndTheInput(t *testing.T) {
	t.Parallel()
	start := protocol.StartSession{Task: "check it\nand more", Pairs: map[string]string{"path": "."}, Input: json.RawMessage(`{"depth": 2}`)}
	require.Equal(t, "check it\nand more\npath=.\ndepth=2", start.Asked())
	call := protocol.CallInput{Input: json.RawMessage(`{"path": "a.md"}`)}
	require.Equal(t, "file.write: path=a.md", protocol.Summary("file.write", call.Asked()))
	for _, empty := range []string{"", "{}", "null"} {
		require.Empty(t, protocol.CallInput{Input: json.RawMessage(empty)}.Asked())
	}
	require.Less(t, len(protocol.Excerpt(strings.Repeat("x", 5000))), 1100)
}

func TestAsked_IsTheSameForPairsAndJSON(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"order": "7", "items": ["a", 2], "fail": false}`)
	want := `fail=false, items=["a",2], order=7`
	require.Equal(t, want, protocol.CallInput{Input: input}.Asked())
	require.Equal(t, want, protocol.CallInput{Pairs: map[string]string{"order": "7", "items": `["a", 2]`, "fail": "false"}}.Asked())
}
