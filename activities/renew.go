package activities

import (
	"context"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// stale is a call that waits for an approval and is not what people are shown any more.
type stale struct {
	session  jig.Session
	call     jig.Call
	tool     jig.Tool
	previews *previews
	// contract reports that the tool's contract has changed, and preview is what the call would change now; nil if that is what was shown, or if it
	// cannot be found out now.
	contract bool
	preview  *jig.Preview
}

// compare compares a call that waits for an approval with what people are shown: the tool's contract, and what the call would change. It
// returns nil if nothing has changed, or if this worker cannot tell. It changes nothing.
func (a *Activities) compare(ctx context.Context, ref protocol.SessionRef, id string) (*stale, error) {
	session, call, err := a.callOf(ctx, ref, id)
	if err != nil || call.Status != jig.CallWaiting {
		return nil, err
	}
	tool, known, err := a.toolNow(ctx, call)
	if err != nil || !known {
		return nil, err
	}
	s := &stale{session: session, call: call, tool: tool, previews: &previews{Activities: a, session: session, tool: tool}}
	if tool.Version != call.Version {
		s.contract = true
		return s, nil
	}
	if !tool.Previews || call.Preview == nil || call.Preview.Missing != "" {
		return nil, nil // nil means that nothing has changed
	}
	now, err := s.previews.of(ctx, call)
	if err != nil || s.previews.outage != nil || !different(call.Preview, now) {
		return nil, err
	}
	s.preview = now
	return s, nil
}

// maxStale limits the difference between two previews that a refusal shows, in bytes.
const maxStale = 2 << 10

// what says what has changed since the call was shown.
func (s *stale) what() string {
	if s.contract {
		return "the contract of " + s.call.Tool + " has changed since the call was shown"
	}
	before, after := previewLines(*s.call.Preview), previewLines(*s.preview)
	_, difference, _ := strings.Cut(preview.Diff("the preview", before, after), "\n")
	return "what " + s.call.Tool + " would change is not what was shown any more:\n" + jig.Cut(strings.TrimRight(difference, "\n"), maxStale)
}

// previewLines returns the text of a preview.
func previewLines(p jig.Preview) string {
	if p.Missing != "" {
		return "no preview: " + p.Missing + "\n"
	}
	lines := append([]string{p.Title}, p.Changes...)
	if p.Markdown != "" {
		lines = append(lines, p.Markdown)
	}
	if p.Precondition != "" {
		lines = append(lines, "precondition: "+p.Precondition)
	}
	return strings.Join(lines, "\n") + "\n"
}

// checkFirstVote compares the call with what people are shown before its first approval counts. If something has changed, it sets the refusal and
// returns the call, which must be renewed.
func (a *Activities) checkFirstVote(ctx context.Context, settings tenancy.Settings, r *approval.DecisionRequest) (*stale, error) {
	asked, err := a.store.Pending(ctx, r.Tenant, r.SessionID, r.Decision.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil, nil // the store refuses the decision with its own message
	}
	if err != nil || asked.Kind != jig.PendingApproval || r.Decision.Digest != "" && r.Decision.Digest != asked.Digest {
		return nil, err
	}
	asked = votersOf(settings).Counted(asked, r.Now)
	if len(asked.Votes) > 0 || approval.WhyNot(asked, r.Principal, settings.Reconcilers, r.Now) != "" {
		return nil, nil // an earlier vote was compared, or this one does not count
	}
	changed, err := a.compare(ctx, protocol.SessionRef{Tenant: r.Tenant, SessionID: r.SessionID}, r.Decision.Call)
	if err != nil || changed == nil || len(r.Decision.Input) > 0 && !changed.contract { // an edit gets a preview of its own
		return nil, err
	}
	r.Refusal = "not approved yet: " + changed.what() + "\nlook at the call again, and approve what it is now"
	return changed, nil
}

// renew admits a call again whose first approval was not taken because the call has changed since it was shown. Whoever repeats the
// decision that was refused finds the same answer, with the call as it is now.
func (a *Activities) renew(ctx context.Context, s *stale, ruled approval.Applied) (approval.Applied, error) {
	if ruled.Outcome != jig.DecisionRefused {
		return ruled, nil
	}
	if _, _, err := a.admitAgain(ctx, s.session, s.call, s.tool, s.previews); err != nil {
		return ruled, err
	}
	call, err := a.store.Call(ctx, s.call.Tenant, s.call.SessionID, s.call.ID)
	if err != nil {
		return ruled, err
	}
	ruled.Call, ruled.Status, ruled.Renewed = &call, call.Status, true
	return ruled, nil
}
