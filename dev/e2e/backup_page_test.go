package e2e_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/dev/internal/pg"
	"github.com/jig-run/jig/dev/internal/stack"
)

// The commands of the page make a backup and restore it. An effect that happened after the backup does not happen again.
func TestOperationsPage_BackingUpAndRestoring(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the page needs PostgreSQL's client programs, and " + program + " is not installed")
		}
	}
	var commands []string
	for _, f := range codeBlocks(t, operationsPage) {
		if f.section == "Backing up and restoring" {
			commands = append(commands, f.body)
		}
	}
	require.Len(t, commands, 2)
	h, r := newRestartEnv(t), newReceiver(t)
	h.install("tenant.yaml", h.tenantDocument(""), func(id string) { h.decided(id, jig.Decision{By: "operator", Answer: jig.AnswerApprove}) })
	waits := h.trigger("test.once", map[string]any{"url": r.URL, "name": "once"})
	require.Equal(t, jig.CallWaiting, waits.Status, "%+v", waits.Result)
	h.close()
	h.alone(func() { h.follow(commands[0]) })
	h.open()
	require.Equal(t, jig.CallReserved, h.decided(waits.SessionID, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status)
	h.ends(waits.SessionID)
	require.Equal(t, 1, r.requests("once"))

	h.close()
	h.alone(func() { h.follow(commands[1]) })
	h.open()
	require.Equal(t, jig.CallReserved, h.decided(waits.SessionID, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Status, "the backup knows of no decision")
	view := h.waitFor(waits.SessionID, func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Kind == jig.PendingReconcile })
	ruled, err := h.Reconcile(t.Context(), h.tenant, waits.SessionID, jig.Reconciliation{
		Call: view.Pending[0].Call, By: "ana", Attempt: view.Pending[0].Attempt, Outcome: jig.OutcomeHappened, Result: []byte(`{"status":204}`),
	})
	require.NoError(t, err)
	require.Equal(t, jig.DecisionAccepted, ruled.Decisions[0].Outcome, ruled.Decisions[0].Reason)
	h.ends(waits.SessionID)
	require.Equal(t, 1, r.requests("once"))
}

// alone starts the environment's PostgreSQL without Temporal while do runs.
func (h *restartEnv) alone(do func()) {
	h.t.Helper()
	server, err := pg.New(h.t.Context(), pg.Options{Dir: filepath.Join(h.data, "pg")})
	require.NoError(h.t, err)
	require.NoError(h.t, server.Start(h.t.Context()))
	defer func() {
		ctx, cancel := shutdownContext(h.t)
		defer cancel()
		require.NoError(h.t, server.Close(ctx))
	}()
	_, number, err := net.SplitHostPort(server.Addr())
	require.NoError(h.t, err)
	h.env = append(h.env, "PGHOST=127.0.0.1", "PGUSER="+pg.Superuser, "PGPASSWORD="+server.Password(pg.Superuser), "PGPORT="+number,
		"JIG_DATABASE_URL="+server.URL(stack.AppRole, "jig"))
	do()
}

// follow runs commands of a page.
func (h *restartEnv) follow(commands string) {
	h.t.Helper()
	got := h.command("sh", "-ec", commands)
	require.Zero(h.t, got.code, got.err)
}
