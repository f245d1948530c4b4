package apikey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/apikey"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past := now.Add(-time.Second)
	good := apikey.Key{Tenant: "acme", Principal: "ci", Scopes: apikey.DefaultScopes()}
	require.NoError(t, good.Check(now))
	require.False(t, good.Allows(apikey.ScopeDecide), "nobody decides by default")
	for field, change := range map[string]func(k *apikey.Key){
		"tenant":     func(k *apikey.Key) { k.Tenant = "_global" },
		"principal":  func(k *apikey.Key) { k.Principal = "" },
		"name":       func(k *apikey.Key) { k.Name = strings.Repeat("n", 201) },
		"scopes":     func(k *apikey.Key) { k.Scopes = []string{"everything"} },
		"expires_at": func(k *apikey.Key) { k.ExpiresAt = &past },
	} {
		bad := good
		change(&bad)
		require.Equal(t, field, jig.AsError(bad.Check(now)).Field)
	}
	good.Scopes = nil
	require.Equal(t, jig.CodeMissingParam, jig.CodeOf(good.Check(now)))
}
