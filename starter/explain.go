package starter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

// Output formats of an explanation for people.
const (
	formatText    = "text"
	formatMermaid = "mermaid"
)

func (a *app) explainCommand() *cobra.Command {
	var f catalogFlags
	format := formatText
	cmd := &cobra.Command{
		Use:   "explain PATH…|NAME",
		Short: "Show what documents do, as an outline or a diagram",
		Long: `Show what documents do (files, folders, or names of registered documents): each step with its condition and loop, what happens
when it fails, and what is undone. The catalog of the running worker, or of "catalog export", shows which calls ask a person first;
--offline leaves that out. Compositions, prompts, tasks, thin tools and entity types can also be drawn as a Mermaid flowchart; other
documents have only text. For the folder of a bundle, the command lists its contents.`,
		Example: `  jig explain nightly.yaml
  jig explain nightly.yaml --format mermaid --offline > nightly.mmd
  jig explain cms.publishPage
  jig explain bundles/ --output json | jq -r '.documents[].text'`,
		Args: arguments(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != formatText && format != formatMermaid {
				return usagef("--format is %q; it must be %s or %s", format, formatText, formatMermaid)
			}
			if err := f.check(); err != nil {
				return err
			}
			all, err := a.explain(cmd.Context(), args, f)
			if err != nil {
				return err
			}
			return a.printExplained(all, format)
		},
	}
	f.add(cmd, "do not ask a worker for its tools and registered names")
	cmd.Flags().StringVar(&format, "format", formatText, "text for an outline, mermaid for a diagram")
	completeFlag(cmd, "format", formatText, formatMermaid)
	return cmd
}

// explained is the explanation of one document in the JSON output of `explain`. Mermaid is empty for kinds without a diagram.
type explained struct {
	Document string    `json:"document"`
	Kind     spec.Kind `json:"kind"`
	Name     string    `json:"name"`
	Text     string    `json:"text"`
	Mermaid  string    `json:"mermaid"`
}

// explain finds the documents that the arguments name and explains them.
func (a *app) explain(ctx context.Context, args []string, f catalogFlags) ([]explained, error) {
	paths, names, err := pathsAndNames(args)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 && f.offline {
		return nil, usagef("there is no file or folder %s; registered names need a worker: leave out --offline", names[0])
	}
	docs, problems, err := loadAll(paths)
	if err != nil {
		return nil, err
	}
	if problems.OrNil() != nil {
		return nil, usage(problems)
	}
	var known *client.Catalog
	if len(names) > 0 {
		registered, c, err := a.registered(ctx, names, f)
		if err != nil {
			return nil, alsoTry(err, "give the path of a document: there is no file or folder "+names[0])
		}
		docs, known = append(docs, registered...), c
	} else if known, err = a.catalogIfAny(ctx, f); err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, usagef("there are no documents in %s", strings.Join(args, ", "))
	}
	all := make([]explained, 0, len(docs))
	tools := toolsFor(docs, known)
	for _, doc := range docs {
		text, diagram := spec.ExplainDocument(doc, docs, tools...)
		all = append(all, explained{Document: doc.Path, Kind: doc.Kind, Name: doc.Name, Text: text, Mermaid: diagram})
	}
	return all, nil
}

// pathsAndNames separates files and folders from names of registered documents.
func pathsAndNames(args []string) (paths, names []string, err error) {
	for _, arg := range args {
		switch _, err := os.Stat(arg); {
		case err == nil:
			paths = append(paths, arg)
		case isFile(arg):
			return nil, nil, usage(err)
		default:
			names = append(names, arg)
		}
	}
	return paths, names, nil
}

// catalogIfAny returns the catalog. If there is none, it prints a note and returns nil.
func (a *app) catalogIfAny(ctx context.Context, f catalogFlags) (*client.Catalog, error) {
	known, err := a.catalog(ctx, f)
	switch {
	case err != nil && noEngine(err):
		a.say("%s: calls that ask a person are not marked", jig.AsError(err).Message)
		return nil, nil // nil: documents can be explained without a catalog
	case err != nil:
		return nil, err
	case known == nil:
		a.say("calls that ask a person are not marked (--offline)")
	}
	return known, nil
}

// registered reads the documents that are registered under the names, and the catalog that lists them.
func (a *app) registered(ctx context.Context, names []string, f catalogFlags) (docs []spec.Document, known *client.Catalog, err error) {
	if f.file != "" {
		if known, err = a.readCatalog(f.file); err != nil {
			return nil, nil, err
		}
	}
	err = a.with(ctx, func(e engine) error {
		c, err := e.Catalog(ctx, a.flags.tenant)
		if err != nil {
			return err
		}
		if known == nil {
			known = &c
		}
		for _, name := range names {
			found, err := a.registeredAs(ctx, e, c, name)
			if err != nil {
				return err
			}
			docs = append(docs, found...)
		}
		return nil
	})
	return docs, known, err
}

// documentSpec is the kind under which the engine stores compositions, and what is called like them.
const documentSpec = "composition"

// registeredAs reads every document that is registered under a name; a composition, an agent, a skill and an entity type may share one.
func (a *app) registeredAs(ctx context.Context, e engine, c client.Catalog, name string) ([]spec.Document, error) {
	listed := listedNames(c)
	var docs []spec.Document
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(listed)) {
		all = append(all, listed[kind]...)
		if !slices.Contains(listed[kind], name) {
			continue
		}
		body, err := e.Document(ctx, a.flags.tenant, kind, name)
		if err != nil {
			return nil, err
		}
		doc, problems := spec.LoadStored(kind, name, body)
		if problems.OrNil() != nil { // written in an older version of the language
			return nil, problems
		}
		doc.Path = name
		docs = append(docs, doc)
	}
	switch {
	case len(docs) > 0:
		return docs, nil
	case slices.Contains(toolNames(c), name):
		return nil, jig.Errorf(jig.CodeNotFound, "%s is a tool written in code; it has no document", name).WithField("name").
			WithHint(fmt.Sprintf("`%s` shows its contract", a.command("catalog", "--output", outputJSON)))
	}
	return nil, jig.Errorf(jig.CodeNotFound, "there is no file %s, and nothing is registered under that name", name).WithField("name").
		WithHint(cmp.Or(suggest.OrKnown(name, all), fmt.Sprintf("see `%s`", a.command("catalog"))))
}

// listedNames returns the names of the documents in a catalog, by the kind under which they are stored.
func listedNames(c client.Catalog) map[string][]string {
	specs := slices.Clone(c.Compositions)
	for _, t := range c.Tools {
		if spec.Kind(t.Implementation).IsExecution() {
			specs = append(specs, t.Name)
		}
	}
	return map[string][]string{
		documentSpec: specs, spec.KindAgent.Stored(): c.Agents, spec.KindSkill.Stored(): c.Skills, spec.KindEntityType.Stored(): c.EntityTypes,
	}
}

// toolsFor returns the contracts in the catalog and those of the documents themselves. Without a catalog it returns nil, because most
// contracts would be missing.
func toolsFor(docs []spec.Document, known *client.Catalog) []jig.Tool {
	if known == nil {
		return nil
	}
	tools := slices.Clone(known.Tools)
	for _, doc := range docs {
		if doc.Execution() != nil {
			tools = append(tools, doc.Execution().Tool)
		}
	}
	return tools
}

func (a *app) printExplained(all []explained, format string) error {
	if a.json() {
		return a.printJSON(struct {
			Documents []explained `json:"documents"`
		}{all})
	}
	if format == formatText {
		texts := make([]string, 0, len(all))
		for _, x := range all {
			texts = append(texts, strings.TrimRight(safeText(x.Text), "\n"))
		}
		return a.print("%s", strings.Join(texts, "\n\n"))
	}
	var drawn []string
	for _, x := range all {
		if x.Mermaid == "" {
			a.say("%s: the %s %s has no diagram", x.Document, x.Kind, x.Name)
			continue
		}
		drawn = append(drawn, "%% "+oneLine(x.Document, 0)+"\n"+strings.TrimRight(safeText(x.Mermaid), "\n"))
	}
	switch len(drawn) {
	case 0:
		return usagef("there is nothing to draw: leave out --format %s", formatMermaid)
	case 1:
		_, drawing, _ := strings.Cut(drawn[0], "\n") // without the comment, because the drawing is the whole output
		return a.print("%s", drawing)
	}
	return a.print("%s", strings.Join(drawn, "\n\n"))
}
