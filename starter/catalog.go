package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
)

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "List the tools and agents of the running worker",
		Example: `  jig catalog
  jig catalog --output json | jq '.tools[].name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				c, err := e.Catalog(cmd.Context(), a.flags.tenant)
				if err != nil {
					return err
				}
				if a.json() {
					return a.printJSON(wholeCatalog(c))
				}
				return a.printCatalog(c)
			})
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the catalogue to a file, for `validate --catalog`",
		Example: `  jig catalog export catalog.json
  jig validate --catalog catalog.json agents/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error {
				c, err := e.Catalog(cmd.Context(), a.flags.tenant)
				if err != nil {
					return err
				}
				if len(args) == 0 {
					return a.printJSON(wholeCatalog(c))
				}
				return a.exportCatalog(args[0], c)
			})
		},
	})
	return cmd
}

func wholeCatalog(c client.Catalog) client.Catalog {
	if c.Tools == nil {
		c.Tools = []jig.Tool{}
	}
	return c
}

func (a *app) exportCatalog(file string, c client.Catalog) error {
	b, err := marshal(wholeCatalog(c))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o600); err != nil {
		return usage(err)
	}
	a.say("%s written to %s", plural(len(c.Tools), "tool", "tools"), file)
	return nil
}

func (a *app) printCatalog(c client.Catalog) error {
	var rows [][]string
	category := ""
	for _, t := range c.Tools {
		if t.Category != category {
			category = t.Category
			rows = append(rows, []string{a.out.bold(category)})
		}
		runs := "runs"
		if t.Permission == jig.PermissionWrite || t.Permission == jig.PermissionDestructive || t.Risk == jig.RiskHigh ||
			t.Approval == jig.ApprovalAlwaysAsk {
			runs = a.out.yellow("asks")
		}
		first, _, _ := strings.Cut(t.Description, "\n")
		rows = append(rows, []string{"  " + t.Name, string(t.Permission), runs, oneLine(first, 80)})
	}
	if len(c.Agents) > 0 {
		rows = append(rows, []string{a.out.bold("agents")})
		for _, name := range c.Agents {
			rows = append(rows, []string{"  " + name})
		}
	}
	if err := table(a.stdout, rows); err != nil {
		return err
	}
	a.say("%s", fmt.Sprintf("%s, %s", plural(len(c.Tools), "tool", "tools"), plural(len(c.Agents), "agent", "agents")))
	return nil
}
