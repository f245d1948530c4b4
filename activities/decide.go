package activities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
)

// Letter is a signal or update as it arrived, with the key under which it takes effect once.
type Letter struct {
	SessionRef
	Name    string          `json:"name"`
	Key     string          `json:"key"`
	Payload json.RawMessage `json:"payload"`
	// Pass is the pass under way.
	Pass int `json:"pass,omitempty"`
	// Composing says that a composition of the session is under way: then an event may be awaited.
	Composing bool `json:"composing,omitempty"`
}

// Heard is what became of a letter.
type Heard struct {
	Decisions []jig.Ruled `json:"decisions,omitempty"`
	// Calls are those that a decision concerned and that are still open: an approved one may run now.
	Calls []CallRef `json:"calls,omitempty"`
	// Frames are the compositions that the decided calls belong to.
	Frames []string `json:"frames,omitempty"`
	// Message says that a user message was added, Event that an event came that a composition may wait for.
	Message bool `json:"message,omitempty"`
	Event   bool `json:"event,omitempty"`
	// Ending says that the session ends, because an approval expired that says so: cancel or fail.
	Ending jig.ExpiryOutcome `json:"ending,omitempty"`
}

// Hear takes a signal or update: a decision, an answer, a reconciliation, a message. What cannot be read, or is not known, is
// refused with an event, never dropped. It is idempotent by the letter's key.
func (a *Activities) Hear(ctx context.Context, in Letter) (Heard, error) {
	heard, err := a.hear(ctx, in)
	return heard, temporalError(err)
}

func (a *Activities) hear(ctx context.Context, in Letter) (Heard, error) {
	switch in.Name {
	case "approve", "deny", "delegate", "decide":
		return a.decide(ctx, in)
	case "answer":
		return a.reply(ctx, in)
	case "reconcile":
		return a.reconcile(ctx, in)
	case "message":
		return a.message(ctx, in)
	case "event":
		return a.event(ctx, in)
	}
	return a.refuseLetter(ctx, in, fmt.Sprintf("there is no signal %q; use approve, deny, delegate, answer, reconcile, message or event", in.Name))
}

func (a *Activities) decide(ctx context.Context, in Letter) (Heard, error) {
	var payload Decisions
	if err := strictJSON(in.Payload, &payload); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	settings, err := a.tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Heard{}, err
	}
	var heard Heard
	for i, d := range payload.All() {
		if in.Name != "decide" {
			d.Answer = jig.Answer(in.Name)
		}
		if d.Answer == "" {
			d.Answer = jig.AnswerApprove
		}
		request := jig.DecisionRequest{
			Tenant: in.Tenant, SessionID: in.SessionID, Key: fmt.Sprintf("%s#%d", in.Key, i), Decision: d, Now: a.now(),
			ProofWanted: settings.ProofWanted(),
		}
		if err := a.prepare(ctx, in, settings, &request); err != nil {
			return heard, err
		}
		ruled, err := a.store.Decide(ctx, request)
		if err != nil {
			return heard, err
		}
		heard.Decisions = append(heard.Decisions, ruled)
		if err := a.follow(ctx, in.SessionRef, ruled, &heard); err != nil {
			return heard, err
		}
	}
	return heard, nil
}

// prepare works out what the store cannot: whether the decision is well-formed, who makes it, what an edited call would be, and
// what grant comes along.
func (a *Activities) prepare(ctx context.Context, in Letter, settings jig.TenantSettings, r *jig.DecisionRequest) error {
	d := &r.Decision
	switch {
	case d.Call == "":
		r.Refusal = "`call` is missing: name the call to decide, e.g. 3.2"
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny && d.Answer != jig.AnswerDelegate:
		r.Refusal = fmt.Sprintf("%q is not an answer; use approve, deny or delegate", d.Answer)
	case d.Answer != jig.AnswerApprove && len(d.Input) > 0:
		r.Refusal = "`input` goes with approve alone"
	case d.Answer != jig.AnswerApprove && d.Grant != nil:
		r.Refusal = "`grant` goes with approve alone"
	case d.Answer != jig.AnswerDelegate && d.To != "":
		r.Refusal = "`to` goes with delegate alone"
	}
	s := sender{letter: in, settings: settings, by: d.By, token: d.Token, call: d.Call}
	err := a.identify(ctx, &s, func(digest string) (string, jig.Evidence, error) {
		d.Digest = firstOf(d.Digest, digest)
		return a.proofs.Decision(settings.Keys, in.Tenant, in.SessionID, *d, digest, r.Now)
	})
	r.Principal, r.Evidence = s.principal, s.evidence
	d.By, d.Token = s.principal.ID, ""
	r.Refusal = firstOf(r.Refusal, s.refusal)
	if err != nil || r.Refusal != "" || (len(d.Input) == 0 && d.Grant == nil) {
		return err
	}
	return a.furnish(ctx, settings, r)
}

// furnish works out what a decision brings along: changed input, a grant.
func (a *Activities) furnish(ctx context.Context, settings jig.TenantSettings, r *jig.DecisionRequest) error {
	session, call, err := a.callOf(ctx, SessionRef{Tenant: r.Tenant, SessionID: r.SessionID}, r.Decision.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil // the store refuses an unknown call in its own words
	}
	if err != nil {
		return err
	}
	tool, ok, err := a.tool(ctx, r.Tenant, call.Tool, call.Version)
	if err != nil {
		return err
	}
	if !ok {
		r.Refusal = fmt.Sprintf("the tool %s is not there any more, so what the decision brings along cannot be checked", call.Tool)
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

// grantWith makes the grant that comes with an approval; it says why there cannot be one.
func (a *Activities) grantWith(settings jig.TenantSettings, r *jig.DecisionRequest, session jig.Session, tool jig.Tool) (refusal string) {
	request := *r.Decision.Grant
	switch {
	case request.Tool != "" && request.Tool != tool.Name:
		return fmt.Sprintf("`grant.tool` is %s, and the call is of %s: leave it out", request.Tool, tool.Name)
	case request.Agent == "":
		request.Agent = session.Agent.Name
	}
	request.Tool = tool.Name
	g, err := a.grantRules.New(request, settings.Grants.WithDefaults(), tool, r.Now)
	if err != nil {
		return "the grant cannot be given: " + explain(err)
	}
	g.Tenant, g.ID = r.Tenant, GrantID(r.SessionID, r.Key)
	r.Grant = &g
	return ""
}

// GrantID names a grant, the same however often what gives it is tried.
func GrantID(session, key string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + key))
	return "grt_" + hex.EncodeToString(sum[:10])
}

// explain is an error as a sentence of a refusal, with its hint.
func explain(err error) string {
	e := jig.AsError(err)
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// edit validates changed input, puts it through policy again and gives it its own digest.
func (a *Activities) edit(ctx context.Context, r *jig.DecisionRequest, session jig.Session, tool jig.Tool, call jig.Call) error {
	edited := call
	if failed := a.normalize(tool, r.Decision.Input, &edited); failed != nil {
		r.Refusal = "the changed input does not fit: " + failed.Error()
		return nil
	}
	if call.Frame == "" { // calls of compositions are told apart by their id
		edited.Signature = signature(tool, edited.Input, session.Writes)
	}
	ruling, err := a.rule(ctx, session, tool, &edited)
	if err != nil {
		return err
	}
	if edited.Status.Final() {
		r.Refusal = "policy does not allow the changed input: " + strings.Join(edited.Reasons, "; ")
		return nil
	}
	if r.Patch, edited.Patch, err = patched(call, edited.Input); err != nil {
		return err
	}
	edited.EditedBy = r.Principal.ID
	fresh := a.pending(session, tool, edited, ruling)
	r.Edited, r.Fresh = &edited, &fresh
	return nil
}

// reply takes a person's answer to a question.
func (a *Activities) reply(ctx context.Context, in Letter) (Heard, error) {
	var r jig.Reply
	if err := strictJSON(in.Payload, &r); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	settings, err := a.tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Heard{}, err
	}
	request := jig.ReplyRequest{Tenant: in.Tenant, SessionID: in.SessionID, Key: in.Key + "#0", Reply: r, Now: a.now(), ProofWanted: settings.ProofWanted()}
	switch {
	case r.Call == "":
		request.Refusal = "`call` is missing: name the call of the question, e.g. 3.2"
	case len(r.Value) == 0:
		request.Refusal = "`value` is missing: give the answer"
	case len(r.Value) > jig.InlineBytes:
		request.Refusal = fmt.Sprintf("`value` has %d bytes, at most %d are taken", len(r.Value), jig.InlineBytes)
	}
	s := sender{letter: in, settings: settings, by: r.By, token: r.Token, call: r.Call}
	err = a.identify(ctx, &s, func(digest string) (string, jig.Evidence, error) {
		return a.proofs.Reply(settings.Keys, in.Tenant, in.SessionID, r, digest, request.Now)
	})
	if err != nil {
		return Heard{}, err
	}
	request.Principal, request.Evidence, request.Reply.Token = s.principal, s.evidence, ""
	if request.Refusal = firstOf(request.Refusal, s.refusal); request.Refusal == "" && s.pending != nil && s.pending.Question != nil {
		request.Digest = s.pending.Digest
		if err := a.fits(*s.pending.Question, r.Value); err != nil {
			request.Refusal = "the answer does not fit the question: " + explain(err)
		}
	}
	ruled, err := a.store.Reply(ctx, request)
	if err != nil {
		return Heard{}, err
	}
	heard := Heard{Decisions: []jig.Ruled{ruled}}
	return heard, a.follow(ctx, in.SessionRef, ruled, &heard)
}

func (a *Activities) reconcile(ctx context.Context, in Letter) (Heard, error) {
	var r jig.Reconciliation
	if err := strictJSON(in.Payload, &r); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	settings, err := a.tenants.Settings(ctx, in.Tenant)
	if err != nil {
		return Heard{}, err
	}
	request := jig.ReconcileRequest{
		Tenant: in.Tenant, SessionID: in.SessionID, Key: in.Key + "#0", Reconciliation: r, Reconcilers: settings.Reconcilers, Now: a.now(),
		ProofWanted: settings.ProofWanted(),
	}
	switch {
	case r.Call == "":
		request.Refusal = "`call` is missing: name the call, e.g. 3.2"
	case r.Outcome != jig.OutcomeHappened && r.Outcome != jig.OutcomeNotHappened && r.Outcome != jig.OutcomeGiveUp:
		request.Refusal = fmt.Sprintf("%q is not an outcome; use happened, not_happened or give_up", r.Outcome)
	}
	s := sender{letter: in, settings: settings, by: r.By, token: r.Token, call: r.Call}
	err = a.identify(ctx, &s, func(digest string) (string, jig.Evidence, error) {
		return a.proofs.Reconciliation(settings.Keys, in.Tenant, in.SessionID, r, digest, request.Now)
	})
	if err != nil {
		return Heard{}, err
	}
	request.Principal, request.Evidence, request.Reconciliation.Token = s.principal, s.evidence, ""
	request.Refusal = firstOf(request.Refusal, s.refusal)
	ruled, err := a.store.Reconcile(ctx, request)
	if err != nil {
		return Heard{}, err
	}
	heard := Heard{Decisions: []jig.Ruled{ruled}}
	return heard, a.follow(ctx, in.SessionRef, ruled, &heard)
}

// follow adds the composition that a decided call belongs to, and the reference of a call that may run now, or that waits on.
func (a *Activities) follow(ctx context.Context, in SessionRef, ruled jig.Ruled, heard *Heard) error {
	inFrame := strings.Contains(ruled.Call, "/")
	waits := ruled.Status == jig.CallWaiting && ruled.Outcome == jig.DecisionAccepted
	if ruled.Status == "" || (ruled.Status != jig.CallReserved && !waits && !inFrame) {
		return nil
	}
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, ruled.Call)
	if err != nil {
		return err
	}
	if call.Frame != "" && !slices.Contains(heard.Frames, call.Frame) {
		heard.Frames = append(heard.Frames, call.Frame)
	}
	if call.Status != jig.CallReserved && (!waits || call.Status != jig.CallWaiting) {
		return nil
	}
	ref, err := a.ref(ctx, call)
	if err != nil {
		return err
	}
	if call.Status == jig.CallWaiting {
		ran, err := a.asked(ctx, call)
		if jig.CodeOf(err) == jig.CodeNotFound {
			return nil // somebody else decided it meanwhile, and brings it along
		}
		if err != nil {
			return err
		}
		ref.State, ref.Ask = ran.State, ran.Ask
	}
	heard.Calls = append(heard.Calls, ref)
	return nil
}

// event takes an event that a composition may wait for.
func (a *Activities) event(ctx context.Context, in Letter) (Heard, error) {
	var e jig.ReceivedEvent
	if err := strictJSON(in.Payload, &e); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	switch {
	case e.Name == "":
		return a.refuseLetter(ctx, in, "`name` is missing: name the event")
	case e.ID != 0:
		return a.refuseLetter(ctx, in, "`id` is given by jig: leave it out")
	case len(e.Data) > jig.InlineBytes:
		return a.refuseLetter(ctx, in, fmt.Sprintf("`data` has %d bytes, at most %d are taken", len(e.Data), jig.InlineBytes))
	case !in.Composing:
		return a.refuseLetter(ctx, in, "nothing in this session waits for an event")
	}
	_, err := a.store.Receive(ctx, in.Tenant, in.SessionID, in.Key, e)
	return Heard{Event: true}, err
}

// maxMessageID bounds the ids of messages, in bytes.
const maxMessageID = 256

func (a *Activities) message(ctx context.Context, in Letter) (Heard, error) {
	var m Message
	if err := strictJSON(in.Payload, &m); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	if strings.TrimSpace(m.Text) == "" {
		return a.refuseLetter(ctx, in, "`text` is missing: say something")
	}
	if len(m.ID) > maxMessageID {
		return a.refuseLetter(ctx, in, fmt.Sprintf("`id` has %d bytes, at most %d are taken", len(m.ID), maxMessageID))
	}
	session, err := a.store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return Heard{}, err
	}
	if session.Agent.Name == jig.CallAgent {
		return a.refuseLetter(ctx, in, "this session is a single call: nobody in it reads messages")
	}
	key := in.Key
	if m.ID != "" {
		key = jig.MessageKey(m.ID)
	}
	_, err = a.store.AddMessage(ctx, in.Tenant, in.SessionID, key, jig.Message{Role: jig.RoleUser, Text: m.Text, By: m.By, Pass: in.Pass})
	return Heard{Message: true}, err
}

func (a *Activities) refuseLetter(ctx context.Context, in Letter, reason string) (Heard, error) {
	data, err := json.Marshal(map[string]any{"name": in.Name, "payload": jig.Cut(string(in.Payload), 1000), "reason": reason})
	if err != nil {
		return Heard{}, jig.Errorf(jig.CodeInternal, "encoding a refusal: %w", err)
	}
	ruled := jig.Ruled{Outcome: jig.DecisionRefused, Reason: reason}
	return Heard{Decisions: []jig.Ruled{ruled}}, a.store.Refuse(ctx, in.Tenant, in.SessionID, in.Key, reason, data)
}

// ExpireInput names calls on whose approvals time may act.
type ExpireInput struct {
	SessionRef
	Calls []string `json:"calls"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
}

// Expire lets time act on approvals: those whose time has come expire, reminders and escalations that are due are sent. It says
// where each call stands.
func (a *Activities) Expire(ctx context.Context, in ExpireInput) (Heard, error) {
	var heard Heard
	for _, id := range in.Calls {
		lapse, err := a.store.Lapse(ctx, in.Tenant, in.SessionID, id, in.Now)
		if err != nil {
			return heard, temporalError(err)
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: lapse.Status}
		heard.Decisions = append(heard.Decisions, ruled)
		if lapse.Status == jig.CallExpired && lapse.OnExpiry.Strictness() > heard.Ending.Strictness() {
			heard.Ending = lapse.OnExpiry
		}
		if err := a.follow(ctx, in.SessionRef, ruled, &heard); err != nil {
			return heard, temporalError(err)
		}
	}
	return heard, nil
}

// strictJSON reads a document that may have known members alone.
func strictJSON(raw []byte, v any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return jig.Errorf(jig.CodeInvalidInput, "it is empty; give a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return jig.Errorf(jig.CodeInvalidInput, "there is more than one JSON value")
	}
	return nil
}

// AsJSON returns a payload as it is when it is JSON, else as a JSON string; an empty one becomes null.
func AsJSON(payload []byte) json.RawMessage {
	if len(payload) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(payload) {
		return payload
	}
	b, err := json.Marshal(string(payload))
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
