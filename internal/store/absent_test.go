package store_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// Waiting helps against a server that does not answer, and not against a wrong setting.
func TestAbsent_TellsASilentServerFromAWrongSetting(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for name, row := range map[string]struct {
		change func(u *url.URL)
		absent bool
	}{
		"nobody listens":        {func(u *url.URL) { u.Host = "127.0.0.1:1" }, true},
		"it hangs up":           {func(u *url.URL) { u.Host = listener.Addr().String() }, true},
		"an unknown host":       {func(u *url.URL) { u.Host = "nothing.invalid:5432" }, true},
		"a wrong password":      {func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong") }, false},
		"an unknown role":       {func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") }, false},
		"no such database":      {func(u *url.URL) { u.Path = "/nothing" }, false},
		"a server without TLS":  {func(u *url.URL) { u.RawQuery = "sslmode=require" }, false},
		"not a URL of a server": {func(u *url.URL) { *u = url.URL{Path: "::"} }, false},
	} {
		u, err := url.Parse(storetest.URL(t))
		require.NoError(t, err)
		row.change(u)
		_, err = store.Open(t.Context(), u.String(), store.Options{})
		require.Error(t, err, name)
		require.Equal(t, row.absent, store.Absent(err), "%s: %v", name, err)
	}
}
