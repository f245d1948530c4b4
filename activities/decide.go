package activities

import (
	"bytes"
	"context"
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
}

// Hear takes a signal or update: a decision, a reconciliation, a message. What cannot be read, or is not known, is refused
// with an event, never dropped. It is idempotent by the letter's key.
func (a *Activities) Hear(ctx context.Context, in Letter) (Heard, error) {
	heard, err := a.hear(ctx, in)
	return heard, temporalError(err)
}

func (a *Activities) hear(ctx context.Context, in Letter) (Heard, error) {
	switch in.Name {
	case "approve", "deny", "decide":
		return a.decide(ctx, in)
	case "reconcile":
		return a.reconcile(ctx, in)
	case "message":
		return a.message(ctx, in)
	case "event":
		return a.event(ctx, in)
	}
	return a.refuseLetter(ctx, in, fmt.Sprintf("there is no signal %q; use approve, deny, reconcile, message or event", in.Name))
}

func (a *Activities) decide(ctx context.Context, in Letter) (Heard, error) {
	var payload Decisions
	if err := strictJSON(in.Payload, &payload); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	var heard Heard
	for i, d := range payload.All() {
		switch in.Name {
		case "approve":
			d.Answer = jig.AnswerApprove
		case "deny":
			d.Answer = jig.AnswerDeny
		}
		if d.Answer == "" {
			d.Answer = jig.AnswerApprove
		}
		request := jig.DecisionRequest{
			Tenant: in.Tenant, SessionID: in.SessionID, Key: fmt.Sprintf("%s#%d", in.Key, i), Principal: jig.Principal{ID: d.By, Claimed: true}, Decision: d, Now: a.now(),
		}
		if err := a.prepare(ctx, &request); err != nil {
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

// prepare works out what the store cannot: whether the decision is well-formed, and what an edited call would be.
func (a *Activities) prepare(ctx context.Context, r *jig.DecisionRequest) error {
	d := r.Decision
	switch {
	case d.Call == "":
		r.Refusal = "`call` is missing: name the call to decide, e.g. 3.2"
	case d.Answer != jig.AnswerApprove && d.Answer != jig.AnswerDeny:
		r.Refusal = fmt.Sprintf("%q is not an answer; use approve or deny", d.Answer)
	case d.By == "":
		r.Refusal = "`by` is missing: say who decides"
	case d.Answer == jig.AnswerDeny && len(d.Input) > 0:
		r.Refusal = "`input` goes with approve; a denied call does not run"
	case len(d.Input) > 0:
		return a.edit(ctx, r)
	}
	return nil
}

// edit validates changed input, puts it through policy again and gives it its own digest.
func (a *Activities) edit(ctx context.Context, r *jig.DecisionRequest) error {
	call, err := a.store.Call(ctx, r.Tenant, r.SessionID, r.Decision.Call)
	if jig.CodeOf(err) == jig.CodeNotFound {
		return nil // the store refuses an unknown call in its own words
	}
	if err != nil {
		return err
	}
	session, err := a.store.Session(ctx, r.Tenant, r.SessionID)
	if err != nil {
		return err
	}
	tool, ok, err := a.tool(ctx, r.Tenant, call.Tool, call.Version)
	if err != nil {
		return err
	}
	if !ok {
		r.Refusal = fmt.Sprintf("the tool %s is not there any more, so changed input cannot be checked", call.Tool)
		return nil
	}
	edited := call
	if failed := a.normalize(tool, r.Decision.Input, &edited); failed != nil {
		r.Refusal = "the changed input does not fit: " + failed.Error()
		return nil
	}
	if call.Frame == "" { // calls of compositions are told apart by their id
		edited.Signature = signature(tool, edited.Input, session.Writes)
	}
	if _, err := a.rule(ctx, session, tool, &edited); err != nil {
		return err
	}
	if edited.Status.Final() {
		r.Refusal = "policy does not allow the changed input: " + strings.Join(edited.Reasons, "; ")
		return nil
	}
	r.Edited = &edited
	return nil
}

func (a *Activities) reconcile(ctx context.Context, in Letter) (Heard, error) {
	var r jig.Reconciliation
	if err := strictJSON(in.Payload, &r); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	request := jig.ReconcileRequest{Tenant: in.Tenant, SessionID: in.SessionID, Key: in.Key + "#0", Principal: jig.Principal{ID: r.By, Claimed: true}, Reconciliation: r}
	switch {
	case r.Call == "":
		request.Refusal = "`call` is missing: name the call, e.g. 3.2"
	case r.By == "":
		request.Refusal = "`by` is missing: say who knows"
	case r.Outcome != jig.OutcomeHappened && r.Outcome != jig.OutcomeNotHappened && r.Outcome != jig.OutcomeGiveUp:
		request.Refusal = fmt.Sprintf("%q is not an outcome; use happened, not_happened or give_up", r.Outcome)
	}
	ruled, err := a.store.Reconcile(ctx, request)
	if err != nil {
		return Heard{}, err
	}
	heard := Heard{Decisions: []jig.Ruled{ruled}}
	return heard, a.follow(ctx, in.SessionRef, ruled, &heard)
}

// follow adds the composition that a decided call belongs to, and the reference of a call that may run now.
func (a *Activities) follow(ctx context.Context, in SessionRef, ruled jig.Ruled, heard *Heard) error {
	inFrame := strings.Contains(ruled.Call, "/")
	if ruled.Status == "" || (ruled.Status != jig.CallReserved && !inFrame) {
		return nil
	}
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, ruled.Call)
	if err != nil {
		return err
	}
	if call.Frame != "" && !slices.Contains(heard.Frames, call.Frame) {
		heard.Frames = append(heard.Frames, call.Frame)
	}
	if call.Status != jig.CallReserved {
		return nil
	}
	ref, err := a.ref(ctx, call)
	if err != nil {
		return err
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

func (a *Activities) message(ctx context.Context, in Letter) (Heard, error) {
	var m Message
	if err := strictJSON(in.Payload, &m); err != nil {
		return a.refuseLetter(ctx, in, "the payload could not be read: "+err.Error())
	}
	if strings.TrimSpace(m.Text) == "" {
		return a.refuseLetter(ctx, in, "`text` is missing: say something")
	}
	session, err := a.store.Session(ctx, in.Tenant, in.SessionID)
	if err != nil {
		return Heard{}, err
	}
	if session.Agent.Name == CallAgent {
		return a.refuseLetter(ctx, in, "this session is a single call: nobody in it reads messages")
	}
	_, err = a.store.AddMessage(ctx, in.Tenant, in.SessionID, in.Key, jig.Message{Role: jig.RoleUser, Text: m.Text, By: m.By, Pass: in.Pass})
	return Heard{Message: true}, err
}

func (a *Activities) refuseLetter(ctx context.Context, in Letter, reason string) (Heard, error) {
	data, err := json.Marshal(map[string]any{"name": in.Name, "payload": cut(string(in.Payload), 1000), "reason": reason})
	if err != nil {
		return Heard{}, jig.Errorf(jig.CodeInternal, "encoding a refusal: %w", err)
	}
	ruled := jig.Ruled{Outcome: jig.DecisionRefused, Reason: reason}
	return Heard{Decisions: []jig.Ruled{ruled}}, a.store.Refuse(ctx, in.Tenant, in.SessionID, in.Key, reason, data)
}

// ExpireInput names calls whose approvals may have expired.
type ExpireInput struct {
	SessionRef
	Calls []string `json:"calls"`
	// Now is the workflow's time.
	Now time.Time `json:"now"`
}

// Expire expires the approvals whose time has come and says where each call stands.
func (a *Activities) Expire(ctx context.Context, in ExpireInput) (Heard, error) {
	var heard Heard
	for _, id := range in.Calls {
		status, err := a.store.ExpireApproval(ctx, in.Tenant, in.SessionID, id, in.Now)
		if err != nil {
			return heard, temporalError(err)
		}
		ruled := jig.Ruled{Call: id, Outcome: jig.DecisionAccepted, Status: status}
		heard.Decisions = append(heard.Decisions, ruled)
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
