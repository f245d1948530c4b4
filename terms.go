package jig

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Approvers says who may decide: principals that are listed in People, are in one of Groups, or hold Permission. The zero value means
// everybody.
type Approvers struct {
	People     []string `json:"people,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Permission string   `json:"permission,omitempty"`
}

// Anybody reports whether everybody may decide.
func (a Approvers) Anybody() bool {
	return len(a.People) == 0 && len(a.Groups) == 0 && a.Permission == ""
}

// Include reports whether a principal may decide.
func (a Approvers) Include(p Principal) bool {
	return a.Anybody() || slices.Contains(a.People, p.ID) || a.Permission != "" && p.Holds(a.Permission) ||
		slices.ContainsFunc(a.Groups, func(g string) bool { return slices.Contains(p.Groups, g) })
}

// String names the approvers for people, e.g. "ana, group finance or permission refunds.approve".
func (a Approvers) String() string {
	if a.Anybody() {
		return "anybody"
	}
	list := slices.Clone(a.People)
	for _, g := range a.Groups {
		list = append(list, "group "+g)
	}
	if a.Permission != "" {
		list = append(list, "permission "+a.Permission)
	}
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// Escalation lets more people decide once an approval has waited for After.
type Escalation struct {
	// After is measured from the time of the request. In JSON: nanoseconds.
	After     time.Duration `json:"after"`
	Approvers Approvers     `json:"approvers"`
}

// Requirement is one rule's condition for an approval: Quorum distinct people from its Approvers must approve.
type Requirement struct {
	// Rule is <policy>/<rule>; empty for the default requirement, one approval by anybody.
	Rule      string    `json:"rule,omitempty"`
	Approvers Approvers `json:"approvers,omitzero"`
	// Quorum is how many distinct people must approve; at least 1.
	Quorum int `json:"quorum,omitempty"`
	// Escalate adds to Approvers as time passes.
	Escalate []Escalation `json:"escalate,omitempty"`
}

// allows reports whether a principal may decide for the requirement after the given waiting time.
func allows(r Requirement, p Principal, waited time.Duration) bool {
	return r.Approvers.Include(p) || slices.ContainsFunc(r.Escalate, func(e Escalation) bool { return waited >= e.After && e.Approvers.Include(p) })
}

// ExpiryOutcome says what happens to a call whose approval expires.
type ExpiryOutcome string

// The outcomes of expiry, from the mildest to the strictest: the call ends with EXPIRED and the agent continues; the session is canceled;
// the session fails.
const (
	ExpiryDeny   ExpiryOutcome = "deny"
	ExpiryCancel ExpiryOutcome = "cancel"
	ExpiryFail   ExpiryOutcome = "fail"
)

// Strictness orders the outcomes, from 0; the empty outcome counts as ExpiryDeny.
func (o ExpiryOutcome) Strictness() int {
	return max(0, slices.Index([]ExpiryOutcome{ExpiryDeny, ExpiryCancel, ExpiryFail}, o))
}

// Terms are the conditions for an approval. The zero value means one approval by anybody, without reminders; when the approval expires,
// only the call ends.
type Terms struct {
	// Requirements must all be met. One person's approval counts for each requirement that the person may decide for.
	Requirements []Requirement `json:"requirements,omitempty"`
	// NotRequester forbids the principal on whose behalf the call is made to decide.
	NotRequester bool `json:"not_requester,omitempty"`
	// Remind is the interval between reminders; zero means no reminders. In JSON: nanoseconds.
	Remind   time.Duration `json:"remind,omitempty"`
	OnExpiry ExpiryOutcome `json:"on_expiry,omitempty"`
}

// Plain reports whether the terms are equivalent to the zero value.
func (t Terms) Plain() bool {
	return len(t.Requirements) == 0 && !t.NotRequester && t.Remind == 0 && t.OnExpiry.Strictness() == 0
}

// demands returns the requirements, or the default requirement if there are none.
func demands(t Terms) []Requirement {
	if len(t.Requirements) == 0 {
		return []Requirement{{Quorum: 1}}
	}
	return t.Requirements
}

// Vote is one person's approval.
type Vote struct {
	By string `json:"by"`
	// Claimed reports that the voter's identity was not proved.
	Claimed bool `json:"claimed,omitempty"`
	// Counts holds the indexes of the requirements for which the vote counts.
	Counts []int     `json:"counts"`
	At     time.Time `json:"at"`
	Note   string    `json:"note,omitempty"`
}

// Delegation hands one person's decision on an approval to another.
type Delegation struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	At   time.Time `json:"at"`
	// Claimed reports that the identity of From was not proved.
	Claimed bool `json:"claimed,omitempty"`
	// Counts holds the indexes of the requirements that From could decide for.
	Counts []int `json:"counts"`
}

// Consent is the state of an approval: its terms, and the votes and delegations so far. Its methods are pure.
type Consent struct {
	Terms       Terms
	RequestedBy string
	RequestedAt time.Time
	Votes       []Vote
	Delegations []Delegation
}

// Entitled returns the indexes of the requirements that a principal may decide for now. If there are none, why says why not, in words that
// can follow "refused: ".
func (c Consent) Entitled(p Principal, now time.Time) (counts []int, why string) {
	switch {
	case p.ID == "":
		return nil, "nobody says who decides"
	case c.Terms.NotRequester && p.ID == c.RequestedBy:
		return nil, fmt.Sprintf("%s asked for this call and may not decide it", p.ID)
	}
	for _, d := range c.Delegations {
		if d.From == p.ID {
			return nil, fmt.Sprintf("%s delegated this approval to %s", p.ID, d.To)
		}
	}
	needed := demands(c.Terms)
	for i, r := range needed {
		if allows(r, p, now.Sub(c.RequestedAt)) || c.delegated(p.ID, i) {
			counts = append(counts, i)
		}
	}
	if len(counts) > 0 {
		return counts, ""
	}
	who := make([]string, len(needed))
	for i, r := range needed {
		who[i] = r.Approvers.String()
	}
	return nil, fmt.Sprintf("%s may not decide this call: it is for %s", p.ID, strings.Join(who, ", and "))
}

func (c Consent) delegated(to string, requirement int) bool {
	return slices.ContainsFunc(c.Delegations, func(d Delegation) bool { return d.To == to && slices.Contains(d.Counts, requirement) })
}

// Voted reports whether a person has already approved.
func (c Consent) Voted(id string) bool {
	return slices.ContainsFunc(c.Votes, func(v Vote) bool { return v.By == id })
}

// Granted reports whether every requirement has its quorum of distinct people.
func (c Consent) Granted() bool { return c.Missing() == "" }

// Missing describes the requirements that still lack approvals, e.g. "1 of 2 approvals by group editors, 1 missing". It is empty if nothing
// is missing.
func (c Consent) Missing() string {
	var missing []string
	for i, r := range demands(c.Terms) {
		people := map[string]bool{}
		for _, v := range c.Votes {
			if slices.Contains(v.Counts, i) {
				people[v.By] = true
			}
		}
		if need := max(1, r.Quorum); len(people) < need {
			missing = append(missing, fmt.Sprintf("%d of %d approvals by %s, %d missing", len(people), need, r.Approvers, need-len(people)))
		}
	}
	return strings.Join(missing, "; ")
}

// Moment is a reminder or an escalation that is due while an approval waits.
type Moment struct {
	At time.Time
	// Escalation holds the people who may decide from then on; nil for a reminder.
	Escalation *Approvers
}

// Moments returns the reminders and escalations later than after and no later than until, in order. If several reminders have passed since
// after, only the last is returned.
func (c Consent) Moments(after, until time.Time) []Moment {
	var list []Moment
	for _, r := range c.Terms.Requirements {
		for _, e := range r.Escalate {
			if at := c.RequestedAt.Add(e.After); at.After(after) && !at.After(until) {
				list = append(list, Moment{At: at, Escalation: &e.Approvers})
			}
		}
	}
	if every := c.Terms.Remind; every > 0 && until.After(c.RequestedAt) {
		last := c.RequestedAt.Add(until.Sub(c.RequestedAt).Truncate(every))
		if last.After(c.RequestedAt) && last.After(after) {
			list = append(list, Moment{At: last})
		}
	}
	slices.SortStableFunc(list, func(a, b Moment) int { return a.At.Compare(b.At) })
	return list
}

// Next returns the time of the first reminder or escalation later than after; zero when there is none.
func (c Consent) Next(after time.Time) time.Time {
	var next time.Time
	soonest := func(at time.Time) {
		if at.After(after) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, r := range c.Terms.Requirements {
		for _, e := range r.Escalate {
			soonest(c.RequestedAt.Add(e.After))
		}
	}
	if every := c.Terms.Remind; every > 0 {
		waited := max(0, after.Sub(c.RequestedAt))
		soonest(c.RequestedAt.Add(waited.Truncate(every) + every))
	}
	return next
}
