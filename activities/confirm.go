package activities

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
)

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
