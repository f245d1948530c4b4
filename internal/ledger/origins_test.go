package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
)

func TestOrigins_OnlyThePrincipalTypes(t *testing.T) {
	t.Parallel()
	for source, typed := range map[jig.Source]bool{
		jig.SourceCLI: true, jig.SourceAPI: true, jig.SourceSchedule: true, jig.SourceWeb: false, jig.SourceMCP: false, jig.SourceAgent: false, "": false,
	} {
		o := ledger.Origins{Source: source, Task: "task", Input: []byte(`{"a":1}`), Messages: []string{"message"}}
		if typed {
			require.Equal(t, []string{"task", `{"a":1}`, "message"}, o.Typed(), source)
		} else {
			require.Empty(t, o.Typed(), source)
		}
	}
}
