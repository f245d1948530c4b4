package starter

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
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
	complete := cobra.FixedCompletions([]string{formatText, formatMermaid}, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("format", complete) //nolint:errcheck // fails only for an unknown flag
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
		x := explainOne(doc, tools)
		if doc.Bundle != nil {
			x.Text = spec.ExplainBundle(*doc.Bundle, below(docs, doc.Path))
		}
		all = append(all, x)
	}
	return all, nil
}

// below returns the documents in a file's folder and its subfolders. For a bundle's manifest, these are the bundle's documents.
func below(docs []spec.Document, file string) []spec.Document {
	folder := path.Dir(filepath.ToSlash(file)) + "/"
	return slices.DeleteFunc(slices.Clone(docs), func(doc spec.Document) bool {
		return folder != "./" && !strings.HasPrefix(filepath.ToSlash(doc.Path), folder)
	})
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

// documentSpec is the kind under which the engine stores all execution specs.
const documentSpec = "spec"

// registeredAs reads every document that is registered under a name; an execution spec, an agent, a skill and an entity type may share one.
func (a *app) registeredAs(ctx context.Context, e engine, c client.Catalog, name string) ([]spec.Document, error) {
	type shelf struct {
		names     []string
		extension string
	}
	specs := shelf{slices.Clone(c.Specs), ".yaml"}
	var code []string
	for _, t := range c.Tools {
		if spec.Kind(t.Implementation).IsExecution() {
			specs.names = append(specs.names, t.Name)
		} else {
			code = append(code, t.Name)
		}
	}
	shelves := map[string]shelf{
		documentSpec: specs, string(spec.KindAgent): {c.Agents, ".md"}, string(spec.KindSkill): {c.Skills, ".json"},
		string(spec.KindEntityType): {c.EntityTypes, ".yaml"},
	}
	var docs []spec.Document
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(shelves)) {
		kept := shelves[kind]
		all = append(all, kept.names...)
		if !slices.Contains(kept.names, name) {
			continue
		}
		body, err := e.Document(ctx, a.flags.tenant, kind, name)
		if err != nil {
			return nil, err
		}
		doc, problems := spec.Load(name+kept.extension, body)
		if problems.OrNil() != nil { // written in an older version of the language
			return nil, problems
		}
		doc.Path = name
		docs = append(docs, doc)
	}
	if len(docs) > 0 {
		return docs, nil
	}
	if slices.Contains(code, name) {
		return nil, jig.Errorf(jig.CodeNotFound, "%s is a tool written in code; it has no document", name).WithField("name").
			WithHint(fmt.Sprintf("`%s` shows its contract", a.command("catalog", "--output", outputJSON)))
	}
	return nil, jig.Errorf(jig.CodeNotFound, "there is no file %s, and nothing is registered under that name", name).WithField("name").
		WithHint(cmp.Or(suggest.OrKnown(name, all), fmt.Sprintf("see `%s`", a.command("catalog"))))
}

// toolsFor returns the contracts in the catalog and those of the documents themselves. Without a catalog it returns nil, because most
// contracts would be missing.
func toolsFor(docs []spec.Document, known *client.Catalog) []jig.Tool {
	if known == nil {
		return nil
	}
	tools := slices.Clone(known.Tools)
	for _, doc := range docs {
		if doc.Execution != nil {
			tools = append(tools, doc.Execution.Tool)
		}
	}
	return tools
}

func explainOne(doc spec.Document, tools []jig.Tool) explained {
	x := explained{Document: doc.Path, Kind: doc.Kind, Name: doc.Name}
	switch {
	case doc.Execution != nil:
		e := spec.Explain(*doc.Execution, tools...)
		x.Text, x.Mermaid = e.Text(), e.Mermaid()
	case doc.Agent != nil:
		x.Text = spec.ExplainAgent(*doc.Agent, tools...)
	case doc.Skill != nil:
		x.Text = skillText(doc)
	case doc.EntityType != nil:
		e := spec.ExplainEntityType(*doc.EntityType, tools...)
		x.Text, x.Mermaid = e.Text(), e.Mermaid()
	case doc.RateLimit != nil:
		x.Text = spec.ExplainRateLimit(*doc.RateLimit)
	case doc.Budget != nil:
		x.Text = spec.ExplainBudget(*doc.Budget)
	default:
		x.Text = fmt.Sprintf("%s %s (version %s)\n", doc.Kind, doc.Name, jig.ShortVersion(doc.Version))
	}
	return x
}

// instructionLines is the maximum number of lines that are shown of a skill's instructions.
const instructionLines = 12

// skillText describes a skill: when it is used, how its instructions begin, and its files.
func skillText(doc spec.Document) string {
	skill := doc.Skill
	var b strings.Builder
	fmt.Fprintf(&b, "skill %s (version %s)\n", skill.Name, jig.ShortVersion(doc.Version))
	fmt.Fprintf(&b, "%s\n", oneLine(skill.Description, 0))
	lines := strings.Split(strings.TrimSpace(safeText(skill.Instructions)), "\n")
	fmt.Fprintf(&b, "\ninstructions, %s:\n", plural(len(lines), "line", "lines"))
	for _, line := range lines[:min(len(lines), instructionLines)] {
		b.WriteString(strings.TrimRight("   "+line, " ") + "\n")
	}
	if len(lines) > instructionLines {
		b.WriteString("   …\n")
	}
	if len(skill.Files) > 0 {
		b.WriteString("\nfiles:\n")
	}
	for _, file := range slices.Sorted(maps.Keys(skill.Files)) {
		fmt.Fprintf(&b, "   %s, %s\n", oneLine(file, 0), plural(len(skill.Files[file]), "byte", "bytes"))
	}
	return b.String()
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
