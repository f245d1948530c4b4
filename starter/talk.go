package starter

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
)

func (a *app) messageCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "message SESSION TEXT",
		Short:   "Send a message to a session; a completed session starts its next pass",
		Example: `  jig message ses_… "skip the archived ones"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s given; expected SESSION TEXT", plural(len(args), "argument is", "arguments are"))
			}
			if err := jig.CheckSessionID(args[0]); err != nil {
				return usage(err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				text := strings.Join(args[1:], " ")
				if err := e.Message(cmd.Context(), a.flags.tenant, a.session(args[0]), text, a.flags.as); err != nil {
					return err
				}
				return a.done(a.session(args[0]), "message sent to")
			})
		},
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a session, with its running tools and waiting approvals",
		Example: `  jig cancel ses_…
  jig cancel ses_… --reason "the order was withdrawn"`,
		Args: sessionArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				if err := e.CancelBecause(cmd.Context(), a.flags.tenant, a.session(args[0]), reason, a.flags.as); err != nil {
					return err
				}
				return a.done(a.session(args[0]), "cancellation requested:")
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who look at the session's workflow in Temporal, or at the audit")
	return cmd
}

// done confirms a request that has no other output.
func (a *app) done(session, text string) error {
	if a.json() {
		return a.printJSON(map[string]string{"session_id": session})
	}
	a.say("%s %s", text, session)
	return nil
}
