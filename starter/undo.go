package starter

import (
	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/toolname"
)

func (a *app) undoCommand() *cobra.Command {
	var f triggerFlags
	var only []string
	cmd := &cobra.Command{
		Use:   "undo SESSION",
		Short: "Undo what a session has changed",
		Long: `Undo what an ended session has changed, in a session of its own that acts for you: the undo that each tool declares is called for each
successful call, the newest first. Each of these calls follows the rules and needs the approvals of any call. The command lists the calls that are undone,
those that are not, with the reason, and those that were undone before; it fails unless all are undone. No call is ever undone twice, so the command can be
repeated. With --call, only these calls are undone, with those that were made inside them.`,
		Example: `  jig undo ses_…
  jig undo order-7 --call 1.2 --yes`,
		Args: sessionArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, call := range only {
				if _, _, _, err := jig.ParseCallID(call); err != nil {
					return usage(err)
				}
			}
			input, err := jsontext.Encode(struct {
				SessionID string   `json:"session_id"`
				Calls     []string `json:"calls,omitempty"`
			}{a.session(args[0]), only})
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.SessionsUndo, Input: input}, f)
		},
	}
	cmd.Flags().StringArrayVar(&only, "call", nil, "undo only this call, e.g. 1.2 (repeatable)")
	f.add(cmd, "approve the calls that undo")
	return cmd
}
