package protocol

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
)

// SessionRef identifies a session.
type SessionRef struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	// Reset reports that the workflow run that names the session came from a reset. Histories do not depend on it.
	Reset bool `json:"reset,omitempty"`
}

// Ref returns the reference. Requests that embed a reference have the method too.
func (r SessionRef) Ref() SessionRef { return r }

// AuditRequest asks for the rows of a tenant's audit chain after a number, oldest first. Filtered rows do not form a chain.
type AuditRequest struct {
	Tenant string `json:"tenant" caller:"tenant"`
	After  int64  `json:"after,omitempty" query:"after" minimum:"0" doc:"The number of the last row that the client has"`
	AuditFilter
}

// AuditFilter selects rows of the audit. Empty fields do not filter.
type AuditFilter struct {
	SessionID string `json:"session_id,omitempty" query:"session" names:"session" maxLength:"192" doc:"Only rows about this session"`
	By        string `json:"by,omitempty" query:"by" names:"person" maxLength:"200" doc:"Only what this principal did"`
	// Tool is the name of a tool, or category.* for all tools of a category.
	Tool    string        `json:"tool,omitempty" query:"tool" names:"tool" maxLength:"200" doc:"Only rows about calls of this tool, or of a category such as file.*"`
	Agent   string        `json:"agent,omitempty" query:"agent" names:"agent" maxLength:"200" doc:"Only rows about calls of this agent"`
	Outcome audit.Outcome `json:"outcome,omitempty" query:"outcome" enum:"approved,granted,denied,expired,withdrawn,answered,reconciled" doc:"Only decisions about calls with this outcome"`
	Since   time.Time     `json:"since,omitzero" query:"since" doc:"Only rows written at or after this time"`
	Until   time.Time     `json:"until,omitzero" query:"until" doc:"Only rows written before this time"`
}

// DecisionsRequest asks for a page of the decisions about calls in a tenant, the latest first.
type DecisionsRequest struct {
	Tenant string      `json:"tenant"`
	Filter AuditFilter `json:"filter,omitzero"`
	Cursor string      `json:"cursor,omitempty"`
	// Limit is the maximum number of results. The default, and the maximum, is 40.
	Limit int `json:"limit,omitempty"`
}

// AuditPage is a page of rows, at most 128 KiB.
type AuditPage struct {
	Rows []audit.Row `json:"rows"`
	// More reports whether there are more rows: after the number Next. A page may be empty although more follow.
	More bool  `json:"more,omitempty"`
	Next int64 `json:"next_after,omitempty"`
	// HeadN and HeadHash describe the end of the tenant's chain. They are read before the rows.
	HeadN    int64  `json:"head_n"`
	HeadHash string `json:"head_hash"`
}

// Until returns the page without the rows after a number. An export that ends there has no further page.
func (p AuditPage) Until(head int64) AuditPage {
	if later := slices.IndexFunc(p.Rows, func(row audit.Row) bool { return row.N > head }); later >= 0 {
		p.Rows, p.More = p.Rows[:later], false
	}
	if p.Next == 0 && len(p.Rows) > 0 {
		p.Next = p.Rows[len(p.Rows)-1].N
	}
	p.More = p.More && p.Next > 0 && p.Next < head
	return p
}

// Pages calls fn with the pages that read returns, at least once, until there are no more rows or fn returns an error. It leaves out rows that were
// appended after the first page was read, so that an export ends at the head that the first page names.
func (r AuditRequest) Pages(read func(AuditRequest) (AuditPage, error), fn func(AuditPage) error) error {
	head := int64(-1)
	for {
		page, err := read(r)
		if err != nil {
			return err
		}
		if head < 0 {
			head = page.HeadN
		}
		page = page.Until(head)
		if err := fn(page); err != nil || !page.More {
			return err
		}
		r.After = page.Next
	}
}

// EntityRequest asks for the state of the latest extraction of an entity.
type EntityRequest struct {
	Tenant   string `json:"tenant"`
	EntityID string `json:"entity_id"`
}

// PendingRequest asks for a page of the calls in a tenant that wait for a person and match a filter.
type PendingRequest struct {
	Tenant string            `json:"tenant"`
	Filter jig.PendingFilter `json:"filter,omitzero"`
	Cursor string            `json:"cursor,omitempty"`
	// Limit is the maximum number of results. The default, and the maximum, is 40.
	Limit int `json:"limit,omitempty"`
}

// StatisticsRequest asks for statistics of a tenant's approvals: those that wait now and those that ended since a given time.
type StatisticsRequest struct {
	Tenant string    `json:"tenant" caller:"tenant"`
	Since  time.Time `json:"since" query:"since" doc:"Approvals decided since this time. Default: midnight (UTC) a week ago"`
}

// SetDefaults completes a request that came over HTTP.
func (r *StatisticsRequest) SetDefaults(now time.Time) { r.Since = sinceOr(r.Since, now) }

// sinceOr returns since when statistics and usage count. The default is the beginning of a day, so that the same request has the same answer.
func sinceOr(since, now time.Time) time.Time {
	if since.IsZero() {
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -7)
	}
	return since
}

// StatusRequest asks for a session's status.
type StatusRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
}

// ApprovalsRequest asks for a page of the calls in a tenant that wait for a person. SessionID limits it to one session.
type ApprovalsRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// ApprovalList is a page of calls that wait for a person.
type ApprovalList struct {
	Approvals []jig.Pending `json:"approvals"`
	Next      string        `json:"next_cursor,omitempty"`
}

// EventsRequest asks for the events after a sequence number. It waits up to Wait for the first one.
type EventsRequest struct {
	Tenant    string        `json:"tenant"`
	SessionID string        `json:"session_id"`
	After     int64         `json:"after"`
	Limit     int           `json:"limit,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`
	// Text asks also for the text that a model is writing, after a position. Such a request must have a Wait.
	Text *TextPosition `json:"text,omitempty"`
}

// TextPosition says how much a follower has of the text that a model is writing. The zero value means nothing.
type TextPosition struct {
	// Pass is the first pass whose text the follower wants.
	Pass    int    `json:"pass,omitempty"`
	Attempt string `json:"attempt,omitempty"`
	// Offset is the number of bytes from the beginning of the answer.
	Offset int `json:"offset,omitempty"`
	// Over reports that the follower knows that the attempt has ended.
	Over bool `json:"over,omitempty"`
}

// Draft is a part of the text that a model is writing. It reaches followers only on the way to its turn, which has the whole text when it is
// stored: pieces may be missing, and a request that is repeated begins a new text.
type Draft struct {
	Pass int `json:"pass"`
	// Attempt identifies the request to the model. Each repetition of the request has its own.
	Attempt string `json:"attempt"`
	// Offset is where Text begins, in bytes from the beginning of the answer.
	Offset int    `json:"offset"`
	Text   string `json:"text"`
	// Over reports that the request has ended, and that nothing follows Text. Failed says why there is no answer; it is empty if there is one.
	Over   bool   `json:"over,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// End returns the position of a follower that has received the draft.
func (d Draft) End() TextPosition {
	return TextPosition{Pass: d.Pass, Attempt: d.Attempt, Offset: d.Offset + len(d.Text), Over: d.Over}
}

// EventsPage is a page of events, at most 128 KiB.
type EventsPage struct {
	Events []jig.Event `json:"events"`
	// Status is the status of the session, so that a follower knows when to stop.
	Status jig.Status `json:"status"`
	// Draft is the text that a model had written before the events, from the position of the request on: at most 64 KiB; nil if there is none.
	Draft *Draft `json:"draft,omitempty"`
}

// TenantEvent is an event of any session of a tenant. Cursor is its place in the order of the tenant's events.
type TenantEvent struct {
	jig.Event
	Cursor string `json:"cursor"`
}

// TenantEvents is a page of a tenant's events. What follows is after Next.
type TenantEvents struct {
	Events []TenantEvent `json:"events"`
	Next   string        `json:"next_cursor"`
	// Waiting reports that there are more events, which become readable as soon as older transactions have ended.
	Waiting bool `json:"-"`
}

// Last reports whether a follower gets nothing after the page.
func (p EventsPage) Last() bool {
	if !p.Status.Final() {
		return false
	}
	ends := []jig.EventType{jig.EventSessionCompleted, jig.EventSessionFailed, jig.EventSessionCanceled}
	return len(p.Events) == 0 || slices.Contains(ends, p.Events[len(p.Events)-1].Type)
}

// CatalogRequest asks for a page of the tools that a tenant sees. After is the last name of the previous page. If Kind is set, it asks
// for a piece of the current version of one registered document instead.
type CatalogRequest struct {
	Tenant string `json:"tenant"`
	After  string `json:"after,omitempty"`
	// Kind is agent, skill, entity_type, or composition for any composition, prompt, task or thin tool.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Offset int    `json:"offset,omitempty"`
	// Version asks for another version than the current one.
	Version string `json:"version,omitempty"`
}

// CatalogPage is a page of tools, sorted by name. The first page also has the names of the registered documents, sorted. An older
// worker may omit a list that it does not know.
type CatalogPage struct {
	Tools  []jig.Tool `json:"tools"`
	Agents []string   `json:"agents,omitzero"`
	Skills []string   `json:"skills,omitzero"`
	// EntityTypes are the names of entity types.
	EntityTypes []string `json:"entity_types,omitzero"`
	// Compositions are those, with prompts, tasks and thin tools, that only compositions and people can run, because their names are not valid
	// tool names. The others are among the tools.
	Compositions []string       `json:"compositions,omitzero"`
	More         bool           `json:"more,omitempty"`
	Document     *DocumentChunk `json:"document,omitempty"`
}

// Catalog lists the tools that a tenant sees on the worker and the registered documents, all sorted by name. A nil list of names means that
// the worker is too old to report it.
type Catalog struct {
	// Tools are all tools, including the compositions with a tool's name.
	Tools  []jig.Tool `json:"tools"`
	Agents []string   `json:"agents,omitzero"`
	Skills []string   `json:"skills,omitzero"`
	// Compositions are the other compositions, with prompts, tasks and thin tools.
	Compositions []string `json:"compositions,omitzero"`
	EntityTypes  []string `json:"entity_types,omitzero"`
}

// DocumentChunk is a piece of a document, at most 128 KiB. Pieces belong together if their Hash (the SHA-256 of the complete
// document, in hex) is the same.
type DocumentChunk struct {
	Hash string `json:"hash"`
	Data []byte `json:"data"`
	Size int    `json:"size"`
}

// DocumentsRequest asks for the current versions of a tenant's documents, sorted by kind and name, or for all versions of one document, the
// latest first.
type DocumentsRequest struct {
	Tenant string `json:"tenant"`
	// Kind is the kind under which documents are stored. It is required with Name.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Version limits the answer to one version of the document; empty for all.
	Version string `json:"version,omitempty"`
	// AfterKind and AfterName are the last document of the previous page.
	AfterKind string `json:"after_kind,omitempty"`
	AfterName string `json:"after_name,omitempty"`
}

// DocumentsPage is a page of at most 200 documents or versions.
type DocumentsPage struct {
	Documents []DocumentState `json:"documents"`
	// More reports whether there are more documents.
	More bool `json:"more,omitempty"`
}

// DocumentState describes a version of a document.
type DocumentState struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Current reports whether the tenant sees this version.
	Current bool `json:"current"`
	// Bundle is the bundle that made the version current; empty if the tenant did.
	Bundle string `json:"bundle,omitempty"`
	// Shared reports that the document belongs to all tenants.
	Shared bool `json:"shared,omitempty"`
	// CreatedAt is when the version was first stored.
	CreatedAt time.Time `json:"created_at"`
}

// ArtifactRequest asks for a piece of an artifact.
type ArtifactRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
}

// ArtifactChunk is a piece of an artifact, at most 128 KiB.
type ArtifactChunk struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"`
}

// UploadRequest writes a piece (at most 128 KiB) of an artifact. The client chooses the artifact's id.
type UploadRequest struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
	Data   []byte `json:"data"`
}

// PoliciesRequest asks for a page of a tenant's policies.
type PoliciesRequest struct {
	Tenant string `json:"tenant"`
	// After is the last name of the previous page. It is empty for the first page.
	After string `json:"after,omitempty"`
}

// PoliciesPage is a page of a tenant's policies, sorted by name.
type PoliciesPage struct {
	Policies []jig.PolicyState `json:"policies"`
	// More reports whether there are more policies.
	More bool `json:"more,omitempty"`
}

// ShowRequest asks for the open approval or question of a call or the latest decision about it, with a piece of the call's arguments.
type ShowRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Offset is where the piece of the arguments begins, in bytes.
	Offset int `json:"offset,omitempty"`
}

// ShownCall is a call that waits or waited for a person, with its whole input.
type ShownCall struct {
	Pending jig.Pending `json:"pending"`
	// Input is the call's whole input; Pending has an input of at most 2 KiB.
	Input json.RawMessage `json:"input"`
	// Similar are the latest decisions about other calls of the tool, the latest first.
	Similar []SimilarDecision `json:"similar"`
	// Comparison says whether the call is still what is shown; nil unless it waits for approval.
	Comparison *Comparison `json:"comparison,omitempty"`
	// ToSign are the claims that tokens for answers to the call have.
	ToSign []SignedClaims `json:"to_sign"`
	// Decisions are the decisions about the call so far, the latest first, at most 50.
	Decisions []jig.Decided `json:"decisions,omitempty"`
}

// By returns the call with the principal who would sign.
func (c ShownCall) By(principal string) ShownCall {
	c.ToSign = slices.Clone(c.ToSign)
	for i := range c.ToSign {
		c.ToSign[i].Subject = principal
	}
	return c
}

// SimilarDecision is an earlier decision about another call of the same tool.
type SimilarDecision struct {
	SessionID string     `json:"session_id"`
	Call      string     `json:"call"`
	Answer    jig.Answer `json:"answer"`
	By        string     `json:"by,omitempty"`
	At        time.Time  `json:"at"`
	// Difference is a unified diff from that call's input to this one's, both as indented JSON; empty if they are equal.
	Difference string `json:"difference"`
}

// SignedClaims are the claims of a token for an answer, under the names that they have in the token. The signer adds jti, iat, nbf and exp
// and, for an answer with a content, content: the SHA-256 of its RFC 8785 form in hex.
type SignedClaims struct {
	Subject  string   `json:"sub,omitempty"`
	Audience []string `json:"aud"`
	Tenant   string   `json:"tenant"`
	Action   string   `json:"action"`
	Session  string   `json:"session"`
	Call     string   `json:"call"`
	Digest   string   `json:"digest"`
}

// ShowPage holds the open approval or question of a call, or the latest decision about it, and a piece of the call's arguments (canonical JSON),
// at most 128 KiB. Pieces belong together if their Pending has the same digest.
type ShowPage struct {
	Pending jig.Pending `json:"pending"`
	Input   []byte      `json:"input"`
	// Size is the size of the complete arguments, in bytes.
	Size int `json:"size"`
	// The other members come with the first piece. Comparison is nil unless the call was compared within [ComparedFor].
	Similar   []SimilarDecision `json:"similar,omitempty"`
	ToSign    []SignedClaims    `json:"to_sign,omitempty"`
	Decisions []jig.Decided     `json:"decisions,omitempty"`

	Comparison *Comparison `json:"comparison,omitempty"`
}
