package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/stored"
)

// ConsentOf returns the current state of the approval: its terms, votes and delegations.
func ConsentOf(p jig.Pending) Consent {
	return Consent{Terms: termsOf(p), Askers: askers(p), RequestedAt: p.RequestedAt, Votes: p.Votes, Delegations: p.Delegations}
}

// proofOf returns the proof of a vote, a delegation or a grant as it is stored. Rows from before there were levels of proof say only whether
// a token proved the identity.
func proofOf(claimed bool, proof jig.Proof) jig.Proof {
	if proof == "" && !claimed {
		return jig.ProofKey
	}
	return proof
}

// WeakestProof returns the weakest proof of some votes; empty if there are none.
func WeakestProof(votes []jig.Vote) jig.Proof {
	var weakest jig.Proof
	for i, v := range votes {
		if proof := proofOf(v.Claimed, v.Proof); i == 0 || !proof.AtLeast(weakest) {
			weakest = proof
		}
	}
	return weakest
}

func termsOf(p jig.Pending) jig.Terms {
	if p.Terms == nil {
		return jig.Terms{}
	}
	return *p.Terms
}

// allows reports whether a principal may decide for the requirement after the given waiting time.
func allows(r jig.Requirement, p jig.Principal, waited time.Duration) bool {
	return r.Approvers.Include(p) || slices.ContainsFunc(r.Escalate, func(e jig.Escalation) bool { return e.Counts(waited) && e.Approvers.Include(p) })
}

// demands returns the requirements, or the default requirement if there are none.
func demands(t jig.Terms) []jig.Requirement {
	if len(t.Requirements) == 0 {
		return []jig.Requirement{{Quorum: 1}}
	}
	return t.Requirements
}

// Consent is the state of an approval: its terms, and the votes and delegations so far. Its methods are pure.
type Consent struct {
	Terms       jig.Terms
	Askers      []jig.Asker
	RequestedAt time.Time
	Votes       []jig.Vote
	Delegations []jig.Delegation
}

// Entitled returns the indexes of the requirements that a principal may decide for now. If there are none, why gives the reason, phrased to
// follow "refused: ".
func (c Consent) Entitled(p jig.Principal, now time.Time) (counts []int, why string) {
	if p.ID == "" {
		return nil, "the request does not say who decides"
	}
	same := c.persons(p)
	if why := c.asked(p.ID, same); why != "" {
		return nil, why
	}
	for _, d := range c.Delegations {
		if d.From == p.ID || same.of(d.From) == same.of(p.ID) && same.of(d.To) != same.of(p.ID) {
			return nil, fmt.Sprintf("%s delegated this approval to %s and has to take it back first", p.ID, d.To)
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

// delegated reports whether somebody who could decide for a requirement handed the decision to a person.
func (c Consent) delegated(to string, requirement int) bool {
	return slices.ContainsFunc(c.Delegations, func(d jig.Delegation) bool { return d.To == to && slices.Contains(d.Counts, requirement) })
}

// Voted reports whether a person has already approved, possibly as another principal.
func (c Consent) Voted(p jig.Principal) bool {
	same := c.persons(p)
	return slices.ContainsFunc(c.Votes, func(v jig.Vote) bool { return same.of(v.By) == same.of(p.ID) })
}

// Granted reports whether every requirement has its quorum of distinct people.
func (c Consent) Granted() bool { return c.Missing() == "" }

// Missing describes the requirements that still lack approvals, e.g. "1 of 2 approvals by group editors, 1 missing". It is empty if nothing
// is missing. Approvals by askers do not count where the terms exclude them, and there nobody with words of their own in the call is the only one
// who approves it; see [Consent.needsAnother].
func (c Consent) Missing() string {
	var missing, voters []string
	same := c.persons()
	for i, r := range demands(c.Terms) {
		people := map[string]bool{}
		for _, v := range c.Votes {
			if slices.Contains(v.Counts, i) && c.asked(v.By, same) == "" {
				people[same.of(v.By)] = true
				voters = appendNew(voters, same.of(v.By))
			}
		}
		if need := max(1, r.Quorum); len(people) < need {
			missing = append(missing, fmt.Sprintf("%d of %d approvals by %s, %d missing", len(people), need, r.Approvers, need-len(people)))
		}
	}
	if len(missing) == 0 && len(voters) == 1 {
		if why := c.needsAnother(voters[0], same); why != "" {
			missing = append(missing, why)
		}
	}
	return strings.Join(missing, "; ")
}

// Moment is a reminder or an escalation that is due while an approval waits.
type Moment struct {
	At time.Time
	// Escalation holds the people who may decide from then on; nil for a reminder.
	Escalation *jig.Approvers
}

// Moments returns the reminders and escalations later than after and no later than until, in order. If several reminders have passed since
// after, only the last is returned.
func (c Consent) Moments(after, until time.Time) []Moment {
	var list []Moment
	for _, r := range c.Terms.Requirements {
		for _, e := range r.Escalate {
			if at := c.RequestedAt.Add(time.Duration(e.After)); e.Reason == "" && at.After(after) && !at.After(until) {
				list = append(list, Moment{At: at, Escalation: &e.Approvers})
			}
		}
	}
	if every := time.Duration(c.Terms.Remind); every > 0 && until.After(c.RequestedAt) {
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
			if e.Reason == "" {
				soonest(c.RequestedAt.Add(time.Duration(e.After)))
			}
		}
	}
	if every := time.Duration(c.Terms.Remind); every > 0 {
		waited := max(0, after.Sub(c.RequestedAt))
		soonest(c.RequestedAt.Add(waited.Truncate(every) + every))
	}
	return next
}

// GrantCeiling bounds every grant of a tenant, no matter who gives it.
type GrantCeiling struct {
	// MaxUses bounds the uses of one grant; default 1,000.
	MaxUses int `json:"max_uses,omitempty"`
	// MaxAge bounds the lifetime of one grant; default 30 days. In JSON: nanoseconds.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// Off forbids grants altogether.
	Off bool `json:"off,omitempty"`
}

// WithDefaults fills in the zero values.
func (c GrantCeiling) WithDefaults() GrantCeiling {
	c.MaxUses = cmp.Or(c.MaxUses, 1000)
	c.MaxAge = cmp.Or(c.MaxAge, 30*24*time.Hour)
	return c
}

// GrantEntry returns the audit row of a new grant.
func GrantEntry(g jig.Grant, who jig.Principal, evidence *identity.Evidence) audit.Entry {
	e := audit.By(who, evidence, g.Note)
	e.Kind, e.Subject, e.Tool, e.SessionID, e.Call = audit.AuditGranted, g.ID, g.Tool, g.SessionID, g.Call
	terms, err := stored.Encode(map[string]any{
		"agent": g.Agent, "when": g.When, "max_uses": g.MaxUses, "expires_at": g.ExpiresAt.UTC().Format(time.RFC3339), "by": g.By,
		"meaning": g.Meaning,
	})
	if err == nil {
		e.Shown = &audit.Shown{Input: terms}
	}
	return e
}

// TakesGrant reports whether a grant may decide in place of a person. It may not for a tool that is destructive or always asks, and it cannot
// answer a question.
func TakesGrant(tool jig.Tool, asked jig.Pending) bool {
	return tool.Permission != jig.PermissionDestructive && tool.Approval != jig.ApprovalAlwaysAsk && asked.Kind == jig.PendingApproval
}

// VotesOf returns the approvals that a grant gives for a call that it covers: those of the people who gave the grant, as the tenant knows
// them now. It returns nil if there are too few of them, if they may not decide this call, or if decisions need more proof than the
// grant was given with.
func VotesOf(g jig.Grant, people []jig.Principal, asked jig.Pending, proof jig.Proof, now time.Time) []jig.Vote {
	consent := ConsentOf(asked)
	if given := proofOf(g.Claimed, g.Proof); !given.AtLeast(proof) || !given.AtLeast(consent.Terms.Proof) {
		return nil
	}
	for _, p := range people {
		if counts, why := consent.Entitled(p, now); why == "" {
			consent.Votes = append(consent.Votes, jig.Vote{By: p.ID, Maker: p.Maker, Claimed: g.Claimed, Proof: g.Proof, Counts: counts, At: g.CreatedAt, Note: "grant " + g.ID})
		}
	}
	if !consent.Granted() {
		return nil
	}
	return consent.Votes
}

// MakersOf returns who made the credentials with which people voted, by voter. It leaves out those who acted with credentials of their own.
func MakersOf(votes []jig.Vote) map[string]string {
	makers := map[string]string{}
	for _, v := range votes {
		if v.Maker != "" {
			makers[v.By] = v.Maker
		}
	}
	if len(makers) == 0 {
		return nil
	}
	return makers
}
