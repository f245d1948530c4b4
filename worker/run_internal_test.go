package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	environ := []string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml"), "JIG_WORKDIR=" + t.TempDir()}
	for name, row := range map[string]struct {
		args    []string
		environ []string
		code    int
		says    string
	}{
		"no database":       {nil, nil, exitSettings, "JIG_DATABASE_URL is not set"},
		"dead database":     {nil, []string{"JIG_DATABASE_URL=postgres://jig_app:hidden@127.0.0.1:1/jig"}, exitSettings, "127.0.0.1"},
		"bad database URL":  {nil, []string{"JIG_DATABASE_URL=::"}, exitSettings, "JIG_DATABASE_URL"},
		"bad setting":       {nil, []string{"JIG_LOG_LEVEL=loud"}, exitSettings, "JIG_LOG_LEVEL"},
		"migrate nothing":   {[]string{"migrate"}, nil, exitSettings, "JIG_DATABASE_OWNER_URL is not set"},
		"mark nothing":      {[]string{"mark-restored"}, nil, exitSettings, "JIG_DATABASE_URL is not set"},
		"unknown command":   {[]string{"migrat"}, nil, exitSettings, "migrat"},
		"unknown flag":      {[]string{"--nope"}, nil, exitSettings, "--nope"},
		"help of the whole": {[]string{"--help"}, nil, exitDone, ""},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), row.args, append(environ, row.environ...), &stdout, &stderr)
		require.Equal(t, row.code, code, "%s: %s", name, stderr.String())
		require.NotContains(t, stderr.String(), "goroutine ", name)
		require.NotContains(t, stderr.String(), "hidden", "%s: the password", name)
		if row.code != exitDone {
			require.Equal(t, 1, strings.Count(stderr.String(), "error: "), "%s: %s", name, stderr.String())
			require.Contains(t, stderr.String(), row.says, name)
		}
	}
}
