package client

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

const (
	// DefaultCatchUp is how late the server may make up for a start that it missed, unless a schedule sets another limit. An hour is longer
	// than a restart or an upgrade of the server, and short enough that yesterday's work does not run today.
	DefaultCatchUp = time.Hour
	// minCatchUp is the server's own minimum. The server silently raises smaller values.
	minCatchUp = 10 * time.Second
	// schedulePrefix begins the ids of jig's schedules in Temporal: jig/<tenant>/<name>.
	schedulePrefix = "jig/"
	// scheduleMemo is the field of a schedule's memo that says what the schedule starts, for lists.
	scheduleMemo = "jig"
	// appendedTime is the format of the time that Temporal appends to a schedule's workflow id, in UTC and whole seconds.
	appendedTime = "-" + time.RFC3339
)

var (
	scheduleNameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	// callableForm matches the names of registered documents. Tool names have a form of their own.
	callableForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
)

// ScheduleOptions say what to start, and when. Exactly one of Session and Call is required, and at least one time in When.
type ScheduleOptions struct {
	// Tenant owns the schedule and the sessions that it starts; default "default".
	Tenant string
	// Name is the schedule's name within its tenant: at most 63 lower-case letters, digits, '.', '_' and '-'.
	Name string
	// Session is the agent session to start each time. Its ID and Tenant are ignored. Its document, input, task and pairs are stored in the
	// schedule, so they may have at most 48 KiB together.
	Session *StartOptions
	// Call is the tool or registered composition to run each time. Its Tenant is ignored.
	Call *CallInput
	// When says at which times to start.
	When Timetable
	// Overlap says what happens if the previous session is still running; default [OverlapSkip].
	Overlap Overlap
	// CatchUp is how late the server may make up for a start that it missed while it was down; at least 10 s, default [DefaultCatchUp].
	CatchUp time.Duration
	// Paused creates the schedule paused.
	Paused bool
	// Note is for people, up to 1,000 bytes. Pausing and resuming replace it.
	Note string
	// Limit ends the schedule after that many starts; 0 means no limit.
	Limit int
	// Mandate says with which credential the schedule is created; a server fills it in.
	Mandate *protocol.Mandate
}

// ScheduleRequest asks to operate a schedule.
type ScheduleRequest struct {
	// Tenant owns the schedule; default "default". Name is its name.
	Tenant, Name string
	// By is who asks.
	By jig.Principal
	// Note is for people. When a schedule is paused or resumed, it replaces the schedule's note.
	Note string
	// Operates and Manages say what the credential of By allows; a server fills them in. Without a server, the tenant's document says it.
	Operates, Manages *bool
	// Mandate says with which credential By asks; a server fills it in.
	Mandate *protocol.Mandate
}

// credential returns the name of a credential for the audit.
func credential(m *protocol.Mandate) string {
	if m == nil {
		return ""
	}
	return m.Credential
}

// Check reports what is wrong with the options, without asking the server. Its error is INVALID_INPUT or MISSING_PARAM, with the name of
// the command line's flag as its field.
func (o ScheduleOptions) Check() error {
	if o.Tenant != "" {
		if err := jig.CheckTenant(o.Tenant); err != nil {
			return translate(err)
		}
	}
	if err := CheckScheduleName(o.Tenant, o.Name); err != nil {
		return err
	}
	if err := o.checkWhat(); err != nil {
		return err
	}
	if err := o.When.Check(); err != nil {
		return err
	}
	switch {
	case o.CatchUp != 0 && o.CatchUp < minCatchUp:
		return jig.Errorf(jig.CodeInvalidInput, "%s is too short: at least %s", Span(o.CatchUp), Span(minCatchUp)).WithField("catch-up")
	case o.Limit < 0:
		return jig.Errorf(jig.CodeInvalidInput, "%d is not a valid number of runs", o.Limit).WithField("limit")
	}
	_, err := overlapPolicy(o.Overlap)
	return err
}

func (o ScheduleOptions) checkWhat() error {
	switch {
	case o.Session == nil && o.Call == nil:
		return jig.Errorf(jig.CodeMissingParam, "give an agent or a tool").WithField("agent")
	case o.Session != nil && o.Call != nil:
		return jig.Errorf(jig.CodeInvalidInput, "a schedule starts an agent or a tool, not both").WithField("tool")
	}
	var size int
	if s := o.Session; s != nil {
		if s.Agent == "" && s.Document == "" {
			return jig.Errorf(jig.CodeMissingParam, "give an agent or an agent document").WithField("agent")
		}
		size = len(s.Document) + len(s.Input) + len(s.Task) + pairsSize(s.Pairs)
	} else {
		if !callableForm.MatchString(o.Call.Tool) && jig.CheckToolName(o.Call.Tool) != nil {
			return jig.Errorf(jig.CodeInvalidInput, "%q is not the name of a tool or a composition", o.Call.Tool).WithField("tool").
				WithHint("`jig catalog` lists them")
		}
		size = len(o.Call.Input) + pairsSize(o.Call.Pairs)
	}
	if size > inlineBytes {
		return jig.Errorf(jig.CodeInvalidInput, "the request of each run has %d bytes; a schedule can store at most %d", size, inlineBytes).
			WithField("input").WithHint("let the agent or the tool read large values when it runs")
	}
	return nil
}

// CheckScheduleName returns an error if name is not a valid schedule name, or if it would produce invalid session ids.
func CheckScheduleName(tenant, name string) error {
	if !scheduleNameForm.MatchString(name) {
		return jig.Errorf(jig.CodeInvalidInput, "%q is not a valid schedule name", name).WithField("name").
			WithHint("use 1 to 63 lower-case letters, digits, '.', '_' or '-', starting with a letter or digit")
	}
	if err := jig.CheckSessionID(sessionBase(tenant, name) + time.Time{}.UTC().Format(appendedTime)); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "the names of the schedule and the tenant together are too long for a session id").WithField("name")
	}
	return nil
}

// sessionBase returns the beginning of the ids of the sessions that a schedule starts; Temporal appends the time. All tenants share one
// space of ids, so the id contains the tenant, unless it is the default one. Neither name can contain a colon, so the id is unambiguous.
func sessionBase(tenant, name string) string {
	if tenant == "" || tenant == jig.DefaultTenant {
		return jig.SessionPrefix + name
	}
	return jig.SessionPrefix + tenant + ":" + name
}

func tenantPrefix(tenant string) string {
	if tenant == "" {
		tenant = jig.DefaultTenant
	}
	return schedulePrefix + tenant + "/"
}

// starts is stored in a schedule's memo and says what the schedule starts.
type starts struct {
	Agent string `json:"agent,omitempty"`
	Tool  string `json:"tool,omitempty"`
	Task  string `json:"task,omitempty"`
}

// CreateSchedule creates a schedule and returns it as the server sees it. If the name is taken, the error is CONFLICT.
func (c *Client) CreateSchedule(ctx context.Context, o ScheduleOptions) (Schedule, error) {
	if o.Tenant == "" {
		o.Tenant = jig.DefaultTenant
	}
	if o.CatchUp == 0 {
		o.CatchUp = DefaultCatchUp
	}
	if err := o.Check(); err != nil {
		return Schedule{}, err
	}
	overlap, err := overlapPolicy(o.Overlap)
	if err != nil {
		return Schedule{}, err
	}
	action, what, err := c.scheduleAction(ctx, o)
	if err != nil {
		return Schedule{}, err
	}
	who := o.principal().ID
	if _, err := c.mayOperate(ctx, protocol.OperateRequest{
		Tenant: o.Tenant, Schedule: o.Name, Action: protocol.ScheduleCreate, Owner: who, By: who, Credential: credential(o.Mandate), Note: o.Note,
	}); err != nil {
		return Schedule{}, err
	}
	attributes := []sdktemporal.SearchAttributeUpdate{
		sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrTenant).ValueSet(o.Tenant),
	}
	if what.Agent != "" {
		attributes = append(attributes, sdktemporal.NewSearchAttributeKeyKeyword(protocol.AttrAgent).ValueSet(what.Agent))
	}
	options := sdk.ScheduleOptions{
		ID: tenantPrefix(o.Tenant) + o.Name, Spec: scheduleSpec(o.When), Action: action, Overlap: overlap, CatchupWindow: o.CatchUp,
		Paused: o.Paused, Note: o.Note, RemainingActions: o.Limit, Memo: map[string]any{scheduleMemo: what},
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(attributes...),
	}
	// The SDK retries a request under one id. Only a request that the server refused may be sent again as a new one; otherwise the second
	// request would find the name taken by the first.
	err = c.repeat(ctx, func(ctx context.Context) error {
		_, err := c.temporal.ScheduleClient().Create(ctx, options)
		return err //nolint:wrapcheck // notCreated translates it below
	}, refused)
	if err != nil {
		return Schedule{}, notCreated(o, err)
	}
	return c.Schedule(ctx, o.Tenant, o.Name)
}

// scheduleAction returns the action of a schedule: it starts the same workflow that Start or Trigger would start.
func (c *Client) scheduleAction(ctx context.Context, o ScheduleOptions) (*sdk.ScheduleWorkflowAction, starts, error) {
	base := sessionBase(o.Tenant, o.Name)
	if o.Call != nil {
		input := *o.Call
		input.Tenant, input.Source, input.Mandate = o.Tenant, jig.SourceSchedule, o.Mandate
		if err := c.vouchCall(ctx, protocol.StateSchedule, base, &input); err != nil {
			return nil, starts{}, err
		}
		return startAction(c.callStart(base, input), protocol.CallWorkflow, input), starts{Tool: input.Tool}, nil
	}
	session := *o.Session
	session.ID, session.Tenant, session.Source = base, o.Tenant, jig.SourceSchedule
	start, err := c.stage(ctx, session)
	if err != nil {
		return nil, starts{}, err
	}
	start.Mandate = o.Mandate
	if err := c.vouchSession(ctx, protocol.StateSchedule, session, &start); err != nil {
		return nil, starts{}, err
	}
	options, input := c.sessionStart(session, start)
	what := starts{Agent: session.shownAgent(), Task: jig.Cut(session.Task, listedTaskBytes)}
	return startAction(options, protocol.PassWorkflow, input), what, nil
}

// startAction returns the schedule action that starts a workflow with the given options.
func startAction(o sdk.StartWorkflowOptions, workflow string, input any) *sdk.ScheduleWorkflowAction {
	return &sdk.ScheduleWorkflowAction{
		ID: o.ID, Workflow: workflow, Args: []any{input}, TaskQueue: o.TaskQueue, StaticSummary: o.StaticSummary, Memo: map[string]any{protocol.MemoSummary: o.StaticSummary},
		TypedSearchAttributes: o.TypedSearchAttributes, Priority: o.Priority,
	}
}

// principal returns the principal for whom a schedule acts.
func (o ScheduleOptions) principal() jig.Principal {
	if o.Call != nil {
		return o.Call.Principal
	}
	return o.Session.Principal
}

// mayOperate asks a worker whether somebody may operate a schedule; the worker records it in the audit.
func (c *Client) mayOperate(ctx context.Context, request protocol.OperateRequest) (answer protocol.OperateAnswer, err error) {
	return ask(ctx, c, protocol.WriteOperate, request)
}

// operate is like mayOperate for a schedule that exists, and returns it.
func (c *Client) operate(ctx context.Context, r *ScheduleRequest, action protocol.ScheduleAction) (*sdk.ScheduleDescription, protocol.OperateAnswer, error) {
	if r.Tenant == "" {
		r.Tenant = jig.DefaultTenant
	}
	d, err := c.describeSchedule(ctx, r.Tenant, r.Name)
	if err != nil {
		return nil, protocol.OperateAnswer{}, err
	}
	answer, err := c.mayOperate(ctx, protocol.OperateRequest{
		Tenant: r.Tenant, Schedule: r.Name, Action: action, Owner: described(r.Name, d).Principal, By: r.By.ID, Operates: r.Operates, Manages: r.Manages,
		Credential: credential(r.Mandate), Note: r.Note,
	})
	return d, answer, err
}

// PauseSchedule keeps a schedule from starting anything until it is resumed. Sessions that it started continue. The note says why.
func (c *Client) PauseSchedule(ctx context.Context, r ScheduleRequest) (Schedule, error) {
	return c.patched(ctx, r, protocol.SchedulePause, func(ctx context.Context, h sdk.ScheduleHandle) error {
		return h.Pause(ctx, sdk.SchedulePauseOptions{Note: r.Note})
	})
}

// ResumeSchedule resumes a paused schedule. It does not make up for times that passed during the pause.
func (c *Client) ResumeSchedule(ctx context.Context, r ScheduleRequest) (Schedule, error) {
	return c.patched(ctx, r, protocol.ScheduleResume, func(ctx context.Context, h sdk.ScheduleHandle) error {
		return h.Unpause(ctx, sdk.ScheduleUnpauseOptions{Note: r.Note})
	})
}

// patched changes a schedule and returns its new state.
func (c *Client) patched(
	ctx context.Context, r ScheduleRequest, action protocol.ScheduleAction, change func(context.Context, sdk.ScheduleHandle) error,
) (Schedule, error) {
	if _, _, err := c.operate(ctx, &r, action); err != nil {
		return Schedule{}, err
	}
	if err := c.onSchedule(ctx, r.Tenant, r.Name, busy, change); err != nil {
		return Schedule{}, err
	}
	return c.Schedule(ctx, r.Tenant, r.Name)
}

// DeleteSchedule deletes a schedule. Sessions that it started continue.
func (c *Client) DeleteSchedule(ctx context.Context, r ScheduleRequest) error {
	if _, _, err := c.operate(ctx, &r, protocol.ScheduleDelete); err != nil {
		return err
	}
	return c.onSchedule(ctx, r.Tenant, r.Name, refused, func(ctx context.Context, h sdk.ScheduleHandle) error { return h.Delete(ctx) })
}

// onSchedule calls do with the handle of a schedule, and retries after the errors for which again returns true. An unknown schedule is
// NOT_FOUND.
func (c *Client) onSchedule(
	ctx context.Context, tenant, name string, again func(error) bool, do func(context.Context, sdk.ScheduleHandle) error,
) error {
	if err := CheckScheduleName(tenant, name); err != nil {
		return err
	}
	handle := c.temporal.ScheduleClient().GetHandle(ctx, tenantPrefix(tenant)+name)
	err := translate(c.repeat(ctx, func(ctx context.Context) error { return do(ctx, handle) }, again))
	var namespace *serviceerror.NamespaceNotFound
	if isNotFound(err) && !errors.As(err, &namespace) {
		return noSchedule(name)
	}
	return err
}

func noSchedule(name string) *jig.Error {
	return jig.Errorf(jig.CodeNotFound, "there is no schedule %s", name).WithField("name")
}

// refused reports whether the server did not accept a request at all, so that it is safe to send it again.
func refused(err error) bool {
	var exhausted *serviceerror.ResourceExhausted
	return errors.As(err, &exhausted)
}

// notCreated explains why a schedule could not be created and names the flag that caused it, if one did.
func notCreated(o ScheduleOptions, err error) error {
	var exists *serviceerror.AlreadyExists
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.Is(err, sdktemporal.ErrScheduleAlreadyRunning) || errors.As(err, &exists) || errors.As(err, &running) {
		return &jig.Error{
			Code: jig.CodeConflict, Message: fmt.Sprintf("schedule %s already exists", o.Name), Field: "name", Cause: err,
			Hint: fmt.Sprintf("see `jig schedule describe %s`, or remove it with `jig schedule delete %s`", o.Name, o.Name),
		}
	}
	var argument *serviceerror.InvalidArgument
	if errors.As(err, &argument) {
		if e := complaint(o.When, argument.Message); e != nil {
			e.Cause = err
			return e
		}
	}
	return translate(err)
}
