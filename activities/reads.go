package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
)

// These constants limit one read. Temporal carries at most 256 KiB in a message.
const (
	pageBytes  = 128 << 10
	maxWait    = 25 * time.Second
	chunkBytes = 128 << 10
)

// Status returns a session as the command line shows it.
func (a *Activities) Status(ctx context.Context, in protocol.StatusRequest) (jig.SessionView, error) {
	view, err := a.sessionView(ctx, in.Tenant, in.SessionID)
	if err == nil && view.Agent == jig.CallAgent && view.Status.Final() {
		err = a.showOutput(ctx, in, &view)
	}
	if err == nil && !view.Status.Final() {
		var unreadable []string
		unreadable, err = a.heldBack(ctx, in.Tenant)
		view.Held = append(view.Held, unreadable...)
	}
	if err != nil {
		return view, temporalError(err)
	}
	view.ClientID = jig.ClientID(view.SessionID)
	return fitView(view), nil
}

// showOutput sets the output of the only call of a session without a model.
func (a *Activities) showOutput(ctx context.Context, in protocol.StatusRequest, view *jig.SessionView) error {
	_, calls, err := a.Store.CallsOf(ctx, in.Tenant, in.SessionID, []string{jig.CallID(1, 1)})
	if err == nil && len(calls) > 0 && calls[0].Result != nil { // a session that was canceled at once has no call
		view.Output, view.OutputArtifact = calls[0].Result.Data, calls[0].ResultArtifact
	}
	return err
}

// fitView drops the oldest calls and then shortens the previews until the view fits.
func fitView(v jig.SessionView) jig.SessionView {
	v.Answer = jig.Cut(v.Answer, jig.InlineBytes)
	for len(v.Calls) > 0 && sizeOf(v) > pageBytes {
		v.Calls = v.Calls[(len(v.Calls)+1)/2:]
	}
	fitPending(v.Pending, func() bool { return sizeOf(v) <= pageBytes })
	return v
}

// fitPending shortens all previews evenly until the list fits or almost nothing is left of them.
func fitPending(list []jig.Pending, fits func() bool) {
	for room := jig.ExcerptBytes; room > 16 && !fits(); room /= 2 {
		for i, p := range list {
			list[i] = *shorten(p, room)
			list[i].Tenant, list[i].SessionID = p.Tenant, p.SessionID
		}
	}
}

// shortPreview shortens the preview of a pending approval for a list.
func shortPreview(p *jig.Pending) {
	if p.Preview != nil {
		fit, cut := preview.Fit(*p.Preview, jig.ExcerptBytes)
		p.Preview, p.Truncated = &fit, p.Truncated || cut
	}
}

// fitting returns the first items of a list that fit on a page together, at least one.
func fitting[T any](list []T, size func(T) int) []T {
	total, n := 0, 0
	for total = 0; n < len(list); n++ {
		if total += size(list[n]); total > pageBytes && n > 0 {
			break
		}
	}
	return append([]T(nil), list[:n]...)
}

func sizeOf[T any](v T) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

// ListApprovals returns a page of the calls in a tenant that wait for a person, oldest first.
func (a *Activities) ListApprovals(ctx context.Context, in protocol.ApprovalsRequest) (protocol.ApprovalList, error) {
	if in.Limit <= 0 || in.Limit > maxListed {
		in.Limit = maxListed
	}
	if in.SessionID != "" {
		view, err := a.sessionView(ctx, in.Tenant, in.SessionID)
		fitPending(view.Pending, func() bool { return sizeOf(view.Pending) <= pageBytes })
		return protocol.ApprovalList{Approvals: view.Pending}, temporalError(err)
	}
	list, next, err := a.Store.PendingApprovals(ctx, in.Tenant, in.Cursor, in.Limit)
	for i := range list {
		shortPreview(&list[i])
	}
	return protocol.ApprovalList{Approvals: a.withoutEnded(ctx, in.Tenant, list), Next: next}, temporalError(err)
}

// textEvery is how long text of a model is gathered for a follower, so that a follower asks at most a few times a second.
const textEvery = 200 * time.Millisecond

// ListEvents returns the events after a sequence number. If the request has a Wait, it waits for the first event, or for text of a model if
// the request asks for it, at most that long.
func (a *Activities) ListEvents(ctx context.Context, in protocol.EventsRequest) (protocol.EventsPage, error) {
	if in.Limit <= 0 || in.Limit > 500 {
		in.Limit = 500
	}
	session, err := a.Store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return protocol.EventsPage{}, temporalError(err)
	}
	list, draft, err := a.nextEvents(ctx, session, in)
	if err != nil {
		return protocol.EventsPage{}, temporalError(err)
	}
	if len(list) == 0 && draft != nil {
		return protocol.EventsPage{Status: session.Status, Draft: draft}, nil
	}
	if len(list) == 0 && in.Wait > 0 && a.closeIfEnded(ctx, in.Tenant, in.SessionID, session.Status, session.UpdatedAt) {
		in.Wait = 0
		return a.ListEvents(ctx, in)
	}
	page := protocol.EventsPage{Status: session.Status, Draft: draft}
	if len(list) == 0 && session.Status == jig.StatusWorking { // the view also knows whether child sessions wait for people
		view, err := a.Store.SessionView(ctx, in.Tenant, in.SessionID)
		if err != nil {
			return protocol.EventsPage{}, temporalError(err)
		}
		page.Status = view.Status
	}
	page.Events = fitting(list, func(e jig.Event) int { return len(e.Data) + 200 })
	return page, nil
}

// nextEvents reads the events that a request asks for, or waits for events or text.
func (a *Activities) nextEvents(ctx context.Context, session jig.Session, in protocol.EventsRequest) ([]jig.Event, *protocol.Draft, error) {
	text := in.Text != nil
	if in.Wait <= 0 || session.Status.Final() {
		list, err := a.Store.Events(ctx, in.Tenant, in.SessionID, in.After, in.Limit)
		if err != nil || !text || len(list) == 0 {
			return list, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(in.Wait, time.Second), maxWait))
	defer cancel()
	defer context.AfterFunc(stopping(ctx), cancel)() // a worker that is stopping does not wait for the next event
	if !text {
		list, err := a.Store.WaitEvents(ctx, in.Tenant, in.SessionID, in.After, in.Limit)
		return list, nil, err
	}
	from := *in.Text
	from.Pass = max(from.Pass, session.Pass) // the turns of earlier passes are stored
	return a.Store.WaitText(ctx, in.Tenant, in.SessionID, in.After, in.Limit, from, textEvery)
}

// stopping returns a context that ends when the worker begins to stop.
func stopping(ctx context.Context) context.Context {
	if !activity.IsActivity(ctx) {
		return ctx
	}
	stop, cancel := context.WithCancel(ctx)
	channel := activity.GetWorkerStopChannel(ctx)
	go func() {
		defer cancel()
		select {
		case <-channel:
		case <-ctx.Done():
		}
	}()
	return stop
}

// ListCatalog returns a page of the tools that a tenant sees, sorted by name, and on the first page the names of the registered
// documents. If a kind is given, it returns a piece of one document instead.
func (a *Activities) ListCatalog(ctx context.Context, in protocol.CatalogRequest) (protocol.CatalogPage, error) {
	if in.Kind != "" {
		chunk, err := a.documentChunk(ctx, in)
		return protocol.CatalogPage{Document: chunk}, temporalError(err)
	}
	anyone := jig.Session{Tenant: in.Tenant, Agent: jig.Agent{Tools: []string{"*"}}, Principal: jig.Principal{Permissions: []string{"*"}}}
	var page protocol.CatalogPage
	size := 0
	tools, err := a.tools(ctx, in.Tenant)
	if err != nil {
		return page, temporalError(err)
	}
	if in.After == "" {
		page.Compositions = []string{}
	}
	specs := []string{}
	for _, tool := range tools {
		switch {
		case allowed(tool, anyone) != nil:
		case jig.CheckToolName(tool.Name) != nil:
			specs = append(specs, tool.Name)
		case tool.Name <= in.After || page.More:
		default:
			if size += sizeOf(tool); size > pageBytes && len(page.Tools) > 0 {
				page.More = true
				continue
			}
			page.Tools = append(page.Tools, tool)
		}
	}
	if in.After != "" {
		return page, nil
	}
	page.Compositions = specs
	if page.Agents, err = a.documentNames(ctx, in.Tenant, documentAgent); err == nil {
		page.Skills, err = a.documentNames(ctx, in.Tenant, documentSkill)
	}
	if err == nil {
		page.EntityTypes, err = a.documentNames(ctx, in.Tenant, DocumentEntityType)
	}
	return page, temporalError(err)
}

// The kinds of documents, besides DocumentSpec and DocumentEntityType.
const (
	documentAgent = "agent"
	documentSkill = "skill"
)

// documentNames lists the names of a kind that a tenant sees. It returns an empty list, not nil, if there are no names, because nil means
// unknown.
func (a *Activities) documentNames(ctx context.Context, tenant, kind string) ([]string, error) {
	names, err := a.Store.DocumentNames(ctx, tenant, kind)
	return append([]string{}, names...), err
}

// documentChunk reads a piece of a registered document.
func (a *Activities) documentChunk(ctx context.Context, in protocol.CatalogRequest) (*protocol.DocumentChunk, error) {
	if err := checkKind(in.Kind); err != nil {
		return nil, err
	}
	read := a.Store.Document
	if in.Version != "" {
		read = func(ctx context.Context, tenant, kind, name string) ([]byte, error) {
			return a.Store.DocumentAt(ctx, tenant, kind, name, in.Version)
		}
	}
	body, err := read(ctx, in.Tenant, in.Kind, in.Name)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	from := min(max(in.Offset, 0), len(body))
	return &protocol.DocumentChunk{Hash: hex.EncodeToString(hash[:]), Data: body[from:min(from+chunkBytes, len(body))], Size: len(body)}, nil
}

func checkKind(kind string) error {
	known := []string{documentAgent, documentSkill, DocumentSpec, DocumentEntityType, "policy", "tenant", "budget", "rate_limit"}
	if !slices.Contains(known, kind) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a kind of document", kind).WithField("kind").WithHint("use one of " + strings.Join(known, ", "))
	}
	return nil
}

// maxDocuments is the number of documents or versions of a page.
const maxDocuments = 200

// ListDocuments returns a page of the current documents that a tenant sees, or the versions of one document.
func (a *Activities) ListDocuments(ctx context.Context, in protocol.DocumentsRequest) (page protocol.DocumentsPage, err error) {
	if in.Kind != "" || in.Name != "" {
		if err := checkKind(in.Kind); err != nil {
			return page, temporalError(err)
		}
	}
	if in.Name != "" {
		page.Documents, err = a.Store.DocumentVersions(ctx, in.Tenant, in.Kind, in.Name, in.Version, maxDocuments)
		return page, temporalError(err)
	}
	found, err := a.Store.SeenDocuments(ctx, in.Tenant, in.Kind, bundle.Key{Kind: in.AfterKind, Name: in.AfterName}, maxDocuments+1)
	page.Documents = found[:min(len(found), maxDocuments)]
	page.More = len(found) > maxDocuments
	return page, temporalError(err)
}

// FetchArtifact returns a piece of an artifact.
func (a *Activities) FetchArtifact(ctx context.Context, in protocol.ArtifactRequest) (protocol.ArtifactChunk, error) {
	data, size, err := a.Store.ReadArtifact(ctx, in.Tenant, in.ID, in.Offset, chunkBytes)
	return protocol.ArtifactChunk{Data: data, Size: size}, temporalError(err)
}

// Upload writes a piece of an artifact. Writing the same piece again changes nothing.
func (a *Activities) Upload(ctx context.Context, in protocol.UploadRequest) error {
	if len(in.Data) > chunkBytes {
		return temporalError(jig.Errorf(jig.CodeInvalidInput, "a piece has at most %d bytes", chunkBytes).WithField("data"))
	}
	return temporalError(a.Store.AppendArtifact(ctx, in.Tenant, in.ID, in.Offset, in.Data))
}

// ListSessions returns a page of a tenant's sessions that match a filter, the newest first.
func (a *Activities) ListSessions(ctx context.Context, in protocol.SessionsRequest) (protocol.SessionList, error) {
	list, next, err := a.Store.ListSessions(ctx, in.Tenant, in.SessionFilter, in.Cursor, in.Limit)
	if err == nil && a.closeListed(ctx, in.Tenant, list) {
		list, next, err = a.Store.ListSessions(ctx, in.Tenant, in.SessionFilter, in.Cursor, in.Limit)
	}
	return protocol.SessionList{Sessions: list, Next: next}, temporalError(err)
}

// closeListed closes the sessions of a list whose workflows have ended although the store considers them live, so that nobody sees a waiting
// session that can never continue. It reports whether there were any.
func (a *Activities) closeListed(ctx context.Context, tenant string, list []protocol.SessionItem) (closed bool) {
	live := map[string]protocol.SessionItem{}
	ids := []string{}
	for _, item := range list {
		if !item.Status.Final() {
			live[item.SessionID] = item
			ids = append(ids, item.SessionID)
		}
	}
	for _, id := range a.endedAmong(ctx, tenant, ids) {
		item := live[id]
		closed = a.closeIfEnded(ctx, tenant, id, item.Status, item.UpdatedAt) || closed
	}
	return closed
}

// auditPageRows is how many rows are read for one page. Most are smaller than a kilobyte.
const auditPageRows = 100

// ReadAudit returns a page of a tenant's audit rows.
func (a *Activities) ReadAudit(ctx context.Context, in protocol.AuditRequest) (page protocol.AuditPage, err error) {
	defer asTemporal(&err)
	if page.HeadN, page.HeadHash, err = a.Store.AuditHead(ctx, in.Tenant); err != nil {
		return page, err
	}
	var rows []audit.Row
	if in.AuditFilter == (protocol.AuditFilter{}) {
		if rows, err = a.Store.AuditRows(ctx, in.Tenant, in.After, auditPageRows); len(rows) == auditPageRows {
			page.Next = rows[len(rows)-1].N
		}
	} else {
		rows, page.Next, err = a.Store.FindAudit(ctx, in.Tenant, in.AuditFilter, in.After, auditPageRows)
	}
	if page.Rows = fitting(rows, sizeOf); len(page.Rows) < len(rows) {
		page.Next = page.Rows[len(page.Rows)-1].N
	}
	page.More = page.Next > 0
	return page, err
}
