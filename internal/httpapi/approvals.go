package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// serveApprovals serves the operations on calls that wait for people.
func (a *API) serveApprovals() {
	serve(a, api.ListApprovals, a.listApprovals)
	serve(a, api.GetApproval, a.getApproval)
	serve(a, api.ReviewApprovals, a.reviewApprovals)
	serve(a, api.Decide, a.decide)
	serve(a, api.DecideSeveral, a.decideSeveral)
	serve(a, api.Delegate, a.delegate)
	serve(a, api.Answer, a.answer)
	serve(a, api.Reconcile, a.reconcile)
}

func (a *API) listApprovals(ctx context.Context, in *api.ListApprovalsRequest) (protocol.ApprovalList, error) {
	tenant, who := callerOf(ctx)
	filter := jig.PendingFilter{
		Tool: in.Tool, Kind: jig.PendingKind(in.Kind), SessionID: in.Session, Agent: in.Agent, RequestedBy: in.RequestedBy, Before: in.Before, After: in.After,
	}
	if in.CanDecide {
		filter.For = who.ID
	}
	same := filter
	same.Before, same.After = time.Time{}, time.Time{} // they may differ from page to page, because people write them as ages
	mark, from, err := continued(in.Cursor, same)
	if err != nil {
		return protocol.ApprovalList{}, err
	}
	found, err := a.options.Engine.Pending(ctx, tenant, filter, from, in.Limit)
	if found.Next != "" {
		found.Next = mark + found.Next
	}
	return found, err
}

// continued returns the text with which all cursors of a filter begin, and what follows it in a cursor. It refuses a cursor of another filter.
func continued(cursor string, filter any) (mark, from string, err error) {
	text, err := json.Marshal(filter)
	if err != nil {
		return "", "", jig.Errorf(jig.CodeInternal, "encoding a filter: %w", err)
	}
	sum := sha256.Sum256(text)
	mark = hex.EncodeToString(sum[:8]) + "."
	from, belongs := strings.CutPrefix(cursor, mark)
	if cursor != "" && !belongs {
		return "", "", invalid("the cursor belongs to a list with another filter").WithField("cursor").WithHint("repeat the filter of the first page")
	}
	return mark, from, nil
}

func (a *API) getApproval(ctx context.Context, in *api.CallPath) (protocol.ShownCall, error) {
	tenant, who := callerOf(ctx)
	shown, err := a.options.Engine.Show(ctx, tenant, in.Session, in.Call)
	shown.Pending.SessionID = cmp.Or(shown.Pending.SessionID, jig.SessionID(tenant, in.Session))
	return shown.By(who.ID), err
}

func (a *API) reviewApprovals(ctx context.Context, in *api.ReviewApprovalsRequest) (protocol.ReviewList, error) {
	tenant, who := callerOf(ctx)
	calls := make([]protocol.WaitingCall, len(in.Body.Calls))
	for i, c := range in.Body.Calls {
		calls[i] = protocol.WaitingCall{SessionID: jig.SessionID(tenant, c.Session), Call: c.Call}
	}
	found, err := a.options.Engine.Review(ctx, tenant, who.ID, in.Body.Signs, calls)
	return protocol.ReviewList{Reviews: found}, err
}
