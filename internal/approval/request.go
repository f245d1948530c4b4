package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
)

// DecisionRequest is a [jig.Decision] with the values that the activity computes because the store cannot.
type DecisionRequest struct {
	Tenant    string
	SessionID string
	// Key identifies the signal or update. It is the same each time that signal or update is processed, so that it takes effect once.
	Key string
	// Principal is the principal who decides, with the groups and permissions from the tenant's settings. Claimed is set if the identity was
	// not proved.
	Principal jig.Principal
	// Evidence is the proof of the principal; nil if there is none.
	Evidence *identity.Evidence
	// Voters says which earlier votes and delegations count.
	Voters
	Decision jig.Decision
	// Signed is the decision with the token that proves it; nil if there is none.
	Signed *Signed
	// Edited is the call as it would run with the decision's input: canonical and validated, with a new digest and ruling. Fresh is the same
	// call as people see it. Both are nil when the decision does not edit.
	Edited *jig.Call
	Fresh  *jig.Pending
	// EditedFrom is the digest of the call from which Edited and Patch were computed. If the call has another digest when the decision is
	// applied, nothing is decided and the error is a CONFLICT with [ReasonInputChanged]; the caller must compute them again.
	EditedFrom string
	// Patch is the change that the edit makes, as JSON Patch (RFC 6902).
	Patch json.RawMessage
	// Grant is the standing approval to create with the decision, already checked against the tenant's ceiling; nil for none.
	Grant *jig.Grant
	// Standing is the standing approval that approves the call in place of the person's own vote, already checked for the call; nil for none.
	Standing *Standing
	// Refusal, when set, is recorded as decision.refused without further checks: the payload could not be read, an edit does not fit the
	// schema, or the token does not prove the decision.
	Refusal string
	Now     time.Time
}

// Standing is a grant that approves a waiting call, with the people who gave it as the tenant knows them now.
type Standing struct {
	Grant  jig.Grant
	People []jig.Principal
}

// ReasonInputChanged says that somebody else changed a call's input while an edit was being prepared.
const ReasonInputChanged = "input_changed"

// ReconcileRequest is a [jig.Reconciliation] with the values that the activity adds; see [DecisionRequest] for the fields they share.
type ReconcileRequest struct {
	Tenant         string
	SessionID      string
	Key            string
	Principal      jig.Principal
	Evidence       *identity.Evidence
	Reconciliation jig.Reconciliation
	// Reconcilers are the people who may reconcile; nil means those who could have approved the call.
	Reconcilers *jig.Approvers
	Voters
	Refusal string
	Now     time.Time
}

// ReplyRequest is a [jig.Reply] with the values that the activity adds; see [DecisionRequest] for the fields they share. The answer has
// already been validated against the question's schema.
type ReplyRequest struct {
	Tenant    string
	SessionID string
	Key       string
	Principal jig.Principal
	Evidence  *identity.Evidence
	Reply     jig.Reply
	// Digest is the digest of the question against which the value was validated.
	Digest string
	Voters
	Refusal string
	Now     time.Time
}

// Applied is the result of a request about a call.
type Applied struct {
	jig.Ruled
	// Call is the call after the request. It is nil if the session has no such call.
	Call *jig.Call
	// Renewed reports that the request was refused because the call had changed since it was shown, and that people are asked about the call as
	// it is now.
	Renewed bool
}

// CheckDecision returns why the form of a decision is wrong, or "" when it is right.
func CheckDecision(d jig.Decision) string {
	switch {
	case d.Call == "":
		return "`call` is missing: name the call to decide, e.g. 3.2"
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		return fmt.Sprintf("%q is not an answer; use approve, deny or delegate", d.Answer)
	case d.Answer != jig.AnswerApprove && len(d.Input) > 0:
		return "`input` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.Grant != nil:
		return "`grant` is allowed only with approve"
	case d.Answer != jig.AnswerApprove && d.GrantID != "":
		return "`grant_id` is allowed only with approve"
	case d.GrantID != "" && (d.Grant != nil || len(d.Input) > 0):
		return "`grant_id` approves the call as it is: leave out `grant` and `input`"
	case d.Answer != jig.AnswerDelegate && d.To != "":
		return "`to` is allowed only with delegate"
	case d.Answer != jig.AnswerDelegate && d.Undo:
		return "`undo` is allowed only with delegate"
	case d.Undo && d.To != "":
		return "`undo` takes a delegation back: leave out `to`"
	}
	return ""
}

// CheckReply returns why the form of an answer is wrong, or "" when it is right. Whether the value fits the question is not checked.
func CheckReply(r jig.Reply) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call of the question, e.g. 3.2"
	case len(r.Value) == 0:
		return "`value` is missing: give the answer"
	case len(r.Value) > jig.InlineBytes:
		return fmt.Sprintf("`value` has %d bytes; at most %d are allowed", len(r.Value), jig.InlineBytes)
	}
	return ""
}

// CheckReconciliation returns why the form of a statement about an unknown outcome is wrong, or "" when it is right.
func CheckReconciliation(r jig.Reconciliation) string {
	switch {
	case r.Call == "":
		return "`call` is missing: name the call, e.g. 3.2"
	case r.Outcome != jig.OutcomeHappened && r.Outcome != jig.OutcomeNotHappened && r.Outcome != jig.OutcomeGiveUp:
		return fmt.Sprintf("%q is not an outcome; use happened, not_happened or give_up", r.Outcome)
	case r.Attempt < 0:
		return fmt.Sprintf("`attempt` is %d: give the number of the attempt in doubt, 1 or more", r.Attempt)
	}
	return ""
}
