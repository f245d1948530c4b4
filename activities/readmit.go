package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
)

// readmit puts a call through admission again because what would run differs from what was admitted: the tool's contract changed,
// the call would change something else than was shown, or the call has no valid approval.
func (a *Activities) readmit(ctx context.Context, session jig.Session, call jig.Call, tool jig.Tool, previews *previews) (Ran, bool, error) {
	if call.Status == jig.CallWaiting && call.Version == tool.Version {
		ran, err := a.asked(ctx, call)
		return ran, false, err
	}
	return a.admitAgain(ctx, session, call, tool, previews)
}

// admitAgain puts a call through admission again, even if it waits and its tool has not changed.
func (a *Activities) admitAgain(ctx context.Context, session jig.Session, call jig.Call, tool jig.Tool, previews *previews) (Ran, bool, error) {
	fresh := call
	fresh.Preview, previews.before = nil, call
	var approval *jig.Pending
	gone, err := a.gone(ctx, call.Tenant, tool)
	if err != nil {
		return Ran{}, false, err
	}
	failed := allowed(tool, session) // the contract may require more than it did before
	if gone {
		failed = a.noTool(ctx, call.Tenant, tool.Name)
	}
	if failed == nil {
		failed = a.normalize(ctx, session, tool, call.Input, &fresh)
	}
	if failed == nil {
		failed = a.checkQuestion(tool, fresh.Input)
	}
	if failed != nil {
		refuse(&fresh, failed)
	} else {
		matcher := a.newGrantMatcher(session)
		if fresh.Version == call.Version && bytes.Equal(fresh.Input, call.Input) {
			matcher.origins.earlier = call.Flow
		}
		if approval, err = a.decideWith(ctx, matcher, tool, &fresh, a.confirmAgain, previews); err != nil {
			return Ran{}, false, err
		}
		if fresh.PolicyVersion == ledger.VersionUnreadable && !fresh.Status.Final() {
			return held(call, fresh.Reasons[0]), false, nil
		}
	}
	stored, err := a.Store.Readmit(ctx, call, fresh, approval)
	if err != nil {
		return Ran{}, false, err
	}
	if approval != nil {
		a.Tracing.Asked(ctx, session, *approval)
	}
	if stored.Status == jig.CallWaiting || stored.Status == jig.CallUnknown {
		ran, err := a.asked(ctx, stored)
		return ran, false, err
	}
	if stored.Status == jig.CallReserved {
		return Ran{}, true, nil
	}
	return result(stored), false, nil
}

// deniedNow reports whether a reserved call must not begin: policy or the tenant denies it now, or its row says that it may run although
// nothing ever allowed that. held is the reason if the answer cannot be determined now.
func (a *Activities) deniedNow(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call) (denied bool, held string, err error) {
	if call.Status != jig.CallReserved {
		return false, "", nil
	}
	if tool.Permission == jig.PermissionDestructive && call.Verdict == jig.VerdictRun {
		return true, "", nil // admission never allows such a call: the row was changed, so a person decides
	}
	if gone, err := a.gone(ctx, call.Tenant, tool); gone || err != nil {
		return gone, "", err
	}
	if allowed(tool, session) != nil {
		return true, "", nil //nolint:nilerr // the error means that the call is denied
	}
	ruling, err := a.Policy.Rule(ctx, tool, call, session, a.Now())
	if err != nil || ruling.Held != "" || ruling.Verdict != jig.VerdictAsk || call.Verdict != jig.VerdictRun {
		return ruling.Verdict == jig.VerdictDeny, ruling.Held, err
	}
	if ruling.PolicyVersion != call.PolicyVersion {
		settings, err := a.Tenants.Settings(ctx, call.Tenant)
		if err != nil || !settings.Proof.Stronger(ruling.Terms.Proof).AtLeast(jig.ProofKey) {
			return false, "", err
		}
	}
	// By policy a person must approve the call, but its row says that it may run. Either policy let it run when it was admitted, or a person
	// confirmed it, or somebody changed the row. Under newer policies that cannot be told apart, so there it only matters where a key is demanded.
	if ruling, err = a.Policy.Rule(ctx, tool, call, session, call.CreatedAt); err != nil || ruling.Verdict != jig.VerdictAsk {
		return ruling.Verdict == jig.VerdictDeny, ruling.Held, err
	}
	asked := call
	asked.Status, asked.Verdict = jig.CallWaiting, jig.VerdictAsk
	if tool.Confirm {
		err = a.confirm(ctx, session, tool, &asked, ruling)
	}
	return asked.Status != jig.CallReserved, "", err // confirm may finish the call without running it; that does not permit it to run
}

// withdrawn returns why the approval of a call that is about to begin does not count any more; "" if it does. running is the call as it would run,
// with its digest.
func (a *Activities) withdrawn(ctx context.Context, session jig.Session, tool jig.Tool, running jig.Call) (why string, err error) {
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
// the same tool that gets the input from this decision. The person who changed the input has not seen what the changed call would do; unsigned
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

// ReasonRequiresConfirmation is the error reason of a call that did nothing because its input lacks `confirmed: true` and there is no
// conversation in which somebody could confirm it.
const ReasonRequiresConfirmation = "requires_confirmation"

// confirmAgain handles a call that was admitted before its tool got a confirmation flag. A person decides: the call was admitted to
// run, so it must not end as if nothing had been requested, and nobody has confirmed it.
func (a *Activities) confirmAgain(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call, ruling policy.Ruling) error {
	nothing, err := tool.Unconfirmed(call.Input)
	switch {
	case err != nil:
		return err
	case nothing == nil:
		return a.confirm(ctx, session, tool, call, ruling)
	case call.Status == jig.CallReserved:
		call.Status, call.Verdict = jig.CallWaiting, jig.VerdictAsk
		call.Reasons = append(call.Reasons, tool.Name+" has required confirmation since its contract changed")
	}
	return nil
}

// confirm handles a call of a tool with a confirmation flag.
//
// Without `confirmed: true` the call does nothing. In a conversation its answer says so, and the model can ask a person. In a
// composition, an extraction or a single call it fails, because whatever comes next must not continue as if the tool had acted.
//
// With the flag the call runs if the model made the same call without the flag before and a person has sent a message since. Otherwise
// policy's verdict applies.
func (a *Activities) confirm(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call, ruling policy.Ruling) error {
	nothing, err := tool.Unconfirmed(call.Input)
	if err != nil {
		return err
	}
	if nothing != nil && (call.Frame != "" || session.Agent.Name == jig.CallAgent) {
		refuse(call, jig.Errorf(jig.CodeInvalidInput, "nothing was done: %s acts only with confirmed: true", tool.Name).WithField("confirmed").
			WithReason(ReasonRequiresConfirmation).WithHint("set confirmed: true in the input; policy then decides whether the call runs or waits for a person"))
		return nil
	}
	if nothing != nil {
		call.Status, call.Verdict, call.Result = jig.CallSucceeded, jig.VerdictRun, nothing
		call.Write = false
		return nil
	}
	// Lift only a verdict that comes from the contract alone. An approval that a rule requires stays required, and destructive tools
	// always ask.
	if call.Status != jig.CallWaiting || !ruling.Base || tool.Permission == jig.PermissionDestructive || tool.Approval == jig.ApprovalAlwaysAsk {
		return nil
	}
	settings, err := a.Tenants.Settings(ctx, session.Tenant)
	if err != nil || settings.ProofWanted() {
		return err // the claims in a message prove nothing, and this tenant's decisions need proof
	}
	asked, err := a.confirmedSince(ctx, session, tool, *call)
	if err != nil || !asked {
		return err
	}
	call.Status, call.Verdict = jig.CallReserved, jig.VerdictRun
	call.Reasons = append(call.Reasons, "a person confirmed it in a message")
	return nil
}

// confirmedSince reports whether the same call was made without the flag in an earlier pass and a person sent a message after it.
func (a *Activities) confirmedSince(ctx context.Context, session jig.Session, tool jig.Tool, call jig.Call) (bool, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(call.Input, &members); err != nil {
		return false, jig.Errorf(jig.CodeInternal, "reading the input of call %s: %w", call.ID, err)
	}
	delete(members, "confirmed")
	bare, err := json.Marshal(members)
	if err != nil {
		return false, jig.Errorf(jig.CodeInternal, "encoding the input of call %s: %w", call.ID, err)
	}
	var inputs []string
	for _, unconfirmed := range []json.RawMessage{bare, withMember(bare, "confirmed", "false")} {
		normal, err := canonicalJSON(withDefaults(tool.InputSchema, unconfirmed))
		if err != nil {
			return false, err
		}
		inputs = append(inputs, signature(tool, normal, session.Writes))
	}
	equal, err := a.Store.EqualCalls(ctx, session.Tenant, session.ID, call.Pass, inputs)
	return slices.ContainsFunc(equal, func(e ledger.Earlier) bool { return e.Message > e.Call.Pass }), err
}

// withMember adds a member to a JSON object.
func withMember(object json.RawMessage, name, value string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	members[name] = json.RawMessage(value)
	b, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return b
}
