package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

func noon() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// writing returns a call of file.write with a status, which policy lets run. fence attempts have begun, the latest as att_1.
func writing(status jig.CallStatus, fence int) ledger.State {
	return ledger.State{
		State: approval.State{Tenant: "acme", SessionID: "ses_1", Call: &approval.Call{
			ID: "1.1", Tool: "file.write", Pass: 1, Status: status, Input: []byte(`{"path":"a"}`), Digest: "d1", PolicyVersion: "p1",
			Fence: fence, Write: true,
		}},
		Version: "v1", Verdict: jig.VerdictRun, Attempt: "att_1", Now: noon(),
	}
}

// asking returns a call of file.write that policy asks about, with its latest approval.
func asking(status jig.CallStatus, latest *approval.Record) ledger.State {
	s := writing(status, 0)
	s.Verdict, s.Open, s.Latest = jig.VerdictAsk, latest, latest
	return s
}

// approvedBy returns an approval of the call by ana, which no attempt has used.
func approvedBy(digest string) *approval.Record {
	return &approval.Record{
		Status: approval.Approved, ApprovedDigest: digest, DecidedBy: "ana",
		Pending: jig.Pending{Kind: jig.PendingApproval, Call: "1.1", Tool: "file.write", Digest: digest, Summary: "writes a file"},
	}
}

// openApproval returns the open approval of the call.
func openApproval() *approval.Record {
	r := approvedBy("d1")
	r.Status, r.ApprovedDigest, r.DecidedBy = approval.Open, "", ""
	return r
}

// told describes the events, notices and audit rows of a transition: "event tool.started", "notice approval.decided", "audit withdrawn".
func told(t ledger.Transition) []string {
	var list []string
	for _, e := range t.Events {
		list = append(list, "event "+string(e.Type))
	}
	for _, n := range t.Notices {
		list = append(list, "notice "+string(n.Kind))
	}
	for _, e := range t.Audit {
		list = append(list, "audit "+string(e.Kind))
	}
	return list
}

// statusAfter returns the status of a call after a transition.
func statusAfter(s ledger.State, t ledger.Transition) jig.CallStatus {
	switch {
	case t.Begins != nil:
		return jig.CallExecuting
	case t.Readmits != nil:
		return t.Readmits.Status
	case t.Call != nil:
		return t.Call.Status
	}
	return s.Call.Status
}

// requireUnknown checks that a transition makes the outcome unknown and asks a person, with the given reason.
func requireUnknown(t *testing.T, got ledger.Transition, why string) {
	t.Helper()
	require.Equal(t, &approval.CallChange{Status: jig.CallUnknown}, got.Call)
	require.Equal(t, jig.PendingReconcile, got.Opens.Kind)
	require.Len(t, got.Opens.Reasons, 1)
	require.Contains(t, got.Opens.Reasons[0], why)
	require.Equal(t, noon(), got.Opens.RequestedAt)
	require.Zero(t, got.Opens.ExpiresAt, "the question never expires")
	require.Contains(t, told(got), "event tool.outcome_unknown")
	require.Contains(t, told(got), "notice approval.requested")
}

// statuses returns every status of a call.
func statuses() []jig.CallStatus {
	return []jig.CallStatus{
		jig.CallWaiting, jig.CallReserved, jig.CallExecuting, jig.CallUnknown,
		jig.CallSucceeded, jig.CallFailed, jig.CallDenied, jig.CallExpired, jig.CallCanceled, jig.CallDuplicate,
	}
}

// everyState returns a call in each status with each combination of what the rules look at.
func everyState() []ledger.State {
	var all []ledger.State
	yesNo := []bool{false, true}
	for _, status := range statuses() {
		for _, fence := range []int{0, 1, 3, ledger.RestoredFence + 1} {
			for _, write := range yesNo {
				for _, idempotent := range yesNo {
					for _, inDoubt := range yesNo {
						for _, latest := range []*approval.Record{nil, openApproval(), approvedBy("d1"), approvedBy("d0")} {
							s := writing(status, fence)
							if latest != nil {
								s = asking(status, latest)
							}
							s.Call.Fence, s.Call.Write, s.Idempotent, s.Call.InDoubt = fence, write, idempotent, inDoubt
							failed := s
							failed.FailedAt = noon()
							all = append(all, s, failed)
						}
					}
				}
			}
		}
	}
	return all
}

// The table is the one of the package's comment and of docs/architecture.md.
func TestTransitions_AreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	want := []string{
		"canceled Admit", "denied Admit", "duplicate Admit", "expired Admit", "failed Admit", "reserved Admit", "succeeded Admit", "waiting Admit",
	}
	for _, from := range []string{"waiting", "reserved"} {
		for _, to := range []string{"waiting", "reserved", "unknown", "succeeded", "failed", "denied", "expired", "canceled", "duplicate"} {
			want = append(want, to+" Readmit "+from)
		}
	}
	for to, from := range map[string]string{
		"executing": "reserved executing", "unknown": "reserved executing", "reserved": "reserved executing", "failed": "reserved executing",
	} {
		for _, f := range strings.Fields(from) {
			want = append(want, to+" Reserve "+f)
		}
	}
	for to, from := range map[string]string{
		"succeeded": "executing unknown reserved", "failed": "executing unknown", "canceled": "executing unknown", "unknown": "executing",
		"reserved": "executing",
	} {
		for _, f := range strings.Fields(from) {
			want = append(want, to+" Complete "+f)
		}
	}
	for _, from := range []string{"waiting", "reserved", "executing", "unknown"} {
		want = append(want, "canceled Cancel "+from, "failed Cancel "+from, from+" MarkRestored "+from)
	}
	slices.Sort(want)
	require.Equal(t, want, transitions(t))
}

// transitions applies every request to every state. It returns the changes of status as "TO FUNCTION FROM".
func transitions(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	note := func(function string, s ledger.State, change ledger.Transition) {
		if change.Changes() {
			found[strings.TrimSpace(fmt.Sprintf("%s %s %s", statusAfter(s, change), function, s.Call.Status))] = true
		}
	}
	calls := admissions()
	for _, c := range calls {
		note("Admit", ledger.State{State: approval.State{Call: &approval.Call{}}}, ledger.Admit(c, nil))
	}
	for _, s := range everyState() {
		for _, c := range calls {
			change, err := readmit(s, c, &jig.Pending{Digest: "d2"})
			require.NoError(t, err)
			note("Readmit", s, change)
		}
		for _, r := range []ledger.ReserveRequest{
			{Version: "v1", Digest: "d1", MaxAttempts: 3},
			{Version: "v2", Digest: "d1"},
			{Version: "v1", Digest: "d1", RetryFor: time.Minute, Now: noon().Add(time.Hour)},
			{Version: "v1", Digest: "d1", Now: noon(), Outage: jig.Errorf(jig.CodeTimeout, "x")},
		} {
			note("Reserve", s, ledger.Reserve(s, r))
		}
		for _, status := range statuses() {
			for _, fence := range []int{0, s.Call.Fence} {
				c := ledger.Completion{Fence: fence, Digest: "d1", Status: status}
				if c.Validate() == nil {
					note("Complete", s, ledger.Complete(s, c))
				}
			}
		}
		if s.Call.Status.Final() {
			continue // the store passes only open calls
		}
		for _, composed := range []bool{false, true} {
			note("Cancel", s, ledger.Cancel(s, "no longer needed", composed))
			note("MarkRestored", s, ledger.MarkRestored(s, composed))
		}
	}
	var list []string
	for one := range found {
		list = append(list, one)
	}
	slices.Sort(list)
	return list
}

// admissions returns a changed admission of the call for each verdict, and for each status that is final at once.
func admissions() []jig.Call {
	base := jig.Call{ID: "1.1", Tool: "file.write", Version: "v2", Digest: "d2", Input: []byte(`{"path":"b"}`)}
	var all []jig.Call
	for _, v := range []jig.Verdict{jig.VerdictRun, jig.VerdictAsk, jig.VerdictDeny, jig.VerdictRefuse} {
		c := base
		c.Verdict = v
		all = append(all, c)
	}
	for _, status := range statuses() {
		if status.Final() {
			c := base
			c.Verdict, c.Status = jig.VerdictDeny, status
			all = append(all, c)
		}
	}
	return all
}

func TestTransitions_NothingLeadsFromAFinalStatus(t *testing.T) {
	t.Parallel()
	for _, one := range transitions(t) {
		words := strings.Fields(one)
		require.False(t, len(words) == 3 && jig.CallStatus(words[2]).Final(), one)
	}
}
