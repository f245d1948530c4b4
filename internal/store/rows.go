package store

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/chat"
)

// sessionRow is a row of sessions.
type sessionRow struct {
	TenantID       string
	SessionID      string
	Agent          []byte
	Principal      []byte
	Input          []byte
	Task           string
	Catalog        []byte
	Status         string
	Pass           int
	Writes         int
	ReadPrivate    bool
	ReadUntrusted  bool
	Tokens         int64
	Todo           []byte
	Answer         string
	AnswerArtifact string
	Reason         string
	Error          []byte
	ParentID       string
	ParentCall     string
	ParentAgent    string
	RootAgent      string
	Depth          int
	Source         string
	SummaryThrough int
	Summary        string
	CreatedAt      time.Time
	UpdatedAt      time.Time
	RequestDigest  string
}

func (r *sessionRow) session() (jig.Session, error) {
	s := jig.Session{
		Tenant: r.TenantID, ID: r.SessionID, Input: r.Input, Task: r.Task, Status: jig.Status(r.Status), Pass: r.Pass,
		Writes: r.Writes, Tokens: r.Tokens, Todo: r.Todo, Answer: r.Answer, Reason: r.Reason, ParentID: r.ParentID, ParentCall: r.ParentCall, ParentAgent: r.ParentAgent,
		RootAgent: r.RootAgent, Depth: r.Depth, Source: jig.Source(r.Source),
		SummaryThrough: r.SummaryThrough, Summary: r.Summary, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		RequestDigest: r.RequestDigest, ReadPrivate: r.ReadPrivate, ReadUntrusted: r.ReadUntrusted,
	}
	for _, part := range []struct {
		text []byte
		into any
	}{{r.Agent, &s.Agent}, {r.Principal, &s.Principal}, {r.Catalog, &s.Catalog}, {r.Error, &s.Error}} {
		if err := decode(part.text, part.into); err != nil {
			return jig.Session{}, err
		}
	}
	return s, nil
}

// callRow is a row of calls.
type callRow struct {
	TenantID       string
	SessionID      string
	CallID         string
	Pass           int
	Ordinal        int
	ProviderID     string
	Tool           string
	Version        string
	Write          bool
	Idempotent     bool
	Input          []byte
	Signature      string
	ConcurrencyKey string
	Digest         string
	PolicyVersion  string
	Verdict        string
	Reasons        []byte
	Status         string
	Fence          int
	Attempt        string
	DuplicateOf    string
	InDoubt        bool
	Result         []byte
	ResultArtifact string
	Frame          string
	Patch          []byte
	EditedBy       string
	ReadsPrivate   bool
	ReadsUntrusted bool
	Flow           []byte
	Preview        []byte
	Previews       int
	IdempotencyKey string
	Child          string
	FailedAt       *time.Time
	Failures       int
	Tried          bool
	CreatedAt      time.Time
	StartedAt      *time.Time
	FinishedAt     *time.Time
}

// failedAt returns the time of the first failure that may pass; zero if there was none.
func (r *callRow) failedAt() time.Time {
	if r.FailedAt == nil {
		return time.Time{}
	}
	return r.FailedAt.UTC()
}

func (r *callRow) status() jig.CallStatus { return jig.CallStatus(r.Status) }

func (r *callRow) call() (jig.Call, error) {
	c := jig.Call{
		Tenant: r.TenantID, SessionID: r.SessionID, ID: r.CallID, Frame: r.Frame, Pass: r.Pass, Ordinal: r.Ordinal,
		ProviderID: r.ProviderID, Tool: r.Tool, Version: r.Version, Write: r.Write, Idempotent: r.Idempotent, Input: r.Input, Signature: r.Signature,
		ConcurrencyKey: r.ConcurrencyKey, Digest: r.Digest, PolicyVersion: r.PolicyVersion, Verdict: jig.Verdict(r.Verdict),
		Status: r.status(), Fence: r.Fence, DuplicateOf: r.DuplicateOf, ResultArtifact: r.ResultArtifact,
		CreatedAt: r.CreatedAt.UTC(), StartedAt: utc(r.StartedAt), FinishedAt: utc(r.FinishedAt), Patch: r.Patch, EditedBy: r.EditedBy,
		IdempotencyKey: r.IdempotencyKey, Child: r.Child, ReadsPrivate: r.ReadsPrivate, ReadsUntrusted: r.ReadsUntrusted,
	}
	c.Previews, c.InDoubt, c.Failures, c.Tried = r.Previews, r.InDoubt, r.Failures, r.Tried
	c.FailedAt = r.failedAt()
	err := errors.Join(decode(r.Reasons, &c.Reasons), decode(r.Flow, &c.Flow), decode(r.Preview, &c.Preview))
	if err != nil {
		return jig.Call{}, err
	}
	c.Result, err = r.result()
	return c, err
}

func calls(rows []callRow) ([]jig.Call, error) {
	list := make([]jig.Call, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].call(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// approvalRow is a row of approvals, with the columns that are read.
type approvalRow struct {
	TenantID       string
	ID             int64
	SessionID      string
	CallID         string
	Kind           string
	Status         string
	Tool           string
	Input          []byte
	Truncated      bool
	Summary        string
	Reasons        []byte
	Digest         string
	ApprovedDigest string
	RequestedBy    string
	Agent          string
	PolicyVersion  string
	RequestedAt    time.Time
	ExpiresAt      *time.Time
	Terms          []byte
	Votes          []byte
	Delegations    []byte
	NoticedAt      *time.Time
	Question       []byte
	GrantID        string
	DecidedBy      string
	Claimed        bool
	ParentID       string
	ParentCall     string
	Attempt        int
	Preview        []byte
	Askers         []byte
	Edits          []byte
}

func (r *approvalRow) status() approval.Status { return approval.Status(r.Status) }

func (r *approvalRow) pending() (jig.Pending, error) {
	p := jig.Pending{
		Tenant: r.TenantID, SessionID: r.SessionID, Kind: jig.PendingKind(r.Kind), Call: r.CallID, Tool: r.Tool, Input: r.Input,
		Truncated: r.Truncated, Summary: r.Summary, Digest: r.Digest, RequestedBy: r.RequestedBy, RequestedAt: r.RequestedAt.UTC(),
		Agent: r.Agent, PolicyVersion: r.PolicyVersion, Grant: r.GrantID, ParentID: r.ParentID, ParentCall: r.ParentCall,
		Attempt: r.Attempt,
	}
	if r.ExpiresAt != nil {
		p.ExpiresAt = r.ExpiresAt.UTC()
	}
	for _, part := range []struct {
		text []byte
		into any
	}{{r.Reasons, &p.Reasons}, {r.Terms, &p.Terms}, {r.Votes, &p.Votes}, {r.Delegations, &p.Delegations}, {r.Question, &p.Question}, {r.Preview, &p.Preview}, {r.Askers, &p.Askers}, {r.Edits, &p.Edits}} {
		if err := decode(part.text, part.into); err != nil {
			return p, err
		}
	}
	for i := range p.Edits {
		p.Edits[i].At = p.Edits[i].At.UTC()
	}
	seen := p.RequestedAt
	if r.NoticedAt != nil {
		seen = r.NoticedAt.UTC()
	}
	p.NextAt = approval.NextAt(p, seen)
	return p, nil
}

// listed returns the approval as lists show it.
func (r *approvalRow) listed() (jig.Pending, error) {
	p, err := r.pending()
	p.Edits = approval.ShortEdits(p.Edits)
	return p, err
}

func pendings(rows []approvalRow) ([]jig.Pending, error) {
	list := make([]jig.Pending, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].listed(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// eventRow is a row of events.
type eventRow struct {
	SessionID string
	Seq       int64
	At        time.Time
	Type      string
	Pass      int
	CallID    string
	Tool      string
	Data      []byte
}

func (r *eventRow) event() jig.Event {
	return jig.Event{
		SessionID: r.SessionID, Seq: r.Seq, At: r.At.UTC(), Type: jig.EventType(r.Type), Pass: r.Pass, CallID: r.CallID,
		Tool: r.Tool, Data: r.Data,
	}
}

func events(rows []eventRow) []jig.Event {
	if len(rows) == 0 {
		return nil
	}
	list := make([]jig.Event, len(rows))
	for i := range rows {
		list[i] = rows[i].event()
	}
	return list
}

// turnRow is a turn with its body, which comes from the row or from an artifact.
type turnRow struct {
	Pass int
	Body []byte
}

func (r *turnRow) turn() (chat.Turn, error) {
	var t chat.Turn
	err := decode(r.Body, &t)
	return t, err
}

// countRow is a count of calls by status.
type countRow struct {
	Status string
	Count  int
}

func counts(rows []countRow) map[jig.CallStatus]int {
	m := make(map[jig.CallStatus]int, len(rows))
	for _, r := range rows {
		m[jig.CallStatus(r.Status)] = r.Count
	}
	return m
}

// decode reads a stored JSON value. An empty value leaves into unchanged.
func decode(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return jig.Errorf(jig.CodeInternal, "a stored value cannot be read: %w", err)
	}
	return nil
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
