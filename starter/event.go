package starter

import (
	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func (a *app) eventCommand() *cobra.Command {
	var data, id string
	cmd := &cobra.Command{
		Use:   "event SESSION NAME",
		Short: "Send an event to a session, for which its compositions may wait",
		Long: `Send an event to a session. A composition takes it as soon as it waits for an event with that name (wait_for). The session accepts only one event
with the same --id, however often it is sent.`,
		Example: `  jig event order-7 paid --data '{"order": "2026-0042"}'
  jig event order-7 paid --data @payment.json --id payment-1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%s given; expected SESSION NAME", plural(len(args), "argument is", "arguments are"))
			}
			if err := jig.CheckSessionID(args[0]); err != nil {
				return usage(err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			event := client.Event{Name: args[1], ID: id, By: a.flags.as}
			if data != "" {
				var err error
				if event.Data, err = a.jsonArgument("--data", data); err != nil {
					return err
				}
			}
			if err := event.Check(); err != nil {
				return usage(err)
			}
			return a.with(cmd.Context(), func(e engine) error {
				if err := e.Event(cmd.Context(), a.flags.tenant, a.session(args[0]), event); err != nil {
					return err
				}
				return a.done(a.session(args[0]), "event sent to")
			})
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the event's data: JSON, @file.json or @-")
	cmd.Flags().StringVar(&id, "id", "", "your own id for the event; the session accepts only one event with it")
	return cmd
}
