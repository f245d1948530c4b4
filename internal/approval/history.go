package approval

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// Past returns a call as it was shown when an audit entry decided it, with the decision. What became of the call is not part of the entry.
func Past(e audit.Entry) jig.Pending {
	outcome, inPart := e.Outcome()
	p := jig.Pending{Tenant: e.Tenant, SessionID: e.SessionID, Call: e.Call, Tool: e.Tool, Digest: e.Digest, PolicyVersion: e.PolicyVersion}
	if s := e.Shown; s != nil {
		p.Kind, p.Agent, p.RequestedBy, p.RequestedAt = s.Kind, s.Agent, s.RequestedBy, s.RequestedAt
		p.Summary, p.Preview, p.Reasons, p.Input, p.Truncated = s.Summary, s.Preview, s.Reasons, s.Input, s.Truncated
	}
	p.Decided = &jig.Decided{
		Outcome: string(outcome), InPart: inPart, At: e.At, By: e.By, Claimed: e.Claimed, Proof: e.Proof, Reason: e.Reason, Note: e.Note, Patch: e.Patch,
		Key: e.Evidence.KeyID(), Edited: e.Kind == audit.AuditEdited,
	}
	if outcome == audit.OutcomeApproved || outcome == audit.OutcomeGranted {
		p.Decided.Grant = e.Subject
	}
	return p
}
