package activities

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// Sessions keeps sessions and their transcripts.
type Sessions interface {
	// CreateSession stores a new session with its first message (the task, when there is one) and the event
	// session.started. A session that is already there is returned as it is.
	CreateSession(ctx context.Context, s jig.Session) (jig.Session, error)
	// CreateCall stores the session of a single call: new, with its only pass begun and the turn that asks for the call. Of one
	// that is there already nothing changes but what it lacks, and it is returned.
	CreateCall(ctx context.Context, s jig.Session, turn jig.Turn) (jig.Session, error)
	// Session returns a session; NOT_FOUND when the tenant has none of that id.
	Session(ctx context.Context, tenant, id string) (jig.Session, error)
	// BeginPass sets the session's pass and status working and writes pass.started; a second call for the same pass
	// changes nothing. It returns the session, with what holds it back, and the pass's turn when the model has answered already.
	BeginPass(ctx context.Context, tenant, id string, pass int) (jig.Session, *jig.Turn, error)
	// Transcript returns the exchanges after pass `after`, oldest first, with calls and results as the rows have them.
	Transcript(ctx context.Context, tenant, id string, after int) ([]jig.Exchange, error)
	// OlderCalls returns the calls of passes up to through that succeeded, the latest first, at most limit.
	OlderCalls(ctx context.Context, tenant, id string, through, limit int) ([]jig.Call, error)
	// SaveTurn stores the model's answer under (session, pass) and adds its usage to the session; when there is one
	// already, that one is returned and nothing changes.
	SaveTurn(ctx context.Context, tenant, id string, pass int, turn jig.Turn) (jig.Turn, error)
	// SaveSummary stores the summary that stands for the passes up to through.
	SaveSummary(ctx context.Context, tenant, id string, through int, summary string) error
	// AddMessage appends a user message once per key, with its event; it reports whether it was new.
	AddMessage(ctx context.Context, tenant, id, key string, m jig.Message) (bool, error)
}

// Passes ends passes and sessions.
type Passes interface {
	// PassState returns what settling needs to know.
	PassState(ctx context.Context, tenant, id string, pass int) (jig.PassState, error)
	// EndPass writes pass.completed and, unless End.Status is working, ends the session with its event, answer and error.
	// Idempotent by (session, pass): a second call returns the first one's End.
	EndPass(ctx context.Context, end jig.End) (jig.End, error)
	// CancelSession cancels whatever is open (waiting and reserved calls, open approvals), with their events, and ends the
	// session as canceled, failed (End.Status) with session's event. Calls whose effect may have happened fail with OUTCOME_UNKNOWN.
	// A session that has ended already is left alone.
	CancelSession(ctx context.Context, end jig.End) error
}

// Ledger keeps calls and the effects they have.
type Ledger interface {
	// Installation is the id of this installation of jig. Digests and idempotency keys carry it, so that neither holds in another one.
	Installation() string
	// Signatures returns, of the given signatures, those that a call of an earlier pass of the session has, with that call's id.
	Signatures(ctx context.Context, tenant, id string, pass int, signatures []string) (map[string]string, error)
	// Admit stores a pass's calls, approvals and events in one transaction. When the pass was admitted already, nothing changes.
	Admit(ctx context.Context, a jig.Admission) error
	// Window returns the pass's open calls: all that wait for a person (at most 100) and at most limit others.
	Window(ctx context.Context, tenant, id string, pass, limit int) (jig.Window, error)
	// Call returns one call; NOT_FOUND when there is none.
	Call(ctx context.Context, tenant, id, callID string) (jig.Call, error)
	// CallsOf returns a session with some of its calls, in the order asked.
	CallsOf(ctx context.Context, tenant, id string, ids []string) (jig.Session, []jig.Call, error)
	// BegunBelow reports whether a call that writes began inside a call, or in the whole session when callID is empty, and which calls
	// of the named tools did.
	BegunBelow(ctx context.Context, tenant, id, callID string, tools []string) (wrote bool, calls []string, err error)
	// FinishQuick records first attempts of read-only, idempotent calls that have run already, in one transaction; it
	// returns the ids of those that were still as they had been admitted. The others are left as they are.
	FinishQuick(ctx context.Context, tenant, id string, done []jig.QuickCompletion) ([]string, error)
	// Reserve lets an attempt begin, or says why not; see section "ledger" of the documentation.
	Reserve(ctx context.Context, r jig.Reserve) (jig.Reservation, error)
	// Complete finalises an attempt with its events, in one transaction that matches the fence. A completion with an old fence
	// changes nothing; the row as it stands is returned either way. One that arrives late, when the call is unknown already,
	// settles it all the same, if it knows more.
	Complete(ctx context.Context, c jig.Completion) (jig.Completed, error)
}

// Approvals keeps what waits for a person.
type Approvals interface {
	// Decide applies a decision: one compare-and-set on the approval's row, with its events. Idempotent by Key. A refused
	// decision leaves decision.refused and changes nothing else.
	Decide(ctx context.Context, r jig.DecisionRequest) (jig.Ruled, error)
	// Reconcile applies a person's word on an unknown outcome. Idempotent by Key.
	Reconcile(ctx context.Context, r jig.ReconcileRequest) (jig.Ruled, error)
	// Reply answers a question. Idempotent by Key.
	Reply(ctx context.Context, r jig.ReplyRequest) (jig.Ruled, error)
	// Refuse writes decision.refused for a signal that names no call. Idempotent by key.
	Refuse(ctx context.Context, tenant, id, key, reason string, data json.RawMessage) error
	// Lapse lets time act on an open approval: it expires when its time has come by now, else reminders and escalations that are
	// due leave their events and notices. It says where the call stands, and is idempotent.
	Lapse(ctx context.Context, tenant, id, callID string, now time.Time) (jig.Lapse, error)
	// Readmit replaces a waiting or reserved call's admission (version, digest, ruling) because the tool changed since, or because it
	// is reserved without a valid approval; an open approval expires and a new one opens. It returns the call as it stands.
	Readmit(ctx context.Context, call jig.Call, approval *jig.Pending) (jig.Call, error)
	// Pending returns one call's open approval; NOT_FOUND when there is none.
	Pending(ctx context.Context, tenant, id, callID string) (jig.Pending, error)
	// Approved returns who approved a call; nobody when it was not approved.
	Approved(ctx context.Context, tenant, id, callID string) (by []string, claimed bool, err error)
}

// Grants keeps standing approvals.
type Grants interface {
	// LiveGrants returns those that may cover calls of some tools, the oldest first, at most 1,000.
	LiveGrants(ctx context.Context, tenant string, tools []string, now time.Time) ([]jig.Grant, error)
	// Grants lists those of a tenant, the latest first, after a cursor ("" to begin); next is "" at the end. Those that are used up,
	// expired or revoked come along when all is set.
	Grants(ctx context.Context, tenant, cursor string, limit int, all bool, now time.Time) (list []jig.Grant, next string, err error)
	// RevokeGrant ends one: no call that has not begun is covered by it any more; NOT_FOUND when there is none.
	RevokeGrant(ctx context.Context, tenant, id string, who jig.Principal, evidence *jig.Evidence, now time.Time) (jig.Grant, error)
}

// Pauses keeps what is held back.
type Pauses interface {
	// Pause holds back what has not begun; one that holds already is left alone. changed says that it was not there.
	Pause(ctx context.Context, tenant string, p jig.Pause, evidence *jig.Evidence) (changed bool, err error)
	// Resume lifts a pause. changed says that it was there.
	Resume(ctx context.Context, tenant string, p jig.Pause, evidence *jig.Evidence) (changed bool, err error)
	// Pauses lists what is held back in a tenant, the oldest first.
	Pauses(ctx context.Context, tenant string) ([]jig.Pause, error)
}

// Events is the append-only log of each session.
type Events interface {
	// AppendEvents appends in one transaction; seq and time are set by the store.
	AppendEvents(ctx context.Context, tenant, id string, events ...jig.Event) error
	// Events returns at most limit events with seq greater than after, oldest first.
	Events(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
	// WaitEvents returns as Events does, waiting until there is one or ctx ends (then it returns none and no error).
	WaitEvents(ctx context.Context, tenant, id string, after int64, limit int) ([]jig.Event, error)
}

// Frames keeps compositions under way.
type Frames interface {
	// BeginFrame stores a composition that begins; one that is there already is returned as it stands.
	BeginFrame(ctx context.Context, f jig.Frame) (jig.Frame, error)
	// Frame returns a composition as it stands; NOT_FOUND when there is none.
	Frame(ctx context.Context, tenant, id, callID string) (jig.Frame, error)
	// MoveFrame stores a move in one transaction. When another move was stored since the one it was worked out from, nothing
	// changes and the error is a CONFLICT.
	MoveFrame(ctx context.Context, m jig.FrameMove) error
	// FrameWindow returns the composition's open calls, all of them, in the order in which they were admitted, with the
	// approvals of those that wait.
	FrameWindow(ctx context.Context, tenant, id, callID string) (jig.Window, error)
	// FrameValues returns the values that were kept under paths of a composition; those that are not there are left out.
	FrameValues(ctx context.Context, tenant, id, callID string, paths []string) (map[string]json.RawMessage, error)
	// Receive stores an event that the session was sent, once per key, with its event custom.<name>; it reports whether it
	// was new.
	Receive(ctx context.Context, tenant, id, key string, e jig.ReceivedEvent) (bool, error)
}

// Artifacts keeps large values.
type Artifacts interface {
	// PutArtifact stores a value and returns its id.
	PutArtifact(ctx context.Context, tenant, sessionID, mediaType string, value []byte) (string, error)
	// AppendArtifact writes a chunk at an offset of an artifact whose id the caller made; a chunk that is there already
	// is left as it is, one beyond the end is a CONFLICT.
	AppendArtifact(ctx context.Context, tenant, id string, offset int64, chunk []byte) error
	// ReadArtifact returns at most limit bytes from offset, and the whole size.
	ReadArtifact(ctx context.Context, tenant, id string, offset int64, limit int) (chunk []byte, size int64, err error)
}

// Views answers the questions of the command line.
type Views interface {
	// SessionView returns a session with its pending approvals and its latest calls (at most 500).
	SessionView(ctx context.Context, tenant, id string) (jig.SessionView, error)
	// PendingApprovals lists what waits in a tenant, oldest first, after a cursor ("" to begin); next is "" at the end.
	PendingApprovals(ctx context.Context, tenant, cursor string, limit int) (list []jig.Pending, next string, err error)
	// LiveSessions lists (tenant, id) of sessions that are not final and were not updated for a minute, for the sweeper, over all tenants.
	LiveSessions(ctx context.Context, limit int) ([]jig.Session, error)
	// ForgetTokens forgets used tokens of all tenants that expired longer than age ago, a thousand at most, and returns how many.
	ForgetTokens(ctx context.Context, age time.Duration) (int64, error)
	// TakeSettled takes calls of all tenants that were settled late and whose workflow nobody has tried to tell for as long as age; nobody
	// gets the same ones again before age has passed.
	TakeSettled(ctx context.Context, age time.Duration, limit int) ([]jig.Call, error)
	// ToldSettled records that the workflow of such a call knows, or has ended.
	ToldSettled(ctx context.Context, tenant, id, callID string) error
}

// Documents keeps specs by kind and name; a version is the content hash of the body.
type Documents interface {
	// PutDocument stores a document's version and makes it the current one. CONFLICT when it is there with another body.
	PutDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error
	// Document returns the current body: the tenant's, else the one of the tenant _global; NOT_FOUND with the nearest names as hint.
	Document(ctx context.Context, tenant, kind, name string) (body []byte, err error)
	// KeepDocument stores a document's version without making it the current one; one that is there is left alone. CONFLICT when it is
	// there with another body.
	KeepDocument(ctx context.Context, tenant, kind, name, version string, body []byte) error
	// DocumentAt returns the body of a version, current or not: the tenant's, else that of the tenant _global; NOT_FOUND when there is none.
	DocumentAt(ctx context.Context, tenant, kind, name, version string) (body []byte, err error)
	// CurrentDocuments lists the current versions of a kind that a tenant sees, sorted by name.
	CurrentDocuments(ctx context.Context, tenant, kind string) ([]jig.DocumentVersion, error)
	// DocumentNames lists what a tenant sees of a kind, sorted.
	DocumentNames(ctx context.Context, tenant, kind string) ([]string, error)
}

// Catalogue is the tools that this worker can run.
type Catalogue interface {
	// Tool returns a sealed contract; false when there is none of that name.
	Tool(name string) (jig.Tool, bool)
	// Tools returns all contracts sorted by name.
	Tools() []jig.Tool
	// Validate checks an input against the tool's schema and returns every violation as one Error (MISSING_PARAM when only
	// required parameters are missing, else INVALID_INPUT), nil when it fits.
	Validate(name string, input []byte) error
	// Run runs the tool once: the one execution path. It never panics; a tool's panic is an INTERNAL result.
	Run(ctx context.Context, name string, input []byte, inv jig.Invocation) jig.ToolResult
}

// Filler is a catalogue whose tools complete their inputs when calls are admitted.
type Filler interface {
	// Fill completes an input that fits the tool's schema; see tools.Fill.
	Fill(ctx context.Context, name string, input []byte, inv jig.Invocation) ([]byte, error)
}

// Policy rules on calls.
type Policy interface {
	// Rule gives the verdict on a call that is well-formed and permitted, by the policies that the tenant has now. An error is
	// of finding them: then nothing is decided.
	Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (jig.Ruling, error)
}

// Tenants tells what a tenant has settled.
type Tenants interface {
	// Settings are the tenant's, with the defaults of this worker filled in. An error is of finding them: then nothing is decided.
	Settings(ctx context.Context, tenant string) (jig.TenantSettings, error)
}

// Proofs checks the tokens that come with decisions: each must be for exactly what it comes with, and for what was shown (digest).
// It returns who is proved to speak. Errors are NOT_PERMITTED and say what is wrong.
type Proofs interface {
	Decision(keys []jig.Key, tenant, session string, d jig.Decision, digest string, now time.Time) (string, jig.Evidence, error)
	Reply(keys []jig.Key, tenant, session string, r jig.Reply, digest string, now time.Time) (string, jig.Evidence, error)
	Reconciliation(keys []jig.Key, tenant, session string, r jig.Reconciliation, digest string, now time.Time) (string, jig.Evidence, error)
	// Subject is for what concerns no call: pause, resume, revoke.
	Subject(keys []jig.Key, token, tenant, action, subject, reason string, now time.Time) (string, jig.Evidence, error)
}

// GrantRules makes and matches standing approvals.
type GrantRules interface {
	// New checks what is asked for against the tenant's ceiling; errors are INVALID_INPUT or NOT_PERMITTED with the field.
	New(request jig.GrantRequest, ceiling jig.GrantCeiling, tool jig.Tool, now time.Time) (jig.Grant, error)
	// Covers reports whether a grant is for a call. An error of its condition means that it is not.
	Covers(ctx context.Context, g jig.Grant, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (bool, error)
}

// Model answers prompts.
type Model interface {
	// Answer asks the model once. progress is called as text streams in. Errors are *jig.Error: RATE_LIMITED and UNAVAILABLE
	// (with RetryAfter when known) may be retried, others not.
	Answer(ctx context.Context, request jig.ModelRequest, progress func(text string)) (jig.Turn, error)
	// Check refuses a model name that no provider serves or that lacks its settings, before a session starts.
	Check(model string) error
}

// Schemas checks inputs that no tool owns.
type Schemas interface {
	// Validate checks an input against a JSON Schema; every violation in one Error, nil when it fits.
	Validate(schema json.RawMessage, document []byte) error
	// ValidateOutput is Validate for what somebody else made: its numbers may be larger than inputs may have them.
	ValidateOutput(schema json.RawMessage, document []byte) error
	// Check refuses a JSON Schema that is none.
	Check(schema json.RawMessage) error
	// FromPairs converts key=value pairs to a document by a schema; errors name the field.
	FromPairs(schema json.RawMessage, pairs map[string]string) (json.RawMessage, error)
}

// Runs tells about workflow runs, and reaches them.
type Runs interface {
	// Open reports whether the workflow of a tenant's session is running. Another tenant's under the same id does not count.
	Open(ctx context.Context, tenant, session string) (bool, error)
	// Ended returns those of the ids of which a run has ended; another run of the same id may be open. Temporal lists a run that ended
	// a moment later.
	Ended(ctx context.Context, workflowIDs []string) ([]string, error)
	// Settled tells a workflow that a call which it holds to be unknown was settled. It is no error when the workflow has ended.
	Settled(ctx context.Context, workflowID string, call Settlement) error
}

// Expressions evaluates CEL; only the engine's own uses stand here.
type Expressions interface {
	// ConcurrencyKey evaluates a tool's concurrency key over an input.
	ConcurrencyKey(ctx context.Context, source string, input json.RawMessage) (string, error)
}

// Composer reads execution specs and works out what their runs do next.
type Composer interface {
	// Contract reads an execution spec as the tool it is; its errors carry line, path and hint.
	Contract(document string, body []byte) (jig.Tool, error)
	// Advance works out the next move of a run of the spec from where it stands (empty at its beginning). It is pure: asked
	// again with the same facts, it answers the same. An error is a fault of the run (its state cannot be read) or ctx's end.
	Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts jig.Facts, at jig.Situation) (jig.Move, error)
}

// Extractor reads what fills entities and works out what its runs do next.
type Extractor interface {
	// Begin says what a call of a tool that fills entities runs, after a look at whether its principal may. Errors are the call's
	// own: NOT_FOUND, NOT_PERMITTED, INVALID_INPUT; UNAVAILABLE when it cannot be found out now.
	Begin(ctx context.Context, tool string, inv jig.Invocation, input json.RawMessage) (jig.Extraction, error)
	// Sources are what the values of an entity may rest on, as far as the principal may read it; the body is of its type.
	Sources(ctx context.Context, inv jig.Invocation, body []byte, entity string) (jig.Sources, error)
	// Advance works out the next move, as Composer.Advance does, for the document of an entity type; what fills many entities has
	// no version and no document. The situation's input is that of the Extraction; of many entities, that of the call.
	Advance(ctx context.Context, version string, body []byte, state json.RawMessage, facts jig.ExtractionFacts, at jig.Situation) (jig.Move, error)
}

// Entities says how entities fare.
type Entities interface {
	// EntityStatus says how the latest extraction of an entity stands; NOT_FOUND when the tenant has none of that id.
	EntityStatus(ctx context.Context, tenant, id string) (jig.EntityStatus, error)
}

// Agents parses agent documents.
type Agents interface {
	// ParseAgent reads an agent document; its errors carry line, path and hint.
	ParseAgent(document string, body []byte) (jig.Agent, error)
}
