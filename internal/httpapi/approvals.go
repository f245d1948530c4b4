package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

type listApprovalsRequest struct {
	CanDecide   bool      `query:"can_decide" doc:"Only calls that the principal of the credential may decide and has not decided yet"`
	Kind        string    `query:"kind" enum:"approval,reconcile,question"`
	Tool        string    `query:"tool" maxLength:"200" doc:"Only calls of this tool, or of a category such as file.*"`
	Agent       string    `query:"agent" maxLength:"200"`
	Session     string    `query:"session" maxLength:"192" doc:"Only calls of this session and of those that answer its calls"`
	RequestedBy string    `query:"requested_by" maxLength:"200"`
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
	mark, err := fingerprint(filter)
	if err != nil {
		return nil, err
	}
	from, belongs := strings.CutPrefix(in.Cursor, mark)
	if in.Cursor != "" && !belongs {
		return nil, invalid("the cursor belongs to a list with another filter").WithField("cursor").WithHint("repeat the filter of the first page")
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

// fingerprint returns the beginning of the cursors of a filter.
func fingerprint(filter jig.PendingFilter) (string, error) {
	text, err := json.Marshal(filter)
	if err != nil {
		return "", jig.Errorf(jig.CodeInternal, "encoding a filter: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]) + ".", nil
}

type approvalRequest struct {
	One
	Call string `query:"call" required:"true" maxLength:"512" doc:"The id of the call, e.g. 3.2 or 3.2/page"`
}

type approvalAnswer struct{ Body protocol.ShownCall }

func (a *API) getApproval(ctx context.Context, in *approvalRequest) (*approvalAnswer, error) {
	tenant, _ := callerOf(ctx)
	pending, input, err := a.options.Engine.Show(ctx, tenant, in.Session, in.Call)
	pending.SessionID = cmp.Or(pending.SessionID, jig.SessionID(tenant, in.Session))
	return &approvalAnswer{Body: protocol.ShownCall{Pending: pending, Input: input}}, err
}

type decideRequest struct {
	One
	Body struct {
		Call   string            `json:"call" minLength:"1" maxLength:"512" doc:"The id of the call"`
		Answer jig.Answer        `json:"answer" enum:"approve,deny"`
		Digest string            `json:"digest" minLength:"1" doc:"The digest of the call as it was shown"`
		Input  json.RawMessage   `json:"input,omitempty" doc:"Arguments instead of the requested ones"`
		Grant  *jig.GrantRequest `json:"grant,omitempty" doc:"Asks for a standing approval of further calls"`
		Reason string            `json:"reason,omitempty" doc:"Why it was denied; the agent sees it"`
		Note   string            `json:"note,omitempty" doc:"A note for the log"`
		Token  string            `json:"token,omitempty" doc:"A signed token, where the tenant demands proof"`
	} `nameHint:"Decide"`
}

type decideAnswer struct{ Body jig.Ruled }

func (a *API) decide(ctx context.Context, in *decideRequest) (*decideAnswer, error) {
	tenant, who := callerOf(ctx)
	if err := a.mayDecide(ctx, tenant, in.Session, who); err != nil {
		return nil, err
	}
	b := in.Body
	decision := jig.Decision{
		Call: b.Call, By: who.ID, Answer: b.Answer, Digest: b.Digest, Input: b.Input, Grant: b.Grant, Reason: b.Reason, Note: b.Note, Token: b.Token,
	}
	result, err := a.options.Engine.Decide(ctx, tenant, in.Session, []jig.Decision{decision})
	if err != nil {
		return nil, err
	}
	if len(result.Decisions) != 1 {
		return nil, jig.Errorf(jig.CodeInternal, "a decision has %d outcomes", len(result.Decisions))
	}
	return &decideAnswer{Body: result.Decisions[0]}, nil
}

// reasonOwnSession says that the principal of the credential started the session, or the one that it belongs to.
const reasonOwnSession = "own_session"

// mayDecide returns an error if a session acts for the principal itself, as all sessions do that the principal's credentials have started,
// with those that these start. In a tenant with one person nobody else could decide.
func (a *API) mayDecide(ctx context.Context, tenant, session string, who jig.Principal) error {
	asking, err := a.options.Log.Session(ctx, tenant, jig.SessionID(tenant, session))
	if jig.CodeOf(err) == jig.CodeNotFound { // the engine says so
		return nil
	}
	if err != nil || asking.Principal.ID != who.ID {
		return err
	}
	settings, err := a.options.Tenants.Settings(ctx, tenant)
	if err != nil || settings.OnePerson() {
		return err
	}
	return failed(http.StatusForbidden, jig.Errorf(jig.CodeNotPermitted, "the session acts for you, so somebody else must decide").WithReason(reasonOwnSession).
		WithHint("`can_decide=true` lists the calls that you may decide"))
}
