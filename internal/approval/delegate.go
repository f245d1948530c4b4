package approval

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// delegate hands a person's right to decide to somebody else.
func (d decision) delegate() Transition {
	to := d.Decision.To
	what := d.details()
	what["to"] = to
	entry := d.entry(audit.AuditDelegated, jig.CallWaiting)
	entry.Subject = to
	after, why := d.delegated()
	if why != "" {
		return d.refuse(jig.CodeConflict, d.Call.ID, why, what, entry)
	}
	t := Transition{Ruled: d.accepted(jig.CallWaiting), Delegations: after.Delegations, Audit: []audit.Entry{entry}}
	t.Ruled.Reason = "delegated to " + to
	t.Events = []Event{d.Call.Event(jig.EventApprovalDelegated, what)}
	n := d.Notice(jig.NoticeDelegated, d.asked, d.Key)
	n.By, n.Approvers = d.Principal.ID, &jig.Approvers{People: []string{to}}
	t.Notices = []jig.Notice{n}
	return t
}

// delegated returns the approval with the delegation, or why the decision cannot be handed to the person that it names.
func (d decision) delegated() (after jig.Pending, why string) {
	to := d.Decision.To
	switch {
	case to == "":
		return after, "`to` is missing: say to whom it is delegated"
	case to == d.Principal.ID:
		return after, "nobody delegates to themselves; to take a delegation back, send `undo`"
	case slices.Contains(d.Disabled, to):
		return after, jig.Templatef("%s is disabled and may not decide", to)
	case d.consent.Voted(jig.Principal{ID: to}):
		return after, jig.Templatef("%s approved this call already", to)
	}
	after = d.asked
	after.Delegations = append(slices.Clone(after.Delegations), jig.Delegation{
		From: d.Principal.ID, Maker: d.Principal.Maker, To: to, At: d.Now.UTC(), Claimed: d.Principal.Claimed, Proof: d.Principal.Proof,
		Key: d.Evidence.KeyID(), Counts: d.counts,
	})
	if _, why := ConsentOf(after).Entitled(d.person(to), d.Now); why != "" {
		return after, strings.ReplaceAll(why, to, jig.Templatef("%s", to))
	}
	return after, d.stranded(after)
}

// stranded returns why a delegation would leave too few people to approve the call, or "". People who may decide only after an escalation
// count too. A requirement that too few people can meet anyway does not matter.
func (d decision) stranded(after jig.Pending) string {
	for i, r := range demands(d.consent.Terms) {
		need, before, left := max(1, r.Quorum), d.able(d.asked, i), d.able(after, i)
		if left < before && left < need {
			return fmt.Sprintf("then only %d of the %d people who must approve could still decide (%s): delegate to somebody who cannot decide yet",
				left, need, r.Approvers)
		}
	}
	return ""
}

// able returns how many people have approved for a requirement or may still do so; if anybody may, it is a number that meets every quorum.
func (v Voters) able(p jig.Pending, requirement int) int {
	latest := p.RequestedAt
	for _, e := range demands(termsOf(p))[requirement].Escalate {
		if at := p.RequestedAt.Add(time.Duration(e.After)); at.After(latest) && (p.ExpiresAt.IsZero() || at.Before(p.ExpiresAt)) {
			latest = at
		}
	}
	if v.unlisted(p, requirement, latest) {
		return math.MaxInt
	}
	return len(v.left(p, requirement, latest, math.MaxInt))
}

// takenBack returns an approval without the delegation of the decider, and the delegate; or why it cannot be taken back.
func (r DecisionRequest) takenBack(asked jig.Pending) (left jig.Pending, from, why string) {
	who := r.Principal.ID
	i := slices.IndexFunc(asked.Delegations, func(d jig.Delegation) bool { return d.From == who })
	if i < 0 {
		return asked, "", who + " has not delegated this approval, or the delegation no longer counts"
	}
	left, from = asked, asked.Delegations[i].To
	left.Delegations = slices.Delete(slices.Clone(asked.Delegations), i, i+1)
	rest := r.Counted(left, r.Now)
	for _, v := range asked.Votes {
		same := func(one jig.Vote) bool { return one.By == v.By && slices.Equal(one.Counts, v.Counts) }
		if !slices.ContainsFunc(rest.Votes, same) {
			return asked, "", fmt.Sprintf("%s approved this call already, through this delegation: it can no longer be taken back", v.By)
		}
	}
	return rest, from, ""
}

// takeBack ends a delegation, so that the person who delegated may decide again.
func (d decision) takeBack() Transition {
	what := d.details()
	what["from"] = d.from
	entry := d.entry(audit.AuditDelegated, jig.CallWaiting)
	entry.Subject, entry.Reason = d.Principal.ID, "taken back from "+d.from
	t := Transition{Ruled: d.accepted(jig.CallWaiting), Audit: []audit.Entry{entry}}
	t.Ruled.Reason = entry.Reason
	t.Delegations = append([]jig.Delegation{}, d.consent.Delegations...) // not nil, which would keep the stored ones
	t.Events = []Event{d.Call.Event(jig.EventApprovalDelegated, what)}
	return t
}
