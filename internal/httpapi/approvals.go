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
	"github.com/jig-run/jig/internal/protocol"
)

type listApprovalsRequest struct {
	CanDecide   bool      `query:"can_decide" doc:"Only calls that the principal of the credential may decide and has not decided yet"`
	Kind        string    `query:"kind" enum:"approval,reconcile,question"`
	Tool        string    `query:"tool" names:"tool" maxLength:"200" doc:"Only calls of this tool, or of a category such as file.*"`
	Agent       string    `query:"agent" names:"agent" maxLength:"200"`
	Session     string    `query:"session" names:"session" maxLength:"192" doc:"Only calls of this session and of the sessions that answer its calls"`
	RequestedBy string    `query:"requested_by" names:"person" maxLength:"200"`
	Before      time.Time `query:"before" doc:"Only calls that have waited since before this time"`
	After       time.Time `query:"after" doc:"Only calls that have waited since after this time"`
	Page
}

type approvalsAnswer struct {
	Body struct {
		Approvals []jig.Pending `json:"approvals"`
		Next      string        `json:"next_cursor,omitempty"`
	} `nameHint:"ApprovalList"`
}

func (a *API) listApprovals(ctx context.Context, in *listApprovalsRequest) (*approvalsAnswer, error) {
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
		return nil, err
	}
	found, err := a.options.Engine.Pending(ctx, tenant, filter, from, in.Limit)
	if err != nil {
		return nil, err
	}
	var answer approvalsAnswer
	if answer.Body.Approvals = append([]jig.Pending{}, found.Approvals...); found.Next != "" {
		answer.Body.Next = mark + found.Next
	}
	return &answer, nil
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

type approvalRequest struct {
	One
	Call string `query:"call" names:"call" required:"true" maxLength:"512" doc:"The id of the call, e.g. 3.2 or 3.2/page"`
}

type approvalAnswer struct{ Body protocol.ShownCall }

func (a *API) getApproval(ctx context.Context, in *approvalRequest) (*approvalAnswer, error) {
	tenant, who := callerOf(ctx)
	shown, err := a.options.Engine.Show(ctx, tenant, in.Session, in.Call)
	shown.Pending.SessionID = cmp.Or(shown.Pending.SessionID, jig.SessionID(tenant, in.Session))
	return &approvalAnswer{Body: shown.By(who.ID)}, err
}

type reviewRequest struct {
	Body struct {
		Signs bool      `json:"signs,omitempty" doc:"Whether the principal would sign the decisions"`
		Calls []callRef `json:"calls" maxItems:"500"`
	} `nameHint:"ReviewApprovals"`
}

// callRef names a call.
type callRef struct {
	Session string `json:"session_id" names:"session" maxLength:"192"`
	Call    string `json:"call" names:"call" maxLength:"512"`
}

type reviewAnswer struct {
	Body struct {
		Reviews []protocol.Review `json:"reviews"`
	} `nameHint:"ReviewList"`
}

func (a *API) reviewApprovals(ctx context.Context, in *reviewRequest) (*reviewAnswer, error) {
	tenant, who := callerOf(ctx)
	calls := make([]protocol.WaitingCall, len(in.Body.Calls))
	for i, c := range in.Body.Calls {
		calls[i] = protocol.WaitingCall{SessionID: jig.SessionID(tenant, c.Session), Call: c.Call}
	}
	found, err := a.options.Engine.Review(ctx, tenant, who.ID, in.Body.Signs, calls)
	var answer reviewAnswer
	answer.Body.Reviews = append([]protocol.Review{}, found...)
	return &answer, err
}
