package approval

import (
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// Covers reports whether an approval covers exactly what would run: the call with the given digest. The approval must be granted, or
// consumed by an earlier attempt of the call. Its status alone is not trusted: the votes must satisfy its terms.
func (r *Record) Covers(digest string) bool {
	if r == nil || r.Status != Approved && r.Status != Consumed || r.ApprovedDigest != digest {
		return false
	}
	if len(r.Votes) == 0 && r.Terms == nil { // one decision is enough; rows from before votes existed record only who decided
		return r.DecidedBy != ""
	}
	return ConsentOf(r.Pending).Granted()
}

// Proved reports whether everybody who granted the approval had at least the given proof, and the proof that the terms demand.
func (r *Record) Proved(proof jig.Proof) bool {
	proof = proof.Stronger(termsOf(r.Pending).Proof)
	return jig.ProofClaimed.AtLeast(proof) || !r.Claimed && (len(r.Votes) == 0 || WeakestProof(r.Votes).AtLeast(proof))
}

// Reasons for which an approval is withdrawn when its call begins.
const (
	WithdrawnUnproved = "it was approved without the proof of identity that is required now"
	WithdrawnDisabled = "it was approved by somebody who has been disabled or may not approve it any more"
	WithdrawnUnsigned = "it is not signed by the people who must approve the call as it would run"
	WithdrawnGrant    = "the grant was used up, expired or was revoked, or the contract of the tool has changed since it was given"
)

// Withdraw ends the approval s.Open, which may already be granted, because it is no longer valid; the call is admitted again. Those who voted
// are told. grant is the standing approval that approved the call, if people should be told about it.
func Withdraw(s State, why, grant string) Transition {
	t := Transition{Outcome: &Outcome{Status: Expired, Reason: why}}
	if s.Open.Status == Open {
		t.Outcome.Answer = string(jig.AnswerExpire)
	}
	what := Details{"digest": s.Open.Digest, "reason": why, "grant": grant}
	t.Events = []Event{s.Call.Event(jig.EventApprovalWithdrawn, what)}
	entry := s.Entry(audit.AuditWithdrawn, jig.Principal{}, nil)
	entry.Subject, entry.Reason = grant, why
	t.Audit = []audit.Entry{entry}
	if voters := votersOf(s.Open.Votes); len(voters) > 0 {
		n := s.Notice(jig.NoticeWithdrawn, s.Open.Pending, s.Open.Digest+why)
		n.Approvers, n.Reason = &jig.Approvers{People: voters}, why
		t.Notices = []jig.Notice{n}
	}
	return t
}

func votersOf(votes []jig.Vote) []string {
	var people []string
	for _, v := range votes {
		if !slices.Contains(people, v.By) {
			people = append(people, v.By)
		}
	}
	return people
}
