package approval

import (
	"encoding/json"
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

// Standing is a grant that shall approve a call that already waits, with the people who gave it as the tenant knows them now.
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
