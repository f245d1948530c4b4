package ledger_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/ledger"
)

// request returns a request to begin an attempt of exactly what was admitted.
func request() ledger.ReserveRequest {
	return ledger.ReserveRequest{Version: "v1", Digest: "d1", Input: []byte(`{"path":"a"}`), MaxAttempts: 3, Attempt: "att_2"}
}

// change returns a state with a change.
func change(s ledger.State, f func(*ledger.State)) ledger.State {
	f(&s)
	return s
}

func idempotent(s *ledger.State) { s.Idempotent = true }
func reads(s *ledger.State)      { s.Idempotent, s.Call.Write = true, false }
func inDoubt(s *ledger.State)    { s.Call.InDoubt = true }

func TestReserve_Answers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state  ledger.State
		ask    func(*ledger.ReserveRequest)
		answer ledger.ReserveOutcome
		status jig.CallStatus
	}{
		"reserved":          {writing(jig.CallReserved, 0), nil, ledger.ReserveRun, jig.CallExecuting},
		"a later attempt":   {writing(jig.CallReserved, 1), nil, ledger.ReserveRun, jig.CallExecuting},
		"waiting":           {writing(jig.CallWaiting, 0), nil, ledger.ReserveWaiting, jig.CallWaiting},
		"unknown":           {writing(jig.CallUnknown, 1), nil, ledger.ReserveUnknown, jig.CallUnknown},
		"succeeded":         {writing(jig.CallSucceeded, 1), nil, ledger.ReserveFinal, jig.CallSucceeded},
		"denied":            {writing(jig.CallDenied, 0), nil, ledger.ReserveFinal, jig.CallDenied},
		"another version":   {writing(jig.CallReserved, 0), func(r *ledger.ReserveRequest) { r.Version = "v2" }, ledger.ReserveWaiting, jig.CallReserved},
		"another digest":    {writing(jig.CallReserved, 0), func(r *ledger.ReserveRequest) { r.Digest = "d2" }, ledger.ReserveWaiting, jig.CallReserved},
		"no digest":         {writing(jig.CallReserved, 0), func(r *ledger.ReserveRequest) { r.Digest = "" }, ledger.ReserveWaiting, jig.CallReserved},
		"no approval":       {asking(jig.CallReserved, nil), nil, ledger.ReserveWaiting, jig.CallReserved},
		"open approval":     {asking(jig.CallReserved, openApproval()), nil, ledger.ReserveWaiting, jig.CallReserved},
		"another approval":  {asking(jig.CallReserved, approvedBy("d0")), nil, ledger.ReserveWaiting, jig.CallReserved},
		"approved":          {asking(jig.CallReserved, approvedBy("d1")), nil, ledger.ReserveRun, jig.CallExecuting},
		"the same attempt":  {writing(jig.CallExecuting, 1), func(r *ledger.ReserveRequest) { r.Attempt = "att_1" }, ledger.ReserveRun, jig.CallExecuting},
		"began, no name":    {change(writing(jig.CallExecuting, 1), func(s *ledger.State) { s.Attempt = "" }), func(r *ledger.ReserveRequest) { r.Attempt = "" }, ledger.ReserveUnknown, jig.CallUnknown},
		"began":             {writing(jig.CallExecuting, 1), nil, ledger.ReserveUnknown, jig.CallUnknown},
		"began, idempotent": {change(writing(jig.CallExecuting, 2), idempotent), nil, ledger.ReserveRun, jig.CallExecuting},
		"began, contract changed": {
			change(writing(jig.CallExecuting, 1), idempotent), func(r *ledger.ReserveRequest) { r.Version = "v2" }, ledger.ReserveWaiting, jig.CallReserved,
		},
		"began, last attempt, writes":   {change(writing(jig.CallExecuting, 3), idempotent), nil, ledger.ReserveUnknown, jig.CallUnknown},
		"began, last attempt, reads":    {change(writing(jig.CallExecuting, 3), reads), nil, ledger.ReserveFinal, jig.CallFailed},
		"began, last by default":        {change(writing(jig.CallExecuting, jig.DefaultMaxAttempts), reads), func(r *ledger.ReserveRequest) { r.MaxAttempts = 0 }, ledger.ReserveFinal, jig.CallFailed},
		"restored":                      {change(writing(jig.CallReserved, ledger.RestoredFence), inDoubt), nil, ledger.ReserveUnknown, jig.CallUnknown},
		"restored while executing":      {change(change(writing(jig.CallExecuting, ledger.RestoredFence+1), inDoubt), idempotent), nil, ledger.ReserveUnknown, jig.CallUnknown},
		"restored, then not_happened":   {writing(jig.CallReserved, ledger.RestoredFence), nil, ledger.ReserveRun, jig.CallExecuting},
		"in doubt, but may be repeated": {change(change(writing(jig.CallReserved, 1), inDoubt), idempotent), nil, ledger.ReserveRun, jig.CallExecuting},
	} {
		r := request()
		if row.ask != nil {
			row.ask(&r)
		}
		got := ledger.Reserve(row.state, r)
		require.Equal(t, row.answer, got.Answer, name)
		require.Equal(t, row.status, statusAfter(row.state, got), name)
		if row.status == row.state.Call.Status && got.Begins == nil {
			require.Equal(t, ledger.Transition{Answer: row.answer}, got, "%s: nothing changes", name)
		}
	}
}

func TestReserve_SaysWhyTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	requireUnknown(t, ledger.Reserve(writing(jig.CallExecuting, 1), request()), "an attempt began and never reported how it ended")
	requireUnknown(t, ledger.Reserve(change(writing(jig.CallExecuting, 3), idempotent), request()), "the last of 3 attempts never reported")
	requireUnknown(t, ledger.Reserve(change(writing(jig.CallReserved, 1000), inDoubt), request()), ledger.WhyRestored)
	got := ledger.Reserve(change(writing(jig.CallExecuting, 3), reads), request())
	require.Equal(t, jig.CodeUnavailable, got.Call.Result.Error.Code)
	require.Equal(t, "the last of 3 attempts never reported how it ended", got.Call.Result.Error.Message)
	require.Equal(t, []string{"event tool.failed"}, told(got))
}

func TestReserve_BeginsAnAttempt(t *testing.T) {
	t.Parallel()
	r := request()
	r.Child = "ses_2"
	got := ledger.Reserve(asking(jig.CallReserved, approvedBy("d1")), r)
	require.Equal(t, &ledger.Attempt{ID: "att_2", Child: "ses_2", Consumes: true}, got.Begins)
	require.Equal(t, []string{"event tool.started"}, told(got))
	require.Equal(t, approval.Details{
		"attempt": 1, "child_session_id": "ses_2", "title": "path=a", "input": json.RawMessage(`{"path":"a"}`), "truncated": false,
	}, got.Events[0].Data)

	used := approvedBy("d1")
	used.Status = approval.Consumed
	got = ledger.Reserve(asking(jig.CallReserved, used), r)
	require.False(t, got.Begins.Consumes, "an earlier attempt used the approval")
}

func TestReserve_LeavesDoubtAboutAWriteThatNeverReported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state ledger.State
		doubt bool
	}{
		"first":              {change(writing(jig.CallReserved, 0), idempotent), false},
		"began":              {change(writing(jig.CallExecuting, 1), idempotent), true},
		"began, reads":       {change(writing(jig.CallExecuting, 1), reads), false},
		"in doubt":           {change(change(writing(jig.CallReserved, 1), idempotent), inDoubt), true},
		"in doubt and began": {change(change(writing(jig.CallExecuting, 1), reads), inDoubt), true},
	} {
		require.Equal(t, row.doubt, ledger.Reserve(row.state, request()).Begins.InDoubt, name)
	}
	r := request()
	r.Digest = "d2"
	require.Equal(t, new(true), ledger.Reserve(change(writing(jig.CallExecuting, 1), idempotent), r).Call.InDoubt, "given back after a write")
	require.Equal(t, new(false), ledger.Reserve(change(writing(jig.CallExecuting, 1), reads), r).Call.InDoubt)
}

func TestReserve_WithdrawsAnApprovalWithoutProof(t *testing.T) {
	t.Parallel()
	claimed := approvedBy("d1")
	claimed.Claimed = true
	for name, row := range map[string]struct {
		latest *approval.Record
		wanted jig.Proof
		answer ledger.ReserveOutcome
	}{
		"claimed":             {claimed, jig.ProofClaimed, ledger.ReserveRun},
		"claimed, not enough": {claimed, jig.ProofVouched, ledger.ReserveWaiting},
		"proved":              {approvedBy("d1"), jig.ProofKey, ledger.ReserveRun},
	} {
		r := request()
		r.Proof = row.wanted
		got := ledger.Reserve(asking(jig.CallReserved, row.latest), r)
		require.Equal(t, row.answer, got.Answer, name)
		if row.answer == ledger.ReserveWaiting {
			require.Nil(t, got.Begins)
			require.Equal(t, &approval.Outcome{Status: approval.Expired, Reason: approval.WithdrawnUnproved}, got.Outcome)
			require.Equal(t, []string{"event approval.withdrawn", "audit withdrawn"}, told(got))
		}
	}
}

func TestUseGrant_ConsumesAUse(t *testing.T) {
	t.Parallel()
	granted := approvedBy("d1")
	granted.Grant = "grt_1"
	s := asking(jig.CallReserved, granted)
	begins := ledger.Reserve(s, request())
	require.Equal(t, "grt_1", begins.Begins.Grant)

	got := ledger.UseGrant(s, begins, &jig.Grant{ID: "grt_1", By: []string{"ana", "ben"}, Used: 2, MaxUses: 5})
	require.Equal(t, ledger.ReserveRun, got.Answer)
	require.NotNil(t, got.Begins)
	require.Equal(t, []string{"event grant.used", "event tool.started", "audit grant_used"}, told(got))
	require.Equal(t, approval.Details{"grant": "grt_1", "by": []string{"ana", "ben"}, "used": 2, "max_uses": 5}, got.Events[0].Data)
	require.Equal(t, "ana, ben", got.Audit[0].By)
	require.Equal(t, "d1", got.Audit[0].ApprovedDigest)

	got = ledger.UseGrant(s, begins, nil)
	require.Equal(t, ledger.ReserveWaiting, got.Answer)
	require.Nil(t, got.Begins, "the grant has ended")
	require.Equal(t, approval.WithdrawnGrant, got.Outcome.Reason)
	require.Equal(t, []string{"event approval.withdrawn", "audit withdrawn"}, told(got))
	require.Equal(t, "grt_1", got.Audit[0].Subject)
}

func TestTitle_IsTheBeginningOfTheInput(t *testing.T) {
	t.Parallel()
	for input, title := range map[string]string{
		`{"path":"a","n":1}`:                          "n=1, path=a",
		"{\"path\":\n\"\xff\"}":                       "path=\ufffd",
		`{"text":"` + strings.Repeat("x", 100) + `"}`: "text=" + strings.Repeat("x", 55) + "…",
		`["a"]`: `["a"]`, "": "", "{": "{", `{}`: "",
	} {
		require.Equal(t, title, ledger.Title([]byte(input)), input)
	}
}

func TestMarkRestored_AsksAboutDoubtfulCalls(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state         ledger.State
		unbegun       bool
		marked, asked bool
	}{
		"a write":             {writing(jig.CallReserved, 0), false, true, true},
		"a write that waits":  {writing(jig.CallWaiting, 0), false, true, true},
		"a write that began":  {writing(jig.CallExecuting, 1), false, true, true},
		"an unknown write":    {writing(jig.CallUnknown, 1), false, true, true},
		"idempotent":          {change(writing(jig.CallReserved, 0), idempotent), false, true, false},
		"idempotent, unknown": {change(writing(jig.CallUnknown, 1), idempotent), false, false, false},
		"composition":         {change(writing(jig.CallReserved, 0), idempotent), true, true, true},
		"a read":              {change(writing(jig.CallReserved, 0), reads), false, false, false},
		"marked before":       {change(writing(jig.CallReserved, 0), inDoubt), false, false, false},
	} {
		got := ledger.MarkRestored(row.state, row.unbegun)
		if !row.marked {
			require.Zero(t, got, name)
			continue
		}
		require.Equal(t, &approval.CallChange{Status: row.state.Call.Status, InDoubt: new(true)}, got.Call, name)
		require.Equal(t, row.asked, got.Raises == ledger.RestoredFence, name)
		require.Equal(t, []string{"event tool.in_doubt", "audit in_doubt"}, told(got), name)
		require.Equal(t, ledger.WhyRestored, got.Audit[0].Reason, name)
	}
}

// Failures that may pass are limited by time, and attempts that never reported by their number.
func TestReserve_LimitsRetries(t *testing.T) {
	t.Parallel()
	failed := func(s *ledger.State) { s.FailedAt, s.Failures = noon(), s.Call.Fence }
	late, inTime := noon().Add(time.Minute+1), noon().Add(time.Minute)
	for name, row := range map[string]struct {
		state  ledger.State
		now    time.Time
		limit  int
		answer ledger.ReserveOutcome
	}{
		"in time":                       {change(writing(jig.CallReserved, 40), failed), inTime, 0, ledger.ReserveRun},
		"too late":                      {change(writing(jig.CallReserved, 40), failed), late, 0, ledger.ReserveFinal},
		"too late, may have happened":   {change(change(writing(jig.CallReserved, 40), failed), inDoubt), late, 0, ledger.ReserveUnknown},
		"its worker died":               {change(change(writing(jig.CallExecuting, 41), idempotent), func(s *ledger.State) { s.FailedAt, s.Failures = noon(), 40 }), inTime, 0, ledger.ReserveRun},
		"its worker died, too late":     {change(change(writing(jig.CallExecuting, 41), idempotent), func(s *ledger.State) { s.FailedAt, s.Failures = noon(), 40 }), late, 0, ledger.ReserveUnknown},
		"a limit of attempts":           {change(change(writing(jig.CallExecuting, 5), idempotent), failed), inTime, 5, ledger.ReserveUnknown},
		"tried once before":             {change(change(writing(jig.CallExecuting, 1), reads), func(s *ledger.State) { s.Tried = true }), inTime, 0, ledger.ReserveRun},
		"tried once before, and a last": {change(change(writing(jig.CallExecuting, 2), reads), func(s *ledger.State) { s.Tried = true }), inTime, 0, ledger.ReserveFinal},
	} {
		r := request()
		r.MaxAttempts, r.RetryFor, r.Now = row.limit, time.Minute, row.now
		require.Equal(t, row.answer, ledger.Reserve(row.state, r).Answer, name)
	}
}

func TestReserve_WaitsForAnOutage(t *testing.T) {
	t.Parallel()
	r := request()
	r.RetryFor, r.Now, r.Outage = time.Minute, noon(), jig.Errorf(jig.CodeUnavailable, "refused")
	s := asking(jig.CallReserved, approvedBy("d1"))
	got := ledger.Reserve(s, r)
	require.Equal(t, ledger.ReserveHeld, got.Answer)
	require.Equal(t, &approval.CallChange{Status: jig.CallReserved, InDoubt: new(false), Failed: noon()}, got.Call)
	require.Nil(t, got.Outcome, "the approval stays")
	s.FailedAt = noon()
	require.False(t, ledger.Reserve(s, r).Changes())
	r.Now = noon().Add(time.Minute + 1)
	got = ledger.Reserve(s, r)
	require.Equal(t, ledger.ReserveFinal, got.Answer)
	require.Equal(t, jig.CallFailed, got.Call.Status)
	require.Equal(t, jig.CodeUnavailable, got.Call.Result.Error.Code)
	require.True(t, got.Call.Result.Error.NotExecuted)
	require.Equal(t, []string{"event approval.withdrawn", "event tool.failed", "audit withdrawn"}, told(got))
}
