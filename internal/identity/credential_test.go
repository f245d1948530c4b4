package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

// A credential that somebody else made passes its maker on to what it makes.
func TestMakerOf_PassesTheMakerOn(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		by              jig.Principal
		principal, made string
	}{
		{jig.Principal{ID: "ana"}, "ana", ""},
		{jig.Principal{ID: "ana"}, "ci", "ana"},
		{jig.Principal{ID: "ci", Maker: "ana"}, "ci", "ana"},
		{jig.Principal{ID: "ci", Maker: "ana"}, "bot", "ana"},
		{jig.Principal{ID: "ana", Maker: jig.MakerOperator}, "ana", jig.MakerOperator},
		{jig.Principal{ID: "ana", Maker: jig.MakerOperator}, "ci", "ana"},
	} {
		require.Equal(t, one.made, identity.MakerOf(one.by, one.principal), one)
	}
}
