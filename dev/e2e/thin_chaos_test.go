package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/entity"
)

// The worker is killed at random moments. Each call must create one entity and one extraction, which completes.
func TestChaos_KillWorkerInThinTools(t *testing.T) { //nolint:paralleltest // it kills the worker of all its calls
	kills, seed := chaos(t, 60, 12, 4)
	random := rand.New(rand.NewPCG(uint64(seed), 7))
	f := newThinToolEnv(t)
	const each = 3
	var sessions []string
	for kill := range kills {
		for n := range each {
			id := jig.SessionID(f.tenant, fmt.Sprintf("thin-%d-%d", kill, n))
			in := client.CallInput{Tenant: f.tenant, Tool: "review.start", Principal: jig.Principal{ID: "tester", Permissions: entityPermissions}}
			in.Input, _ = json.Marshal(map[string]any{"path": fmt.Sprintf("github.com/a/%d-%d", kill, n)}) //nolint:errcheck // a test's literal
			_, err := f.StartCall(t.Context(), in, id)
			require.NoError(t, err)
			sessions = append(sessions, id)
		}
		eventually(t.Context(), time.Duration(random.IntN(400))*time.Millisecond, func() bool { return false })
		f.kill()
		f.start()
	}
	made := map[string]bool{}
	for _, id := range sessions {
		done, err := f.WaitCall(t.Context(), f.tenant, id)
		require.NoError(t, err)
		out := f.begun(done)
		require.True(t, out.Created)
		require.Equal(t, jig.ChildSessionID(id, "1.1"), out.SessionID)
		require.False(t, made[out.EntityID])
		made[out.EntityID] = true
		_, now := f.filled(out.SessionID, entity.Entity{ID: out.EntityID})
		require.Len(t, now.Provenance, 7)
		require.Len(t, f.tasksOf(out.SessionID, jig.EventTaskCompleted), 8)
	}
	require.EqualValues(t, len(sessions), f.reviews())
}
