// Package tasks contains tools about the tasks of entities and about sessions: they run a task, start one, show the state of an entity's
// tasks, and retry a session. It must not know how they are stored, nor how a session is started.
//
// tasks.run has only a contract here: the engine runs its calls like those of entities.extract. tasks.start runs a task in a session of its
// own and returns at once. sessions.retry continues an agent with its next pass, or repeats a single call in a new session; before, it shows
// people what is retried, and whether a call of the session may already have taken effect. Ids of new sessions follow from the call, so that
// another attempt finds what an earlier one started.
//
// Begin with [Tools].
package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/tools"
)

// The names of the tools.
const (
	GetStatusTool = toolname.TasksGetStatus
	RetryTool     = toolname.SessionsRetry
)

// Options are the settings of the tools; all are required.
type Options struct {
	// Readable reads an entity if the call's principal may read it. found is false if it may not, or if the entity does not exist.
	Readable func(ctx context.Context, inv jig.Invocation, id string) (e entity.Entity, found bool, err error)
	// Status returns the state of an entity's latest extraction.
	Status func(ctx context.Context, tenant, id string) (jig.EntityStatus, error)
	// CheckTask checks whether the call's principal may run the task that a [guarded.TaskInput] names, and whether the task exists.
	CheckTask func(ctx context.Context, inv jig.Invocation, input json.RawMessage) error
	// Session and Call read the session or call to retry; NOT_FOUND if it does not exist.
	Session func(ctx context.Context, tenant, id string) (jig.Session, error)
	Call    func(ctx context.Context, tenant, session, call string) (jig.Call, error)
	// Doubtful lists the calls of a session that ended but may or may not have taken effect, as "<call> <tool>".
	Doubtful func(ctx context.Context, tenant, session string) ([]string, error)
	// Said reports whether a session has already received a message with this id.
	Said    func(ctx context.Context, tenant, session, id string) (bool, error)
	Starter Starter
}

// Starter starts and continues sessions.
type Starter interface {
	// Message sends a message to an agent's session. If the session has ended, it begins its next pass.
	Message(ctx context.Context, tenant, session string, m Message) error
	// StartCall starts a session for a single call. It succeeds if the session already exists.
	StartCall(ctx context.Context, tenant, session string, c Start) error
}

// Message is a message to a session. A session accepts each id only once.
type Message struct {
	ID, Text, By string
	// Parent and ParentCall identify the call that says it.
	Parent, ParentCall string
}

// Start describes a single call to start.
type Start struct {
	// Tool and Version name the tool to call; Version pins a document that was sent with the first call.
	Tool, Version string
	Input         json.RawMessage
	// Parent and ParentCall identify the call that requests this one. The new session acts for the principal of the requesting session.
	Parent, ParentCall string
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{
		runTool(), o.startTool(), undoTool(),
		tools.New(jig.Tool{
			Name: GetStatusTool,
			Description: "Returns the status of an entity's latest extraction: whether it is running, and for each task whether it is pending, completed, kept, " +
				"failed (with the error), skipped or canceled. To try failed tasks again, call entities.extract with mode retry.",
			Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Timeout: 30 * time.Second, Tags: []string{"entities"},
			Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		}, o.getStatus),
		tools.New(jig.Tool{
			Name: RetryTool,
			Description: "Retries a session that failed or was canceled: an agent continues with its next pass; a single call is repeated in a new session, " +
				"on behalf of the requesting session's principal. Returns the session's id. To fill fields that failed, use entities.extract with mode retry instead.",
			Permission: jig.PermissionWrite, Risk: jig.RiskHigh, Approval: jig.ApprovalAlwaysAsk, Idempotent: true, Timeout: 30 * time.Second,
			Tags: []string{"operator"}, Labels: &jig.Labels{}, ConcurrencyKey: `'session ' + input.session_id`,
		}, o.retry, tools.Fill(o.show), tools.AdjustInput(func(s *jsonschema.Schema) { s.Properties["retries"].ReadOnly = true })),
	}
}

type getStatusIn struct {
	EntityID string `json:"entity_id" jsonschema:"the entity's id" minLength:"1"`
}

// EntityStatus is the output of tasks.getStatus.
type EntityStatus struct {
	jig.EntityStatus
}

// Summary implements tools.Summarizer.
func (s EntityStatus) Summary() string {
	counts := map[string]int{}
	for _, t := range s.Tasks {
		counts[t.Status]++
	}
	return fmt.Sprintf("%s: %d of %d tasks have a value, %d failed", s.Status, counts["completed"]+counts["kept"], len(s.Tasks), counts["failed"])
}

func (o Options) getStatus(ctx context.Context, inv jig.Invocation, in getStatusIn) (EntityStatus, error) {
	_, found, err := o.Readable(ctx, inv, in.EntityID)
	if err != nil {
		return EntityStatus{}, err
	}
	if !found {
		return EntityStatus{}, jig.Errorf(jig.CodeNotFound, "there is no entity %q", in.EntityID).WithField("/entity_id").
			WithHint("entities.filter and entities.search find those that you may read")
	}
	status, err := o.Status(ctx, inv.Tenant, in.EntityID)
	return EntityStatus{status}, err
}

type retryIn struct {
	SessionID string `json:"session_id" jsonschema:"the session that failed" minLength:"1" maxLength:"128"`
	// MayHaveHappened must be true if a call of the session may have taken effect.
	MayHaveHappened bool `json:"may_have_happened,omitempty" jsonschema:"true to retry although a call of the session may have taken effect, which may then happen a second time"`
	// Retries describes the retry to the reviewer, and the approval is bound to it.
	Retries *Retry `json:"retries,omitempty" jsonschema:"what is retried; leave it out: jig fills it in for the reviewer"`
}

// Retry describes what a call of sessions.retry retries.
type Retry struct {
	Agent     string     `json:"agent"     jsonschema:"the agent of the session, or call for a single call"`
	Principal string     `json:"principal" jsonschema:"on whose behalf the session acted"`
	Status    jig.Status `json:"status"    jsonschema:"how the session ended"`
	Pass      int        `json:"pass"      jsonschema:"its latest pass"`
	Error     string     `json:"error,omitempty" jsonschema:"why it ended"`
	Task      string     `json:"task,omitempty"  jsonschema:"what an agent was asked to do"`
	Tool      string     `json:"tool,omitempty"  jsonschema:"the tool of a single call"`
	Version   string     `json:"version,omitempty" jsonschema:"the version of its contract"`
	// Input is a preview of at most 16 KiB; InputSHA256 is the hash of the whole input.
	Input       any      `json:"input,omitempty" jsonschema:"the input, cut after 16 KiB"`
	InputSHA256 string   `json:"input_sha256,omitempty" jsonschema:"the hash of the whole input"`
	Doubtful    []string `json:"doubtful,omitempty" jsonschema:"calls that may or may not have taken effect"`
}

// shownInput bounds the input shown to the reviewer of a retry, in bytes.
const shownInput = 16 << 10

// show completes the input of sessions.retry with a description of the retry. If calls of the session may have taken effect, the caller
// must say so with may_have_happened, and the reviewer sees it.
func (o Options) show(ctx context.Context, inv jig.Invocation, in *retryIn) error {
	s, err := o.Session(ctx, inv.Tenant, in.SessionID)
	if err != nil {
		return notFound(err, in.SessionID)
	}
	if err := retryable(s); err != nil {
		return err
	}
	r, err := o.describe(ctx, inv, s)
	if err != nil {
		return err
	}
	if len(r.Doubtful) > 0 && !in.MayHaveHappened {
		return jig.Errorf(jig.CodeConflict, "session %s has calls that may have taken effect: %s", s.ID, strings.Join(r.Doubtful, ", ")).
			WithField("/may_have_happened").WithHint("find out whether they did; to try again all the same, set may_have_happened to true")
	}
	in.Retries = r
	return nil
}

// describe returns what retrying a session would do.
func (o Options) describe(ctx context.Context, inv jig.Invocation, s jig.Session) (*Retry, error) {
	r := &Retry{Agent: s.Agent.Name, Principal: s.Principal.ID, Status: s.Status, Pass: s.Pass, Task: jig.Cut(s.Task, jig.ExcerptBytes)}
	if s.Error != nil {
		r.Error = s.Error.Error()
	}
	var err error
	if r.Doubtful, err = o.Doubtful(ctx, inv.Tenant, s.ID); err != nil {
		return nil, err
	}
	if len(s.Input) > 0 {
		sum := sha256.Sum256(s.Input)
		shown, _ := jig.Excerpt(s.Input, shownInput)
		r.InputSHA256 = hex.EncodeToString(sum[:])
		if err := json.Unmarshal(shown, &r.Input); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "reading the input of session %s: %w", s.ID, err)
		}
	}
	if s.Agent.Name != jig.CallAgent {
		return r, nil
	}
	call, err := o.Call(ctx, inv.Tenant, s.ID, jig.CallID(1, 1))
	if err != nil {
		return nil, notFound(err, s.ID)
	}
	r.Tool, r.Version = call.Tool, s.Catalog[call.Tool]
	return r, nil
}

// unchanged returns a CONFLICT if the retry would differ from the approved one.
func (o Options) unchanged(ctx context.Context, inv jig.Invocation, s jig.Session, approved *Retry) error {
	now, err := o.describe(ctx, inv, s)
	if err != nil {
		return err
	}
	var forms [2]any
	for i, r := range []*Retry{approved, now} {
		raw, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(raw, &forms[i])
		}
		if err != nil {
			return jig.Errorf(jig.CodeInternal, "comparing what is retried: %w", err)
		}
	}
	if !reflect.DeepEqual(forms[0], forms[1]) {
		return jig.Errorf(jig.CodeConflict, "session %s has changed since this was approved", s.ID).WithField("/session_id").
			WithHint("request it again: the approval then shows what is retried")
	}
	return nil
}

// Retried is the output of sessions.retry.
type Retried struct {
	// SessionID is the session's own id for an agent, and a new id for a single call.
	SessionID string `json:"session_id"`
	// Of is the session that is retried.
	Of string `json:"of"`
}

// Summary implements tools.Summarizer.
func (r Retried) Summary() string {
	if r.SessionID == r.Of {
		return "session " + r.Of + " continues with its next pass"
	}
	return "session " + r.Of + " is retried as " + r.SessionID
}

func (o Options) retry(ctx context.Context, inv jig.Invocation, in retryIn) (Retried, error) {
	s, err := o.Session(ctx, inv.Tenant, in.SessionID)
	if err != nil {
		return Retried{}, notFound(err, in.SessionID)
	}
	single := s.Agent.Name == jig.CallAgent
	if !single && inv.Attempt > 1 { // an earlier attempt may have continued the session, and it may have ended since
		said, err := o.Said(ctx, inv.Tenant, s.ID, inv.IdempotencyKey)
		if err != nil {
			return Retried{}, err
		}
		if said || !s.Status.Final() {
			return Retried{SessionID: s.ID, Of: s.ID}, nil
		}
	}
	if err := retryable(s); err != nil {
		return Retried{}, err
	}
	if err := o.unchanged(ctx, inv, s, in.Retries); err != nil {
		return Retried{}, err
	}
	if single {
		return o.again(ctx, inv, s)
	}
	text := "Try again: the task has not been finished."
	if s.Error != nil && !s.ReadUntrusted { // the message counts as typed, and the error may repeat what the session has read
		text += " The last problem was: " + s.Error.Message
	}
	m := Message{ID: inv.IdempotencyKey, Text: text, By: inv.Principal.ID, Parent: inv.SessionID, ParentCall: inv.CallID}
	return Retried{SessionID: s.ID, Of: s.ID}, o.Starter.Message(ctx, inv.Tenant, s.ID, m)
}

// again repeats a single call in a new session. The session's id is derived from the requesting call, so that it is started only once.
func (o Options) again(ctx context.Context, inv jig.Invocation, s jig.Session) (Retried, error) {
	call, err := o.Call(ctx, inv.Tenant, s.ID, jig.CallID(1, 1))
	if err != nil {
		return Retried{}, notFound(err, s.ID)
	}
	id := jig.ChildSessionID(inv.SessionID, inv.CallID)
	return Retried{SessionID: id, Of: s.ID}, o.Starter.StartCall(ctx, inv.Tenant, id, Start{
		Tool: call.Tool, Version: s.Catalog[call.Tool], Input: s.Input, Parent: inv.SessionID, ParentCall: inv.CallID,
	})
}

// retryable returns a CONFLICT for a session that is still running or has completed.
func retryable(s jig.Session) error {
	switch s.Status {
	case jig.StatusFailed, jig.StatusCanceled:
		return nil
	case jig.StatusWorking, jig.StatusInputRequired:
		return jig.Errorf(jig.CodeConflict, "session %s is still running (%s)", s.ID, s.Status).WithField("/session_id").
			WithHint("wait until it ends, or cancel it first")
	case jig.StatusCompleted:
	}
	return jig.Errorf(jig.CodeConflict, "session %s has completed: there is nothing to retry", s.ID).WithField("/session_id").
		WithHint("start a new session")
}

func notFound(err error, id string) error {
	if jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	return jig.Errorf(jig.CodeNotFound, "there is no session %q", id).WithField("/session_id").WithHint("ask the person who started it for its id")
}

// runTimeout bounds the run of a task, including the time it waits for people.
const runTimeout = 24 * time.Hour

// runTool returns the contract of tasks.run. An extraction, which is a workflow, answers its calls: the engine recognizes the tool by its
// implementation and never calls the handler.
func runTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.TasksRun,
		Description: "Runs one task of an entity and returns its value. Tasks that it depends on run first if they have no value yet. If a field " +
			"belongs to the task, the value is written to it. It may take long, because tasks may wait for people; tasks.start does not wait.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: runTimeout,
		Implementation: "extraction", Tags: []string{"entities"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["entity_id","task","status","value"],"properties":{
			"entity_id":{"type":"string"},
			"task":{"type":"string"},
			"status":{"enum":["completed","skipped"]},
			"because":{"type":"string","description":"why it was skipped: condition, or a task that has no value"},
			"fields":{"type":"array","items":{"type":"string"},"description":"the fields that it fills"},
			"value":{"description":"null if it was skipped"},
			"provenance":{"type":"object"}}}`),
	}, func(context.Context, jig.Invocation, guarded.TaskInput) (map[string]any, error) {
		return nil, answeredByWorkflow(toolname.TasksRun)
	}, tools.AdjustInput(objectValues))
}

// answeredByWorkflow is the error of a tool whose calls a workflow answers, and which was called as a function.
func answeredByWorkflow(tool string) error {
	e := jig.Errorf(jig.CodeInternal, "%s is answered by a workflow of its own, and was called as a function", tool).
		WithHint("run it through a workflow; this worker's program is at fault, not the input")
	e.NotExecuted = true
	return e
}

func objectValues(s *jsonschema.Schema) { s.Properties["values"].Type = "object" }

// startTool returns tasks.start, which has a task run in a separate session. The engine recognizes it by its implementation and limits that
// session to what the caller may use.
func (o Options) startTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: toolname.TasksStart,
		Description: "Starts one task of an entity in a separate session and returns that session's id at once. Tasks that it depends on run first if " +
			"they have no value yet. Use tasks.getStatus to follow it, or tasks.run to wait for the value.",
		Permission: jig.PermissionDraft, Risk: jig.RiskModerate, Idempotent: true, Timeout: 30 * time.Second,
		Implementation: "extraction_start", Tags: []string{"entities"}, Labels: &jig.Labels{},
	}, o.start, tools.AdjustInput(objectValues))
}

// Started is the output of tasks.start.
type Started struct {
	EntityID string `json:"entity_id"`
	Task     string `json:"task"`
	// SessionID is the session that runs the task.
	SessionID string `json:"session_id"`
}

// Summary implements tools.Summarizer.
func (s Started) Summary() string { return "task " + s.Task + " runs in session " + s.SessionID }

// start begins the session of a task. Its id is derived from the call, so that it is started only once.
func (o Options) start(ctx context.Context, inv jig.Invocation, in guarded.TaskInput) (Started, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return Started{}, jig.Errorf(jig.CodeInternal, "encoding the input of the task: %w", err)
	}
	if err := o.CheckTask(ctx, inv, input); err != nil {
		return Started{}, err
	}
	id := jig.ChildSessionID(inv.SessionID, inv.CallID)
	return Started{EntityID: in.Entity, Task: in.Task, SessionID: id}, o.Starter.StartCall(ctx, inv.Tenant, id, Start{
		Tool: toolname.TasksRun, Input: input, Parent: inv.SessionID, ParentCall: inv.CallID,
	})
}
