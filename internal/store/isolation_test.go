package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/store/storetest"
)

// owned returns a tenant that has at least one row of every kind.
func owned(t *testing.T) (w world, asking jig.Call, artifact string) {
	t.Helper()
	w = newWorld(t)
	_, err := w.SaveTurn(t.Context(), w.tenant, w.session, 1, chat.Turn{Text: "secret"})
	require.NoError(t, err)
	asking = w.asking(t)
	doubtful := w.call(2)
	w.admit(t, doubtful)
	w.reserve(t, doubtful)
	w.reserve(t, doubtful)
	read := w.call(3)
	read.Write, read.Idempotent = false, true
	w.admit(t, read)
	doubtful.ID, doubtful.Ordinal, doubtful.Idempotent = "1.4", 4, true
	w.admit(t, doubtful)
	f, err := w.BeginFrame(t.Context(), w.composition(doubtful, w.reserve(t, doubtful).Fence))
	require.NoError(t, err)
	w.receive(t, "e", "secret", `"secret"`)
	m := w.moving(f, asks(w.step(f, "secret")))
	m.Values, m.Consumed = map[string]json.RawMessage{"secret": []byte(`"secret"`)}, []int64{1}
	w.move(t, m)
	require.Nil(t, claimed(t, w, ledger.CallName{SessionID: w.session, Call: "1.2"}, ledger.CallName{SessionID: w.session, Call: "secret"}))
	w.say(t, "m", "secret")
	w.decide(t, "none", jig.Decision{Call: "9.9", Answer: jig.AnswerApprove})
	_, err = w.EndPass(t.Context(), w.end(1, jig.StatusWorking))
	require.NoError(t, err)
	artifact, err = w.PutArtifact(t.Context(), w.tenant, w.session, "text/plain", []byte("secret"))
	require.NoError(t, err)
	by := jig.Invocation{Tenant: w.tenant, SessionID: w.session, CallID: "1.1"}
	require.NoError(t, w.RegisterDocuments(t.Context(), by, bundle.Register{Documents: []bundle.StoredDocument{{DocumentVersion: document("agent/secret@v1"), Body: []byte("secret")}}}))
	_, err = w.InstallBundle(t.Context(), by, bundleOf("secret", "1.0.0", nil, "agent/secret-of-bundle@v1"))
	require.NoError(t, err)
	require.NoError(t, w.PutGrant(t.Context(), jig.Grant{
		Tenant: w.tenant, ID: "grt_secret", Tool: "secret", When: "true", MaxUses: 1, ExpiresAt: time.Now().Add(time.Hour), By: []string{"ana"},
	}))
	_, err = w.Pause(t.Context(), w.tenant, jig.Pause{Scope: jig.PauseTool, Target: "secret.tool", By: "ana", At: time.Now()},
		&identity.Evidence{Key: "secret", Token: "secret", Until: time.Now(), Request: "secret"})
	require.NoError(t, err)
	held := budget.Reservation{Tenant: w.tenant, SessionID: w.session, Key: "call 1.2", Attempt: "secret", Claims: []budget.Claim{claim(1, 2)}}
	require.True(t, w.book(t, held))
	require.NoError(t, w.SettleBudget(t.Context(), budget.Settlement{
		Reservation: held, Spent: []budget.Amount{{Tokens: 1}}, Record: &budget.Record{Pass: 1, CallID: "1.2", Model: "secret"},
	}))
	_, err = w.AskRateLimits(t.Context(), w.wants("1.2", slots("secret", 1)))
	require.NoError(t, err)
	notice := w.column(t, "select id from notices")[0]
	require.NoError(t, w.OpenDeliveries(t.Context(), w.tenant, notice, "v1", []string{"secret"}))
	return w, asking, artifact
}

// dump returns everything that a tenant has.
func (w world) dump(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, w.ExportTenant(t.Context(), w.tenant, &b))
	return b.String()
}

// A tenant that knows every id of another tenant cannot use them.
func TestTenants_AreSeparated(t *testing.T) {
	t.Parallel()
	w, c, artifact := owned(t)
	before := w.dump(t)
	require.Contains(t, before, "secret")
	thief := storetest.Tenant(t)
	storetest.Session(t, w.DB, thief)
	ctx, id, now := t.Context(), w.session, time.Now().Add(1000*time.Hour)
	stolen := c
	stolen.Tenant, stolen.Digest = thief, "d9"
	p := pendingOf(stolen)
	completion := ledger.Completion{Tenant: thief, SessionID: id, CallID: "1.2", Fence: 1, Status: jig.CallSucceeded}
	given := completion
	given.Status = jig.CallReserved
	decision := jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}
	for name, try := range map[string]func() error{
		"Session":   func() error { _, err := w.Session(ctx, thief, id); return err },
		"BeginPass": func() error { _, err := w.BeginPass(ctx, thief, id, 7); return err },
		"StoreAnswer": func() error {
			_, err := w.StoreAnswer(ctx, ledger.Answer{Admission: ledger.Admission{Tenant: thief, SessionID: id, Pass: 2}})
			return err
		},
		"SaveTurn":     func() error { _, err := w.SaveTurn(ctx, thief, id, 2, chat.Turn{}); return err },
		"SaveTurn big": func() error { _, err := w.SaveTurn(ctx, thief, id, 2, chat.Turn{Text: big(50_000)}); return err },
		"ReserveBudget": func() error {
			_, err := w.ReserveBudget(ctx, budget.Request{Reservation: budget.Reservation{Tenant: thief, SessionID: id, Key: "k", Claims: []budget.Claim{claim(1, 2)}}})
			return err
		},
		"SettleBudget": func() error {
			return w.SettleBudget(ctx, budget.Settlement{
				Reservation: budget.Reservation{Tenant: thief, SessionID: id, Key: "k", Claims: []budget.Claim{claim(1, 2)}}, Spent: []budget.Amount{{}},
			})
		},
		"RefuseBudget": func() error {
			return w.RefuseBudget(ctx, budget.Refusal{Reservation: budget.Reservation{Tenant: thief, SessionID: id, Key: "k"}, Reason: "x"})
		},
		"AskRateLimits": func() error {
			r := w.wants("1.2", slots("secret", 1))
			r.Tenant = thief
			_, err := w.AskRateLimits(ctx, r)
			return err
		},
		"SessionRoot":   func() error { _, err := w.SessionRoot(ctx, thief, id); return err },
		"SaveSummary":   func() error { return w.SaveSummary(ctx, thief, id, 1, "x") },
		"SetTodo":       func() error { return w.SetTodo(ctx, thief, id, []byte("[]")) },
		"AddMessage":    func() error { _, err := w.AddMessage(ctx, thief, id, "x", chat.Message{Text: "x"}); return err },
		"PassState":     func() error { _, err := w.PassState(ctx, thief, id, 1); return err },
		"EndPass":       func() error { _, err := w.EndPass(ctx, ledger.End{Tenant: thief, SessionID: id, Pass: 2}); return err },
		"CancelSession": func() error { return w.CancelSession(ctx, ledger.End{Tenant: thief, SessionID: id}) },
		"Admit": func() error {
			return w.Admit(ctx, ledger.Admission{Tenant: thief, SessionID: id, Pass: 2, Calls: []jig.Call{stolen}})
		},
		"Call": func() error { _, err := w.Call(ctx, thief, id, c.ID); return err },
		"Reserve": func() error {
			_, err := w.Reserve(ctx, ledger.ReserveRequest{Tenant: thief, SessionID: id, CallID: c.ID, Version: c.Version, Digest: c.Digest})
			return err
		},
		"Complete":      func() error { _, err := w.Complete(ctx, completion); return err },
		"Complete back": func() error { _, err := w.Complete(ctx, given); return err },
		"Decide": func() error {
			_, err := w.Decide(ctx, approval.DecisionRequest{Tenant: thief, SessionID: id, Key: "x", Decision: decision})
			return err
		},
		"Reconcile": func() error {
			r := jig.Reconciliation{Call: "1.2", Outcome: jig.OutcomeHappened}
			_, err := w.Reconcile(ctx, approval.ReconcileRequest{Tenant: thief, SessionID: id, Key: "x", Reconciliation: r})
			return err
		},
		"Refuse":       func() error { return w.Refuse(ctx, thief, id, "x", "x", nil) },
		"Lapse":        func() error { _, err := w.Lapse(ctx, thief, id, c.ID, nil, now); return err },
		"Readmit":      func() error { _, err := w.Readmit(ctx, stolen, stolen, &p); return err },
		"Pending":      func() error { _, err := w.Pending(ctx, thief, id, c.ID); return err },
		"AppendEvents": func() error { return w.AppendEvents(ctx, thief, id, jig.Event{Type: "custom.x"}) },
		"ReadArtifact": func() error { _, _, err := w.ReadArtifact(ctx, thief, artifact, 0, 10); return err },
		"SessionView":  func() error { _, err := w.SessionView(ctx, thief, id); return err },
		"ReadPass":     func() error { _, err := w.ReadPass(ctx, thief, id, 1, 0, 10); return err },
		"CallsOf":      func() error { _, _, err := w.CallsOf(ctx, thief, id, []string{c.ID}); return err },
		"Document":     func() error { _, err := w.Document(ctx, thief, "agent", "secret"); return err },
		"DocumentAt":   func() error { _, err := w.DocumentAt(ctx, thief, "agent", "secret", "v1"); return err },
		"Frame":        func() error { _, err := w.Frame(ctx, thief, id, "1.4"); return err },
		"BeginFrame": func() error {
			_, err := w.BeginFrame(ctx, plan.Frame{Tenant: thief, SessionID: id, CallID: "1.4", Fence: 9})
			return err
		},
		"MoveFrame": func() error {
			return w.MoveFrame(ctx, plan.FrameMove{
				Tenant: thief, SessionID: id, CallID: "1.4", Revision: 1, Cancel: []string{"1.4/secret"}, Consumed: []int64{1},
				Values: map[string]json.RawMessage{"x": []byte(`1`)},
			})
		},
		"Document of a bundle": func() error { _, err := w.Document(ctx, thief, "agent", "secret-of-bundle"); return err },
		"RemoveBundle": func() error {
			_, _, err := w.RemoveBundle(ctx, jig.Invocation{Tenant: thief}, "secret", "")
			return err
		},
		"WithdrawDocuments": func() error {
			_, err := w.WithdrawDocuments(ctx, jig.Invocation{Tenant: thief}, []bundle.Key{{Kind: "agent", Name: "secret"}}, "")
			return err
		},
		"Receive": func() error { _, err := w.Receive(ctx, thief, id, "x", plan.ReceivedEvent{Name: "x"}); return err },
	} {
		err := try()
		require.Error(t, err, name)
		require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "%s: %v", name, err)
	}

	list, err := w.Events(ctx, thief, id, 0, 0)
	require.NoError(t, err)
	require.Empty(t, list)
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	list, err = w.WaitEvents(short, thief, id, 0, 0)
	require.NoError(t, err)
	require.Empty(t, list)
	for batch := range w.Subscribe(short, thief, id, 0) {
		require.Empty(t, batch)
	}
	win, err := w.Window(ctx, thief, id, 1, 10)
	require.NoError(t, err)
	require.Empty(t, win.Calls)
	equal, err := w.EqualCalls(ctx, thief, id, 2, []string{c.Signature})
	require.NoError(t, err)
	require.Empty(t, equal)
	written, err := w.Written(ctx, thief, id, []string{"file.write"}, 10)
	require.NoError(t, err)
	require.Empty(t, written)
	_, err = w.ClaimUndo(ctx, thief, ledger.CallName{SessionID: id, Call: "1.2"}, ledger.CallName{SessionID: id, Call: "1.3"})
	requireCode(t, jig.CodeNotFound, err)
	win, err = w.FrameWindow(ctx, thief, id, "1.4")
	require.NoError(t, err)
	require.Empty(t, win.Calls)
	values, err := w.FrameValues(ctx, thief, id, "1.4", []string{"secret"})
	require.NoError(t, err)
	require.Empty(t, values)
	current, err := w.CurrentDocuments(ctx, thief, "agent")
	require.NoError(t, err)
	require.Empty(t, current)
	bundles, err := w.Bundles(ctx, thief)
	require.NoError(t, err)
	require.Empty(t, bundles)
	bundleNames, err := w.BundleNames(ctx, thief)
	require.NoError(t, err)
	require.Empty(t, bundleNames)
	replaced := bundle.Key{Kind: "agent", Name: "secret"}
	for tenant, want := range map[string]bool{w.tenant: true, thief: false} {
		snapshot, err := w.DocumentSnapshot(ctx, tenant, "", []bundle.Key{replaced})
		require.NoError(t, err)
		_, seen := snapshot.Seen(replaced)
		require.Equal(t, want, seen, "the document that a registration replaces is one of the tenant")
	}
	_, foreign, err := w.PendingApprovals(ctx, w.tenant, "", 1)
	require.NoError(t, err)
	require.NotEmpty(t, foreign)
	waiting, _, err := w.PendingApprovals(ctx, thief, "", 0)
	require.NoError(t, err)
	require.Empty(t, waiting)
	_, _, err = w.PendingApprovals(ctx, thief, foreign, 0)
	requireCode(t, jig.CodeInvalidInput, err)
	require.NoError(t, w.NoteHeld(ctx, thief, id, "1.4"))
	require.NoError(t, w.NoteHeld(ctx, thief, id, ""))
	for _, filter := range []protocol.SessionFilter{{}, {Children: true}, {ParentID: id}, {RequestedBy: "ana"}} {
		sessions, _, err := w.ListSessions(ctx, thief, filter, "", 0)
		require.NoError(t, err)
		for _, s := range sessions {
			require.NotEqual(t, id, s.SessionID)
			require.NotEqual(t, id, s.ParentID)
		}
	}
	names, err := w.DocumentNames(ctx, thief, "agent")
	require.NoError(t, err)
	require.NotContains(t, names, "secret")
	require.NoError(t, w.AppendArtifact(ctx, thief, artifact, 0, []byte("own")), "its own artifact with the same id")
	quick, err := w.FinishQuick(ctx, thief, id, []ledger.QuickCompletion{{CallID: "1.3", Version: "v1", Digest: "d1", Status: jig.CallSucceeded}})
	require.NoError(t, err)
	require.Empty(t, quick)
	gone, err := w.PruneTenant(ctx, thief, now)
	require.NoError(t, err)
	require.Zero(t, gone)
	require.NotContains(t, world{DB: w.DB, tenant: thief}.dump(t), "secret")
	require.NoError(t, w.EraseTenant(ctx, thief))
	for _, tenant := range []string{"", jig.GlobalTenant} {
		requireCode(t, jig.CodeInvalidInput, w.EraseTenant(ctx, tenant))
	}
	require.Equal(t, before, w.dump(t), "nothing has changed")
}

// SQL of the application role is limited by the tenant that is set and by the role's privileges.
func TestRowLevelSecurity_BindsTheRole(t *testing.T) {
	t.Parallel()
	w, _, _ := owned(t)
	tables := []string{
		"tenants", "sessions", "messages", "turns", "pass_ends", "events", "calls", "approvals", "decisions", "artifacts",
		"artifact_chunks", "documents", "frames", "frame_values", "undos", "received", "received_consumed",
		"grants", "pauses", "notices", "notice_deliveries", "audit", "audit_heads", "bundles", "used_tokens",
		"budget_counters", "budget_reservations", "usage_records", "rate_buckets", "rate_calls", "askers",
	}
	count := func(tx pgx.Tx, table string) (n int) {
		require.NoError(t, tx.QueryRow(t.Context(), "select count(*) from "+table+" where tenant_id <> '_global'").Scan(&n), table)
		return n
	}
	direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
		for _, table := range tables {
			require.Positive(t, count(tx, table), table)
		}
	})
	for _, tenant := range []string{"", storetest.Tenant(t), jig.GlobalTenant} {
		direct(t, storetest.URL(t), tenant, func(tx pgx.Tx) {
			for _, table := range tables {
				require.Zero(t, count(tx, table), table)
			}
			tag, err := tx.Exec(t.Context(), "update sessions set task = 'mine' where session_id = $1", w.session)
			require.NoError(t, err)
			require.Zero(t, tag.RowsAffected())
			_, err = tx.Exec(t.Context(), "select set_config('jig.sweep', 'on', true)")
			require.NoError(t, err)
			require.Zero(t, count(tx, "sessions"), "the setting jig.sweep works only for the owner")
		})
	}
	for sql, state := range map[string]string{
		"delete from sessions":         "42501",
		"delete from bundles":          "42501",
		"delete from retired_sessions": "42501",
		"insert into retired_sessions (tenant_id, id_hash) values ('x', sha256('x'))": "42501",
		"update installation set id = 'other'":                                        "42501",
		"delete from used_tokens":                                                     "42501",
		"delete from budget_counters":                                                 "42501",
		"delete from rate_calls":                                                      "42501",
		"update usage_records set cost = 0":                                           "42501",
		"insert into usage_days (tenant_id) values ('x')":                             "42501",
		"update used_tokens set token = 'another'":                                    "42501",
		"delete from settled_calls":                                                   "42501",
		"update settled_calls set told_at = now()":                                    "42501",
		"delete from frames":                                                          "42501",
		"update received set by = 'me'":                                               "42501",
		"update frames set tenant_id = 'another'":                                     "42501",
		"delete from events":                                                          "42501",
		"truncate calls":                                                              "42501",
		"update events set type = 'custom.x'":                                         "42501",
		"update documents set body = ''":                                              "42501",
		"alter table sessions disable row level security":                             "42501",
		"update sessions set tenant_id = 'another'":                                   "42501",
		"insert into tenants (tenant_id) values ('another')":                          "42501",
		"insert into tenants (tenant_id) values ('_global') on conflict do nothing":   "42501",
	} {
		direct(t, storetest.URL(t), w.tenant, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), sql)
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg, sql)
			require.Equal(t, state, pg.Code, sql)
		})
	}
}
