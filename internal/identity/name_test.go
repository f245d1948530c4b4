package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

func TestCheckName_WantsVisibleNames(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"ana", "Ana Ferreira", "ci-1", "müller", "анна", "https://login.example.com#1", "李"} {
		require.NoError(t, identity.CheckName(good), good)
	}
	for _, bad := range []string{"ana ", " ana", "\u00a0ana", "a\nb", "ana\x00", "a\u200bna", "ana\u202e", "ana\ufeff", "mu\u0308ller", "a\u00a0b", "ana\u200d", "\xff", "a\tb"} {
		require.Equal(t, "principal", jig.AsError(identity.CheckName(bad)).Field, "%q", bad)
	}
}

func TestResembles_LooksAlike(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"Ana", "ANA", "\u0430na", "an\u0430", "\uff41\uff4e\uff41", "a\u200bna", "ana ", "\u00e1na", "\U0001d41ana", "\u0391n\u03b1"} {
		require.True(t, identity.Resembles("ana", other), "%q", other)
	}
	require.True(t, identity.Resembles("paul", "pau1"))
	require.True(t, identity.Resembles("bob", "b0b"))
	require.True(t, identity.Resembles("ci_bot", "ci\u2010bot"))
	for _, other := range []string{"ana", "anna", "an", "ben", "ana2"} {
		require.False(t, identity.Resembles("ana", other), other)
	}
}
