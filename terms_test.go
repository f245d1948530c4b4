package jig_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestExpiryOutcomes_AreOrdered(t *testing.T) {
	t.Parallel()
	require.Zero(t, jig.ExpiryOutcome("").Strictness())
	require.Less(t, jig.ExpiryDeny.Strictness(), jig.ExpiryCancel.Strictness())
	require.Less(t, jig.ExpiryCancel.Strictness(), jig.ExpiryFail.Strictness())
	require.True(t, jig.Terms{OnExpiry: jig.ExpiryDeny}.Plain())
	for _, terms := range []jig.Terms{{OnExpiry: jig.ExpiryFail}, {Remind: 1}, {NotRequester: true}, {Requirements: make([]jig.Requirement, 1)}} {
		require.False(t, terms.Plain())
	}
}

func TestApprovers_AreReadable(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]jig.Approvers{
		"anybody":              {},
		"ana":                  {People: []string{"ana"}},
		"ana or group finance": {People: []string{"ana"}, Groups: []string{"finance"}},
		"ana, group finance or permission refunds.x": {People: []string{"ana"}, Groups: []string{"finance"}, Permission: "refunds.x"},
	} {
		require.Equal(t, want, a.String())
	}
}
