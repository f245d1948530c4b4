package ports

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/budget"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/livetext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
)

// Store is the database access that the activities need, grouped by subject. One value may serve several subjects. LimitStore may
// be nil if no budgets and no rate limits are used, Texts if nobody follows what models write, and Words if only the principals of sessions
// count as askers.
type Store struct {
	Sessions
	Passes
	Ledger
	Approvals
	EventLog
	Texts
	Artifacts
	Views
	Documents
	Frames
	GrantStore
	PauseStore
	Audits
	Reviews
	TextStore
	LimitStore
	Proofs
	Words
}

// Words keeps on whose word calls rest.
type Words interface {
	// Askers returns those on whose word a call of a session rests that is being admitted. For a call that was admitted before, they are those of
	// that time.
	Askers(ctx context.Context, call jig.Call) ([]jig.Asker, error)
	// Said records that somebody has put words into a session: calls that are made from now on rest on them.
	Said(ctx context.Context, tenant, id string, a jig.Asker) error
	// SaidBy records that a call has put words into a session: whoever the call rests on put them there.
	SaidBy(ctx context.Context, id string, call jig.Call) error
	// Repeats records that a session works with everything that was said in another one, as if it had been there from the start.
	Repeats(ctx context.Context, tenant, id, other string) error
}

// Sessions keeps sessions and their transcripts.
type Sessions interface {
	// CreateSession stores a new session with its first message (the task, if there is one) and the event session.started. If the
	// session already exists, it is returned unchanged.
	CreateSession(ctx context.Context, s jig.Session) (jig.Session, error)
	// CreateCall stores the session of a single call: with its only pass begun and the turn that asks for the call. If the session
	// already exists, only missing parts are added, and it is returned.
	CreateCall(ctx context.Context, s jig.Session, turn chat.Turn) (jig.Session, error)
	// Session returns a session, or NOT_FOUND if the tenant has none with that id.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
	// BeginPass sets the session's pass and the status working, and writes pass.started, after pass.completed of the pass before unless that
	// has ended already. A second call for the same pass changes nothing.
	BeginPass(ctx context.Context, tenant, id string, pass int) (ledger.Beginning, error)
	// OlderCalls returns the successful calls of the passes up to and including through: at most limit, the latest first.
	OlderCalls(ctx context.Context, tenant, id string, through, limit int) ([]jig.Call, error)
	// StoreAnswer stores the turn of a pass, the admission of its calls and, if a.End is set, the end of the session, in one transaction. It
	// returns the end as recorded; nil if the session continues. The error is CONFLICT, and nothing is stored, if the pass has a turn or
	// the session has ended.
	StoreAnswer(ctx context.Context, a ledger.Answer) (*ledger.End, error)
	// SaveTurn stores the model's answer under (session, pass) and adds its usage to the session. If a turn is already stored, that
	// one is returned and nothing changes.
	SaveTurn(ctx context.Context, tenant, id string, pass int, turn chat.Turn) (chat.Turn, error)
	// SaveSummary stores the summary that replaces the passes up to and including through.
	SaveSummary(ctx context.Context, tenant, id string, through int, summary string) error
	// AddMessage appends a user message, once per key, with its event. It reports whether the message was new.
	AddMessage(ctx context.Context, tenant, id, key string, m chat.Message) (bool, error)
}

// Passes ends passes and sessions.
type Passes interface {
	// PassState returns the data that settling a pass needs.
	PassState(ctx context.Context, tenant, id string, pass int) (ledger.PassState, error)
	// EndPass writes pass.completed. Unless End.Status is working, it also ends the session with its event, answer and error. It is
	// idempotent by (session, pass): a second call returns the End of the first.
	EndPass(ctx context.Context, end ledger.End) (ledger.End, error)
	// CancelSession cancels everything that is open (waiting and reserved calls, open approvals), with the events, and ends the
	// session with End.Status (canceled or failed) and its event. Calls whose effect may have happened fail with OUTCOME_UNKNOWN. A
	// session that has already ended is left alone.
	CancelSession(ctx context.Context, end ledger.End) error
	// Window returns the open calls of a pass: all that wait for a person (at most 100) and at most limit others.
	Window(ctx context.Context, tenant, id string, pass, limit int) (ledger.Window, error)
}

// Ledger keeps calls and their effects.
type Ledger interface {
	// Installation returns the id of this installation of jig. Digests and idempotency keys contain it, so that they are not valid
	// in another installation.
	Installation() string
	// EqualCalls returns the calls of other passes of the session that have one of the given signatures, without duplicates.
	EqualCalls(ctx context.Context, tenant, id string, pass int, signatures []string) ([]ledger.Earlier, error)
	// Admit stores a pass's calls, approvals and events in one transaction. If the pass was already admitted, nothing changes.
	Admit(ctx context.Context, a ledger.Admission) error
	// Call returns one call, or NOT_FOUND if there is none.
	Call(ctx context.Context, tenant, id, callID string) (jig.Call, error)
	// CallsOf returns a session and some of its calls, in the order of ids.
	CallsOf(ctx context.Context, tenant, id string, ids []string) (jig.Session, []jig.Call, error)
	// BegunBelow reports whether a call that writes has begun inside a call, or in the whole session if callID is empty. It also
	// returns the calls of the named tools that have begun there.
	BegunBelow(ctx context.Context, tenant, id, callID string, tools []string) (wrote bool, calls []string, err error)
	// TryQuick notes that first attempts of calls begin before they are reserved, so that a call which kills its worker is reserved the next time.
	TryQuick(ctx context.Context, tenant, id string, ids []string) error
	// FinishQuick records first attempts of read-only, idempotent calls that have already run, in one transaction. It returns the ids of
	// the calls that it recorded. It leaves alone calls that have changed since their admission.
	FinishQuick(ctx context.Context, tenant, id string, done []ledger.QuickCompletion) ([]string, error)
	// Reserve begins an attempt, or returns the reason why it may not begin. See the section on the ledger in the documentation.
	Reserve(ctx context.Context, r ledger.ReserveRequest) (ledger.Reservation, error)
	// Complete finalizes an attempt with its events, in one transaction that matches the fence. A completion with an old fence changes
	// nothing. A late completion, for a call that is already unknown, settles the call if it says more than is known. Complete always
	// returns the current row.
	Complete(ctx context.Context, c ledger.Completion) (ledger.Completed, error)
}

// Approvals stores the approvals, questions and unknown outcomes that wait for a person.
type Approvals interface {
	// Decide applies a decision: one compare-and-set on the approval's row, with its events. It is idempotent by Key. A refused
	// decision writes decision.refused and changes nothing else.
	Decide(ctx context.Context, r approval.DecisionRequest) (approval.Applied, error)
	// Ruled returns the answers that were stored under keys, in the order of the keys. Keys without an answer are left out.
	Ruled(ctx context.Context, tenant, session string, keys []string) ([]jig.Ruled, error)
	// Reconcile applies a person's statement about an unknown outcome. It is idempotent by Key.
	Reconcile(ctx context.Context, r approval.ReconcileRequest) (approval.Applied, error)
	// Reply answers a question. It is idempotent by Key.
	Reply(ctx context.Context, r approval.ReplyRequest) (approval.Applied, error)
	// Refuse writes decision.refused for a signal that names no call. It is idempotent by key.
	Refuse(ctx context.Context, tenant, id, key, reason string, data json.RawMessage) error
	// Lapse processes an open approval at the time now. It expires the approval if its time is over; otherwise it writes the events and
	// notices of due reminders and escalations, and lets more people decide, or denies the call, if too few can. voters is nil if it is not
	// known who can. It returns the state of the call, and is idempotent.
	Lapse(ctx context.Context, tenant, id, callID string, voters *approval.Voters, now time.Time) (approval.Lapse, error)
	// Recheck is like Lapse for an approval that is not due. It reports whether something has changed that the call's workflow does not know;
	// ToldSettled records that it does.
	Recheck(ctx context.Context, tenant, id, callID string, voters approval.Voters, now time.Time) (changed bool, err error)
	// Readmit replaces the admission (version, digest, ruling) of a waiting or reserved call, because the tool has changed or
	// because the call is reserved without a valid approval. An open approval expires and a new one opens. Nothing happens if the call
	// has changed since it was read as was. It returns the current call.
	Readmit(ctx context.Context, was, call jig.Call, approval *jig.Pending) (jig.Call, error)
	// Pending returns the open approval of a call, or NOT_FOUND if there is none.
	Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error)
	// Approved returns the people who approved a call, and the weakest of their proofs. The list is empty if nobody did.
	Approved(ctx context.Context, tenant, id, callID string) (by []string, proof jig.Proof, err error)
}

// Documents keeps specs by kind and name. A version is the content hash of the body.
type Documents interface {
	// PutDocument stores a version of a document and makes it the current one. The error is CONFLICT if the version exists with
	// another body.
	PutDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error
	// Document returns the current body of a document: the tenant's own or else the one of tenant _global. The error is NOT_FOUND, with
	// the nearest names as a hint.
	Document(ctx context.Context, tenant, kind, name string) (body []byte, err error)
	// KeepDocument stores a version of a document without making it the current one. An existing version is left alone. The error
	// is CONFLICT if it exists with another body.
	KeepDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error
	// DocumentAt returns the body of a version, whether it is current or not: the tenant's own or else the one of tenant _global. The
	// error is NOT_FOUND if there is none.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) (body []byte, err error)
	// DocumentTrusted reports whether the version was registered and no outsider can have written its text.
	DocumentTrusted(ctx context.Context, tenant, kind, name, version string) (bool, error)
	// CurrentDocuments lists the current versions of a kind that a tenant sees, sorted by name.
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error)
	// SeenDocuments lists up to limit current documents that a tenant sees, sorted by kind and name, after one of them. An empty kind means all.
	SeenDocuments(ctx context.Context, tenant, kind string, after bundle.Key, limit int) ([]protocol.DocumentState, error)
	// DocumentVersions lists up to limit stored versions of a document, the latest first: the current one and the latest others, or only the given
	// version. The error is NOT_FOUND if there is no such document.
	DocumentVersions(ctx context.Context, tenant, kind, name, version string, limit int) ([]protocol.DocumentState, error)
	// DocumentNames lists the names of a kind that a tenant sees, sorted.
	DocumentNames(ctx context.Context, tenant, kind string) ([]string, error)
}

// Frames keeps the state of running compositions.
type Frames interface {
	// BeginFrame stores the frame of a new composition. If it already exists, it is returned unchanged.
	BeginFrame(ctx context.Context, f plan.Frame) (plan.Frame, error)
	// Frame returns the current frame of a composition, or NOT_FOUND if there is none.
	Frame(ctx context.Context, tenant, id, callID string) (plan.Frame, error)
	// MoveFrame stores a move in one transaction. If another move has been stored since the one that this move is based on, nothing
	// changes and the error is a CONFLICT.
	MoveFrame(ctx context.Context, m plan.FrameMove) error
	// FrameWindow returns all open calls of the composition, in the order in which they were admitted, with the approvals of those
	// that wait.
	FrameWindow(ctx context.Context, tenant, id, callID string) (ledger.Window, error)
	// FrameValues returns the values that are stored under the given paths of a composition. Paths without a value are left out.
	FrameValues(ctx context.Context, tenant, id, callID string, paths []string) (map[string]json.RawMessage, error)
	// Receive stores an event that was sent to the session, once per key, together with the event custom.<name>. It reports whether
	// the event was new.
	Receive(ctx context.Context, tenant, id, key string, e plan.ReceivedEvent) (bool, error)
}

// Artifacts keeps large values.
type Artifacts interface {
	// PutArtifact stores a value and returns its id.
	PutArtifact(ctx context.Context, tenant, sessionID, mediaType string, value []byte) (string, error)
	// AppendArtifact writes a chunk at an offset of an artifact. The caller chooses the artifact's id. A chunk that is already
	// there is left unchanged; an offset beyond the end is a CONFLICT.
	AppendArtifact(ctx context.Context, tenant, id string, offset int64, chunk []byte) error
	// ReadArtifact returns at most limit bytes from offset, and the size of the complete artifact.
	ReadArtifact(ctx context.Context, tenant, id string, offset int64, limit int) (chunk []byte, size int64, err error)
}

// Views answers the queries of the command line and of the sweeper.
type Views interface {
	// SessionView returns a session with its pending approvals and its latest calls (at most 500).
	SessionView(ctx context.Context, tenant, id string) (jig.SessionView, error)
	// ListSessions lists the sessions of a tenant that match a filter, the newest first, after a cursor ("" for the first page). next is
	// "" at the end.
	ListSessions(ctx context.Context, tenant string, filter protocol.SessionFilter, cursor string, limit int) (
		list []protocol.SessionItem, next string, err error)
	// ReadPass returns what was said and done in a pass, with up to limit of its calls after the first skip. The error is NOT_FOUND if the
	// tenant has no such session.
	ReadPass(ctx context.Context, tenant, id string, pass, skip, limit int) (ledger.PassRead, error)
	// PendingApprovals lists the calls of a tenant that wait for a person, oldest first, after a cursor ("" for the first page). next is
	// "" at the end.
	PendingApprovals(ctx context.Context, tenant, cursor string, limit int) (list []jig.Pending, next string, err error)
	// LiveSessions lists the sessions of all tenants that are not final and were not updated for a minute, for the sweeper. Only
	// tenant, id, status and the time of the last update are set.
	LiveSessions(ctx context.Context, limit int) ([]jig.Session, error)
	// ForgetTokens deletes at most 1,000 used tokens, of all tenants, that expired more than age ago. It returns how many it deleted.
	ForgetTokens(ctx context.Context, age time.Duration) (int64, error)
	// TakeSettled takes calls of all tenants that were settled late and whose workflow nobody has tried to tell within age. It does not
	// return the same calls again before age has passed.
	TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error)
	// TakeRechecks takes tenants whose open approvals are to be checked again, because the people who may decide them have changed, each with
	// the time at which it is handed out again. Rechecked records that they were checked.
	TakeRechecks(ctx context.Context, lease time.Duration, limit int) (map[string]time.Time, error)
	Rechecked(ctx context.Context, tenant string, due time.Time) error
	// ToldSettled records that the workflow of a call from TakeSettled has been told, or has ended.
	ToldSettled(ctx context.Context, tenant, id, callID string) error
}

// GrantStore keeps grants (standing approvals).
type GrantStore interface {
	// LiveGrants returns the grants that may cover calls of the given tools: the oldest first, at most 1,000.
	LiveGrants(ctx context.Context, tenant string, tools []string, now time.Time) ([]jig.Grant, error)
	// Grant returns a grant, whether it can still be used or not. The error is NOT_FOUND if there is no such grant.
	Grant(ctx context.Context, tenant, id string) (jig.Grant, error)
	// Grants lists the grants of a tenant, the latest first, after a cursor ("" for the first page). next is "" at the end. If all
	// is set, the list includes those that are used up, expired or revoked.
	Grants(ctx context.Context, tenant, cursor string, limit int, all bool, now time.Time) (list []jig.Grant, next string, err error)
	// RevokeGrant ends a grant, so that it covers no call that has not begun. The error is NOT_FOUND if there is no such grant.
	RevokeGrant(ctx context.Context, tenant, id string, who jig.Principal, evidence *identity.Evidence, now time.Time) (jig.Grant, error)
}

// PauseStore keeps the pauses of tenants, tools and sessions.
type PauseStore interface {
	// Pause holds back calls that have not begun. A pause that already exists is left alone. changed reports that it is new.
	Pause(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error)
	// Resume lifts a pause. changed reports that the pause existed.
	Resume(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error)
	// Pauses lists the pauses of a tenant, the oldest first.
	Pauses(ctx context.Context, tenant string) ([]jig.Pause, error)
	// ModelWait returns why the latest request to a model failed, for the latest pass of a session or, if callID is not empty, for a call. It is
	// nil if none failed, or if the pass has its turn.
	ModelWait(ctx context.Context, tenant, id, callID string) (*ledger.ModelWait, error)
	// NoteModelWait records, with an event, that the model is asked again for the turn of a pass or by a call.
	NoteModelWait(ctx context.Context, tenant, id string, w ledger.ModelWait) error
	// NoteHeld records, once for each pause, the event that a pause holds back a call or, if callID is empty, the session's next pass.
	NoteHeld(ctx context.Context, tenant, id, callID string) error
	// HeldBack reports whether a call that has not begun can begin only when a person acts.
	HeldBack(ctx context.Context, tenant, id, callID string) (bool, error)
}

// EventLog is the append-only log of each session.
type EventLog interface {
	// AppendEvents appends events in one transaction. The store sets seq and time.
	AppendEvents(ctx context.Context, tenant, id string, events ...jig.Event) error
	// Events returns at most limit events with seq greater than after, oldest first.
	Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
	// WaitEvents returns events like Events, but waits until there is at least one. When ctx ends, it returns an empty list and no error.
	WaitEvents(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
}

// Texts passes on what models write until their turns are stored. Nothing of it is kept.
type Texts interface {
	// WriteText returns a writer for the text of a request to a model, in a pass of a session.
	WriteText(tenant, id string, pass int) *livetext.Writer
	// WaitText works like WaitEvents, but also waits for text after a position, and then gathers more for a while. With events it returns
	// only the rest of a text that the caller has begun to read.
	WaitText(
		ctx context.Context, tenant, id string, after int64, limit int, from protocol.TextPosition, gather time.Duration,
	) ([]jig.Event, *protocol.Draft, error)
}

// Audits reads the audit chain of a tenant.
type Audits interface {
	// AuditHead returns the number and the hash (in hex) of the last row of a tenant's chain. For an empty chain it returns 0 and the
	// hash that precedes the first row.
	AuditHead(ctx context.Context, tenant string) (n int64, hash string, err error)
	// AuditRows returns at most limit rows of a tenant's chain after row n, in order.
	AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error)
	// FindAudit returns rows like AuditRows, limited to a session (unless it is "") and to those written at or after since and
	// before until. A zero time means no limit.
	FindAudit(ctx context.Context, tenant, session string, since, until time.Time, after int64, limit int) ([]audit.Row, error)
}

// Reviews answers queries of the people who manage approvals.
type Reviews interface {
	// ListPending lists the calls of a tenant that wait for a person and match a filter, oldest first, after a cursor ("" for the first
	// page). next is "" at the end.
	ListPending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (list []jig.Pending, next string, err error)
	// SimilarDecisions returns the latest decisions about other calls of the tool of a waiting call, the latest first.
	SimilarDecisions(ctx context.Context, of jig.Pending, limit int) ([]approval.Similar, error)
	// BeginComparison reports whether a call that waits may be compared with what people are shown: no comparison of it has begun in the time
	// before now. If it may, one has begun. EndComparison stores what it found.
	BeginComparison(ctx context.Context, of jig.Pending, now time.Time, before time.Duration) (bool, error)
	EndComparison(ctx context.Context, of jig.Pending, found protocol.Comparison) error
	// Comparison returns what the comparison of a waiting call found that began after since; nil if there is none, or if it has not ended.
	Comparison(ctx context.Context, of jig.Pending, since time.Time) (*protocol.Comparison, error)
	// Statistics returns statistics of a tenant's approvals: those that wait now, and those decided since a given time.
	Statistics(ctx context.Context, tenant string, since time.Time) (protocol.ApprovalStats, error)
	// RecordedCalls returns calls that were admitted since a given time, with the data that policy needs to judge them, after a cursor (""
	// for the first page). next is "" at the end.
	RecordedCalls(ctx context.Context, tenant string, since time.Time, cursor string, limit int) (list []ledger.RecordedCall, next string, err error)
}

// TextStore reads the texts that arguments can come from.
type TextStore interface {
	// Origins returns what the principal typed, and the results of the latest 500 calls of a session and of the sessions above it, without those
	// of the calls in known.
	Origins(ctx context.Context, tenant, id string, known []string) (ledger.Origins, error)
	// MarkUntrusted records that a call, and with it its session, has read untrusted data.
	MarkUntrusted(ctx context.Context, tenant, id, callID string) error
}

// LimitStore reads what was used, releases what dead workers reserved, and forgets what rate limits do not need any more.
type LimitStore interface {
	// Usage returns what a tenant's sessions used, grouped and filtered as requested; at most 500 rows.
	Usage(ctx context.Context, r protocol.UsageRequest) ([]protocol.UsageRow, error)
	// BudgetCounters returns counters of the given periods: those with the given scope, or all if it is empty; at most 500.
	BudgetCounters(ctx context.Context, tenant string, periods []string, scope string) ([]budget.Used, error)
	// ReleaseBudgets releases at most limit reservations, of all tenants, that were not settled in time. It returns how many it released.
	ReleaseBudgets(ctx context.Context, limit int) (int64, error)
	// ForgetRates deletes at most limit rows of each kind, of all tenants. It returns how many it deleted.
	ForgetRates(ctx context.Context, limit int) (int64, error)
}

// Proofs keeps the proof of who acts.
type Proofs interface {
	// Request returns the hash of what a call asks of another session; "" if it asks nothing.
	Request(ctx context.Context, tenant, id, callID string) (string, error)
	// Signed returns the latest approval of a call, nil if there was none, and the signed decisions about the call, oldest first.
	Signed(ctx context.Context, tenant, id, callID string) (*approval.Record, []approval.Signed, error)
	// MessageRead reports whether a pass of a session has read a message with an id that its sender chose.
	MessageRead(ctx context.Context, tenant, id, message string) (bool, error)
	// KeyLineage returns an API key of a tenant with those that made it, or NOT_FOUND if one of them is no longer valid.
	KeyLineage(ctx context.Context, tenant, id string) (identity.Lineage, error)
	// RecordAudit records an entry in the audit that concerns no session.
	RecordAudit(ctx context.Context, tenant string, e audit.Entry) error
	// RecordOnce records an entry in the audit, unless it has one of the same kind, session, call and subject.
	RecordOnce(ctx context.Context, tenant string, e audit.Entry) error
}
