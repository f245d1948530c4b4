package client

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/jig-run/jig"
)

// Whoever waits for Temporal waits while it is silent, and not while it refuses the connection.
func TestUnreachable_TellsSilenceFromARefusal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err          error
		reason, says string
	}{
		"silent":   {context.DeadlineExceeded, ReasonNoTemporal, "no Temporal server answers at 10.0.0.1:7233"},
		"starting": {serviceerror.NewUnavailable("starting"), ReasonNoTemporal, "no Temporal server answers at 10.0.0.1:7233"},
		"refuses":  {serviceerror.NewPermissionDenied("no key", ""), ReasonTemporalRefused, "the Temporal server at 10.0.0.1:7233 refuses the connection"},
	} {
		got := jig.AsError(unreachable("10.0.0.1:7233", row.err))
		require.Equal(t, jig.CodeUnavailable, got.Code, name)
		require.Equal(t, row.reason, got.Reason, name)
		require.Equal(t, row.says, got.Message, name)
		require.ErrorIs(t, got, row.err, name)
	}
}
