package activities

import (
	"bytes"
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/tenancy"
)

// outdated returns why the approval of a call that is about to begin does not count any more; "" if it does. running is the call as it would run,
// with its digest.
func (a *Activities) outdated(ctx context.Context, session jig.Session, tool jig.Tool, running jig.Call) (why string, err error) {
	if running.Verdict != jig.VerdictAsk || running.Status != jig.CallReserved {
		return "", nil
	}
	settings, err := a.Tenants.Settings(ctx, running.Tenant)
	if err != nil {
		return "", err
	}
	approved, decisions, err := a.Store.Signed(ctx, running.Tenant, running.SessionID, running.ID)
	if err != nil || approved == nil {
		return "", err // without any approval, the ledger lets nothing run
	}
	voters := settings.Voters()
	if approved.Status == approval.Consumed { // an earlier attempt of this call has been let run with the proof that it had
		voters.Proof = ""
	}
	if len(approved.Votes) > 0 && !approval.ConsentOf(voters.Counted(approved.Pending, a.Now())).Granted() {
		return approval.WithdrawnDisabled, nil
	}
	unsigned, err := a.unsigned(ctx, settings, session, tool, running, approved, decisions)
	if unsigned {
		why = approval.WithdrawnUnsigned
	}
	return why, err
}

// unsigned reports whether the signatures of the decisions about a call do not suffice. Where a key is demanded, votes and terms in the database prove
// nothing: anybody who can write there could change them. So only signed votes count. They must suffice twice: by the stored terms, and by the terms
// that policy sets now. If the call has a preview, at least one of them must be by somebody who saw it.
func (a *Activities) unsigned(
	ctx context.Context, settings tenancy.Settings, session jig.Session, tool jig.Tool, running jig.Call, approved *approval.Record, decisions []approval.Signed,
) (bool, error) {
	ruling, err := a.Policy.Rule(ctx, tool, running, session, approved.RequestedAt)
	if err != nil {
		return false, err
	}
	today := settings.Voters().Wider(a.pending(session, tool, running, ruling, settings, approved.Askers), a.Now())
	today.Delegations, today.RequestedAt = approved.Delegations, approved.RequestedAt
	wanted := settings.Proof.Stronger(approval.ConsentOf(approved.Pending).Terms.Proof).Stronger(ruling.Terms.Proof)
	if !wanted.AtLeast(jig.ProofKey) {
		return false, nil
	}
	if approved.Grant != "" {
		covers, err := a.stillCovers(ctx, settings, session, tool, running, approved)
		return !covers, err
	}
	var proven []approval.Proven
	seen := running.Preview == nil || running.Preview.Missing != ""
	for _, d := range decisions {
		p, proof, err := a.proven(settings, running, d)
		if err != nil || settings.IsDisabled(p.Principal.ID) || !proof.AtLeast(wanted) || p.Answer == jig.AnswerApprove && !a.approves(ctx, session, tool, running, d) {
			continue
		}
		proven = append(proven, p)
		seen = seen || p.Answer == jig.AnswerApprove && len(d.Decision.Input) == 0
	}
	return !seen || approval.Recount(approved.Pending, proven) != "" || approval.Recount(today, proven) != "", nil
}

// proven verifies the signature of a decision again. The signer must still be known with that key, with the groups that count now. The decision counts
// as made when its token ended: it may have been accepted until then, and the signer's clock may be slow.
func (a *Activities) proven(settings tenancy.Settings, call jig.Call, d approval.Signed) (approval.Proven, jig.Proof, error) {
	decision := d.Decision
	decision.Token, decision.Call = d.Token, call.ID
	who, evidence, err := token.VerifyAgain(settings.Keys, call.Tenant, call.SessionID, decision, d.Digest)
	if err != nil {
		return approval.Proven{}, "", err
	}
	by := settings.Person(who)
	by.Maker = evidence.Maker
	return approval.Proven{Principal: by, Answer: decision.Answer, To: decision.To, Undo: decision.Undo, Edits: len(decision.Input) > 0, At: evidence.Until},
		settings.ProofOf(settings.Key(evidence.Key)), nil
}

// approves reports whether a signed approval is for the call as it would run: for exactly its digest or, if the approval changed the input, for a call of
// the same tool that gets the input from this decision. Whoever changed the input has not seen what the changed call would change; unsigned
// makes sure that somebody has.
func (a *Activities) approves(ctx context.Context, session jig.Session, tool jig.Tool, running jig.Call, d approval.Signed) bool {
	if len(d.Decision.Input) == 0 {
		return d.Digest == running.Digest
	}
	shown := running
	shown.Tool, shown.Version, shown.Input = d.Shown.Tool, d.Shown.Version, d.Shown.Input
	shown.PolicyVersion, shown.Preview = d.Shown.PolicyVersion, d.Shown.Preview
	was, err := digest(a.Store.Installation(), shown)
	if err != nil || was != d.Digest || shown.Tool != running.Tool || shown.Version != running.Version {
		return false
	}
	edited := running
	return a.normalize(ctx, session, tool, d.Decision.Input, &edited) == nil && bytes.Equal(edited.Input, running.Input)
}

// stillCovers reports whether the standing approval that approved a call covers it, and suffices, by what is known now.
func (a *Activities) stillCovers(
	ctx context.Context, settings tenancy.Settings, session jig.Session, tool jig.Tool, running jig.Call, approved *approval.Record,
) (bool, error) {
	g, err := a.Store.Grant(ctx, running.Tenant, approved.Grant)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if approved.Status == approval.Consumed { // an earlier attempt of this call has counted it
		g.Used--
	}
	standing := approval.Standing{Grant: g, People: givers(g, settings)}
	why, err := a.uncovered(ctx, settings, standing, session, tool, running)
	return why == "" && approval.TakesGrant(tool, approved.Pending) && approval.VotesOf(g, standing.People, approved.Pending, settings.Proof, a.Now()) != nil, err
}
