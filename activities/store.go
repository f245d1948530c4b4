package activities

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

// Store is the activities' access to the database. It is composed of one interface per subject; functions that need only one subject take only
// that interface. DB in package internal/store implements Store and documents its methods. Tests embed a Store and override single methods.
type Store interface {
	sessionStore
	passStore
	callStore
	approvalStore
	grantStore
	pauseStore
	frameStore
	undoStore
	documentStore
	artifactStore
	eventStore
	draftStore
	viewStore
	reviewStore
	originStore
	askerStore
	proofStore
	auditStore
	usageStore
	sweepStore
}

// sessionStore keeps sessions and what is said in them.
type sessionStore interface {
	CreateSession(ctx context.Context, s jig.Session) (jig.Session, error)
	CreateCall(ctx context.Context, s jig.Session, turn chat.Turn) (jig.Session, error)
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
	BeginPass(ctx context.Context, tenant, id string, pass int) (ledger.Beginning, error)
	OlderCalls(ctx context.Context, tenant, id string, through, limit int) ([]jig.Call, error)
	StoreAnswer(ctx context.Context, a ledger.Answer) (*ledger.End, error)
	SaveTurn(ctx context.Context, tenant, id string, pass int, turn chat.Turn) (chat.Turn, error)
	SaveSummary(ctx context.Context, tenant, id string, through int, summary string) error
	AddMessage(ctx context.Context, tenant, id, key string, m chat.Message) (bool, error)
}

// passStore ends passes and sessions.
type passStore interface {
	PassState(ctx context.Context, tenant, id string, pass int) (ledger.PassState, error)
	EndPass(ctx context.Context, end ledger.End) (ledger.End, error)
	CancelSession(ctx context.Context, end ledger.End) error
	Window(ctx context.Context, tenant, id string, pass, limit int) (ledger.Window, error)
}

// callStore keeps calls and their attempts. See the section on the ledger in docs/architecture.md.
type callStore interface {
	Installation() string
	EqualCalls(ctx context.Context, tenant, id string, pass int, signatures []string) ([]ledger.Earlier, error)
	Admit(ctx context.Context, a ledger.Admission) error
	Call(ctx context.Context, tenant, id, callID string) (jig.Call, error)
	CallsOf(ctx context.Context, tenant, id string, ids []string) (jig.Session, []jig.Call, error)
	BegunBelow(ctx context.Context, tenant, id, callID string, tools []string) (wrote bool, calls []string, err error)
	TryQuick(ctx context.Context, tenant, id string, ids []string) error
	FinishQuick(ctx context.Context, tenant, id string, done []ledger.QuickCompletion) ([]string, error)
	Reserve(ctx context.Context, r ledger.ReserveRequest) (ledger.Reservation, error)
	Complete(ctx context.Context, c ledger.Completion) (ledger.Completed, error)
}

// undoStore says what a session has changed, and keeps which call undoes which.
type undoStore interface {
	Written(ctx context.Context, tenant, id string, tools []string, limit int) ([]ledger.Written, error)
	ClaimUndo(ctx context.Context, tenant string, of, by ledger.CallName) (other *ledger.CallName, err error)
}

// approvalStore keeps what waits for a person: approvals, questions and unknown outcomes.
type approvalStore interface {
	Decide(ctx context.Context, r approval.DecisionRequest) (approval.Applied, error)
	Ruled(ctx context.Context, tenant, session string, keys []string) ([]jig.Ruled, error)
	Reconcile(ctx context.Context, r approval.ReconcileRequest) (approval.Applied, error)
	Reply(ctx context.Context, r approval.ReplyRequest) (approval.Applied, error)
	Refuse(ctx context.Context, tenant, id, key, reason string, data json.RawMessage) error
	Lapse(ctx context.Context, tenant, id, callID string, voters *approval.Voters, now time.Time) (approval.Lapse, error)
	Recheck(ctx context.Context, tenant, id, callID string, voters approval.Voters, now time.Time) (changed bool, err error)
	Readmit(ctx context.Context, was, call jig.Call, approval *jig.Pending) (jig.Call, error)
	Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error)
	Approved(ctx context.Context, tenant, id, callID string) (by []string, proof jig.Proof, err error)
}

// grantStore keeps grants (standing approvals).
type grantStore interface {
	LiveGrants(ctx context.Context, tenant string, tools []string, now time.Time) ([]jig.Grant, error)
	Grant(ctx context.Context, tenant, id string) (jig.Grant, error)
	Grants(ctx context.Context, tenant, cursor string, limit int, all bool, now time.Time) (list []jig.Grant, next string, err error)
	RevokeGrant(ctx context.Context, tenant, id string, who jig.Principal, evidence *identity.Evidence, now time.Time) (jig.Grant, error)
}

// pauseStore keeps what holds sessions and calls back: pauses, and waits for a model.
type pauseStore interface {
	Pause(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error)
	Resume(ctx context.Context, tenant string, p jig.Pause, evidence *identity.Evidence) (changed bool, err error)
	Pauses(ctx context.Context, tenant string) ([]jig.Pause, error)
	ModelWait(ctx context.Context, tenant, id, callID string) (*ledger.ModelWait, error)
	NoteModelWait(ctx context.Context, tenant, id string, w ledger.ModelWait) error
	NoteHeld(ctx context.Context, tenant, id, callID string) error
	HeldBack(ctx context.Context, tenant, id, callID string) (bool, error)
}

// frameStore keeps the state of running compositions.
type frameStore interface {
	BeginFrame(ctx context.Context, f plan.Frame) (plan.Frame, error)
	Frame(ctx context.Context, tenant, id, callID string) (plan.Frame, error)
	MoveFrame(ctx context.Context, m plan.FrameMove) error
	FrameWindow(ctx context.Context, tenant, id, callID string) (ledger.Window, error)
	FrameValues(ctx context.Context, tenant, id, callID string, paths []string) (map[string]json.RawMessage, error)
	Receive(ctx context.Context, tenant, id, key string, e plan.ReceivedEvent) (bool, error)
}

// documentStore reads documents by kind and name. A version is the content hash of the body.
type documentStore interface {
	Document(ctx context.Context, tenant, kind, name string) (body []byte, err error)
	KeepDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error
	DocumentAt(ctx context.Context, tenant, kind, name, version string) (body []byte, err error)
	DocumentTrusted(ctx context.Context, tenant, kind, name, version string) (bool, error)
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error)
	SeenDocuments(ctx context.Context, tenant, kind string, after bundle.Key, limit int) ([]protocol.DocumentState, error)
	DocumentVersions(ctx context.Context, tenant, kind, name, version string, limit int) ([]protocol.DocumentState, error)
	DocumentNames(ctx context.Context, tenant, kind string) ([]string, error)
}

// artifactStore keeps large values.
type artifactStore interface {
	AppendArtifact(ctx context.Context, tenant, id string, offset int64, chunk []byte) error
	ReadArtifact(ctx context.Context, tenant, id string, offset int64, limit int) (chunk []byte, size int64, err error)
}

// eventStore is the append-only log of each session.
type eventStore interface {
	AppendEvents(ctx context.Context, tenant, id string, events ...jig.Event) error
	Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
	WaitEvents(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
}

// draftStore passes on what models write until their turns are stored.
type draftStore interface {
	WriteText(tenant, id string, pass int) *livetext.Writer
	WaitText(
		ctx context.Context, tenant, id string, after int64, limit int, from protocol.TextPosition, gather time.Duration,
	) ([]jig.Event, *protocol.Draft, error)
}

// viewStore answers the queries of the command line.
type viewStore interface {
	Reads() []protocol.Answer
	SessionView(ctx context.Context, tenant, id string) (jig.SessionView, error)
	ListSessions(ctx context.Context, tenant string, filter protocol.SessionFilter, cursor string, limit int) (
		list []protocol.SessionItem, next string, err error)
	ReadPass(ctx context.Context, tenant, id string, pass, skip, limit int) (ledger.PassRead, error)
	PendingApprovals(ctx context.Context, tenant, cursor string, limit int) (list []jig.Pending, next string, err error)
}

// reviewStore answers the queries of people who decide.
type reviewStore interface {
	ListPending(ctx context.Context, tenant string, filter jig.PendingFilter, cursor string, limit int) (list []jig.Pending, next string, err error)
	SimilarDecisions(ctx context.Context, of jig.Pending, limit int) ([]approval.Similar, error)
	BeginComparison(ctx context.Context, of jig.Pending, now time.Time, before time.Duration) (bool, error)
	EndComparison(ctx context.Context, of jig.Pending, found protocol.Comparison) error
	Comparison(ctx context.Context, of jig.Pending, since time.Time) (*protocol.Comparison, error)
	RecordedCalls(ctx context.Context, tenant string, since time.Time, cursor string, limit int) (list []ledger.RecordedCall, next string, err error)
}

// originStore reads the texts that arguments can come from.
type originStore interface {
	Origins(ctx context.Context, tenant, id string, known []string) (ledger.Origins, error)
	MarkUntrusted(ctx context.Context, tenant, id, callID string) error
}

// askerStore keeps on whose word calls rest.
type askerStore interface {
	Askers(ctx context.Context, call jig.Call) ([]jig.Asker, error)
	Said(ctx context.Context, tenant, id string, a jig.Asker) error
	SaidBy(ctx context.Context, id string, call jig.Call) error
	Repeats(ctx context.Context, tenant, id, other string) error
}

// proofStore keeps the proof of who acts.
type proofStore interface {
	Request(ctx context.Context, tenant, id, callID string) (string, error)
	Signed(ctx context.Context, tenant, id, callID string) (*approval.Record, []approval.Signed, error)
	MessageRead(ctx context.Context, tenant, id, message string) (bool, error)
	KeyLineage(ctx context.Context, tenant, id string) (identity.Lineage, error)
	RecordAudit(ctx context.Context, tenant string, e audit.Entry) error
	RecordOnce(ctx context.Context, tenant string, e audit.Entry) error
}

// auditStore reads the audit chain of a tenant.
type auditStore interface {
	AuditHead(ctx context.Context, tenant string) (n int64, hash string, err error)
	AuditRows(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error)
	FindAudit(ctx context.Context, tenant string, f protocol.AuditFilter, after int64, limit int) (rows []audit.Row, next int64, err error)
	Decisions(ctx context.Context, tenant string, f protocol.AuditFilter, cursor string, limit int) (list []jig.Pending, next string, err error)
	DecisionsOf(ctx context.Context, tenant, id, callID string) ([]jig.Pending, error)
}

// usageStore reads what sessions used.
type usageStore interface {
	Usage(ctx context.Context, r protocol.UsageRequest) ([]protocol.UsageRow, error)
	BudgetCounters(ctx context.Context, tenant string, periods []string, scope string) ([]budget.Used, error)
}

// sweepStore finds, in all tenants, what dead workers left and what is no longer needed.
type sweepStore interface {
	LiveSessions(ctx context.Context, limit int) ([]jig.Session, error)
	ForgetTokens(ctx context.Context, age time.Duration) (int64, error)
	TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error)
	TakeRechecks(ctx context.Context, lease time.Duration, limit int) (map[string]time.Time, error)
	Rechecked(ctx context.Context, tenant string, due time.Time) error
	ToldSettled(ctx context.Context, tenant, id, callID string) error
	ReleaseBudgets(ctx context.Context, limit int) (int64, error)
	SumUsage(ctx context.Context, limit int) (int64, error)
	ForgetRates(ctx context.Context, limit int) (int64, error)
}
