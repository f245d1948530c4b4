package starter

import (
	"cmp"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
)

// shownCall is the JSON output of `approvals show`.
type shownCall struct {
	Pending jig.Pending `json:"pending"`
	// Input is the call's whole input; Pending has an input of at most 2 KiB.
	Input json.RawMessage `json:"input"`
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show SESSION CALL",
		Short: "Show a waiting call with its full arguments",
		Long: `Show a waiting call with its full arguments; lists and events shorten long ones to 2 KiB. The digest covers exactly these arguments:
an approval with --digest is refused if anything has changed since.
JSON output: {"pending": …, "input": …}.`,
		Example: `  jig approvals show ses_… 3.1
  jig approvals show ses_… 1.1 --output json | jq -r '.input.documents[].body'`,
		Args: sessionArgs(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				session, call, err := a.locatedOne(cmd.Context(), e, a.session(args[0]), args[1])
				if err != nil {
					return err
				}
				pending, input, err := e.Show(cmd.Context(), a.flags.tenant, session, call)
				if err != nil {
					return err
				}
				pending.SessionID = cmp.Or(pending.SessionID, session)
				if a.json() {
					return a.printJSON(shownCall{Pending: pending, Input: input})
				}
				pending.Input, pending.Truncated = input, false
				k := a.cards(cmd.Context(), e, []jig.Pending{pending})[0]
				return a.print("%s %s\n  digest %s\n%s", k.SessionID, a.cardText(a.out, k), k.Digest, a.commandsText(a.out, k))
			})
		},
	}
}
