package starter

import (
	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
)

func (a *app) policyListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the policies in force, and any that the worker cannot read",
		Long: `List the tenant's registered policies as the running worker sees them. If the worker cannot read one of them, because it was written
for a newer version of jig, the tenant's calls are held back: update the workers, or register the policy in a form that they can
read. JSON output: {"policies": [{"name", "version", "rules", "error"?}]}.`,
		Example: `  jig policy list
  jig policy list --output json | jq '.policies[] | select(.error)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				list, err := e.Policies(cmd.Context(), a.flags.tenant)
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(map[string][]jig.PolicyState{"policies": append([]jig.PolicyState{}, list...)})
				}
				return a.printPolicies(list)
			})
		},
	}
}

func (a *app) printPolicies(list []jig.PolicyState) error {
	rows, unreadable := make([][]string, len(list)), 0
	for i, p := range list {
		state := plural(p.Rules, "rule", "rules")
		if p.Error != "" {
			unreadable++
			state = a.out.red("cannot be read: " + oneLine(p.Error, 200))
		}
		rows[i] = []string{oneLine(p.Name, 0), oneLine(jig.ShortVersion(p.Version), 0), state}
	}
	if err := table(a.stdout, rows); err != nil {
		return err
	}
	switch {
	case unreadable > 0:
		a.say("%s the calls of tenant %s are held back until %s can be read", a.err.yellow("warning:"), a.flags.tenant, plural(unreadable, "policy", "policies"))
	case len(list) == 0:
		a.say("tenant %s has no policies; the contracts of the tools decide", a.flags.tenant)
	}
	return nil
}
