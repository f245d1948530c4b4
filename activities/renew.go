package activities

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// compared is a call that waits for an approval, compared with what people are shown.
type compared struct {
	session  jig.Session
	call     jig.Call
	tool     jig.Tool
	previews *previews
	status   protocol.ComparisonStatus
	// preview says what the call would change now; nil if people are shown the same.
	preview *jig.Preview
	// why is the reason for which the status is unknown.
	why string
}

// changed reports whether the call is known to be another than people are shown.
func (c compared) changed() bool {
	return c.status == protocol.ComparisonContract || c.status == protocol.ComparisonPreview
}

// compare compares a call that waits for an approval with what people are shown: the tool's contract, and what the call would change. It
// changes nothing.
func (a *Activities) compare(ctx context.Context, ref protocol.SessionRef, id string) (compared, error) {
	session, call, err := a.callOf(ctx, ref, id)
	if err != nil {
		return compared{}, err
	}
	c := compared{session: session, call: call, status: protocol.ComparisonUnknown}
	if call.Status != jig.CallWaiting {
		c.why = "the call waits no longer"
		return c, nil
	}
	known := false
	if c.tool, known, err = a.currentTool(ctx, call); err != nil || !known {
		c.why = "this worker does not know the tool " + call.Tool
		return c, err
	}
	c.previews = &previews{Activities: a, session: session, tool: c.tool}
	if c.tool.Version != call.Version {
		c.status = protocol.ComparisonContract
		return c, nil
	}
	c.status = protocol.ComparisonSame
	if !c.tool.Previews || call.Preview == nil || call.Preview.Missing != "" {
		return c, nil
	}
	now, err := c.previews.of(ctx, call)
	switch {
	case err != nil:
		return c, err
	case c.previews.outage != nil:
		c.status, c.why = protocol.ComparisonUnknown, c.previews.outage.Message
	case different(call.Preview, now):
		c.status, c.preview = protocol.ComparisonPreview, now
	}
	return c, nil
}

// Compare says whether a call that waits for an approval is still what people are shown. It compares a call at most once in
// [protocol.ComparedFor], and in between returns what it found. The error is NOT_FOUND if the call does not wait for a person.
func (a *Activities) Compare(ctx context.Context, in protocol.CompareRequest) (_ protocol.Comparison, err error) {
	defer asTemporal(&err)
	found := protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "a worker is comparing it now; look again"}
	asked, err := a.Store.Pending(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return found, err
	}
	now := a.Now()
	begun, err := a.Store.BeginComparison(ctx, asked, now, protocol.ComparedFor)
	if err != nil {
		return found, err
	}
	if !begun {
		if kept, err := a.Store.Comparison(ctx, asked, now.Add(-protocol.ComparedFor)); kept != nil || err != nil {
			return *cmp.Or(kept, &found), err
		}
		return found, nil
	}
	c, err := a.compare(ctx, protocol.SessionRef{Tenant: in.Tenant, SessionID: in.SessionID}, in.Call)
	found = protocol.Comparison{Status: c.status, At: now.UTC(), Detail: c.why}
	switch {
	case err != nil:
		found.Status, found.Detail = protocol.ComparisonUnknown, jig.Text(explain(err))
	case c.changed():
		found.Detail = c.what()
	}
	return found, a.Store.EndComparison(context.WithoutCancel(ctx), asked, found)
}

// maxStale limits the difference between two previews that a refusal shows, in bytes.
const maxStale = 2 << 10

// what says what has changed since the call was shown.
func (c compared) what() string {
	if c.status == protocol.ComparisonContract {
		return "the contract of " + c.call.Tool + " has changed since the call was shown"
	}
	before, after := previewLines(*c.call.Preview), previewLines(*c.preview)
	_, difference, _ := strings.Cut(preview.Diff("the preview", before, after), "\n")
	return "what " + c.call.Tool + " would change is not what was shown any more:\n" + jig.Cut(strings.TrimRight(difference, "\n"), maxStale)
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
func (a *Activities) checkFirstVote(ctx context.Context, settings tenancy.Settings, r *approval.DecisionRequest) (*compared, error) {
	asked, err := a.Store.Pending(ctx, r.Tenant, r.SessionID, r.Decision.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil, nil // the store refuses the decision with its own message
	}
	if err != nil || asked.Kind != jig.PendingApproval || r.Decision.Digest != "" && r.Decision.Digest != asked.Digest {
		return nil, err
	}
	asked = settings.Voters().Counted(asked, r.Now)
	if len(asked.Votes) > 0 || approval.WhyNot(asked, r.Principal, settings.Reconcilers, r.Now) != "" {
		return nil, nil // an earlier vote was compared, or this one does not count
	}
	found, err := a.compare(ctx, protocol.SessionRef{Tenant: r.Tenant, SessionID: r.SessionID}, r.Decision.Call)
	if err != nil || !found.changed() || len(r.Decision.Input) > 0 && found.preview != nil { // an edit gets a preview of its own
		return nil, err
	}
	r.Refusal = "not approved yet: " + found.what() + "\nlook at the call again, and approve what it is now"
	return &found, nil
}

// renew admits a call again whose first approval was not taken because the call has changed since it was shown. If the refused
// decision is sent again, it gets the same answer, with the call as it is now.
func (a *Activities) renew(ctx context.Context, c *compared, ruled approval.Applied) (approval.Applied, error) {
	if ruled.Outcome != jig.DecisionRefused {
		return ruled, nil
	}
	if _, _, err := a.admitAgain(ctx, c.session, c.call, c.tool, c.previews); err != nil {
		return ruled, err
	}
	call, err := a.Store.Call(ctx, c.call.Tenant, c.call.SessionID, c.call.ID)
	if err != nil {
		return ruled, err
	}
	ruled.Call, ruled.Status, ruled.Renewed = &call, call.Status, true
	return ruled, nil
}

// ExpireInput names calls whose approvals may be due.
type ExpireInput struct {
	protocol.SessionRef
	Calls []string `json:"calls"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
}

// Expire processes approvals that are due: it expires those whose time has come and sends due reminders and escalations. It returns
// the state of each call.
func (a *Activities) Expire(ctx context.Context, in ExpireInput) (Handled, error) {
	var handled Handled
	var voters *approval.Voters
	if settings, err := a.Tenants.Latest(ctx, in.Tenant); err == nil { // else approvals expire all the same
		voters = new(settings.Voters())
	}
	for _, id := range in.Calls {
		lapse, err := a.Store.Lapse(ctx, in.Tenant, in.SessionID, id, voters, in.Now)
		if err != nil {
			return handled, temporalError(err)
		}
		call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, id)
		if err != nil {
			return handled, temporalError(err)
		}
		if lapse.Status == jig.CallExpired && lapse.OnExpiry.Strictness() > handled.Ending.Strictness() {
			handled.Ending = lapse.OnExpiry
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: lapse.Status}
		if err := a.follow(ctx, approval.Applied{Ruled: ruled, Call: &call}, &handled); err != nil {
			return handled, temporalError(err)
		}
	}
	return handled, nil
}

const (
	// recheckLease is how long a worker may take to check the open approvals of a tenant before another one begins.
	recheckLease = time.Minute
	// maxRechecks is how many tenants a worker checks at a time.
	maxRechecks = 10
	// recheckPage is how many open approvals it reads at a time.
	recheckPage = 500
)

// Recheck checks the open approvals of tenants in which the people who may decide have changed: if too few are left, more people may decide, or the call
// is denied; see [approval.Voters.Independent]. Workflows are told. If one tenant cannot be checked now, the others still are.
func (a *Activities) Recheck(ctx context.Context) error {
	tenants, err := a.Store.TakeRechecks(ctx, recheckLease, maxRechecks)
	for tenant, due := range tenants {
		failed := a.recheck(ctx, tenant)
		if failed == nil {
			failed = a.Store.Rechecked(ctx, tenant, due)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// recheck checks the open approvals of a tenant.
func (a *Activities) recheck(ctx context.Context, tenant string) error {
	settings, err := a.Tenants.Latest(ctx, tenant)
	if err != nil {
		return err
	}
	voters := settings.Voters()
	for cursor, more := "", true; more; more = cursor != "" {
		var page []jig.Pending
		if page, cursor, err = a.Store.PendingApprovals(ctx, tenant, cursor, recheckPage); err != nil {
			return err
		}
		for _, p := range page {
			if err := a.recheckCall(ctx, voters, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// recheckCall checks one open approval, without a lock if it is as it should be.
func (a *Activities) recheckCall(ctx context.Context, voters approval.Voters, p jig.Pending) error {
	now := a.Now()
	wider, denied := voters.Independent(voters.Counted(p, now), now)
	if denied == nil && wider.Terms == p.Terms {
		return nil
	}
	changed, err := a.Store.Recheck(ctx, p.Tenant, p.SessionID, p.Call, voters, now)
	if err != nil || !changed {
		return err
	}
	call, err := a.Store.Call(ctx, p.Tenant, p.SessionID, p.Call)
	if err == nil {
		a.notifySettled(ctx, call)
	}
	return err
}
