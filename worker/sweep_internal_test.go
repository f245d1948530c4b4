package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The table of timeouts in the documentation matches the code.
func TestSweepTimeouts_AreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "timeouts.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("| sweep | closing sessions that were ended from outside | %s | %s | %d |",
		sweepTimeout, sweepHeartbeat, sweepAttempts))
}

// The workers of a task queue share the sweep of a minute.
func TestSweepID_IsTheSameForAMinute(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
	require.Equal(t, "jig-sweep-jig-20260501T1230", sweepID("jig", at))
	require.Equal(t, sweepID("jig", at), sweepID("jig", at.Add(59*time.Second)))
	require.NotEqual(t, sweepID("jig", at), sweepID("jig", at.Add(time.Minute)))
	require.NotEqual(t, sweepID("jig", at), sweepID("other", at))
}

// Commands name the address only if it leads the people of this machine to Temporal.
func TestCommandAddress_OnlyOfThisMachine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:7233": "", "localhost:7233": "", "127.0.0.1:41234": "127.0.0.1:41234", "localhost:41234": "localhost:41234",
		"[::1]:41234": "[::1]:41234", "temporal:7233": "", "temporal.example:41234": "", "": "",
	} {
		require.Equal(t, want, commandAddress(address), address)
	}
}
