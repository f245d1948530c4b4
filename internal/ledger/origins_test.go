package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestOrigins_OnlyThePrincipalTypes(t *testing.T) {
	t.Parallel()
	const start = "what the session was started with"
	for source, typed := range map[jig.Source]bool{
		jig.SourceCLI: true, jig.SourceAPI: true, jig.SourceSchedule: true, jig.SourceWeb: false, jig.SourceMCP: false, jig.SourceAgent: false, "": false,
	} {
		o := ledger.Origins{
			Source: source, Task: "task", Input: []byte(`{"a":1}`),
			Messages: []ledger.OriginMessage{{Text: "mine", By: "ana", Typed: true}, {Text: "another's", By: "hook"}},
			Events:   []ledger.OriginEvent{{Name: "paid", Data: []byte(`{"sum":2}`)}},
		}
		others := []ledger.OriginText{{What: "a message of hook", Text: "another's"}, {What: "the event paid", Text: `{"sum":2}`}}
		if typed {
			require.Equal(t, []string{"task", `{"a":1}`, "mine"}, o.Typed(), source)
			require.Equal(t, others, o.Told(), source)
		} else {
			require.Empty(t, o.Typed(), source)
			require.Equal(t, append([]ledger.OriginText{
				{What: start, Text: "task"}, {What: start, Text: `{"a":1}`}, {What: "a message of ana", Text: "mine"},
			}, others...), o.Told(), source)
		}
	}
}
