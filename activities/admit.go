package activities

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/tenancy"
)

// AdmitInput asks to admit the calls of a pass and to return those to work on now.
type AdmitInput struct {
	PassRef
	// Limit is the maximum number of returned calls, not counting those that wait for a person.
	Limit int `json:"limit"`
}

// Admitted lists the calls of a pass that a workflow run works on.
type Admitted struct {
	Calls []CallRef `json:"calls,omitempty"`
	// More reports whether the pass has other open calls.
	More bool `json:"more,omitempty"`
}

// CallRef is the part of a call that a workflow keeps: enough to run the call, wait for it and display it.
type CallRef struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// State is the state of the call: waiting, reserved, executing or unknown.
	State jig.CallStatus `json:"state"`
	// Title is a short excerpt of the input for the Web UI.
	Title string `json:"title,omitempty"`
	// Local reports whether the tool runs as a local activity.
	Local bool `json:"local,omitempty"`
	// Child is the kind of child workflow that runs the call: ChildComposition, ChildExtraction or ChildAgent. It is "" for an activity.
	Child string `json:"child,omitempty"`
	// Previews reports that the next attempt only computes a preview of the call and asks for approval.
	Previews bool `json:"previews,omitempty"`
	// Timeout is the time limit of an attempt, in whole seconds.
	Timeout int `json:"timeout"`
	// Key is a hash of the concurrency key.
	Key string `json:"key,omitempty"`
	// Ask describes what a person must decide or answer. It is nil unless the call waits for a person.
	Ask *jig.Pending `json:"ask,omitempty"`
}

// Admit decides on every call of a pass and returns the open ones. It decides only once; later runs return the stored decisions.
func (a *Activities) Admit(ctx context.Context, in AdmitInput) (Admitted, error) {
	state, err := a.Store.PassState(ctx, in.Tenant, in.SessionID, in.Pass)
	if err != nil {
		return Admitted{}, temporalError(err)
	}
	if len(state.Counts) == 0 {
		if err := a.acting(ctx, &state.Session); err != nil {
			return Admitted{}, temporalError(err)
		}
		admission, err := a.admission(ctx, state.Session, in.Pass, state.Turn, nil)
		if err != nil {
			return Admitted{}, temporalError(err)
		}
		if err := a.Store.Admit(ctx, admission); err != nil {
			return Admitted{}, temporalError(err)
		}
		a.admitted(ctx, state.Session, admission)
		admitted, err := a.admittedNow(ctx, state.Session, admission, in.Limit)
		return admitted, temporalError(err)
	}
	admitted, err := a.admittedBefore(ctx, state.Session, in.Pass, in.Limit)
	return admitted, temporalError(err)
}

// admission decides on every call of a turn. known has the signatures of all calls of earlier passes; nil if they are not known.
func (a *Activities) admission(
	ctx context.Context, session jig.Session, pass int, turn chat.Turn, known map[string]bool,
) (ledger.Admission, error) {
	asked := turn.Calls
	out := ledger.Admission{Tenant: session.Tenant, SessionID: session.ID, Pass: pass, Calls: make([]jig.Call, len(asked))}
	tools := make([]jig.Tool, len(asked))
	for i, one := range asked {
		call := jig.Call{
			Tenant: session.Tenant, SessionID: session.ID, ID: jig.CallID(pass, i+1), Pass: pass, Ordinal: i + 1,
			ProviderID: one.ProviderID, Tool: one.Name,
		}
		var refused *jig.Error
		var err error
		if tools[i], refused, err = a.resolve(ctx, session, one, &call, false); err != nil {
			return out, err
		}
		if turn.Stop == chat.StopLength && i == len(asked)-1 {
			refused = cutOff(session)
		}
		if refused != nil {
			refuse(&call, refused)
		} else {
			call.Signature = signature(tools[i], call.Input, session.Writes)
		}
		out.Calls[i] = call
	}
	seen, err := a.madeBefore(ctx, tools, out.Calls, known)
	if err != nil {
		return out, err
	}
	matcher := a.newGrantMatcher(session)
	for i := range out.Calls {
		call := &out.Calls[i]
		if call.Status != "" {
			continue
		}
		if earlier, ok := seen[call.Signature]; ok {
			duplicate(call, earlier)
			continue
		}
		seen[call.Signature] = call.ID
		approval, err := a.decideOn(ctx, matcher, tools[i], call)
		if err != nil {
			return out, err
		}
		if approval != nil {
			out.Approvals = append(out.Approvals, *approval)
		}
	}
	return out, nil
}

// decideOn applies policy to a call and sets its state. It returns the approval to ask for, or the one that a grant gave. If an
// unreadable policy holds the call back, the call is reserved without an approval, so that it must be admitted again before it can run.
func (a *Activities) decideOn(ctx context.Context, matcher *grantMatcher, tool jig.Tool, call *jig.Call) (*jig.Pending, error) {
	return a.decideWith(ctx, matcher, tool, call, a.confirm, nil)
}

// confirmation handles a call of a tool with a confirmation flag.
type confirmation func(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call, ruling policy.Ruling) error

// decideWith is decideOn with a choice of how to confirm the call, and with the preview of the call that asks. Without previews, a call that
// would ask and whose tool has previews is reserved without an approval: the first attempt to run it computes the preview and asks.
func (a *Activities) decideWith(
	ctx context.Context, matcher *grantMatcher, tool jig.Tool, call *jig.Call, confirm confirmation, previews *previews,
) (*jig.Pending, error) {
	ruling, err := a.rule(ctx, matcher.session, tool, call, matcher.origins)
	if err != nil || ruling.Held != "" {
		return nil, err
	}
	if tool.Confirm && !call.Status.Final() {
		if err := confirm(ctx, matcher.session, tool, call, ruling); err != nil {
			return nil, err
		}
	}
	if call.Status != jig.CallWaiting {
		return nil, nil // nil means that no approval is needed
	}
	pending, denied, err := a.approvable(ctx, matcher, tool, *call, ruling)
	if err != nil {
		return nil, err
	}
	pending.NextAt = approval.NextAt(pending, pending.RequestedAt)
	if !ruling.Person { // otherwise no standing approval answers
		if err := matcher.apply(ctx, tool, call, &pending); err != nil {
			return nil, err
		}
	}
	if denied != nil && pending.Grant == "" {
		deny(call, denied)
		return nil, nil // nil means that nobody is asked, because nobody may decide
	}
	if pending.Grant != "" || !tool.Previews {
		return &pending, nil
	}
	if previews == nil {
		call.Status = jig.CallReserved
		return nil, nil // nil means that nobody is asked yet
	}
	if err := previews.show(ctx, call, &pending); err != nil || call.Status.Final() {
		return nil, err
	}
	return &pending, nil
}

// approvable returns the approval that a call asks for. denied says why nobody may give it, according to the tenant's latest document.
func (a *Activities) approvable(
	ctx context.Context, matcher *grantMatcher, tool jig.Tool, call jig.Call, ruling policy.Ruling,
) (pending jig.Pending, denied *jig.Error, err error) {
	settings, askers, err := matcher.settingsFor(ctx, call)
	if err != nil {
		return pending, nil, err
	}
	pending, denied = settings.Voters().Independent(a.pending(matcher.session, tool, call, ruling, settings, askers), a.Now())
	if denied == nil {
		return pending, nil, nil
	}
	if settings, err = a.Tenants.Latest(ctx, matcher.session.Tenant); err != nil {
		return pending, nil, err
	}
	pending, denied = settings.Voters().Independent(a.pending(matcher.session, tool, call, ruling, settings, askers), a.Now())
	return pending, denied, nil
}

// resolve finds the tool, checks that the session may use it, and sets the call's input in canonical form with defaults. refused is the
// reason if the call must not run; err means that the checks themselves failed. named reports whether a document names the agent that the
// call starts.
func (a *Activities) resolve(
	ctx context.Context, session jig.Session, asked jig.ToolCall, call *jig.Call, named bool,
) (tool jig.Tool, refused *jig.Error, err error) {
	call.Input = asked.Input
	if asked.Malformed != "" {
		call.Input = []byte(jig.Cut(asked.Malformed, jig.InlineBytes))
	}
	version, pinned := session.Catalog[asked.Name]
	tool, ok, err := a.tool(ctx, session.Tenant, asked.Name, version)
	if err != nil {
		return tool, nil, err
	}
	if !ok {
		return tool, a.noTool(ctx, session.Tenant, asked.Name), nil
	}
	if refused := allowed(tool, session); refused != nil {
		return tool, refused, nil
	}
	if !pinned {
		return tool, jig.Errorf(jig.CodeNotPermitted, "%s did not exist when the session started", tool.Name).WithHint("start a new session to use it"), nil
	}
	if asked.Malformed != "" {
		return tool, jig.Errorf(jig.CodeInvalidInput, "the arguments are not JSON").WithHint("send one JSON object that fits the input schema"), nil
	}
	if refused := a.normalize(ctx, session, tool, asked.Input, call); refused != nil {
		return tool, refused, nil
	}
	if refused := mayStart(session, tool, *call, named); refused != nil {
		return tool, refused, nil
	}
	return tool, a.checkQuestion(tool, call.Input), nil
}

// normalize fills in the defaults of an input, validates it and stores it in the call in canonical form. It also sets the tool's version
// and whether the call writes and is idempotent.
func (a *Activities) normalize(ctx context.Context, session jig.Session, tool jig.Tool, input json.RawMessage, call *jig.Call) *jig.Error {
	if len(input) == 0 {
		input = json.RawMessage(`{}`)
	}
	input, err := a.completed(tool, input)
	if err != nil {
		return jig.AsError(err)
	}
	if !isDocument(tool) {
		if input, err = a.Catalog.Fill(ctx, tool.Name, input, a.invocation(session, *call, 0, nil)); err != nil {
			return jig.AsError(err)
		}
	}
	normal, err := canonicalJSON(input)
	if err != nil {
		return jig.AsError(err)
	}
	call.Input = normal
	call.Version = tool.Version
	call.Idempotent = tool.Idempotent
	call.Write = tool.Permission.Writes()
	call.ReadsPrivate, call.ReadsUntrusted = tool.Reads(jig.ReadsPrivate), tool.Reads(jig.ReadsUntrusted)
	return nil
}

// rule traces the arguments of a call and applies policy to it. It sets the verdict, the digest and the state and, if the call is denied, the result.
func (a *Activities) rule(ctx context.Context, session jig.Session, tool jig.Tool, call *jig.Call, from *origins) (policy.Ruling, error) {
	if err := from.trace(ctx, session, tool, call); err != nil {
		return policy.Ruling{}, err
	}
	ruling, err := a.Policy.Rule(ctx, tool, *call, session, a.Now())
	if err != nil {
		return ruling, err
	}
	call.Verdict, call.Reasons, call.PolicyVersion = ruling.Verdict, append(jig.Changes(call.Reasons), ruling.Reasons...), ruling.PolicyVersion
	if f := call.Flow; f != nil && f.Marked { // rules may keep the notes off the card
		f.Marked = !slices.ContainsFunc(f.Notes, func(note string) bool { return !slices.Contains(call.Reasons, note) })
	}
	if ruling.Held != "" {
		call.Verdict, call.Reasons, call.PolicyVersion = jig.VerdictAsk, []string{ruling.Held}, ledger.VersionUnreadable
	}
	if tool.ConcurrencyKey != "" {
		key, err := a.Expressions.ConcurrencyKey(ctx, tool.ConcurrencyKey, call.Input)
		if err != nil {
			refuse(call, jig.AsError(err))
			return ruling, nil
		}
		call.ConcurrencyKey = key
	}
	if call.Digest, err = digest(a.Store.Installation(), *call); err != nil {
		return ruling, err
	}
	if ruling.Held != "" {
		call.Status = jig.CallReserved
		return ruling, nil
	}
	if tool.Implementation == jig.ImplementationPerson && ruling.Verdict == jig.VerdictRun {
		call.Verdict = jig.VerdictAsk // a person answers it, even if policy requires no approval
	}
	switch call.Verdict {
	case jig.VerdictRun:
		call.Status = jig.CallReserved
	case jig.VerdictDeny, jig.VerdictRefuse:
		r := jig.Failure(jig.Errorf(jig.CodeDenied, "policy does not allow this call: %s", strings.Join(ruling.Reasons, "; ")))
		call.Status, call.Result = jig.CallDenied, &r
	case jig.VerdictAsk:
		call.Status = jig.CallWaiting
	default:
		call.Verdict, call.Status = jig.VerdictAsk, jig.CallWaiting
	}
	return ruling, nil
}

// pending returns the approval to show to the people who decide about a call that rests on the word of some askers.
func (a *Activities) pending(
	session jig.Session, tool jig.Tool, call jig.Call, ruling policy.Ruling, settings tenancy.Settings, askers []jig.Asker,
) jig.Pending {
	ruling = ruling.ByDefault(settings, tool, askers)
	now := a.Now().UTC()
	expires := session.Agent.Limits.WithDefaults().ApprovalExpires
	if ruling.Expires > 0 {
		expires = ruling.Expires
	}
	p := jig.Pending{
		Tenant: session.Tenant, SessionID: session.ID, Kind: jig.PendingApproval, Call: call.ID, Tool: call.Tool,
		Input: json.RawMessage(call.Input), Summary: firstSentence(tool.Description), Reasons: call.Reasons, Digest: call.Digest,
		RequestedBy: session.Principal.ID, Agent: session.Agent.Name, RequestedAt: now, ExpiresAt: now.Add(expires),
		PolicyVersion: call.PolicyVersion, Preview: call.Preview, Askers: askers,
	}
	if tool.Implementation == jig.ImplementationPerson {
		asQuestion(&p, call.Input)
	}
	if !ruling.Terms.Plain() && ruling.Verdict == jig.VerdictAsk {
		terms := ruling.Terms
		p.Terms = &terms
	}
	p.Input, p.Truncated = jig.Excerpt(p.Input, jig.ExcerptBytes)
	return p
}

// cutOff returns the error for the last call of an answer that was too long. The call's arguments may be incomplete, even if they are
// valid JSON.
func cutOff(session jig.Session) *jig.Error {
	limit := session.Agent.Limits.WithDefaults().MaxTokens
	return jig.Errorf(jig.CodeInvalidInput, "the answer was cut off at max_tokens (%d) in the middle of this call, which was not run", limit).
		WithReason(jig.ReasonCutOff).WithHint("repeat the call with shorter arguments, or with fewer calls in one answer")
}

func refuse(call *jig.Call, err *jig.Error) {
	r := jig.Failure(err)
	call.Verdict, call.Status, call.Result, call.Signature = jig.VerdictRefuse, jig.CallFailed, &r, ""
}

// deny ends a call that nobody may approve.
func deny(call *jig.Call, err *jig.Error) {
	r := jig.Failure(err)
	call.Verdict, call.Status, call.Result = jig.VerdictDeny, jig.CallDenied, &r
}
