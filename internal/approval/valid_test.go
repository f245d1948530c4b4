package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

func TestCovers_ExactlyTheDigest(t *testing.T) {
	t.Parallel()
	vote := func(by string, counts ...int) jig.Vote { return jig.Vote{By: by, Counts: counts} }
	for name, row := range map[string]struct {
		change func(*approval.Record)
		want   bool
	}{
		"one vote under the default terms":      {func(*approval.Record) {}, true},
		"used by an earlier attempt":            {func(r *approval.Record) { r.Status = approval.Consumed }, true},
		"still open":                            {func(r *approval.Record) { r.Status = approval.Open }, false},
		"denied":                                {func(r *approval.Record) { r.Status = approval.Denied }, false},
		"expired":                               {func(r *approval.Record) { r.Status = approval.Expired }, false},
		"canceled":                              {func(r *approval.Record) { r.Status = approval.Canceled }, false},
		"of another call":                       {func(r *approval.Record) { r.ApprovedDigest = "d2" }, false},
		"decided before votes existed":          {func(r *approval.Record) { r.Votes, r.DecidedBy = nil, "ben" }, true},
		"decided by nobody":                     {func(r *approval.Record) { r.Votes = nil }, false},
		"one of two votes":                      {func(r *approval.Record) { r.Terms = byFinance(2) }, false},
		"two of two votes":                      {func(r *approval.Record) { r.Terms, r.Votes = byFinance(2), append(r.Votes, vote("flo", 0)) }, true},
		"the same person twice":                 {func(r *approval.Record) { r.Terms, r.Votes = byFinance(2), append(r.Votes, vote("fay", 0)) }, false},
		"a decision without votes, under terms": {func(r *approval.Record) { r.Terms, r.Votes, r.DecidedBy = byFinance(1), nil, "fay" }, false},
		"votes for another requirement":         {func(r *approval.Record) { r.Terms, r.Votes = byFinance(1), []jig.Vote{vote("fay", 1)} }, false},
	} {
		r := asked(nil)
		r.Status, r.ApprovedDigest, r.Votes = approval.Approved, "d1", []jig.Vote{vote("fay", 0)}
		row.change(r)
		require.Equal(t, row.want, r.Covers("d1"), name)
	}
	var none *approval.Record
	require.False(t, none.Covers(""), "a missing approval covers nothing")
}

func TestProved_ByEverybodyWhoVoted(t *testing.T) {
	t.Parallel()
	r := asked(nil)
	r.Votes = []jig.Vote{{By: "fay"}, {By: "flo"}}
	require.True(t, r.Proved(jig.ProofKey), "rows from before there were levels")
	require.False(t, r.Proved(jig.ProofPasskey))
	r.Votes[0].Proof = jig.ProofVouched
	require.False(t, r.Proved(jig.ProofKey))
	require.True(t, r.Proved(jig.ProofVouched))
	r.Terms = &jig.Terms{Proof: jig.ProofPasskey}
	require.False(t, r.Proved(jig.ProofVouched), "the terms demand more than the tenant")
	r.Terms = nil
	r.Claimed = true
	require.False(t, r.Proved(jig.ProofVouched), "the decider was not proved")
	require.True(t, r.Proved(jig.ProofClaimed))
	r.Claimed, r.Votes[1].Claimed = false, true
	require.False(t, r.Proved(jig.ProofVouched), "an earlier voter was not proved")
}

func TestWithdraw_NotifiesThoseWhoVoted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status approval.Status
		answer string
		grant  string
	}{
		{approval.Open, "expire", ""},
		{approval.Approved, "", ""},
		{approval.Approved, "", "grt_1"},
	} {
		s := waiting(nil)
		s.Open.Status = row.status
		got := approval.Withdraw(s, "the tool changed", row.grant)
		require.Equal(t, &approval.Outcome{Status: approval.Expired, Answer: row.answer, Reason: "the tool changed"}, got.Outcome)
		require.Equal(t, []string{"event approval.withdrawn", "audit withdrawn"}, told(got))
		require.Equal(t, approval.Details{"digest": "d1", "reason": "the tool changed", "grant": row.grant}, got.Events[0].Data)
		require.Equal(t, []string{"the tool changed", row.grant, "d1"}, []string{got.Audit[0].Reason, got.Audit[0].Subject, got.Audit[0].Digest})
		require.Nil(t, got.Call)
	}
}

// Those who voted are told that their votes do not count any more, and why.
func TestWithdraw_TellsThoseWhoVoted(t *testing.T) {
	t.Parallel()
	s := waiting(nil)
	s.Open.Votes = []jig.Vote{{By: "ana"}, {By: "ben"}, {By: "ana"}}
	got := approval.Withdraw(s, "the tool changed", "")
	require.Equal(t, []string{"event approval.withdrawn", "notice approval.withdrawn", "audit withdrawn"}, told(got))
	require.Equal(t, &jig.Approvers{People: []string{"ana", "ben"}}, got.Notices[0].Approvers)
	require.Equal(t, "the tool changed", got.Notices[0].Reason)
}

func TestOpened_HasEventsAndNotices(t *testing.T) {
	t.Parallel()
	c := *writing()
	for name, row := range map[string]struct {
		change func(*jig.Pending)
		event  jig.EventType
		told   int
	}{
		"an approval":      {func(*jig.Pending) {}, jig.EventToolNeedsApproval, 1},
		"a question":       {func(p *jig.Pending) { p.Kind = jig.PendingQuestion }, jig.EventToolAsked, 1},
		"given by a grant": {func(p *jig.Pending) { p.Grant = "grt_1" }, jig.EventToolApproved, 0},
	} {
		p := asked(nil).Pending
		row.change(&p)
		got := approval.Opened(c, p)
		require.Equal(t, row.event, got.Events[0].Type, name)
		require.Len(t, got.Notices, row.told, name)
		require.Equal(t, row.told == 1, got.Events[0].Asked != nil, "the event shows the whole approval")
		require.Equal(t, p, got.Pending)
	}
}

// A notice that is stored again has the same id, so that nobody is told twice; an approval that opens again has another.
func TestOpened_NoticeIsTheSameForTheSameApproval(t *testing.T) {
	t.Parallel()
	id := func(p jig.Pending) string { return approval.Opened(*writing(), p).Notices[0].ID }
	p, later, other := asked(nil).Pending, asked(nil).Pending, asked(nil).Pending
	later.RequestedAt = later.RequestedAt.Add(time.Second)
	other.SessionID = "ses_2"
	require.Equal(t, id(p), id(asked(byFinance(1)).Pending))
	require.NotEqual(t, id(p), id(later))
	require.NotEqual(t, id(p), id(other))
}

func TestInDoubt_AsksWhatHappened(t *testing.T) {
	t.Parallel()
	c := *writing()
	c.Status, c.Fence = jig.CallExecuting, 3
	failure := jig.Errorf(jig.CodeTimeout, "it took too long")
	got := approval.InDoubt("acme", "ses_1", c, "the attempt was cut off", failure, noonOf())
	require.Equal(t, jig.Pending{
		Tenant: "acme", SessionID: "ses_1", Kind: jig.PendingReconcile, Call: "1.1", Tool: "file.write", Input: []byte(`{"path":"a"}`), Digest: "d1",
		RequestedAt: noonOf(), Summary: "file.write began and it is not known whether it took effect", Reasons: []string{"the attempt was cut off"},
		Attempt: 3,
	}, got.Pending)
	require.Equal(t, approval.Event{
		Type: jig.EventToolOutcomeUnknown, Pass: 1, CallID: "1.1", Tool: "file.write",
		Data: approval.Details{"attempt": 3, "reason": "the attempt was cut off", "pending": got.Pending, "error": failure},
	}, got.Events[0])
	require.Equal(t, jig.NoticeRequested, got.Notices[0].Kind)
	c.Status = jig.CallReserved
	got = approval.InDoubt("acme", "ses_1", c, "it was marked", nil, noonOf())
	require.Equal(t, "file.write may have run and it is not known whether it took effect", got.Pending.Summary)
	require.NotContains(t, got.Events[0].Data, "error")
}

func TestOfDoubtful_NeverExpires(t *testing.T) {
	t.Parallel()
	p := asked(nil).Pending
	p.NextAt = noonOf()
	got := approval.OfDoubtful(p)
	require.Zero(t, got.ExpiresAt)
	require.Zero(t, got.NextAt)
	require.Len(t, got.Reasons, 2)
	require.Len(t, p.Reasons, 1)
}
