package server_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/server"
)

func read(t *testing.T, environ ...string) (server.Settings, error) {
	t.Helper()
	environ = append([]string{"TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")}, environ...)
	return server.ReadSettings(client.SettingsRequest{Environ: environ})
}

// A server whose API keys would travel in clear text does not start, nor does one that cannot know its own name.
func TestStart_RefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	database := "JIG_SERVER_DATABASE_URL=postgres://nobody:hidden@127.0.0.1:1/jig?connect_timeout=2"
	for name, row := range map[string]struct {
		environ []string
		field   string
	}{
		"no database":               {nil, "JIG_SERVER_DATABASE_URL"},
		"everywhere without TLS":    {[]string{database, "JIG_HTTP_ADDR=:8480", "JIG_PUBLIC_URL=https://jig.example.com"}, "JIG_HTTP_ADDR"},
		"a public address":          {[]string{database, "JIG_HTTP_ADDR=10.0.0.1:8480"}, "JIG_HTTP_ADDR"},
		"a host name":               {[]string{database, "JIG_HTTP_ADDR=localhost.example.com:8480"}, "JIG_HTTP_ADDR"},
		"no public URL":             {[]string{database, "JIG_HTTP_ADDR=0.0.0.0:8480", "JIG_PROXIES=10.0.0.5, 10.1.0.0/16"}, "JIG_PUBLIC_URL"},
		"a certificate without key": {[]string{database, "JIG_TLS_CERT=a.crt"}, "JIG_TLS_CERT"},
		"no address":                {[]string{database, "JIG_HTTP_ADDR=8480"}, "JIG_HTTP_ADDR"},
		"a public URL with a path":  {[]string{database, "JIG_PUBLIC_URL=https://example.com/jig"}, "JIG_PUBLIC_URL"},
		"safe":                      {[]string{database, "JIG_HTTP_ADDR=127.0.0.1:0"}, ""},
		"safe behind a proxy":       {[]string{database, "JIG_HTTP_ADDR=:0", "JIG_PROXIES=10.0.0.5, 10.1.0.0/16", "JIG_PUBLIC_URL=https://jig.example.com"}, ""},
		"safe with TLS":             {[]string{database, "JIG_HTTP_ADDR=:0", "JIG_TLS_CERT=a", "JIG_TLS_KEY=b", "JIG_PUBLIC_URL=https://jig.example.com"}, ""},
	} {
		s, err := read(t, row.environ...)
		require.NoError(t, err, name)
		_, err = server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
		require.Equal(t, row.field, jig.AsError(err).Field, "%s: %v", name, err)
		require.NotContains(t, err.Error(), "hidden", name)
		if row.field == "" {
			require.Equal(t, jig.CodeUnavailable, jig.CodeOf(err), "%s: it got as far as the database: %v", name, err)
		}
	}
	for name, environ := range map[string][]string{
		"a public address": {"JIG_HTTP_ADDR=:0", "JIG_TLS_CERT=a", "JIG_TLS_KEY=b", "JIG_PUBLIC_URL=https://jig.example.com"}, "a public name": {"JIG_PUBLIC_URL=https://jig.example.com"},
		"a proxy": {"JIG_PROXIES=10.0.0.5, 10.1.0.0/16"},
	} {
		s, err := read(t, append(environ, database)...)
		require.NoError(t, err, name)
		s.DevLogin = true
		_, err = server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, "development logins", name)
	}
	for _, wrong := range []string{"true", "proxy.example.com", "10.0.0.0/33", "0.0.0.0/0", "::/0"} {
		_, err := read(t, "JIG_PROXIES="+wrong)
		require.Equal(t, "JIG_PROXIES", jig.AsError(err).Field, wrong)
	}
}

// The help and docs/operations.md list the same settings.
func TestDescribe_ListsTheSettings(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)^  (JIG_\w+)`).FindAllStringSubmatch(server.Describe(), -1)
	require.Len(t, listed, 24)
	for _, row := range listed {
		require.Contains(t, string(page), "`"+row[1]+"`")
	}
}
