package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func (a *app) approveCommand() *cobra.Command {
	var input, note, digest string
	var bulk bulkFlags
	cmd := &cobra.Command{
		Use:   "approve SESSION CALL…",
		Short: "Approve calls that wait, as they are or with changed input",
		Example: `  jig approve ses_… 3.1
  jig approve ses_… 3.1 --input @edited.json --note "shorter"
  jig approve --all --tool 'file.*' --agent docs --older 1h`,
		Args: bulk.args(sessionArgs(2, 0)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 && (input != "" || digest != "") {
				return usagef("--input and --digest go with one call")
			}
			decision := jig.Decision{By: a.flags.as, Answer: jig.AnswerApprove, Digest: digest, Note: note}
			if input != "" {
				var err error
				if decision.Input, err = a.jsonArgument("--input", input); err != nil {
					return err
				}
			}
			if bulk.all {
				return a.decideAll(cmd.Context(), bulk, decision)
			}
			return a.decide(cmd, args[0], args[1:], decision)
		},
	}
	bulk.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&input, "input", "", "input in place of what was asked: @file.json, @- or JSON")
	flags.StringVar(&note, "note", "", "a note for the log")
	flags.StringVar(&digest, "digest", "", "approve only what has this digest")
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var reason, digest string
	var bulk bulkFlags
	cmd := &cobra.Command{
		Use:     "deny SESSION CALL…",
		Short:   "Deny calls that wait; the agent is told the reason",
		Example: `  jig deny ses_… 3.1 --reason "not before the release"`,
		Args:    bulk.args(sessionArgs(2, 0)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 && digest != "" {
				return usagef("--digest goes with one call")
			}
			decision := jig.Decision{By: a.flags.as, Answer: jig.AnswerDeny, Digest: digest, Reason: reason}
			if bulk.all {
				return a.decideAll(cmd.Context(), bulk, decision)
			}
			return a.decide(cmd, args[0], args[1:], decision)
		},
	}
	bulk.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a sentence")
	cmd.Flags().StringVar(&digest, "digest", "", "deny only what has this digest")
	return cmd
}

func (a *app) decide(cmd *cobra.Command, session string, calls []string, like jig.Decision) error {
	list := make([]jig.Decision, len(calls))
	for i, call := range calls {
		list[i] = like
		list[i].Call = call
	}
	return a.with(cmd.Context(), func(e engine) error {
		result, err := e.Decide(cmd.Context(), session, list)
		if err != nil {
			return err
		}
		return a.printRuled(session, result, like.Answer)
	})
}

func (a *app) reconcileCommand() *cobra.Command {
	var outcome, result, note string
	cmd := &cobra.Command{
		Use:   "reconcile SESSION CALL --outcome happened|not_happened|give_up",
		Short: "Say whether a call happened whose outcome nobody knows",
		Long: `A call of a tool that must not run twice was cut off: nobody knows whether it took effect. Say what you found out:
happened (with its --result, if you know it), not_happened (it runs again), or give_up (it fails).`,
		Example: `  jig reconcile ses_… 2.1 --outcome happened --result '{"id": 7}'
  jig reconcile ses_… 2.1 --outcome not_happened`,
		Args: sessionArgs(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			word := jig.Reconciliation{Call: args[1], Outcome: jig.ReconcileOutcome(outcome), By: a.flags.as, Note: note}
			switch word.Outcome {
			case jig.OutcomeHappened, jig.OutcomeNotHappened, jig.OutcomeGiveUp:
			default:
				return usagef("--outcome is %q; it can be happened, not_happened or give_up", outcome)
			}
			if result != "" {
				if word.Outcome != jig.OutcomeHappened {
					return usagef("--result goes with --outcome happened")
				}
				var err error
				if word.Result, err = a.jsonArgument("--result", result); err != nil {
					return err
				}
			}
			return a.with(cmd.Context(), func(e engine) error {
				ruled, err := e.Reconcile(cmd.Context(), args[0], word)
				if err != nil {
					return err
				}
				return a.printRuled(args[0], ruled, "")
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&outcome, "outcome", "", "happened, not_happened or give_up")
	flags.StringVar(&result, "result", "", "what the call gave back: JSON, @file.json or @-")
	flags.StringVar(&note, "note", "", "a note for the log")
	return cmd
}

// printRuled prints what became of decisions; a refused one is a failure.
func (a *app) printRuled(session string, result client.DecideResult, answer jig.Answer) error {
	result.SessionID = firstOf(result.SessionID, session)
	if result.Decisions == nil {
		result.Decisions = []jig.Ruled{}
	}
	code := exitDone
	for _, r := range result.Decisions {
		if r.Outcome != jig.DecisionAccepted {
			code = exitFailed
		}
	}
	if a.json() {
		if err := a.printJSON(result); err != nil {
			return err
		}
		return silent(code)
	}
	for _, r := range result.Decisions {
		line := a.ruledLine(a.out, r, answer, "", false)
		if answer == "" && r.Outcome == jig.DecisionAccepted {
			line = "reconciled " + r.Call
		}
		if err := a.print("%s", line); err != nil {
			return err
		}
	}
	return silent(code)
}

// rawOrNil is a JSON value, nil when it is empty.
func rawOrNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
