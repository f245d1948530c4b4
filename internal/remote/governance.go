package remote

import (
	"context"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
)

// Grants lists standing approvals, like [client.Client.Grants].
func (c *Client) Grants(ctx context.Context, tenant string, all bool) ([]jig.Grant, error) {
	var answer struct{ Grants []jig.Grant }
	err := c.get(ctx, "/v1/grants", query("all", flag(all)), &answer)
	return answer.Grants, err
}

// GrantFits returns the waiting calls that a grant covers, like [client.Client.GrantFits].
func (c *Client) GrantFits(ctx context.Context, tenant, grant, principal string) ([]jig.Pending, error) {
	var answer struct{ Approvals []jig.Pending }
	err := c.get(ctx, path("grants", grant, "calls"), nil, &answer)
	return answer.Approvals, err
}

// CredentialEvents lists what happened with the tenant's credentials, the newest first. An empty kind or principal means all.
func (c *Client) CredentialEvents(ctx context.Context, kind, principal, cursor string, limit int) (page identity.CredentialEvents, err error) {
	err = c.get(ctx, "/v1/credential-events", query("kind", kind, "principal", principal, "cursor", cursor, "limit", number(limit)), &page)
	return page, err
}

// TakeOverKey makes the client's credential the one that made an API key, and gives the key a new text.
func (c *Client) TakeOverKey(ctx context.Context, id string) (key credential.CreatedKey, err error) {
	err = c.post(ctx, path("api-keys", id, "take-over"), nil, &key)
	return key, err
}

// Dependents lists what ends with a person or with an API key. One of them is empty.
func (c *Client) Dependents(ctx context.Context, person, key string) ([]identity.Dependent, error) {
	var answer struct{ Dependents []identity.Dependent }
	err := c.get(ctx, "/v1/dependents", query("person", person, "key", key), &answer)
	return answer.Dependents, err
}

// RevokeGrant revokes a standing approval, like [client.Client.RevokeGrant].
func (c *Client) RevokeGrant(ctx context.Context, r protocol.GrantsRequest) (grant jig.Grant, err error) {
	err = c.post(ctx, path("grants", r.Revoke, "revoke"), map[string]string{"token": r.Token}, &grant)
	return grant, err
}

// Pause holds back calls, like [client.Client.Pause].
func (c *Client) Pause(ctx context.Context, r protocol.PauseRequest) (protocol.PauseResult, error) {
	return c.pausing(ctx, "/v1/pauses", r)
}

// Resume ends a pause, like [client.Client.Resume].
func (c *Client) Resume(ctx context.Context, r protocol.PauseRequest) (protocol.PauseResult, error) {
	return c.pausing(ctx, "/v1/pauses:resume", r)
}

func (c *Client) pausing(ctx context.Context, address string, r protocol.PauseRequest) (result protocol.PauseResult, err error) {
	err = c.post(ctx, address, struct {
		Scope  jig.PauseScope `json:"scope"`
		Target string         `json:"target,omitempty"`
		Reason string         `json:"reason,omitempty"`
		Token  string         `json:"token,omitempty"`
	}{r.Scope, r.Target, r.Reason, r.Token}, &result)
	return result, err
}

// Pauses lists the pauses, like [client.Client.Pauses].
func (c *Client) Pauses(ctx context.Context, tenant string) (result protocol.PauseResult, err error) {
	err = c.get(ctx, "/v1/pauses", nil, &result)
	return result, err
}

// Installation returns the id of the installation, like [client.Client.Installation].
func (c *Client) Installation(context.Context, string) (string, error) { return c.Me.Installation, nil }

// Policies lists the policies in force, like [client.Client.Policies].
func (c *Client) Policies(ctx context.Context, tenant string) ([]jig.PolicyState, error) {
	var answer struct{ Policies []jig.PolicyState }
	err := c.get(ctx, "/v1/policies", nil, &answer)
	return answer.Policies, err
}

// Backtest shows what a policy document would have decided, like [client.Client.Backtest].
func (c *Client) Backtest(
	ctx context.Context, tenant string, document []byte, since time.Time, all bool, fn func(protocol.BacktestPage) error,
) error {
	cursor := ""
	for {
		var page struct {
			protocol.BacktestPage
			Next string `json:"next_cursor"`
		}
		body := map[string]any{"document": string(document), "since": since, "all": all}
		if cursor != "" {
			body["cursor"] = cursor
		}
		if err := c.post(ctx, "/v1/policies:backtest", body, &page); err != nil {
			return err
		}
		page.BacktestPage.Next = page.Next
		if err := fn(page.BacktestPage); err != nil {
			return err
		}
		if page.Next == "" || page.Next == cursor {
			return nil
		}
		cursor = page.Next
	}
}

// Audit calls fn with the pages of the audit chain, like [client.Client.Audit].
func (c *Client) Audit(ctx context.Context, r protocol.AuditRequest, fn func(protocol.AuditPage) error) error {
	after, head := r.After, int64(-1)
	for {
		var page protocol.AuditPage
		err := c.get(ctx, "/v1/audit", query("after", number(after), "session", r.SessionID, "since", moment(r.Since), "until", moment(r.Until)), &page)
		if err != nil {
			return err
		}
		if head < 0 {
			head = page.HeadN
		}
		if page = page.Until(head); len(page.Rows) > 0 {
			after = page.Rows[len(page.Rows)-1].N
		}
		if err := fn(page); err != nil || !page.More {
			return err
		}
	}
}

// Statistics returns statistics of approvals, like [client.Client.Statistics].
func (c *Client) Statistics(ctx context.Context, tenant string, since time.Time) (stats protocol.ApprovalStats, err error) {
	err = c.get(ctx, "/v1/statistics", query("since", moment(since)), &stats)
	return stats, err
}

// Usage returns what sessions used, like [client.Client.Usage].
func (c *Client) Usage(ctx context.Context, r protocol.UsageRequest) (used protocol.Usage, err error) {
	err = c.get(ctx, "/v1/usage", query("since", moment(r.Since), "until", moment(r.Until), "by", strings.Join(r.By, ","), "agent", r.Agent,
		"model", r.Model, "tool", r.Tool, "session", r.SessionID), &used)
	return used, err
}
