package remote

import (
	"cmp"
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Approvals lists the calls that wait for a person, like [client.Client.Approvals].
func (c *Client) Approvals(ctx context.Context, tenant, session string) ([]jig.Pending, error) {
	if session == "" {
		page, err := c.Pending(ctx, tenant, jig.PendingFilter{}, "", 0)
		return page.Approvals, err
	}
	view, err := c.Status(ctx, tenant, session)
	return view.Pending, err
}

// Pending lists the waiting calls that match a filter, like [client.Client.Pending].
func (c *Client) Pending(ctx context.Context, tenant string, f jig.PendingFilter, cursor string, limit int) (protocol.ApprovalsPage, error) {
	all := protocol.ApprovalsPage{Approvals: []jig.Pending{}, Next: cursor}
	for {
		most := maxPage
		if limit > 0 {
			most = min(most, limit-len(all.Approvals))
		}
		var page struct {
			Approvals []jig.Pending `json:"approvals"`
			Next      string        `json:"next_cursor"`
		}
		err := c.get(ctx, "/v1/approvals", query("can_decide", flag(f.For != ""), "kind", string(f.Kind), "tool", f.Tool, "agent", f.Agent,
			"session", f.SessionID, "requested_by", f.RequestedBy, "before", moment(f.Before), "after", moment(f.After), "cursor", all.Next,
			"limit", number(most)), &page)
		if err != nil {
			return protocol.ApprovalsPage{}, err
		}
		again := page.Next == all.Next
		all.Approvals, all.Next = append(all.Approvals, page.Approvals...), page.Next
		if page.Next == "" || again || limit > 0 && len(all.Approvals) >= limit {
			return all, nil
		}
	}
}

// maxPage is the most entries of a page.
const maxPage = 100

// Show returns a waiting call with its whole input, like [client.Client.Show].
func (c *Client) Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error) {
	var found protocol.ShownCall
	err := c.get(ctx, path("approvals", session), query("call", call), &found)
	return found, err
}

// Review says what applies now to waiting calls, like [client.Client.Review].
func (c *Client) Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error) {
	type ref struct {
		Session string `json:"session_id"`
		Call    string `json:"call"`
	}
	refs := make([]ref, len(calls))
	for i, w := range calls {
		refs[i] = ref{w.SessionID, w.Call}
	}
	var answer struct{ Reviews []protocol.Review }
	err := c.post(ctx, "/v1/approvals:review", map[string]any{"signs": signs, "calls": refs}, &answer)
	return answer.Reviews, err
}

// Locate returns the calls to answer when a person answers calls of a session, like [client.Client.Locate].
func (c *Client) Locate(ctx context.Context, tenant, session string, calls []string) ([]protocol.WaitingCall, error) {
	view, err := c.Status(ctx, tenant, session)
	if err != nil {
		return nil, err
	}
	waiting := protocol.WaitingCalls(view)
	located := make([]protocol.WaitingCall, len(calls))
	for i, call := range calls {
		if located[i], err = protocol.Locate(waiting, view.SessionID, call); err != nil {
			return nil, err
		}
	}
	return located, nil
}

// noDigest stands for the digest of a call that does not wait: no decision about it is accepted.
const noDigest = "none"

// Decide decides about calls that wait for approval, like [client.Client.Decide]. A decision without a digest is about the call as it waits
// now.
func (c *Client) Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (protocol.DecideResult, error) {
	type item struct {
		Session string            `json:"session_id"`
		Call    string            `json:"call"`
		Answer  jig.Answer        `json:"answer"`
		Digest  string            `json:"digest"`
		Input   any               `json:"input,omitempty"`
		Grant   *jig.GrantRequest `json:"grant,omitempty"`
		GrantID string            `json:"grant_id,omitempty"`
		Reason  string            `json:"reason,omitempty"`
		Note    string            `json:"note,omitempty"`
		To      string            `json:"to,omitempty"`
		Undo    bool              `json:"undo,omitempty"`
		Token   string            `json:"token,omitempty"`
	}
	digests, err := c.digests(ctx, tenant, id, decisions)
	if err != nil {
		return protocol.DecideResult{}, err
	}
	items := make([]item, len(decisions))
	for i, d := range decisions {
		items[i] = item{
			id, d.Call, cmp.Or(d.Answer, jig.AnswerApprove), cmp.Or(d.Digest, digests[d.Call], noDigest), value(d.Input), d.Grant, d.GrantID, d.Reason, d.Note, d.To, d.Undo, d.Token,
		}
	}
	var answer struct {
		Results []struct {
			Session string `json:"session_id"`
			jig.Ruled
			Error *struct {
				Code                        jig.Code
				Detail, Reason, Field, Hint string
			}
		}
	}
	if err := c.post(ctx, "/v1/approvals:decide", map[string]any{"decisions": items}, &answer); err != nil {
		return protocol.DecideResult{}, err
	}
	result := protocol.DecideResult{SessionID: jig.SessionID(tenant, id)}
	for _, r := range answer.Results {
		if r.Error != nil {
			return result, jig.Errorf(r.Error.Code, "%s", r.Error.Detail).WithReason(r.Error.Reason).WithField(r.Error.Field).WithHint(r.Error.Hint)
		}
		result.Decisions = append(result.Decisions, r.Ruled)
	}
	return result, nil
}

// digests returns the digests of the calls that wait in a session, if a decision lacks its own.
func (c *Client) digests(ctx context.Context, tenant, id string, decisions []jig.Decision) (map[string]string, error) {
	digests := map[string]string{}
	for _, d := range decisions {
		if d.Digest != "" {
			continue
		}
		view, err := c.Status(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		for _, w := range protocol.WaitingCalls(view) {
			if w.SessionID == view.SessionID {
				digests[w.Call] = w.Digest
			}
		}
		break
	}
	return digests, nil
}

// Reply answers a question, like [client.Client.Reply].
func (c *Client) Reply(ctx context.Context, tenant, id string, reply jig.Reply) (protocol.DecideResult, error) {
	return c.rule(ctx, tenant, id, "answer", struct {
		Call  string `json:"call"`
		Value any    `json:"value"`
		Note  string `json:"note,omitempty"`
		Token string `json:"token,omitempty"`
	}{reply.Call, value(reply.Value), reply.Note, reply.Token})
}

// Reconcile tells jig what happened in a call whose outcome is unknown, like [client.Client.Reconcile].
func (c *Client) Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (protocol.DecideResult, error) {
	word.By = ""
	return c.rule(ctx, tenant, id, "reconcile", word)
}

// rule sends a person's word about one call.
func (c *Client) rule(ctx context.Context, tenant, id, operation string, body any) (protocol.DecideResult, error) {
	var ruled jig.Ruled
	if err := c.post(ctx, path("approvals", id, operation), body, &ruled); err != nil {
		return protocol.DecideResult{}, err
	}
	return protocol.DecideResult{SessionID: jig.SessionID(tenant, id), Decisions: []jig.Ruled{ruled}}, nil
}
