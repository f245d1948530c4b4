package credential_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/credential"
)

func TestCheckKey_NamesTheField(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past := now.Add(-time.Second)
	good := credential.Credential{Tenant: "acme", Principal: "ci", Scopes: credential.DefaultScopes()}
	require.NoError(t, good.CheckKey(now))
	require.NotContains(t, good.Scopes, credential.ScopeDecide, "nobody decides by default")
	for field, change := range map[string]func(k *credential.Credential){
		"tenant":     func(k *credential.Credential) { k.Tenant = "_global" },
		"principal":  func(k *credential.Credential) { k.Principal = "" },
		"name":       func(k *credential.Credential) { k.Name = strings.Repeat("n", 201) },
		"scopes":     func(k *credential.Credential) { k.Scopes = []string{"everything"} },
		"expires_at": func(k *credential.Credential) { k.ExpiresAt = &past },
	} {
		bad := good
		change(&bad)
		require.Equal(t, field, jig.AsError(bad.CheckKey(now)).Field)
	}
	good.Scopes = nil
	require.Equal(t, jig.CodeMissingParam, jig.CodeOf(good.CheckKey(now)))
}
