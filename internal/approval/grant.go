package approval

import (
	"cmp"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/stored"
)

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
