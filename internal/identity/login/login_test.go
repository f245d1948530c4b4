package login_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/identity/login"
)

func TestCookie(t *testing.T) {
	t.Parallel()
	cookie, id, hash := login.New()
	gotID, gotHash, ok := login.Parse(cookie)
	require.True(t, ok)
	require.Equal(t, id, gotID)
	require.Equal(t, hash, gotHash)
	require.NotContains(t, cookie, string(hash))
	another, _, otherHash := login.New()
	require.NotEqual(t, cookie, another)
	require.NotEqual(t, hash, otherHash)
	for _, bad := range []string{"", id, "jig_" + cookie, cookie + "a", strings.ToUpper(cookie), cookie[:len(cookie)-1] + "1"} {
		_, _, ok := login.Parse(bad)
		require.False(t, ok, bad)
	}
}
