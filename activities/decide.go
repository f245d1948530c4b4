package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/strictjson"
	"github.com/jig-run/jig/internal/tenancy"
)

func (a *Activities) decide(ctx context.Context, in Signal) (Handled, error) {
	var payload protocol.Decisions
	if err := strictjson.UnmarshalKnown(in.Payload, &payload); err != nil {
		return a.unreadable(ctx, in, err)
	}
	if name := misplaced(payload); name != "" {
		return a.refuseSignal(ctx, in, fmt.Sprintf("`%s` is outside of `decisions`: put it into the decision that it belongs to", name))
	}
	if n := len(payload.Decisions); n > protocol.MaxDecisions {
		return a.refuseSignal(ctx, in, fmt.Sprintf("`decisions` has %d entries; at most %d are allowed in one message", n, protocol.MaxDecisions))
	}
	settings, err := a.Tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Handled{}, err
	}
	statement, err := a.decisionStatement(ctx, in, payload.Proof, payload.Content())
	if jig.CodeOf(err) == jig.CodeNotPermitted {
		return a.refuseSignal(ctx, in, explain(err))
	}
	if err != nil {
		return Handled{}, err
	}
	var handled Handled
	for i, d := range payload.All() {
		var contradiction string
		switch named := jig.Answer(in.Name); {
		case in.Name == "decide":
			d.Answer = cmp.Or(d.Answer, jig.AnswerApprove)
		case d.Answer != "" && d.Answer != named:
			contradiction = fmt.Sprintf("the signal is %s, and `answer` is %s: leave `answer` out", in.Name, d.Answer)
		default:
			d.Answer = named
		}
		request := approval.DecisionRequest{
			Tenant: in.Tenant, SessionID: in.SessionID, Key: protocol.DecisionKey(in.Key, i), Decision: d, Now: a.Now(),
			Voters: settings.Voters(), Refusal: contradiction,
		}
		ruled, err := a.applyDecision(ctx, in, settings, statementFor(statement, i), request)
		if err != nil {
			return handled, err
		}
		if err := a.follow(ctx, ruled, &handled); err != nil {
			return handled, err
		}
	}
	return handled, nil
}

// decisionStatement verifies the server's statement that came with decisions, an answer or an outcome. It returns nil if there is none.
func (a *Activities) decisionStatement(ctx context.Context, in Signal, proof, content string) (statement *protocol.Statement, err error) {
	if proof != "" {
		want := protocol.Statement{Kind: protocol.StateDecide, Tenant: in.Tenant, Session: in.SessionID, Content: content}
		statement, err = a.stated(ctx, proof, want, a.Now())
	}
	return statement, err
}

// statementFor returns the statement about one of several decisions. Its id contains the index, so that each decision is accepted once.
func statementFor(all *protocol.Statement, index int) *protocol.Statement {
	if all == nil {
		return nil
	}
	one := *all
	one.ID = fmt.Sprintf("%s#%d", all.ID, index)
	return &one
}

// maxEditRaces limits how often an edit is recomputed because somebody else changed the input in the meantime.
const maxEditRaces = 5

// applyDecision applies a decision. An edit is checked and compared with the current input before the store locks the call. If another edit
// was stored in between, the edit is recomputed, so that the record shows what really changed.
func (a *Activities) applyDecision(
	ctx context.Context, in Signal, settings tenancy.Settings, statement *protocol.Statement, asked approval.DecisionRequest,
) (approval.Applied, error) {
	for race := 0; ; race++ {
		request := asked
		changed, err := a.prepare(ctx, in, settings, statement, &request)
		if err != nil {
			return approval.Applied{}, err
		}
		ruled, err := a.Store.Decide(ctx, request)
		if err == nil && changed != nil {
			return a.renew(ctx, changed, ruled)
		}
		if err == nil || race == maxEditRaces || jig.AsError(err).Reason != approval.ReasonInputChanged {
			return ruled, err
		}
	}
}

// prepare does the parts of a decision that the store cannot do: it checks the form, identifies the person, compares the call with what was
// shown, applies policy to an edited call, and creates a grant that comes with the decision. If the call has changed since it was shown, the
// decision is refused, and changed is the call to renew.
func (a *Activities) prepare(
	ctx context.Context, in Signal, settings tenancy.Settings, statement *protocol.Statement, r *approval.DecisionRequest,
) (changed *compared, err error) {
	d := &r.Decision
	r.Refusal = cmp.Or(r.Refusal, approval.CheckDecision(*d))
	s := sender{signal: in, settings: settings, by: d.By, token: d.Token, statement: statement, call: d.Call}
	err = a.identify(ctx, &s, func(digest string) (string, identity.Evidence, error) {
		d.Digest = cmp.Or(d.Digest, digest)
		return token.VerifyDecision(settings.Keys, in.Tenant, in.SessionID, *d, digest, r.Now)
	})
	if err == nil && s.token != "" && s.refusal == "" && s.pending != nil {
		r.Signed, err = a.signed(ctx, in, *d, s.pending.Digest)
	}
	r.Principal, r.Evidence = s.principal, s.evidence
	d.By, d.Token = s.principal.ID, ""
	r.Unentitled = r.Refusal == "" && s.refusal != ""
	r.Refusal = cmp.Or(r.Refusal, s.refusal)
	if err != nil || r.Refusal != "" || d.Answer != jig.AnswerApprove {
		return nil, err
	}
	if changed, err = a.checkFirstVote(ctx, settings, r); err != nil || changed != nil || len(d.Input) == 0 && d.Grant == nil && d.GrantID == "" {
		return changed, err
	}
	return nil, a.addEditOrGrant(ctx, settings, r)
}

// signed returns a decision with its token and with what its sender was shown.
func (a *Activities) signed(ctx context.Context, in Signal, d jig.Decision, digest string) (*approval.Signed, error) {
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, d.Call)
	if err != nil {
		return nil, err
	}
	return &approval.Signed{Decision: d, Token: d.Token, Digest: digest, Shown: approval.Shown{
		Tool: call.Tool, Version: call.Version, Input: call.Input, PolicyVersion: call.PolicyVersion, Preview: call.Preview,
	}}, nil
}

// addEditOrGrant adds the changed input or the new grant that comes with a decision, or the grant that it names.
func (a *Activities) addEditOrGrant(ctx context.Context, settings tenancy.Settings, r *approval.DecisionRequest) error {
	session, call, err := a.callOf(ctx, protocol.SessionRef{Tenant: r.Tenant, SessionID: r.SessionID}, r.Decision.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil // the store refuses an unknown call with its own message
	}
	if err != nil {
		return err
	}
	tool, ok, err := a.tool(ctx, r.Tenant, call.Tool, call.Version)
	if err != nil {
		return err
	}
	if !ok {
		r.Refusal = fmt.Sprintf("the tool %s no longer exists, so the changed input or the grant cannot be checked", call.Tool)
		return nil
	}
	if r.Decision.GrantID != "" {
		return a.addStanding(ctx, settings, r, session, tool, call)
	}
	if call.Status == jig.CallWaiting && tool.Version != call.Version {
		r.Refusal = fmt.Sprintf("the contract of %s has changed since the call was shown, so no change and no grant can come with this approval", call.Tool)
		return nil
	}
	if r.Decision.Grant != nil {
		if r.Refusal = a.grantWith(settings, r, session, tool); r.Refusal != "" {
			return nil
		}
	}
	if len(r.Decision.Input) == 0 || call.Status != jig.CallWaiting {
		return nil
	}
	return a.edit(ctx, r, session, tool, call)
}

// grantWith creates the grant that comes with an approval. refusal is the reason if that is not possible.
func (a *Activities) grantWith(settings tenancy.Settings, r *approval.DecisionRequest, session jig.Session, tool jig.Tool) (refusal string) {
	request := *r.Decision.Grant
	switch {
	case request.Tool != "" && request.Tool != tool.Name:
		return fmt.Sprintf("`grant.tool` is %s, but the call is for %s: leave it out", request.Tool, tool.Name)
	case request.Agent == "":
		request.Agent = session.Agent.Name
	}
	request.Tool = tool.Name
	g, err := policy.NewGrant(request, settings.Grants.WithDefaults(), tool, r.Now)
	if err == nil && r.Decision.Grant.Agent == "" && !session.Agent.Registered && session.Agent.Name != jig.CallAgent {
		// Any document may use the name of a draft, so restrict the grant to this version.
		request.When = fmt.Sprintf("agent.version == %q && (%s)", session.Agent.Version, g.When)
		g, err = policy.NewGrant(request, settings.Grants.WithDefaults(), tool, r.Now)
	}
	if err != nil {
		return "the grant cannot be given: " + explain(err)
	}
	g.Tenant, g.ID = r.Tenant, GrantID(r.SessionID, r.Key)
	r.Grant = &g
	return ""
}

// GrantID returns the id of a grant. It stays the same when the decision that gives the grant is retried.
func GrantID(session, key string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + key))
	return "grt_" + hex.EncodeToString(sum[:10])
}

// explain returns a template of an error, with its hint, as part of a refusal.
func explain(err error) string {
	e := jig.AsError(err)
	if e.Hint == "" {
		return jig.Templatef("%s", e.Words())
	}
	return jig.Templatef("%s (%s)", e.Words(), jig.Words(cmp.Or(e.HintTemplate, e.Hint)))
}

// edit validates changed input, applies policy to it again and computes its new digest.
func (a *Activities) edit(ctx context.Context, r *approval.DecisionRequest, session jig.Session, tool jig.Tool, call jig.Call) error {
	edited := call
	if failed := a.normalize(ctx, session, tool, r.Decision.Input, &edited); failed != nil {
		r.Refusal = "the changed input does not fit: " + explain(failed)
		return nil
	}
	if failed := mayStart(session, tool, edited, startsSame(call, edited)); failed != nil {
		r.Refusal = "the changed input does not fit: " + explain(failed)
		return nil
	}
	if call.Frame == "" { // calls of compositions are identified by their id
		edited.Signature = signature(tool, edited.Input, session.Writes)
	}
	edited.Preview = nil
	ruling, err := a.rule(ctx, session, tool, &edited, &origins{Activities: a})
	if err != nil {
		return err
	}
	if ruling.Held != "" {
		r.Refusal = jig.Templatef("policy cannot judge the changed input now: %s", ruling.Held)
		return nil
	}
	if edited.Status.Final() {
		r.Refusal = jig.Templatef("policy does not allow the changed input: %s", strings.Join(edited.Reasons, "; "))
		return nil
	}
	if tool.Previews && edited.Verdict == jig.VerdictAsk {
		if edited.Preview, err = (&previews{Activities: a, session: session, tool: tool}).of(ctx, edited); err != nil {
			return err
		}
		if edited.Digest, err = digest(a.Store.Installation(), edited); err != nil {
			return err
		}
	}
	if r.Patch, edited.Patch, err = patched(call, edited.Input); err != nil {
		return err
	}
	edited.EditedBy = r.Principal.ID
	edited.Reasons = slices.Insert(edited.Reasons, len(jig.Changes(edited.Reasons)), changed(r.Principal, r.Evidence, r.Decision.Note, call.Input, edited.Input)...)
	settings, err := a.Tenants.Settings(ctx, r.Tenant)
	if err != nil {
		return err
	}
	askers, err := a.askersOf(ctx, session, call)
	if err != nil {
		return err
	}
	fresh := a.pending(session, tool, edited, ruling, settings, approval.WithEditor(askers, r.Principal))
	r.Edited, r.Fresh, r.EditedFrom = &edited, &fresh, call.Digest
	return nil
}

// follow adds to handled the answer to a request, the composition of its call and, if the call may run now or still waits, a reference to
// the call.
func (a *Activities) follow(ctx context.Context, ruled approval.Applied, handled *Handled) error {
	handled.Decisions = append(handled.Decisions, ruled.Ruled)
	if ruled.Call == nil || ruled.Status == "" {
		return nil
	}
	call, accepted := *ruled.Call, ruled.Outcome == jig.DecisionAccepted
	if accepted && call.Status == ruled.Status {
		a.Tracing.Decided(ctx, call)
	}
	waits := (accepted || ruled.Renewed) && call.Status == ruled.Status && (call.Status == jig.CallWaiting || call.Status == jig.CallUnknown)
	if call.Frame != "" && !slices.Contains(handled.Frames, call.Frame) {
		handled.Frames = append(handled.Frames, call.Frame)
	}
	if !waits && call.Status != jig.CallReserved {
		return nil
	}
	ref, err := a.ref(ctx, call)
	if err != nil {
		return err
	}
	if waits {
		ran, err := a.asked(ctx, call)
		if jig.CodeOf(err) == jig.CodeNotFound {
			return nil // somebody else decided it in the meantime, and that decision adds the reference
		}
		if err != nil {
			return err
		}
		ref.State, ref.Ask = ran.State, ran.Ask
	}
	handled.Calls = append(handled.Calls, ref)
	return nil
}

// Ruled is an activity that returns what became of the decisions of an update, or of the same decisions of an earlier one. It returns NOT_FOUND
// unless all of them were answered.
func (a *Activities) Ruled(ctx context.Context, in protocol.RuledRequest) (protocol.DecideResult, error) {
	result := protocol.DecideResult{SessionID: in.SessionID}
	if in.Count < 1 || in.Count > protocol.MaxDecisions {
		return result, temporalError(jig.Errorf(jig.CodeInvalidInput, "an update has 1 to %d decisions", protocol.MaxDecisions).WithField("count"))
	}
	keys := make([]string, in.Count)
	for i := range keys {
		keys[i] = protocol.DecisionKey(protocol.UpdateKey(in.Update), i)
	}
	var err error
	result.Decisions, err = a.Store.Ruled(ctx, in.Tenant, in.SessionID, keys)
	if err == nil && len(result.Decisions) < in.Count && len(in.Same) == in.Count {
		result.Decisions, err = a.Store.Ruled(ctx, in.Tenant, in.SessionID, in.Same)
	}
	if err == nil && len(result.Decisions) < in.Count {
		err = jig.Errorf(jig.CodeNotFound, "the session has no answer to this update").WithField("update")
	}
	return result, temporalError(err)
}

// misplaced names a member of the outer object that belongs inside one of its decisions. It returns "" if all members are in their place.
func misplaced(d protocol.Decisions) string {
	if len(d.Decisions) == 0 {
		return ""
	}
	switch {
	case d.Call != "":
		return "call"
	case d.Digest != "":
		return "digest"
	case len(d.Input) > 0:
		return "input"
	case d.To != "":
		return "to"
	case d.Undo:
		return "undo"
	case d.Grant != nil:
		return "grant"
	case d.Token != "":
		return "token"
	}
	return ""
}
