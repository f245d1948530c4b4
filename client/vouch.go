package client

import (
	"context"
	"crypto/rand"
	"reflect"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// vouch returns the signed statement about a request, or "" if nobody vouches for this client's principals.
func (c *Client) vouch(ctx context.Context, s protocol.Statement) (string, error) {
	if c.voucher == nil {
		return "", nil
	}
	text, err := c.voucher.Vouch(ctx, s)
	return text, translate(err)
}

// vouchSession adds the statement about a session that is started now or, with kind [protocol.StateSchedule], by a schedule.
func (c *Client) vouchSession(ctx context.Context, kind protocol.StatementKind, o StartOptions, start *protocol.StartSession) (err error) {
	start.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: kind, Tenant: o.Tenant, Principal: o.Principal, Session: o.ID, Content: o.request().Digest(), Source: o.Source, Mandate: mandateOf(start.Mandate),
	})
	return err
}

// vouchCall does the same for a single call.
func (c *Client) vouchCall(ctx context.Context, kind protocol.StatementKind, id string, input *protocol.CallInput) (err error) {
	input.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: kind, Tenant: input.Tenant, Principal: input.Principal, Session: id, Content: callRequest(*input).Digest(), Source: input.Source, Mandate: mandateOf(input.Mandate),
	})
	return err
}

func mandateOf(m *protocol.Mandate) protocol.Mandate {
	if m == nil {
		return protocol.Mandate{}
	}
	return *m
}

// vouchMessage adds the statement about a message, which counts once, by its id.
func (c *Client) vouchMessage(ctx context.Context, tenant, id string, m *protocol.Message) (err error) {
	if c.voucher == nil || m.Parent != "" {
		return nil
	}
	if m.ID == "" {
		m.ID = rand.Text()
	}
	m.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateMessage, Tenant: tenant, Principal: jig.Principal{ID: m.By}, Session: id, Content: m.Content(), ID: m.ID,
	})
	return err
}

// vouchEvent does the same for an event.
func (c *Client) vouchEvent(ctx context.Context, tenant, id string, e *protocol.Event) (err error) {
	e.Proof, err = c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateEvent, Tenant: tenant, Principal: jig.Principal{ID: e.By}, Session: id, Content: e.Content(), ID: e.ID,
	})
	return err
}

// vouchDecision returns the statement about decisions, an answer or an outcome with a content.
func (c *Client) vouchDecision(ctx context.Context, tenant, id, by, content string) (string, error) {
	tenant, id = named(tenant, id)
	return c.vouch(ctx, protocol.Statement{
		Kind: protocol.StateDecide, Tenant: tenant, Principal: jig.Principal{ID: by}, Session: id, Content: content,
	})
}

// askedWith returns the arguments of an activity that answers a request: the request and, if there is one, the statement about it.
func (c *Client) askedWith(ctx context.Context, name string, request any) ([]any, error) {
	tenant := reflect.ValueOf(request).FieldByName("Tenant") // every request has one
	if c.voucher == nil || !tenant.IsValid() {
		return []any{request}, nil
	}
	proof, err := c.vouch(ctx, protocol.Statement{Kind: protocol.StateRead, Tenant: tenant.String(), Content: protocol.ContentOf(name, request)})
	return []any{request, proof}, err
}
