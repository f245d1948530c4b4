package store_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
)

// world is a store with a tenant that only this test uses and a session in its first pass.
type world struct {
	*store.DB
	tenant  string
	session string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w, y := observed(t)
	t.Cleanup(func() {
		if !t.Failed() {
			y.agrees(t, w)
		}
	})
	return w
}

func (w world) begin(t *testing.T, pass int) {
	t.Helper()
	_, err := w.BeginPass(t.Context(), w.tenant, w.session, pass)
	require.NoError(t, err)
}

// call returns a valid call of pass 1 that may run.
func (w world) call(ordinal int) jig.Call {
	return jig.Call{
		Tenant: w.tenant, SessionID: w.session, ID: jig.CallID(1, ordinal), Pass: 1, Ordinal: ordinal, Tool: "file.write",
		Version: "v1", Write: true, Input: []byte(`{"path":"a"}`), Digest: "d1", PolicyVersion: "p1",
		Verdict: jig.VerdictRun, Status: jig.CallReserved,
	}
}

func (w world) admit(t *testing.T, calls ...jig.Call) {
	t.Helper()
	a := ledger.Admission{Tenant: w.tenant, SessionID: w.session, Pass: calls[0].Pass, Calls: calls}
	for _, c := range calls {
		if c.Verdict == jig.VerdictAsk {
			a.Approvals = append(a.Approvals, pendingOf(c))
		}
	}
	require.NoError(t, w.Admit(t.Context(), a))
}

func pendingOf(c jig.Call) jig.Pending {
	return jig.Pending{
		Kind: jig.PendingApproval, Call: c.ID, Tool: c.Tool, Input: c.Input, Summary: "writes a", Reasons: []string{"it writes"},
		Digest: c.Digest, RequestedBy: "ana", RequestedAt: time.Now().UTC(), ExpiresAt: time.Now().Add(time.Hour).UTC(),
	}
}

// running admits one call that may run.
func (w world) running(t *testing.T, change func(*jig.Call)) jig.Call {
	t.Helper()
	c := w.call(1)
	if change != nil {
		change(&c)
	}
	w.admit(t, c)
	return c
}

// asking admits one call that needs an approval.
func (w world) asking(t *testing.T) jig.Call {
	t.Helper()
	return w.running(t, func(c *jig.Call) { c.Verdict, c.Status = jig.VerdictAsk, jig.CallWaiting })
}

func (w world) reserve(t *testing.T, c jig.Call) ledger.Reservation {
	t.Helper()
	r, err := w.Reserve(t.Context(), w.request(c))
	require.NoError(t, err)
	return r
}

func (w world) request(c jig.Call) ledger.ReserveRequest {
	return ledger.ReserveRequest{Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input, MaxAttempts: 3}
}

func (w world) complete(t *testing.T, c jig.Call, fence int, status jig.CallStatus) jig.Call {
	t.Helper()
	done, err := w.Complete(t.Context(), ledger.Completion{
		Tenant: w.tenant, SessionID: w.session, CallID: c.ID, Fence: fence, Status: status,
		Result: jig.ToolResult{Success: status == jig.CallSucceeded, Summary: "done", Data: json.RawMessage(`{"n":1}`)},
	})
	require.NoError(t, err)
	return done.Call
}

func (w world) decide(t *testing.T, key string, d jig.Decision) jig.Ruled {
	t.Helper()
	r, err := w.Decide(t.Context(), approval.DecisionRequest{
		Tenant: w.tenant, SessionID: w.session, Key: key, Principal: jig.Principal{ID: cmp.Or(d.By, "somebody"), Claimed: true}, Decision: d, Now: time.Now(),
	})
	require.NoError(t, err)
	w.isCurrent(t, r)
	return r.Ruled
}

// isCurrent checks that a result has the call as the store has it now.
func (w world) isCurrent(t *testing.T, r approval.Applied) {
	t.Helper()
	row, err := w.Call(t.Context(), w.tenant, w.session, r.Ruled.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		require.Nil(t, r.Call)
		return
	}
	require.NoError(t, err)
	require.Equal(t, &row, r.Call)
}

func (w world) row(t *testing.T, c jig.Call) jig.Call {
	t.Helper()
	row, err := w.Call(t.Context(), w.tenant, w.session, c.ID)
	require.NoError(t, err)
	return row
}

// log returns the session's events and checks that their numbers are 1, 2, 3 …
func (w world) log(t *testing.T) []jig.Event {
	t.Helper()
	list, err := w.Events(t.Context(), w.tenant, w.session, 0, 0)
	require.NoError(t, err)
	for i, e := range list {
		require.Equal(t, int64(i+1), e.Seq)
	}
	return list
}

// types lists the types of the session's events, without those that every test session starts with.
func (w world) types(t *testing.T) []string {
	t.Helper()
	var types []string
	for _, e := range w.log(t) {
		types = append(types, string(e.Type))
	}
	begin := []string{"session.started", "message.added", "pass.started"}
	require.Equal(t, begin, types[:3])
	return types[3:]
}

// last returns the data of the latest event of a type.
func (w world) last(t *testing.T, kind jig.EventType) map[string]any {
	t.Helper()
	list := w.log(t)
	for i := range list {
		if e := list[len(list)-1-i]; e.Type == kind {
			var data map[string]any
			require.NoError(t, json.Unmarshal(e.Data, &data))
			return data
		}
	}
	require.Fail(t, "there is no event", kind)
	return nil
}

func requireCode(t *testing.T, code jig.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, jig.CodeOf(err), "%v", err)
}

func big(n int) string { return strings.Repeat("0123456789", n/10+1)[:n] }

// requireSame compares texts that are too large to print.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	if want != got {
		require.Fail(t, "the texts differ", "%d and %d bytes", len(want), len(got))
	}
}

// clock returns the database's time.
func clock(t *testing.T) time.Time {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), storetest.OwnerURL(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var now time.Time
	require.NoError(t, conn.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now))
	return now
}

// requireSince checks that at was taken from the database's clock after began, plus offset.
func requireSince(t *testing.T, began time.Time, offset time.Duration, at time.Time) {
	t.Helper()
	require.False(t, at.Before(began.Add(offset)), "%s is before %s", at, began.Add(offset))
	latest := clock(t).Add(offset)
	require.False(t, at.After(latest), "%s is after %s", at, latest)
}
