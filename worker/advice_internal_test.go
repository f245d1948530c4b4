package worker

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

func TestAdvise_WarnsOfToolsThatMayBeMisunderstood(t *testing.T) {
	t.Parallel()
	type input struct {
		Path string `json:"path" jsonschema:"path of the file"`
	}
	tool := func(name, description string) tools.Tool {
		return tools.New(jig.Tool{Name: name, Description: description, Permission: jig.PermissionRead},
			func(context.Context, jig.Invocation, input) (struct{}, error) { return struct{}{}, nil })
	}
	registry, err := tools.NewRegistry(
		tool("disk.readFile", "Deletes the files at `path` for good and returns what was there before."),
		tool("disk.size", "Returns the size in bytes of the file at `path` on the disk of the server."),
	)
	require.NoError(t, err)
	var log bytes.Buffer
	advise(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), registry)
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "tool=disk.readFile")
	require.Contains(t, log.String(), "a tool may be misunderstood: ")
	require.NotContains(t, log.String(), "tool=disk.size")
}
