package starter

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig/internal/identity"
)

func (a *app) dependentsCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "dependents PRINCIPAL|--key ID",
		Short: "List what ends with a person or an API key",
		Long: `List the API keys, embed tokens, logins, schedules and standing approvals that count no longer if a person is disabled or leaves the tenant's
document, or if an API key is revoked. "jig people take-over" and "jig schedule take-over" keep what is still needed. This needs a server.
JSON output: {"dependents": [{"kind", "id", "name", "principal"}]}.`,
		Example: `  jig people dependents ana
  jig people dependents --key abcdefghij234567`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			person := strings.Join(args, "")
			if (person == "") == (key == "") {
				return usagef("give either a principal or --key")
			}
			if err := a.connected("the list of what ends needs"); err != nil {
				return err
			}
			defer a.server.Close()
			list, err := a.server.Dependents(cmd.Context(), person, key)
			switch {
			case err != nil:
				return err
			case a.json():
				return a.printJSON(map[string]any{"dependents": append([]identity.Dependent{}, list...)})
			case len(list) == 0:
				a.say("nothing else ends")
			}
			return table(a.stdout, dependentRows(list))
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "id of an API key, instead of a person")
	return cmd
}

func dependentRows(list []identity.Dependent) [][]string {
	rows := make([][]string, 0, len(list))
	for _, d := range list {
		rows = append(rows, []string{strings.ReplaceAll(d.Kind, "_", " "), oneLine(d.ID, 60), oneLine(d.Principal, 60), oneLine(d.Name, 60)})
	}
	return rows
}

// ends shows what ends with a person or a credential and, on a terminal, asks whether to go on; yes means that it does not ask. The error ends
// the program without doing anything.
func (a *app) ends(ctx context.Context, question string, yes bool, list []identity.Dependent) error {
	if len(list) == 0 {
		return nil
	}
	a.say("this ends, too:")
	if err := table(a.stderr, dependentRows(list)); err != nil {
		return err
	}
	if yes || !a.interactive {
		return nil
	}
	going, err := a.confirm(ctx, question)
	if err == nil && !going {
		err = silent(exitFailed)
	}
	return err
}
