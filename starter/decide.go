package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

func (a *app) approveCommand() *cobra.Command {
	var input, note, digest string
	var bulk bulkFlags
	grant := grantFlags{prefix: "grant-"}
	var p proof
	cmd := &cobra.Command{
		Use:   "approve [SESSION [CALL…]]",
		Short: "Approve waiting calls, as they are or with changed input",
		Long: `Approve waiting calls, as they are or with changed input. With one of the --grant flags the approval also creates a standing
approval: matching calls of the tool then run without asking, by default 10 calls of the same agent within 24 hours. The command lists
the waiting calls that it covers, and asks whether to approve them too; --yes approves them without asking. "jig grant apply" does the
same later. See "jig grant --help". If a call needs more approvals, the command says which, and the call keeps waiting.

Without CALL, the command shows and approves the only call that waits in the session or, without SESSION, the only one that you may
decide. On a terminal it asks first.

With a key (--key or JIG_SIGNING_KEY) the approval is signed for exactly what is waiting now. --token takes a token from "jig token".`,
		Example: `  jig approve ses_… 3.1
  jig approve ses_… 3.1 --input @edited.json --note "shorter"
  jig approve ses_… 3.1 --grant-when 'input.amount < 100' --grant-uses 20 --grant-expires 7d
  jig approve --all --tool 'file.*' --agent docs --older 1h`,
		Args: bulk.args(sessionArgs(0, 0)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (several(args) || bulk.all) && (input != "" || digest != "") {
				return usagef("--input and --digest need exactly one call")
			}
			request, err := grant.request(cmd)
			if err != nil {
				return err
			}
			if (several(args) || bulk.all) && request != nil {
				return usagef("a grant needs exactly one call")
			}
			if err := p.settle(a, cmd, bulk.count(args)); err != nil {
				return err
			}
			decision := jig.Decision{By: p.by, Token: p.token, Answer: jig.AnswerApprove, Digest: digest, Note: note, Grant: request}
			if input != "" {
				if decision.Input, err = a.jsonArgument("--input", input); err != nil {
					return err
				}
			}
			if bulk.all {
				return a.decideAll(cmd.Context(), bulk, decision)
			}
			return a.decide(cmd, args, decision, bulk.yes)
		},
	}
	bulk.add(cmd)
	cmd.Flags().Lookup("yes").Usage = "with --all, and for the waiting calls that a new standing approval covers: do not ask for confirmation"
	flags := cmd.Flags()
	flags.StringVar(&input, "input", "", "input to use instead of the requested one: @file.json, @- or JSON")
	flags.StringVar(&note, "note", "", "note for the log")
	flags.StringVar(&digest, "digest", "", "approve only if the call has this digest")
	grant.add(cmd)
	a.addProofFlags(cmd, &p)
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var reason, digest string
	var bulk bulkFlags
	var p proof
	cmd := &cobra.Command{
		Use:   "deny [SESSION [CALL…]]",
		Short: "Deny waiting calls; the agent sees the reason",
		Long: `Deny waiting calls; the agent sees the reason. On a terminal the command asks for the reason if --reason is missing.

Without CALL, the command shows and denies the only call that waits in the session or, without SESSION, the only one that you may decide.
On a terminal it asks first.`,
		Example: `  jig deny ses_… 3.1 --reason "not before the release"
  jig deny ses_… --reason "not before the release"`,
		Args: bulk.args(sessionArgs(0, 0)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (several(args) || bulk.all) && digest != "" {
				return usagef("--digest needs exactly one call")
			}
			if err := p.settle(a, cmd, bulk.count(args)); err != nil {
				return err
			}
			decision := jig.Decision{By: p.by, Token: p.token, Answer: jig.AnswerDeny, Digest: digest, Reason: reason}
			if bulk.all {
				return a.decideAll(cmd.Context(), bulk, decision)
			}
			if err := a.decide(cmd, args, decision, false); err != nil {
				return err
			}
			if reason == "" && !a.interactive && !a.json() {
				a.say("no reason was given: the agent is only told that a person denied the call (next time: --reason \"…\")")
			}
			return nil
		},
	}
	bulk.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a sentence")
	cmd.Flags().StringVar(&digest, "digest", "", "deny only if the call has this digest")
	a.addProofFlags(cmd, &p)
	return cmd
}

// reasoned asks for the reason of a denial without one, if there is a terminal. An empty line means that there is none. A denial with a token is
// left as it is, because the token proves it.
func (a *app) reasoned(ctx context.Context, d jig.Decision) (jig.Decision, error) {
	if d.Answer != jig.AnswerDeny || d.Reason != "" || d.Token != "" || !a.interactive || a.json() {
		return d, nil
	}
	_, _ = fmt.Fprint(a.stderr, "why not? (optional; the agent sees it) ")
	var err error
	d.Reason, err = a.readLine(ctx)
	return d, err
}

func (a *app) delegateCommand() *cobra.Command {
	var to, note string
	var undo bool
	var p proof
	cmd := &cobra.Command{
		Use:   "delegate SESSION CALL… --to PRINCIPAL | --undo",
		Short: "Delegate your decision on waiting calls to somebody else",
		Long: `Delegate your decision on waiting calls to somebody else, who may then decide what you could have decided. You can no longer decide
these calls yourself, unless you take the delegation back with --undo. That works until the delegate has approved.`,
		Example: `  jig delegate ses_… 3.1 --to ben
  jig delegate ses_… 3.1 3.2 --to ben --note "he knows the customer"
  jig delegate ses_… 3.1 --undo`,
		Args: sessionArgs(2, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case to == "" && !undo:
				return usagef("--to is missing: the principal who decides in your place")
			case to != "" && undo:
				return usagef("--to and --undo cannot be combined")
			}
			if err := p.settle(a, cmd, len(args)-1); err != nil {
				return err
			}
			decision := jig.Decision{By: p.by, Token: p.token, Answer: jig.AnswerDelegate, To: to, Undo: undo, Note: note}
			return a.decide(cmd, args, decision, false)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "principal who decides in your place")
	cmd.Flags().BoolVar(&undo, "undo", false, "take your delegation back")
	cmd.Flags().StringVar(&note, "note", "", "note for the log")
	a.addProofFlags(cmd, &p)
	return cmd
}

// several reports whether arguments name more than one call.
func several(args []string) bool { return len(args) > 2 }

// decide sends the same decision about the calls that the arguments name or, if they name none, about the only one that waits. yes confirms that
// a grant that comes with the decision approves the waiting calls that it covers.
func (a *app) decide(cmd *cobra.Command, args []string, like jig.Decision, yes bool) error {
	return a.with(cmd.Context(), func(e engine) error {
		session := ""
		if len(args) > 0 {
			session = a.session(args[0])
		}
		if len(args) > 1 {
			targets, err := a.located(cmd.Context(), e, session, args[1:])
			if err != nil {
				return err
			}
			return a.decideThere(cmd.Context(), e, targets, like, yes)
		}
		target, err := a.onlyWaiting(cmd.Context(), e, session, like.Answer)
		if err != nil {
			return err
		}
		like.Digest = cmp.Or(like.Digest, target.Digest)
		return a.decideThere(cmd.Context(), e, []protocol.WaitingCall{target}, like, yes)
	})
}

func (a *app) reconcileCommand() *cobra.Command {
	var outcome, result, note string
	var attempt int
	var p proof
	cmd := &cobra.Command{
		Use:   "reconcile SESSION CALL --outcome happened|not_happened|give_up",
		Short: "Settle a call whose outcome is unknown",
		Long: `A call of a tool that must not run twice was interrupted, and jig cannot know whether it took effect. Say what you found out:
happened (with its --result, if you know it), not_happened (it runs again), or give_up (it fails).

If it runs again and is interrupted again, jig asks about the next attempt. That answer needs --attempt with the number that
"jig approvals" shows, so that it cannot be applied to another attempt.`,
		Example: `  jig reconcile ses_… 2.1 --outcome happened --result '{"id": 7}'
  jig reconcile ses_… 2.1 --outcome not_happened
  jig reconcile ses_… 2.1 --outcome not_happened --attempt 2`,
		Args: sessionArgs(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := jig.Reconciliation{Call: args[1], Outcome: jig.ReconcileOutcome(outcome), Attempt: attempt, Note: note}
			switch word.Outcome {
			case jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp:
			default:
				return usagef("--outcome is %s; it must be happened, not_happened or give_up", orMissing(outcome))
			}
			if result != "" {
				if word.Outcome != jig.OutcomeHappened {
					return usagef("--result needs --outcome happened")
				}
				var err error
				if word.Result, err = a.jsonArgument("--result", result); err != nil {
					return err
				}
			}
			if err := p.settle(a, cmd, 1); err != nil {
				return err
			}
			word.By, word.Token = p.by, p.token
			return a.with(cmd.Context(), func(e engine) error {
				session, call, err := a.locatedOne(cmd.Context(), e, a.session(args[0]), args[1])
				if err != nil {
					return err
				}
				word.Call = call
				if err := a.signReconciliation(cmd.Context(), e, session, &word); err != nil {
					return err
				}
				ruled, err := e.Reconcile(cmd.Context(), a.flags.tenant, session, word)
				if err != nil {
					return err
				}
				return a.printRuled(session, ruled, ruledReconciled)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&outcome, "outcome", "", "happened, not_happened or give_up")
	flags.IntVar(&attempt, "attempt", 1, "attempt that you found out about")
	flags.StringVar(&result, "result", "", "result of the call: JSON, @file.json or @-")
	flags.StringVar(&note, "note", "", "note for the log")
	completeFlag(cmd, "outcome", string(jig.OutcomeHappened), string(jig.OutcomeNotHappened), string(jig.OutcomeGiveUp))
	a.addProofFlags(cmd, &p)
	return cmd
}

// ruledReconciled tells printRuled that a call was reconciled.
const ruledReconciled = jig.Answer(token.ActionReconcile)

// printRuled prints the outcome of decisions. The exit code is 1 if one was refused.
func (a *app) printRuled(session string, result client.DecideResult, answer jig.Answer) error {
	result.SessionID = cmp.Or(result.SessionID, session)
	if result.Decisions == nil {
		result.Decisions = []jig.Ruled{}
	}
	code := exitDone
	for i, r := range result.Decisions {
		result.Decisions[i].Template = ""
		if r.Outcome != jig.DecisionAccepted {
			code = exitFailed
		}
	}
	if a.json() {
		return a.exitJSON(result, code)
	}
	for _, r := range result.Decisions {
		a.line("%s", a.ruledLine(a.out, r, answer, "", false))
	}
	return silent(code)
}

// rawOrNil returns raw, or nil if it is empty.
func rawOrNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
