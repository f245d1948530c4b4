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
		Long: `Check documents of any kind (files or folders) by themselves, against each other, and against the tools, agents, skills and execution
specs that exist. These come from the running worker or, with --catalog, from a file. With --offline, names that
none of the documents defines are not checked. A document with an error cannot be used; warnings are advice. The exit code is 1 if
there is an error.`,
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
			listed, known, err := a.catalogFor(cmd.Context(), f, docs)
			if err != nil {
				return alsoTry(err, "give --catalog FILE, or --offline to skip checking names")
			}
			a.sayUnchecked(listed)
			return a.printProblems(check(docs, problems, known), len(docs))
		},
	}
	f.add(cmd, "check names of tools, agents, skills, compositions and entity types only within the documents")
	return cmd
}

// sayUnchecked prints which names could not be checked.
func (a *app) sayUnchecked(known *client.Catalog) {
	switch {
	case known == nil:
		a.say("names of tools, agents, skills, compositions and entity types were not checked (--offline)")
	case known.Skills == nil || known.Compositions == nil || known.Agents == nil || known.EntityTypes == nil:
		a.say("some names of agents, skills, compositions and entity types were not checked: the catalog does not list them")
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
		return a.exitJSON(problemReport{OK: errs == 0, Problems: problems}, code)
	}
	for _, p := range problems {
		a.line("%s", safeText(p.String()))
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
