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

// Elapse applies the passing of time to the open approval of a call, and changes of the people who may decide it. If its expiry has been reached by
// now, the approval expires and the call ends. Otherwise the reminders and escalations that are due are recorded, and more people may decide if too
// few are left; if that does not suffice, the call is denied. See [Voters.Independent]. voters is nil if they are not known now. Calling Elapse again
// with the same time and voters changes nothing.
func Elapse(s State, voters *Voters, now time.Time) (Transition, Lapse) {
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
	if voters != nil && lapse.Status == jig.CallWaiting {
		wider, none := voters.Independent(voters.Counted(s.Open.Pending, now), now)
		if none != nil {
			t = s.unapprovable(none, now)
			return t, Lapse{Status: t.Call.Status}
		}
		if wider.Votes, wider.Delegations = asked.Votes, asked.Delegations; wider.Terms != s.Open.Terms {
			t.widen(*s.Call, asked, wider)
			asked.Terms, asked.Reasons = wider.Terms, wider.Reasons
			asked.NextAt = NextAt(asked, now)
		}
	}
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

// unapprovable ends a call that too few people could approve. If an earlier attempt may have taken effect, the call becomes unknown instead, as after a
// denial.
func (s State) unapprovable(why *jig.Error, now time.Time) Transition {
	result := jig.Failure(why)
	t := Transition{
		Outcome: &Outcome{Status: Denied, Answer: string(jig.AnswerDeny), Reason: why.Message},
		Call:    &CallChange{Status: jig.CallDenied, Result: &result},
	}
	if s.Call.InDoubt {
		t.Call = &CallChange{Status: jig.CallUnknown}
	}
	t.Events = []Event{s.Call.Event(jig.EventToolDenied, Details{
		"reason": why.Message, "digest": s.Open.Digest, "summary": result.Summary, "error": result.Error,
	})}
	entry := s.Entry(audit.AuditDenied, jig.Principal{}, nil)
	entry.Status, entry.Reason = t.Call.Status, why.Message
	t.Audit = []audit.Entry{entry}
	n := s.Notice(jig.NoticeDecided, s.Open.Pending, ReasonNoIndependentApprover+s.Open.Digest)
	n.Status, n.Reason = t.Call.Status, why.Message
	t.Notices = []jig.Notice{n}
	if s.Call.InDoubt {
		t.ask(InDoubt(s.Tenant, s.SessionID, *s.Call, "nobody could approve another attempt, and an earlier one may have taken effect", nil, now))
	}
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
