package approval

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// Lapse reports how an approval changed because time passed.
type Lapse struct {
	// Status is the state of the call.
	Status jig.CallStatus
	// Ask is the current approval; nil if the call does not wait.
	Ask *jig.Pending
	// OnExpiry says what else ends, if the approval expired.
	OnExpiry jig.ExpiryOutcome
}

// Elapse applies the passing of time to the open approval of a call. If its expiry has been reached by now, the approval expires and the
// call ends. Otherwise the reminders and escalations that are due are recorded. Calling Elapse again with the same time changes nothing.
func Elapse(s State, now time.Time) (Transition, Lapse) {
	lapse := Lapse{Status: s.Call.Status}
	switch {
	case lapse.Status == jig.CallExpired && s.Latest != nil: // it expired before
		lapse.OnExpiry = ConsentOf(s.Latest.Pending).Terms.OnExpiry
		return Transition{}, lapse
	case lapse.Status != jig.CallWaiting && lapse.Status != jig.CallUnknown, s.Open == nil:
		return Transition{}, lapse
	case expired(s.Open.Pending, now):
		return s.expire(), Lapse{Status: jig.CallExpired, OnExpiry: ConsentOf(s.Open.Pending).Terms.OnExpiry}
	}
	t, asked := s.remind(now)
	lapse.Ask = &asked
	return t, lapse
}

// expired reports whether it is too late to decide. The expiry time itself is too late.
func expired(p jig.Pending, now time.Time) bool {
	return !p.ExpiresAt.IsZero() && !now.Before(p.ExpiresAt)
}

// expire ends a call that nobody decided in time.
func (s State) expire() Transition {
	asked := s.Open.Pending
	result := jig.Failure(jig.Errorf(jig.CodeExpired, "nobody decided before %s", asked.ExpiresAt.Format(time.RFC3339)))
	t := Transition{
		Outcome: &Outcome{Status: Expired, Answer: string(jig.AnswerExpire)},
		Call:    &CallChange{Status: jig.CallExpired, Result: &result},
	}
	what := Details{"digest": asked.Digest, "summary": result.Summary, "error": result.Error}
	if outcome := ConsentOf(asked).Terms.OnExpiry; outcome.Strictness() > 0 {
		what["on_expiry"] = string(outcome)
	}
	t.Events = []Event{s.Call.Event(jig.EventToolExpired, what)}
	entry := s.Entry(audit.AuditExpired, jig.Principal{}, nil)
	entry.Status, entry.Reason = jig.CallExpired, result.Error.Message
	t.Audit = []audit.Entry{entry}
	n := s.Notice(jig.NoticeExpired, asked, asked.ExpiresAt.String())
	n.Status, n.Reason = jig.CallExpired, result.Error.Message
	t.Notices = []jig.Notice{n}
	return t
}

// remind records the reminders and escalations that are due by now. It returns the approval with the time of the next one.
func (s State) remind(now time.Time) (t Transition, asked jig.Pending) {
	asked = s.Open.Pending
	since := s.Open.noticed()
	consent := ConsentOf(asked)
	for _, m := range consent.Moments(since, now) {
		what := Details{"digest": asked.Digest, "due": m.At.Format(time.RFC3339), "missing": consent.Missing()}
		kind, event := jig.NoticeReminder, jig.EventApprovalReminded
		if m.Escalation != nil {
			kind, event = jig.NoticeEscalated, jig.EventApprovalEscalated
			what["approvers"] = m.Escalation
		}
		t.Events = append(t.Events, s.Call.Event(event, what))
		n := s.Notice(kind, asked, m.At.String())
		n.Approvers = m.Escalation
		t.Notices = append(t.Notices, n)
	}
	if now.After(since) {
		t.NoticedAt = now
		asked.NextAt = NextAt(asked, now)
	}
	return t, asked
}

// noticed returns the time up to which reminders and escalations have been recorded.
func (r *Record) noticed() time.Time {
	if r.NoticedAt.IsZero() {
		return r.RequestedAt
	}
	return r.NoticedAt
}

// Due returns the next time at which something happens to an approval without a person: a reminder, an escalation or its expiry. It is
// zero for an approval that never expires.
func Due(p jig.Pending) time.Time {
	if !p.NextAt.IsZero() && p.NextAt.Before(p.ExpiresAt) {
		return p.NextAt
	}
	return p.ExpiresAt
}

// NextAt returns the time of the first reminder or escalation of an approval later than after; zero when there is none before it
// expires.
func NextAt(p jig.Pending, after time.Time) time.Time {
	next := ConsentOf(p).Next(after)
	if !p.ExpiresAt.IsZero() && !next.Before(p.ExpiresAt) {
		return time.Time{}
	}
	return next
}
