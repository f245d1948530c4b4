package activities_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/builtin/person"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/expr"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/ledger"
	"github.com/jig-run/jig/internal/plan/composition"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/schema"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/internal/tenancy"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// office is the engine's activities with a real store and real policies, tokens and grants. A test can change the tenant's settings
// and policies at any time.
type office struct {
	*activities.Activities
	*tools.Registry

	db              *store.DB
	tenant, session string
	settings        tenancy.Settings
	// latest are the settings of the latest document, if the worker does not know it yet.
	latest     *tenancy.Settings
	rules      policy.Set
	store      activities.Store  // db, unless a test wraps it
	unreadable []jig.PolicyState // policies that this worker cannot read
	signers    map[string]token.Signer
	schemas    schema.Checker
	extra      []tools.Tool
	temporal   activities.Runs
	model      activities.Model   // anyModel, unless a test sets it
	budgets    activities.Budgets // nil, unless a test sets it
	rates      activities.RateLimits
	modelName  string // the model of the session's agent; script/clerk, unless a test sets it
	servers    activities.Servers
	extractor  activities.Extractor
	composer   activities.Composer // compositions, unless a test sets it
	clock      time.Duration       // how far the engine's clock is ahead

	mu  sync.Mutex
	ran []string
}

type refund struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
}

type flagged struct {
	Order     string `json:"order"`
	Confirmed bool   `json:"confirmed,omitempty"`
}

// The tools of the office.
const (
	refundTool  = "shop.refund"
	ordersTool  = "shop.orders"
	closeTool   = "shop.close"
	archiveTool = "shop.archive"
	purgeTool   = "shop.purge"
	guardedTool = "shop.guarded"
)

func (o *office) did(what string, inv jig.Invocation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ran = append(o.ran, inv.CallID+" "+what)
}

func (o *office) toolbox() []tools.Tool {
	refunds := func(name string, permission jig.Permission) tools.Tool {
		contract := jig.Tool{Name: name, Description: "Refunds an order.", Permission: permission, Labels: &jig.Labels{}}
		if name == guardedTool {
			contract.RequiredPermission = guardedTool
		}
		return tools.New(contract,
			func(_ context.Context, inv jig.Invocation, in refund) (refund, error) {
				o.did(fmt.Sprintf("%s %d", in.Order, in.Amount), inv)
				return in, nil
			})
	}
	flags := func(name string, permission jig.Permission) tools.Tool {
		return tools.New(jig.Tool{Name: name, Description: "Closes an order. For good.", Permission: permission, Confirm: true, Labels: &jig.Labels{}},
			func(_ context.Context, inv jig.Invocation, in flagged) (flagged, error) {
				o.did(fmt.Sprintf("%s %v", in.Order, in.Confirmed), inv)
				return in, nil
			})
	}
	delegation := prompt.Tools(prompt.Options{Model: anyModel{}})
	return append(append(person.Tools(), delegation...), refunds(refundTool, jig.PermissionWrite), refunds(ordersTool, jig.PermissionRead),
		refunds(purgeTool, jig.PermissionDestructive), refunds(guardedTool, jig.PermissionWrite), flags(closeTool, jig.PermissionWrite), flags(archiveTool, jig.PermissionDestructive))
}

func newOffice(t *testing.T, change ...func(*office)) *office {
	t.Helper()
	o := &office{db: storetest.New(t), tenant: storetest.Tenant(t), signers: map[string]token.Signer{}}
	o.settings.SetSignals(tenancy.SignalsTrusted)
	for id, groups := range map[string][]string{"fay": {"finance"}, "flo": {"finance"}, "ana": nil, "gus": nil} {
		o.settings.People = append(o.settings.People, jig.Principal{ID: id, Groups: groups})
		private, _, err := token.NewKey()
		require.NoError(t, err)
		o.signers[id], err = token.ParsePrivateKey(private, "", id)
		require.NoError(t, err)
		o.settings.Keys = append(o.settings.Keys, o.signers[id].Key())
	}
	o.store = o.db
	o.schemas = schema.NewChecker(schema.Options{MaxInstanceBytes: tools.MaxInputBytes, ExactNumbers: true})
	for _, c := range change {
		c(o)
	}
	o.deploy(t)
	o.session = o.open(t)
	return o
}

// deploy starts a worker with the office's current tools.
func (o *office) deploy(t *testing.T) {
	t.Helper()
	registry, err := tools.NewRegistry(append(o.toolbox(), o.extra...)...)
	require.NoError(t, err)
	o.equip(t, registry)
}

// equip gives the office a worker with the given tools.
func (o *office) equip(t *testing.T, registry *tools.Registry) {
	t.Helper()
	expressions, err := expr.NewEngine()
	require.NoError(t, err)
	o.Registry = registry
	o.Activities = activities.New(activities.Deps{
		Store: o.store, Catalog: o.Registry, Policy: ruling{office: o}, Tenants: o, Schemas: o.schemas,
		Expressions: expressions, Composer: cmp.Or(o.composer, activities.Composer(composition.NewEngine())), ParseAgent: spec.ParseAgent, Model: cmp.Or(o.model, activities.Model(anyModel{})), Now: o.now,
		Runs: o.temporal, Budgets: o.budgets, RateLimits: o.rates, Servers: o.servers, Extractor: o.extractor,
	})
}

func (o *office) now() time.Time { return time.Now().Add(o.clock) }

// signed sets up an office whose tenant requires proof.
func signed(o *office) { o.settings.SetSignals(tenancy.SignalsSigned) }

// govern sets the policy. rules is a list of rules in YAML.
func (o *office) govern(t *testing.T, rules string) {
	t.Helper()
	doc, problems := spec.Load("policy.yaml", []byte("kind: policy\nname: p\nrules:\n"+rules))
	require.Empty(t, problems)
	compiled, err := policy.Compile(*doc.Policy(), doc.Version)
	require.NoError(t, err)
	o.rules = policy.NewSet(compiled)
}

func (o *office) open(t *testing.T) string {
	t.Helper()
	s, err := o.db.CreateSession(t.Context(), jig.Session{
		Tenant: o.tenant, ID: jig.NewSessionID(), Task: "help", Catalog: o.pinned(), Principal: jig.Principal{ID: "ana", Claimed: true},
		Agent: jig.Agent{Name: "clerk", Version: "0123456789abcdef", Model: cmp.Or(o.modelName, "script/clerk"), Tools: []string{"*"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			o.requireTellingEvents(t, s.ID)
		}
	})
	return s.ID
}

// asks makes the model ask for a call of a tool in a pass, and admits it.
func (o *office) asks(t *testing.T, pass int, tool, input string) jig.Call {
	t.Helper()
	_, err := o.db.BeginPass(t.Context(), o.tenant, o.session, pass)
	require.NoError(t, err)
	_, err = o.db.SaveTurn(t.Context(), o.tenant, o.session, pass, chat.Turn{
		Stop: chat.StopCalls, Calls: []jig.ToolCall{{ProviderID: "c", Name: tool, Input: json.RawMessage(input)}},
	})
	require.NoError(t, err)
	_, err = o.Admit(t.Context(), activities.AdmitInput{PassRef: activities.PassRef{SessionRef: o.ref(), Pass: pass}, Limit: 100})
	require.NoError(t, err)
	return o.call(t, jig.CallID(pass, 1))
}

func (o *office) ref() protocol.SessionRef {
	return protocol.SessionRef{Tenant: o.tenant, SessionID: o.session}
}

func (o *office) call(t *testing.T, id string) jig.Call {
	t.Helper()
	c, err := o.db.Call(t.Context(), o.tenant, o.session, id)
	require.NoError(t, err)
	return c
}

func (o *office) pending(t *testing.T, id string) jig.Pending {
	t.Helper()
	p, err := o.db.Pending(t.Context(), o.tenant, o.session, id)
	require.NoError(t, err)
	return p
}

// runs runs a call as a worker does, and returns its state.
func (o *office) runs(t *testing.T, id string) jig.CallStatus {
	t.Helper()
	ran, err := o.RunTool(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: id})
	require.NoError(t, err)
	return ran.State
}

// hear sends a signal as an update.
func (o *office) hear(t *testing.T, name string, payload any) jig.Ruled {
	t.Helper()
	return o.sent(t, name, "update:"+jig.NewSessionID(), payload)
}

func (o *office) sent(t *testing.T, name, key string, payload any) jig.Ruled {
	t.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(t, err)
	heard, err := o.Hear(t.Context(), activities.Signal{SessionRef: o.ref(), Name: name, Key: key, Payload: raw, Pass: 1})
	require.NoError(t, err)
	require.Len(t, heard.Decisions, 1)
	return heard.Decisions[0]
}

// sign returns a principal's token for a claim.
func (o *office) sign(t *testing.T, who string, claim identity.Claim, err error) string {
	t.Helper()
	require.NoError(t, err)
	claim.Principal = who
	text, err := token.Sign(claim, o.signers[who], o.now(), 0)
	require.NoError(t, err)
	return text
}

// vouched returns a decision with the token of the person who makes it, for the approval that is open now.
func (o *office) vouched(t *testing.T, who string, d jig.Decision) jig.Decision {
	t.Helper()
	claim, err := token.ForDecision(o.tenant, o.session, d, o.pending(t, d.Call).Digest)
	d.Token = o.sign(t, who, claim, err)
	return d
}

// ruling applies the office's policies.
type ruling struct {
	*office
	activities.Policy
}

func (r ruling) Rule(ctx context.Context, tool jig.Tool, call jig.Call, session jig.Session, now time.Time) (policy.Ruling, error) {
	x, err := r.policies().Decide(ctx, tool, call, session, now)
	return x.Ruling, err
}

func (r ruling) Policies(context.Context, string) ([]jig.PolicyState, error) {
	return r.policies().States(), nil
}

func (o *office) policies() policy.Tenant {
	return policy.Tenant{Policies: o.rules, Unreadable: o.unreadable}
}

// Settings returns the current settings.
func (o *office) Settings(context.Context, string) (tenancy.Settings, error) {
	return o.settings, nil
}

func (o *office) Latest(ctx context.Context, tenant string) (tenancy.Settings, error) {
	if o.latest != nil {
		return *o.latest, nil
	}
	return o.Settings(ctx, tenant)
}

const small = `{"order":"a","amount":10}`

func TestSignedDecision_NeedsAToken(t *testing.T) {
	t.Parallel()
	for mode, key := range map[tenancy.SignalMode]string{tenancy.SignalsSigned: "signal:1", tenancy.SignalsOff: "update:1"} {
		o := newOffice(t, func(o *office) { o.settings.SetSignals(mode) })
		c := o.asks(t, 1, refundTool, small)
		got := o.sent(t, "approve", key+"a", jig.Decision{Call: c.ID, By: "fay"})
		require.Equal(t, jig.DecisionRefused, got.Outcome, mode)
		require.Contains(t, got.Reason, "only signed decisions", mode)
		require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
		got = o.sent(t, "approve", key+"b", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}))
		require.Equal(t, jig.CallReserved, got.Status, "%s: %v", mode, got)
		require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
		by, proof, err := o.db.Approved(t.Context(), o.tenant, o.session, c.ID)
		require.NoError(t, err)
		require.Equal(t, []string{"fay"}, by)
		require.Equal(t, jig.ProofKey, proof)
	}
}

func TestRawSignals_AreRefusedWhenOff(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) { o.settings.SetSignals(tenancy.SignalsOff) })
	c := o.asks(t, 1, refundTool, small)
	for name, payload := range map[string]any{
		"approve": o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}), "deny": jig.Decision{Call: c.ID, By: "fay"},
		"answer": jig.Reply{Call: c.ID, Value: json.RawMessage(`1`), By: "fay"}, "reconcile": jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeGiveUp, By: "fay"},
	} {
		got := o.sent(t, name, "signal:"+name, payload)
		require.Equal(t, jig.DecisionRefused, got.Outcome, name)
		require.Contains(t, got.Reason, "accepts no decisions by signal", name)
	}
	require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status)
}

// If any single part of a signal is changed after it was signed, the signal is refused and nothing changes.
func TestToken_CoversExactlyWhatWasSigned(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	c := o.asks(t, 1, refundTool, small)
	other := o.asks(t, 2, refundTool, `{"order":"b","amount":10}`)
	grant := &jig.GrantRequest{MaxUses: 2}
	plain := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	edit := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"order":"a","amount":5}`)})
	to := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDelegate, To: "flo"})
	with := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Grant: grant})
	noted := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Note: "after a look at the invoice"})
	no := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerDeny, Reason: "too much"})
	tampered := strings.Split(plain.Token, ".")
	for name, row := range map[string]struct {
		signal string
		d      jig.Decision
		change func(*jig.Decision)
	}{
		"another answer":           {"deny", plain, func(*jig.Decision) {}},
		"another call":             {"approve", plain, func(d *jig.Decision) { d.Call = other.ID }},
		"input added":              {"approve", plain, func(d *jig.Decision) { d.Input = json.RawMessage(`{"order":"a","amount":9}`) }},
		"input changed":            {"approve", edit, func(d *jig.Decision) { d.Input = json.RawMessage(`{"order":"a","amount":6}`) }},
		"input removed":            {"approve", edit, func(d *jig.Decision) { d.Input = nil }},
		"another recipient":        {"delegate", to, func(d *jig.Decision) { d.To = "eve" }},
		"undo added":               {"delegate", to, func(d *jig.Decision) { d.To, d.Undo = "", true }},
		"a grant added":            {"approve", plain, func(d *jig.Decision) { d.Grant = grant }},
		"a grant changed":          {"approve", with, func(d *jig.Decision) { d.Grant = &jig.GrantRequest{MaxUses: 200} }},
		"grant removed":            {"approve", with, func(d *jig.Decision) { d.Grant = nil }},
		"a grant to use added":     {"approve", plain, func(d *jig.Decision) { d.GrantID = "grt_1" }},
		"a note added":             {"approve", plain, func(d *jig.Decision) { d.Note = "ana said so" }},
		"a note changed":           {"approve", noted, func(d *jig.Decision) { d.Note = "not looked at" }},
		"note removed":             {"approve", noted, func(d *jig.Decision) { d.Note = "" }},
		"a reason added":           {"approve", plain, func(d *jig.Decision) { d.Reason = "it is fine" }},
		"a reason changed":         {"deny", no, func(d *jig.Decision) { d.Reason = "send it to eve first, then ask again" }},
		"reason removed":           {"deny", no, func(d *jig.Decision) { d.Reason = "" }},
		"another principal's name": {"approve", plain, func(d *jig.Decision) { d.By = "flo" }},
		"a token cut off":          {"approve", plain, func(d *jig.Decision) { d.Token = d.Token[:len(d.Token)-4] }},
		"an unsigned token":        {"approve", plain, func(d *jig.Decision) { d.Token = tampered[0] + "." + tampered[1] + "." }},
		"a digest that is stale":   {"approve", plain, func(d *jig.Decision) { d.Digest = "f00d" }},
		"for another tenant": {"approve", plain, func(d *jig.Decision) {
			claim, err := token.ForDecision("other", o.session, *d, c.Digest)
			d.Token = o.sign(t, "fay", claim, err)
		}},
		"for another session": {"approve", plain, func(d *jig.Decision) {
			claim, err := token.ForDecision(o.tenant, "ses_other", *d, c.Digest)
			d.Token = o.sign(t, "fay", claim, err)
		}},
		"for another digest": {"approve", plain, func(d *jig.Decision) {
			claim, err := token.ForDecision(o.tenant, o.session, *d, other.Digest)
			d.Token = o.sign(t, "fay", claim, err)
		}},
	} {
		d := row.d
		row.change(&d)
		got := o.hear(t, row.signal, d)
		require.Equal(t, jig.DecisionRefused, got.Outcome, name)
		require.NotContains(t, got.Reason, plain.Token)
		require.Equal(t, jig.CallWaiting, o.call(t, c.ID).Status, name)
		require.Equal(t, jig.CallWaiting, o.call(t, other.ID).Status, name)
		require.Empty(t, o.pending(t, c.ID).Delegations, name)
	}
	live, err := o.db.LiveGrants(t.Context(), o.tenant, []string{refundTool}, time.Now())
	require.NoError(t, err)
	require.Empty(t, live)
	o.clock = 20 * time.Minute
	require.Contains(t, o.hear(t, "approve", plain).Reason, "expired")
	o.clock = 0
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", plain).Status, "unchanged, it counts")
	require.Equal(t, jig.DecisionRefused, o.hear(t, "approve", plain).Outcome, "once")
}

// A token is valid only for what it was signed for. It is refused once the call has changed, and for another call with the same input.
func TestToken_CoversWhatWasShown(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	old := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	edit := o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove, Input: json.RawMessage(`{"order":"a","amount":5000}`)})
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "approve", edit).Outcome)
	got := o.hear(t, "approve", old)
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "another digest")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)

	again := o.asks(t, 2, refundTool, `{"order":"b","amount":1}`)
	old.Call = again.ID
	require.Equal(t, jig.DecisionRefused, o.hear(t, "approve", old).Outcome)
}

func TestToken_ProvesItsPrincipal(t *testing.T) {
	t.Parallel()
	o := newOffice(t, signed)
	o.govern(t, "  - {name: one, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "approve", o.vouched(t, "gus", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}))
	require.Contains(t, got.Reason, "gus may not decide this call", "known, and in no group")
	private, _, err := token.NewKey()
	require.NoError(t, err)
	stranger, err := token.ParsePrivateKey(private, "portal", "")
	require.NoError(t, err)
	o.signers["fay2"], o.settings.Keys = stranger, append(slices.Clone(o.settings.Keys), stranger.Key())
	got = o.hear(t, "approve", o.vouched(t, "fay2", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}))
	require.Contains(t, got.Reason, "fay2 may not decide this call", "proved, and not known")
	o.settings.Keys = slices.DeleteFunc(slices.Clone(o.settings.Keys), func(k identity.Key) bool { return k.Principal == "flo" })
	got = o.hear(t, "approve", o.vouched(t, "flo", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove}))
	require.Contains(t, got.Reason, "key is not one of the tenant's")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Status)
}

func TestTrustedSignal_RecordsTheClaim(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: one, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
	c := o.asks(t, 1, refundTool, small)
	require.Contains(t, o.hear(t, "approve", jig.Decision{Call: c.ID}).Reason, "`by` is missing")
	require.Contains(t, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "eve"}).Reason, "eve may not decide this call", "nobody knows eve")
	bad := o.vouched(t, "fay", jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})
	bad.Token += "x"
	bad.By = "fay"
	require.Contains(t, o.hear(t, "approve", bad).Reason, "the token was not accepted", "a token that is sent must be valid")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Status)
	_, proof, err := o.db.Approved(t.Context(), o.tenant, o.session, c.ID)
	require.NoError(t, err)
	require.Equal(t, jig.ProofClaimed, proof, "what is claimed is recorded as claimed")
}

func TestReconcile_SignedByAPerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay"}).Status)
	for range 2 { // the first attempt never finished, so the second one finds the outcome unknown
		_, err := o.db.Reserve(t.Context(), ledger.ReserveRequest{Tenant: o.tenant, SessionID: o.session, CallID: c.ID, Version: c.Version, Digest: c.Digest, Input: c.Input})
		require.NoError(t, err)
	}
	o.settings.SetSignals(tenancy.SignalsSigned)
	r := jig.Reconciliation{Call: c.ID, Outcome: jig.OutcomeHappened, Result: json.RawMessage(`{"id":7}`)}
	claim, err := token.ForReconciliation(o.tenant, o.session, r, o.pending(t, c.ID).Digest)
	r.Token = o.sign(t, "fay", claim, err)
	for name, change := range map[string]func(*jig.Reconciliation){
		"outcome": func(r *jig.Reconciliation) { r.Outcome = jig.OutcomeNotHappened }, "result": func(r *jig.Reconciliation) { r.Result = json.RawMessage(`{"id":8}`) },
		"no result": func(r *jig.Reconciliation) { r.Result = nil }, "note": func(r *jig.Reconciliation) { r.Note = "fay saw it" }, "by": func(r *jig.Reconciliation) { r.By = "flo" }, "no token": func(r *jig.Reconciliation) { r.Token = "" },
	} {
		changed := r
		change(&changed)
		require.Equal(t, jig.DecisionRefused, o.hear(t, "reconcile", changed).Outcome, name)
		require.Equal(t, jig.CallUnknown, o.call(t, c.ID).Status, name)
	}
	require.Equal(t, jig.CallSucceeded, o.hear(t, "reconcile", r).Status)
}
