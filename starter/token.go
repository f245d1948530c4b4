package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/strictjson"
)

// tokenFlags are the flags of `token`.
type tokenFlags struct {
	action, digest   string
	input, grant, to string
	undo             bool
	grantID          string
	value            string
	outcome, result  string
	attempt          int
	note, reason     string
	lifetime         time.Duration
}

// decisionFlags lists, per action, the flags that a decision may have. An exclamation mark means that the flag is required.
func decisionFlags() map[string][]string {
	return map[string][]string{
		string(jig.AnswerApprove): {"input", "grant", "grant-id", "note"}, string(jig.AnswerDeny): {"reason", "note"},
		string(jig.AnswerDelegate): {"to", "undo", "note"}, token.ActionAnswer: {"value!", "note"},
		token.ActionReconcile: {"outcome!", "attempt", "result", "note"},
	}
}

// check refuses flags that do not belong to the action.
func (f tokenFlags) check(cmd *cobra.Command) error {
	all := decisionFlags()
	own, known := all[f.action]
	if !known {
		return usagef("--action is %s; it must be approve, deny, delegate, answer or reconcile", orMissing(f.action))
	}
	if f.lifetime <= 0 {
		return usagef("--lifetime is %s; give at most %s", f.lifetime, token.MaxLifetime)
	}
	if f.action == string(jig.AnswerDelegate) && (f.to == "") == !f.undo {
		return usagef("--action %s needs either --to or --undo", f.action)
	}
	for _, name := range own {
		if bare, must := strings.CutSuffix(name, "!"); must && !cmd.Flags().Changed(bare) {
			return usagef("--action %s needs --%s", f.action, bare)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all[action] {
			if bare := strings.TrimSuffix(name, "!"); action != f.action && bare != "note" && cmd.Flags().Changed(bare) {
				return usagef("--%s needs --action %s", bare, action)
			}
		}
	}
	return nil
}

func (a *app) tokenCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "token SESSION CALL --action approve|deny|delegate|answer|reconcile",
		Short: "Print a token that proves who decides a call",
		Long: `Print a token that proves who decides a call, for a decision that is sent by other means, e.g. with the temporal command. The token
is valid once and for a few minutes, for one action on one call as it waits now, and only for a decision with the same content: give
the same --input, --grant, --grant-id, --to, --undo, --value, --outcome, --attempt, --result, --note and --reason here as in the decision.

The key is taken from --key or JIG_SIGNING_KEY; see "jig key new". Without --digest the command looks up the waiting call; with it,
it connects to nothing. JSON output: {"token", "key", "principal", "action", "session_id", "call", "digest", "expires_at"}.`,
		Example: `  jig token ses_… 3.1 --action approve --key ana.key
  temporal workflow signal --workflow-id ses_… --name approve \
    --input "{\"call\": \"3.1\", \"token\": \"$(jig token ses_… 3.1 --action approve)\"}"
  jig token ses_… 2.1 --action reconcile --outcome happened --result '{"id": 7}'`,
		Args: sessionArgs(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printToken(cmd, a.session(args[0]), args[1], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.action, "action", "", "approve, deny, delegate, answer or reconcile")
	flags.StringVar(&f.digest, "digest", "", "digest of the waiting call (default: looked up)")
	flags.StringVar(&f.input, "input", "", "approval with this changed input: @file.json, @- or JSON")
	flags.StringVar(&f.grant, "grant", "", "approval with this standing approval: @file.json, @- or JSON, e.g. {\"max_uses\": 3}")
	flags.StringVar(&f.grantID, "grant-id", "", "approval with one use of this existing standing approval")
	flags.StringVar(&f.to, "to", "", "principal to delegate to")
	flags.BoolVar(&f.undo, "undo", false, "the delegation is taken back")
	flags.StringVar(&f.value, "value", "", "the answer: @file.json, @- or JSON")
	flags.StringVar(&f.outcome, "outcome", "", "happened, not_happened or give_up")
	flags.IntVar(&f.attempt, "attempt", 1, "attempt that the outcome is about")
	flags.StringVar(&f.result, "result", "", "result of the call: @file.json, @- or JSON")
	flags.StringVar(&f.note, "note", "", "note of the decision")
	flags.StringVar(&f.reason, "reason", "", "reason of a denial, which the agent sees")
	flags.DurationVar(&f.lifetime, "lifetime", token.DefaultLifetime, "how long it is valid, at most "+shortDuration(token.MaxLifetime))
	a.addKeyFlag(cmd)
	return cmd
}

// madeToken is the JSON output of `token`.
type madeToken struct {
	Token     string    `json:"token"`
	Key       string    `json:"key"`
	Principal string    `json:"principal"`
	Action    string    `json:"action"`
	SessionID string    `json:"session_id"`
	Call      string    `json:"call"`
	Digest    string    `json:"digest"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (a *app) printToken(cmd *cobra.Command, session, call string, f tokenFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	key, signs, err := a.signer()
	if err != nil {
		return err
	}
	if !signs {
		return usage(jig.Errorf(jig.CodeInvalidInput, "there is no signing key").WithField("key").
			WithHint("give --key or set " + signingKeySetting + "; `" + a.program + " key new` creates one"))
	}
	principal, err := a.actor()
	if err != nil {
		return err
	}
	claim, err := a.claimOf(session, call, f)
	if err != nil {
		return usage(err)
	}
	claim.Principal = principal
	if claim.Digest == "" {
		if claim.Digest, err = a.waitingDigest(cmd.Context(), session, call, f.action); err != nil {
			return err
		}
	}
	now := time.Now().Truncate(time.Second)
	text, err := token.Sign(claim, key, now, f.lifetime)
	if err != nil {
		return usage(err)
	}
	if a.json() {
		return a.printJSON(madeToken{
			Token: text, Key: key.ID(), Principal: principal, Action: f.action, SessionID: session, Call: call, Digest: claim.Digest,
			ExpiresAt: now.Add(f.lifetime).UTC(),
		})
	}
	return a.print("%s", text)
}

// claimOf returns the claim that the token proves. It uses the same functions as the verification.
func (a *app) claimOf(session, call string, f tokenFlags) (identity.Claim, error) {
	var values [3]json.RawMessage
	for i, flag := range []struct{ name, value string }{{"--input", f.input}, {"--value", f.value}, {"--result", f.result}} {
		if flag.value == "" {
			continue
		}
		var err error
		if values[i], err = a.jsonArgument(flag.name, flag.value); err != nil {
			return identity.Claim{}, err
		}
	}
	switch f.action {
	case token.ActionAnswer:
		return token.ForReply(a.flags.tenant, session, jig.Reply{Call: call, Value: values[1], Note: f.note}, f.digest)
	case token.ActionReconcile:
		word := jig.Reconciliation{
			Call: call, Outcome: jig.ReconcileOutcome(f.outcome), Attempt: f.attempt, Result: values[2], Note: f.note,
		}
		if !slices.Contains([]jig.ReconcileOutcome{jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp}, word.Outcome) {
			return identity.Claim{}, usagef("--outcome is %q; it must be happened, not_happened or give_up", f.outcome)
		}
		if word.Result != nil && word.Outcome != jig.OutcomeHappened {
			return identity.Claim{}, usagef("--result needs --outcome happened")
		}
		return token.ForReconciliation(a.flags.tenant, session, word, f.digest)
	}
	decision := jig.Decision{Call: call, Answer: jig.Answer(f.action), Input: values[0], To: f.to, Undo: f.undo, GrantID: f.grantID, Note: f.note, Reason: f.reason}
	if f.grant != "" {
		var err error
		if decision.Grant, err = a.grantArgument(f.grant); err != nil {
			return identity.Claim{}, err
		}
	}
	return token.ForDecision(a.flags.tenant, session, decision, f.digest)
}

// grantArgument parses --grant. Unknown members are an error.
func (a *app) grantArgument(value string) (*jig.GrantRequest, error) {
	raw, err := a.jsonArgument("--grant", value)
	if err != nil {
		return nil, err
	}
	grant := &jig.GrantRequest{}
	if err := strictjson.UnmarshalKnown(raw, grant); err != nil {
		return nil, unreadable("--grant is not a grant", err)
	}
	return grant, nil
}

// waitingDigest returns the digest of the waiting call. It returns an error if the action does not fit the kind of the
// call.
func (a *app) waitingDigest(ctx context.Context, session, call, action string) (digest string, err error) {
	kind := jig.PendingApproval
	switch action {
	case token.ActionAnswer:
		kind = jig.PendingQuestion
	case token.ActionReconcile:
		kind = jig.PendingReconcile
	}
	err = a.with(ctx, func(e engine) error {
		list, err := e.Approvals(ctx, a.flags.tenant, session)
		if err != nil {
			return err
		}
		p, found := findWaiting(list, session, call)
		switch {
		case !found:
			return jig.Errorf(jig.CodeNotFound, "no call %s is waiting in %s", call, session).WithField("call").
				WithHint("see `" + a.command("approvals", "--session", session) + "`, or give --digest")
		case p.Kind != kind:
			return usagef("--action %[2]s does not fit %[1]s, whose kind is %[3]s", call, action, p.Kind)
		}
		digest = p.Digest
		return nil
	})
	return digest, err
}

// proof is a command's proof of who decides: a key, or a token that was created elsewhere.
type proof struct {
	token string
	// by is the deciding principal, after settle; empty if only the token says who it is.
	by string
}

// addProofFlags adds --key and --token to a command that decides about calls.
func (a *app) addProofFlags(cmd *cobra.Command, p *proof) {
	a.addKeyFlag(cmd)
	cmd.Flags().StringVar(&p.token, "token", "", "token from \"jig token\" that proves who decides; valid for one call")
}

// count returns the number of calls to decide. With --all the number is not known yet; count returns 2, which means several.
func (f *bulkFlags) count(args []string) int {
	if f.all {
		return 2
	}
	return max(len(args)-1, 1)
}

// settle determines who decides and checks the flags; calls is the number of calls, and a token is valid for only one. A token already
// names its principal, so with a token only an explicit --as counts.
func (p *proof) settle(a *app, cmd *cobra.Command, calls int) (err error) {
	if !cmd.Flags().Changed("token") {
		p.by, err = a.actor()
		return err
	}
	p.token = strings.TrimSpace(p.token)
	switch {
	case p.token == "":
		return usagef("--token is empty; give a token from \"jig token\"")
	case calls > 1:
		return usagef("--token needs exactly one call")
	case cmd.Flags().Changed("key"):
		return usagef("--token and --key cannot be combined")
	}
	if cmd.Flags().Changed("as") {
		p.by = a.flags.as
	}
	return nil
}

// signs reports whether a signing key is configured. It does not check that the key can be read.
func (a *app) signs() bool { return a.flags.key != "" || a.env[signingKeySetting] != "" }

// signDecisions signs each decision of a session if there is a key. For a decision without a digest, it looks up the digest of the waiting
// call.
func (a *app) signDecisions(ctx context.Context, e engine, session string, decisions []jig.Decision) error {
	if !a.signs() {
		return nil
	}
	var waiting []jig.Pending
	if slices.ContainsFunc(decisions, func(d jig.Decision) bool { return d.Token == "" && d.Digest == "" }) {
		var err error
		if waiting, err = e.Approvals(ctx, a.flags.tenant, session); err != nil {
			return err
		}
	}
	for i := range decisions {
		d := &decisions[i]
		if d.Token != "" {
			continue
		}
		claim, err := token.ForDecision(a.flags.tenant, session, *d, cmp.Or(d.Digest, digestOf(waiting, session, d.Call)))
		if err != nil {
			return usage(err)
		}
		if d.Token, err = a.sign(claim); err != nil {
			return err
		}
	}
	return nil
}

// signReply signs the answer to a question if there is a key.
func (a *app) signReply(session string, r *jig.Reply, digest string) error {
	if r.Token != "" || !a.signs() {
		return nil
	}
	claim, err := token.ForReply(a.flags.tenant, session, *r, digest)
	if err != nil {
		return usage(err)
	}
	r.Token, err = a.sign(claim)
	return err
}

// signReconciliation signs a reconciliation if there is a key.
func (a *app) signReconciliation(ctx context.Context, e engine, session string, word *jig.Reconciliation) error {
	if word.Token != "" || !a.signs() {
		return nil
	}
	waiting, err := e.Approvals(ctx, a.flags.tenant, session)
	if err != nil {
		return err
	}
	claim, err := token.ForReconciliation(a.flags.tenant, session, *word, digestOf(waiting, session, word.Call))
	if err != nil {
		return usage(err)
	}
	word.Token, err = a.sign(claim)
	return err
}

// signSubject returns the token for an action that concerns no call, such as a pause; "" if there is no key.
func (a *app) signSubject(ctx context.Context, e engine, by, action, subject, reason string) (string, error) {
	if !a.signs() {
		return "", nil
	}
	installation, err := e.Installation(ctx, a.flags.tenant)
	if err != nil {
		return "", err
	}
	claim, err := token.ForSubject(installation, a.flags.tenant, action, subject, reason)
	if err != nil {
		return "", usage(err)
	}
	claim.Principal = by
	return a.sign(claim)
}

// digestOf returns the digest of a waiting call. If the call does not wait, it returns ""; the engine then refuses the decision and records
// it.
func digestOf(waiting []jig.Pending, session, call string) string {
	p, _ := findWaiting(waiting, session, call)
	return p.Digest
}

func findWaiting(waiting []jig.Pending, session, call string) (jig.Pending, bool) {
	at := slices.IndexFunc(waiting, func(p jig.Pending) bool { return p.Call == call && (p.SessionID == "" || p.SessionID == session) })
	if at < 0 {
		return jig.Pending{}, false
	}
	return waiting[at], true
}

// systemUser returns the user name that the operating system reports.
func (a *app) systemUser() string {
	return cmp.Or(a.env["USER"], a.env["LOGNAME"], a.env["USERNAME"], "cli")
}
