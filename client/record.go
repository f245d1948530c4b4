package client

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Record returns a call of a session with its whole input and, once it has ended, its whole result. An unknown session or call is
// NOT_FOUND.
func (c *Client) Record(ctx context.Context, tenant, session, call string) (protocol.CallRecord, error) {
	tenant, session = named(tenant, session)
	var record protocol.CallRecord
	request := protocol.RecordRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		var page protocol.RecordPage
		if err := c.ask(ctx, string(protocol.ReadRecord), 0, request, &page); err != nil {
			return protocol.CallRecord{}, err
		}
		if request.Offset > 0 && page.Record.Digest != record.Digest {
			return protocol.CallRecord{}, jig.Errorf(jig.CodeConflict, "call %s changed while it was read", call).WithField("call").WithHint("look again")
		}
		page.Record.Input = append(record.Input, page.Input...) //nolint:gocritic // both belong to the same call
		record = page.Record
		if len(record.Input) >= page.Size || len(page.Input) == 0 {
			break
		}
		request.Offset = len(record.Input)
	}
	var err error
	if record.Result, err = c.WholeResult(ctx, tenant, protocol.CallResult{SessionID: session, Result: record.Result}); err != nil {
		return record, err
	}
	if len(record.Input) > 0 && !json.Valid(record.Input) { // the model's arguments were not JSON
		text, err := json.Marshal(string(record.Input))
		if err != nil {
			return record, jig.Errorf(jig.CodeInternal, "encoding the input of call %s: %w", call, err)
		}
		record.Input = text
	}
	return record, nil
}

// SessionResult returns what a session has come to, without waiting: its answer or output and its error if it has ended, otherwise the
// calls that wait for a person. [Client.Result] waits for the end.
func (c *Client) SessionResult(ctx context.Context, tenant, id string) (protocol.SessionResult, error) {
	tenant, id = named(tenant, id)
	view, err := c.Status(ctx, tenant, id)
	if isNotFound(err) {
		return c.unopened(ctx, tenant, id)
	}
	if err != nil {
		return protocol.SessionResult{}, err
	}
	if view.Answer, err = c.Answer(ctx, tenant, view); err != nil {
		return protocol.SessionResult{}, err
	}
	output := &jig.ToolResult{Data: view.Output}
	if view.OutputArtifact != "" {
		output.Artifacts = []string{view.OutputArtifact}
	}
	whole, err := c.WholeResult(ctx, tenant, protocol.CallResult{SessionID: id, Result: output})
	if err != nil {
		return protocol.SessionResult{}, err
	}
	view.Output = whole.Data
	return protocol.ResultOf(view), nil
}

// unopened returns the result of a session that the store does not know: no worker has picked it up yet, or it could not be opened.
func (c *Client) unopened(ctx context.Context, tenant, id string) (protocol.SessionResult, error) {
	sighted, err := c.look(ctx, tenant, id)
	if err != nil {
		return protocol.SessionResult{}, err
	}
	r := protocol.SessionResult{SessionID: id, ClientID: jig.ClientID(id), Status: jig.StatusWorking, Calls: protocol.Counts(nil)}
	if sighted.live {
		return r, nil
	}
	ended := protocol.PassResult{SessionID: id}
	err = c.outcome(ctx, id, &ended)
	var failed *jig.Error
	if err != nil && (ended.Status == "" || !errors.As(err, &failed)) {
		return protocol.SessionResult{}, err
	}
	r.Status, r.Reason, r.Passes, r.Error = ended.Status, ended.Reason, ended.Passes, failed
	return r, nil
}
