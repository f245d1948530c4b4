package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// answerTimeout bounds one attempt of a reading activity, in addition to the time that it was asked to wait.
const answerTimeout = 15 * time.Second

// ask sends the request of a read, and returns its answer.
func ask[Q, A any](ctx context.Context, c *Client, read protocol.Read[Q, A], request Q) (answer A, err error) {
	err = c.ask(ctx, string(read), 0, request, &answer)
	return answer, err
}

// readAll reads a list page by page. next returns the items of a page, moves the request to the next page, and reports whether there may be one.
func readAll[Q, A, T any](ctx context.Context, c *Client, read protocol.Read[Q, A], request Q, next func(r *Q, page A) (items []T, more bool)) ([]T, error) {
	list := []T{}
	for {
		page, err := ask(ctx, c, read, request)
		if err != nil {
			return nil, err
		}
		items, more := next(&request, page)
		if list = append(list, items...); !more {
			return list, nil
		}
	}
}

// further sets the cursor of a request to that of the next page, and reports whether there is one.
func further(cursor *string, next string) bool {
	more := next != "" && next != *cursor
	*cursor = next
	return more
}

// ask sends a request to the reader or, if there is none that answers it, to a worker. wait is how long an activity may wait before it
// answers.
func (c *Client) ask(ctx context.Context, name string, wait time.Duration, request, answer any) error {
	if c.reader != nil {
		if answered, err := c.reader.Read(ctx, name, request, answer); answered {
			return explained(translate(err))
		}
	}
	return c.askWorker(ctx, name, wait, request, answer)
}

// Ask makes a read by its name in package protocol, for programs that carry requests through. response points at an answer of the read's type.
func (c *Client) Ask(ctx context.Context, name string, request, response any) error {
	return c.ask(ctx, name, 0, request, response)
}

// explained adds a hint to the error about an unknown session.
func explained(err error) error {
	var missing *jig.Error
	if errors.As(err, &missing) && missing.Code == jig.CodeNotFound && missing.Field == "session_id" && missing.Hint == "" {
		return missing.WithHint(otherSessions)
	}
	return err
}

// askWorker runs one of the activities that clients start directly.
func (c *Client) askWorker(ctx context.Context, name string, wait time.Duration, request, answer any) error {
	options := sdk.StartActivityOptions{
		ID:                     name + "/" + rand.Text(),
		TaskQueue:              c.queue,
		ScheduleToStartTimeout: c.workerTimeout,
		StartToCloseTimeout:    wait + answerTimeout,
		ScheduleToCloseTimeout: wait + 2*answerTimeout,
		RetryPolicy:            &sdktemporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumAttempts: 3},
	}
	args, err := c.askedWith(ctx, name, request)
	if err != nil {
		return err
	}
	var begun sdk.ActivityHandle // a started activity is never started again, because a token in the request counts only once
	err = c.repeat(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, options.ScheduleToCloseTimeout+answerTimeout)
		defer cancel()
		if begun == nil {
			handle, err := c.temporal.ExecuteActivity(ctx, options, name, args...)
			if err != nil {
				return err
			}
			begun = handle
		}
		return begun.Get(ctx, answer)
	}, func(err error) bool {
		if begun == nil {
			options.ID = name + "/" + rand.Text()
		}
		return busy(err)
	})
	switch err = translate(err); {
	case isNoWorker(err):
		return c.noWorker()
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return jig.Errorf(jig.CodeUnavailable, "Temporal did not answer in time").CausedBy(err)
	}
	return explained(err)
}

// ping reports whether a worker answers, with whatever result.
func (c *Client) ping(ctx context.Context, sessionID string) bool {
	var view jig.SessionView
	err := c.askWorker(ctx, string(protocol.ReadStatus), 0, protocol.StatusRequest{Tenant: jig.DefaultTenant, SessionID: sessionID}, &view)
	return !isNoWorker(err)
}

// Status returns a session's state, with the calls that wait for a person and its latest calls (at most 500).
func (c *Client) Status(ctx context.Context, tenant, id string) (jig.SessionView, error) {
	tenant, id = named(tenant, id)
	view, err := ask(ctx, c, protocol.ReadStatus, protocol.StatusRequest{Tenant: tenant, SessionID: id})
	if err != nil {
		return jig.SessionView{}, err
	}
	return view, nil
}

// Approvals lists all calls of a tenant that wait for a person, oldest first. A non-empty session id limits it to that session.
func (c *Client) Approvals(ctx context.Context, tenant, sessionID string) ([]jig.Pending, error) {
	tenant, sessionID = named(tenant, sessionID)
	request := protocol.ApprovalsRequest{Tenant: tenant, SessionID: sessionID}
	return readAll(ctx, c, protocol.ReadApprovals, request, func(r *protocol.ApprovalsRequest, page protocol.ApprovalList) ([]jig.Pending, bool) {
		return page.Approvals, further(&r.Cursor, page.Next)
	})
}

// Catalog lists the tools that a tenant sees and the registered documents.
type Catalog = protocol.Catalog

// Catalog asks a worker for its tools and for the registered documents.
func (c *Client) Catalog(ctx context.Context, tenant string) (Catalog, error) {
	all := Catalog{Tools: []jig.Tool{}}
	request := protocol.CatalogRequest{Tenant: tenant}
	for {
		page, err := ask(ctx, c, protocol.ReadCatalog, request)
		if err != nil {
			return Catalog{}, err
		}
		all.Tools = append(all.Tools, page.Tools...)
		if request.After == "" {
			all.Agents, all.Skills, all.Compositions, all.EntityTypes = page.Agents, page.Skills, page.Compositions, page.EntityTypes
		}
		if !page.More || len(page.Tools) == 0 {
			return all, nil
		}
		request.After = page.Tools[len(page.Tools)-1].Name
	}
}

// documentReads is how many times Document reads a document from the start before it gives up because new versions keep appearing.
const documentReads = 3

// Document returns the current version of a registered document. kind is agent, skill, entity_type, policy, tenant, budget or rate_limit, or
// spec for every execution spec; another kind is INVALID_INPUT. An unknown name is NOT_FOUND. If new versions keep appearing while it reads, it returns CONFLICT. A skill
// is returned as JSON with all of its files.
func (c *Client) Document(ctx context.Context, tenant, kind, name string) ([]byte, error) {
	return c.DocumentAt(ctx, tenant, kind, name, "")
}

// DocumentAt is like [Client.Document], for a stored version. An empty version means the current one.
func (c *Client) DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error) {
	for range documentReads {
		body, err := c.readDocument(ctx, tenant, kind, name, version)
		if body != nil || err != nil {
			return body, err
		}
	}
	return nil, jig.Errorf(jig.CodeConflict, "the %s %s changed while it was read", jig.Known(kind), name).WithField("name").WithHint("try again")
}

// readDocument reads all parts of a document. It returns nil if the parts are not of the same version.
func (c *Client) readDocument(ctx context.Context, tenant, kind, name, version string) ([]byte, error) {
	whole, hash := []byte{}, ""
	for {
		request := protocol.CatalogRequest{Tenant: tenant, Kind: kind, Name: name, Version: version, Offset: len(whole)}
		page, err := ask(ctx, c, protocol.ReadCatalog, request)
		if err != nil {
			return nil, err
		}
		chunk := page.Document
		switch {
		case chunk == nil:
			return nil, jig.Errorf(jig.CodeUnavailable, "the worker runs an older version, which cannot show documents").
				WithHint("give the document's file")
		case hash != "" && chunk.Hash != hash:
			return nil, nil
		}
		hash, whole = chunk.Hash, append(whole, chunk.Data...)
		if len(chunk.Data) == 0 || len(whole) >= chunk.Size {
			return whole, nil
		}
	}
}

// Documents lists the current documents that a tenant sees, sorted by kind and name. An empty kind means all kinds.
func (c *Client) Documents(ctx context.Context, tenant, kind string) ([]protocol.DocumentState, error) {
	request := protocol.DocumentsRequest{Tenant: tenant, Kind: kind}
	return readAll(ctx, c, protocol.ReadDocuments, request, func(r *protocol.DocumentsRequest, page protocol.DocumentsPage) ([]protocol.DocumentState, bool) {
		if n := len(page.Documents); n > 0 {
			r.AfterKind, r.AfterName = page.Documents[n-1].Kind, page.Documents[n-1].Name
		}
		return page.Documents, page.More && len(page.Documents) > 0
	})
}

// DocumentVersions lists at most 200 stored versions of a document, the latest first: the current one and the latest others. With a version, it
// lists only that one, if it is stored. An unknown name is NOT_FOUND.
func (c *Client) DocumentVersions(ctx context.Context, tenant, kind, name, version string) ([]protocol.DocumentState, error) {
	page, err := ask(ctx, c, protocol.ReadDocuments, protocol.DocumentsRequest{Tenant: tenant, Kind: kind, Name: name, Version: version})
	return page.Documents, err
}

// Artifact returns a whole artifact.
func (c *Client) Artifact(ctx context.Context, tenant, id string) ([]byte, error) {
	var whole []byte
	for {
		request := protocol.ArtifactRequest{Tenant: tenant, ID: id, Offset: int64(len(whole))}
		chunk, err := ask(ctx, c, protocol.ReadArtifact, request)
		if err != nil {
			return nil, err
		}
		whole = append(whole, chunk.Data...)
		if len(chunk.Data) == 0 || int64(len(whole)) >= chunk.Size {
			return whole, nil
		}
	}
}

// upload stores a large value as an artifact and returns the artifact's id.
func (c *Client) upload(ctx context.Context, tenant string, value []byte) (string, error) {
	id := jig.NewArtifactID()
	for offset := 0; offset < len(value); offset += chunkBytes {
		request := protocol.UploadRequest{
			Tenant: tenant, ID: id, Offset: int64(offset), Data: value[offset:min(offset+chunkBytes, len(value))],
		}
		if _, err := ask(ctx, c, protocol.WriteArtifact, request); err != nil {
			return "", err
		}
	}
	return id, nil
}

func isNotFound(err error) bool { return errors.Is(err, &jig.Error{Code: jig.CodeNotFound}) }

// Entity returns the state of an entity's latest extraction: its session and its tasks, but not the entity's content. It returns NOT_FOUND
// if the tenant has no such entity.
func (c *Client) Entity(ctx context.Context, tenant, id string) (jig.EntityStatus, error) {
	return ask(ctx, c, protocol.ReadEntity, protocol.EntityRequest{Tenant: tenant, EntityID: id})
}

// ReadWithTool returns what a tool that reads entities returns for a principal, without a session.
func (c *Client) ReadWithTool(ctx context.Context, request protocol.ToolReadRequest) (json.RawMessage, error) {
	reading, err := ask(ctx, c, protocol.ReadWithTool, request)
	return reading.Data, err
}

// Record returns a call of a session with its whole input and, once it has ended, its whole result. An unknown session or call is
// NOT_FOUND.
func (c *Client) Record(ctx context.Context, tenant, session, call string) (protocol.CallRecord, error) {
	tenant, session = named(tenant, session)
	var record protocol.CallRecord
	request := protocol.RecordRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		page, err := ask(ctx, c, protocol.ReadRecord, request)
		if err != nil {
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
