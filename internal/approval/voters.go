package approval

import (
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// Voters says how a tenant knows the people who decide, which determines whose votes and delegations count.
type Voters struct {
	// Proof is the weakest proof with which votes and delegations count.
	Proof jig.Proof
	// People are the people whom the tenant knows, with their groups and permissions. Others have neither.
	People []jig.Principal
	// Disabled lists the people whose votes and delegations do not count.
	Disabled []string
	// Open reports whether approvers may include people whom the tenant cannot list. nil means that only those do who include anybody.
	Open func(jig.Approvers) bool
	// Owners decide if too few others can; nil for a tenant without owners.
	Owners *jig.Approvers
}

// Counted returns the approval with only the votes and delegations that count now, and only for the requirements that their authors may
// decide for now: as approvers or through delegations that count themselves. So a vote ends with the delegation that it rests on, and a
// delegation with the delegate. What is stored with a vote or a delegation can only limit it further.
func (v Voters) Counted(p jig.Pending, now time.Time) jig.Pending {
	proof := v.Proof.Stronger(termsOf(p).Proof)
	votes, delegations := p.Votes, p.Delegations
	p.Votes, p.Delegations = nil, nil
	for _, d := range delegations {
		d.Counts = v.counts(p, jig.Principal{ID: d.From, Maker: d.Maker}, d.Counts, now)
		if len(d.Counts) > 0 && proofOf(d.Claimed, d.Proof).AtLeast(proof) && !slices.Contains(v.Disabled, d.To) {
			p.Delegations = append(p.Delegations, d)
		}
	}
	for _, vote := range votes {
		vote.Counts = v.counts(p, jig.Principal{ID: vote.By, Maker: vote.Maker}, vote.Counts, now)
		if len(vote.Counts) > 0 && proofOf(vote.Claimed, vote.Proof).AtLeast(proof) {
			p.Votes = append(p.Votes, vote)
		}
	}
	return p
}

// counts returns which of the given requirements a principal may decide for now.
func (v Voters) counts(p jig.Pending, who jig.Principal, given []int, now time.Time) []int {
	known := v.person(who.ID)
	known.Maker = who.Maker
	return v.entitled(p, known, given, now)
}

// entitled is like counts for a principal as the tenant knows it.
func (v Voters) entitled(p jig.Pending, who jig.Principal, given []int, now time.Time) []int {
	if slices.Contains(v.Disabled, who.ID) {
		return nil
	}
	entitled, _ := ConsentOf(p).Entitled(who, now)
	return slices.DeleteFunc(entitled, func(i int) bool { return !slices.Contains(given, i) })
}

// person returns a principal as the tenant knows it.
func (v Voters) person(id string) jig.Principal {
	if i := slices.IndexFunc(v.People, func(p jig.Principal) bool { return p.ID == id }); i >= 0 {
		return v.People[i]
	}
	return jig.Principal{ID: id}
}
