package starter

import (
	"github.com/spf13/cobra"

	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/spec"
)

func (a *app) validateCommand() *cobra.Command {
	var f catalogFlags
	cmd := &cobra.Command{
		Use:   "validate PATH…",
		Short: "Check documents and report every problem at once",
		Long: `Check documents of any kind (files, or folders with all that is in them), each by itself, against each other, and against
what there is. The running worker says which tools, agents, skills and execution specs there are; a
catalogue from "catalog export" does so without one. With --offline, names that none of the documents has are not looked for.
Errors keep a document from being used; warnings are advice. The exit code is 1 when any problem is an error.`,
		Example: `  jig validate my-agent.md nightly.yaml
  jig validate bundles/ --offline --output json
  jig validate agents/ --catalog catalog.json`,
		Args: arguments(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			docs, problems, err := loadAll(args)
			if err != nil {
				return err
			}
			listed, known, err := a.catalogueFor(cmd.Context(), f, docs)
			if err != nil {
				return alsoTry(err, "give --catalog FILE, or --offline to look for no names")
			}
			a.sayUnchecked(listed)
			return a.printProblems(check(docs, problems, known), len(docs))
		},
	}
	f.add(cmd, "look for no names of tools, agents, skills, execution specs and entity types outside of the documents")
	return cmd
}

// sayUnchecked says which names could not be checked.
func (a *app) sayUnchecked(known *client.Catalog) {
	switch {
	case known == nil:
		a.say("names of tools, agents, skills, execution specs and entity types were not checked (--offline)")
	case known.Skills == nil || known.Specs == nil || known.Agents == nil || known.EntityTypes == nil:
		a.say("names of agents, skills, execution specs and entity types were not all checked: the catalogue does not list them")
	}
}

// problemReport is the JSON output of `validate`.
type problemReport struct {
	OK       bool          `json:"ok"`
	Problems spec.Problems `json:"problems"`
}

func (a *app) printProblems(problems spec.Problems, documents int) error {
	errs := len(problems.Errors())
	code := exitDone
	if errs > 0 {
		code = exitFailed
	}
	if a.json() {
		if err := a.printJSON(problemReport{OK: errs == 0, Problems: problems}); err != nil {
			return err
		}
		return silent(code)
	}
	for _, p := range problems {
		if err := a.print("%s", safeText(p.String())); err != nil {
			return err
		}
	}
	read := plural(documents, "document", "documents")
	switch warnings := len(problems) - errs; {
	case errs > 0:
		a.say("%s: %s, %s in %s", a.err.red("failed"), plural(errs, "error", "errors"), plural(warnings, "warning", "warnings"), read)
	case warnings > 0:
		a.say("%s: %s in %s", a.err.green("ok"), plural(warnings, "warning", "warnings"), read)
	case documents == 0:
		a.say("%s there are no documents here", a.err.yellow("warning:"))
	default:
		a.say("%s: %s", a.err.green("ok"), read)
	}
	return silent(code)
}
