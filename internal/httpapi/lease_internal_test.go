package httpapi

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/tenancy"
)

// unchanged are tenants without documents, and embed tokens that are all valid.
type unchanged struct{ CredentialStore }

func (unchanged) Settings(context.Context, string) (tenancy.Settings, error) {
	return tenancy.Settings{}, nil
}

func (unchanged) ValidCredentials(_ context.Context, ids []string) ([]string, error) { return ids, nil }

// Each visitor of a site has an embed token. The check must take much less than checkEvery, because no stream begins or ends meanwhile.
func BenchmarkCheckLeases(b *testing.B) {
	a := New(Options{Tenants: unchanged{}, Credentials: unchanged{}, MaxStreams: 10_000})
	for i := range 10_000 {
		one := &lease{caller: caller{kind: identity.KindEmbed, id: strconv.Itoa(i), tenant: "acme"}}
		require.NoError(b, a.streams.enter(one))
		_, over := a.streams.hold(b.Context(), one)
		defer over()
	}
	for b.Loop() {
		require.NoError(b, a.checkLeases(b.Context()))
	}
}
