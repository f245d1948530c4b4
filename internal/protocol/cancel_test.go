package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/protocol"
)

func TestCanceledBy_ReadsWhatCancelReasonWrites(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"ana", "https://issuer.example#ana", "ana: not bob", `"ana"`, "ana:", "`ana", "Ana Example", "x\ny"} {
		for _, reason := range []string{"", "not needed", "wrong: order", ": ", `"`} {
			gotBy, got := protocol.CanceledBy(protocol.CancelReason(by, reason))
			require.Equal(t, by, gotBy)
			require.Equal(t, reason, got, by)
		}
	}
	for _, text := range []string{"", "not needed", "canceled by ", "canceled by : x", `canceled by "`, `canceled by "": x`, "Canceled by ana"} {
		by, reason := protocol.CanceledBy(text)
		require.Empty(t, by, text)
		require.Equal(t, text, reason)
	}
	require.Equal(t, "not needed", protocol.CancelReason("", "not needed"))
}
