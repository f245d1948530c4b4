package remote

import (
	"cmp"
	"context"
	"errors"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
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
func (c *Client) Pending(ctx context.Context, tenant string, f jig.PendingFilter, cursor string, limit int) (protocol.ApprovalList, error) {
	all := protocol.ApprovalList{Approvals: []jig.Pending{}, Next: cursor}
	for {
		most := maxPage
		if limit > 0 {
			most = min(most, limit-len(all.Approvals))
		}
		page, err := call(ctx, c, api.ListApprovals, api.ListApprovalsRequest{
			CanDecide: f.For != "", Kind: string(f.Kind), Tool: f.Tool, Agent: f.Agent, Session: f.SessionID, RequestedBy: f.RequestedBy,
			Before: f.Before, After: f.After, Page: api.Page{Cursor: all.Next, Limit: most},
		})
		if err != nil {
			return protocol.ApprovalList{}, err
		}
		again := page.Next == all.Next
		all.Approvals, all.Next = append(all.Approvals, page.Approvals...), page.Next
		if page.Next == "" || again || limit > 0 && len(all.Approvals) >= limit {
			return all, nil
		}
	}
}

// Decisions returns a page of decisions, like [client.Client.Decisions].
func (c *Client) Decisions(ctx context.Context, r protocol.DecisionsRequest) (protocol.ApprovalList, error) {
	f := r.Filter
	return call(ctx, c, api.ListApprovals, api.ListApprovalsRequest{
		Decided: true, By: f.By, Outcome: f.Outcome, Since: f.Since, Until: f.Until, Tool: f.Tool, Agent: f.Agent, Session: f.SessionID,
		Page: api.Page{Cursor: r.Cursor, Limit: r.Limit},
	})
}

// maxPage is the most entries of a page.
const maxPage = 100

// Show returns a waiting call with its whole input, like [client.Client.Show].
func (c *Client) Show(ctx context.Context, tenant, session, id string) (protocol.ShownCall, error) {
	return call(ctx, c, api.GetApproval, api.CallPath{SessionPath: api.SessionPath{Session: session}, Call: id})
}

// Review says what applies now to waiting calls, like [client.Client.Review].
func (c *Client) Review(ctx context.Context, tenant, principal string, signs bool, calls []protocol.WaitingCall) ([]protocol.Review, error) {
	var in api.ReviewApprovalsRequest
	in.Body.Signs, in.Body.Calls = signs, make([]api.CallRef, len(calls))
	for i, w := range calls {
		in.Body.Calls[i] = api.CallRef{Session: w.SessionID, Call: w.Call}
	}
	list, err := call(ctx, c, api.ReviewApprovals, in)
	return list.Reviews, err
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
	digests, err := c.digests(ctx, tenant, id, decisions)
	if err != nil {
		return protocol.DecideResult{}, err
	}
	var in api.DecideSeveralRequest
	in.Body.Decisions = make([]api.SeveralItem, len(decisions))
	for i, d := range decisions {
		in.Body.Decisions[i] = api.SeveralItem{
			DecisionBody: api.DecisionBody{
				Call: d.Call, Digest: cmp.Or(d.Digest, digests[d.Call], noDigest), Input: value(d.Input), Grant: d.Grant, GrantID: d.GrantID, Reason: d.Reason,
				Note: d.Note, Token: d.Token,
			},
			Session: id, Answer: cmp.Or(d.Answer, jig.AnswerApprove), To: d.To, Undo: d.Undo,
		}
	}
	var outcomes api.Outcomes
	r := requestOf(api.DecideSeveral.Describe(), in)
	if _, err := c.do(ctx, r, &outcomes); err != nil {
		return protocol.DecideResult{}, err
	}
	result := protocol.DecideResult{SessionID: jig.SessionID(tenant, id)}
	for _, one := range outcomes.Results {
		if one.Error != nil && one.Outcome == api.OutcomeFailed {
			return result, one.Error.Err(r.values(), 0)
		}
		if one.Error != nil {
			one.Reason = r.values().Fill(one.Reason)
		}
		result.Decisions = append(result.Decisions, one.Ruled)
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
	in := api.AnswerRequest{SessionPath: api.SessionPath{Session: id}}
	in.Body.Call, in.Body.Value, in.Body.Note, in.Body.Token = reply.Call, value(reply.Value), reply.Note, reply.Token
	ruled, err := call(ctx, c, api.Answer, in)
	return only(tenant, id, reply.Call, ruled, err)
}

// Reconcile tells jig what happened in a call whose outcome is unknown, like [client.Client.Reconcile].
func (c *Client) Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (protocol.DecideResult, error) {
	in := api.ReconcileRequest{SessionPath: api.SessionPath{Session: id}}
	b := &in.Body
	b.Call, b.Outcome, b.Attempt, b.Result, b.Note, b.Token = word.Call, word.Outcome, word.Attempt, value(word.Result), word.Note, word.Token
	ruled, err := call(ctx, c, api.Reconcile, in)
	return only(tenant, id, word.Call, ruled, err)
}

// only returns the outcome of one decision. A refusal is an error of the server, and an outcome here.
func only(tenant, id, callID string, ruled jig.Ruled, err error) (protocol.DecideResult, error) {
	var p *api.Problem
	if errors.As(err, &p) && p.Outcome == jig.DecisionRefused {
		ruled, err = jig.Ruled{Call: callID, Outcome: p.Outcome, Reason: p.Reason, Code: p.Code, Status: p.CallStatus}, nil
	}
	if err != nil {
		return protocol.DecideResult{}, err
	}
	return protocol.DecideResult{SessionID: jig.SessionID(tenant, id), Decisions: []jig.Ruled{ruled}}, nil
}
