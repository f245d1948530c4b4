package starter

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "List the worker's tools and the registered documents",
		Long: `List the tools of the running worker (including compositions, prompts, tasks and thin tools with a tool's name), agents, skills, entity types, and the
compositions that only people and other compositions can run.`,
		Example: `  jig catalog
  jig catalog --output json | jq '.tools[].name'`,
		Args: cobra.NoArgs,
		RunE: a.using(func(ctx context.Context, e engine, _ []string) error {
			c, err := e.Catalog(ctx, a.flags.tenant)
			if err != nil {
				return err
			}
			return a.output(wholeCatalog(c), func() error { return a.printCatalog(c) })
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the catalog to a file, for `validate --catalog`",
		Example: `  jig catalog export catalog.json
  jig validate --catalog catalog.json agents/`,
		Args: arguments(0, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			c, err := e.Catalog(ctx, a.flags.tenant)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.printJSON(wholeCatalog(c))
			}
			return a.exportCatalog(args[0], c)
		}),
	})
	cmd.AddCommand(a.catalogAddCommand(), a.catalogRemoveCommand(), a.catalogShowCommand(), a.catalogVersionsCommand(), a.catalogCompareCommand(),
		a.catalogRestoreCommand())
	return cmd
}

func (a *app) catalogAddCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "add PATH…",
		Short: "Register documents: agents, compositions, tools, entity types, skills, policies, the tenant's document",
		Long: `Register documents of any kind, or new versions of them. PATH is a file or a folder. Documents are checked first. Agents,
compositions, tools, entity types and skills can then be used by name; a policy or the tenant's document takes effect within a second.
Registering changes what runs, so it needs approval like any call that writes. Running sessions keep the versions they started with.`,
		Example: `  jig catalog add nightly.yaml
  jig catalog add ./my-bundle --yes`,
		Args: arguments(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := a.documentsIn(args)
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.CatalogPut, Input: input}, f)
		},
	}
	f.add(cmd, "also approve the call that registers them")
	return cmd
}

func (a *app) catalogRemoveCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "remove KIND NAME",
		Short: "Take a registered document out of use",
		Long: `Take a document that the tenant has registered out of use. KIND is the kind that the document declares, such as agent, composition, policy or
entity_type. If an installed bundle has the document, too, the bundle's version is back in use. Entities are kept, and so are all versions:
register the document again to restore it. Sessions that run keep the versions they started with. Removing always needs a person's approval.`,
		Example: `  jig catalog remove policy shop
  jig catalog remove agent nightly --yes`,
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := jsontext.Encode(map[string]any{"documents": []map[string]string{{"kind": args[0], "name": args[1]}}})
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.CatalogRemove, Input: input}, f)
		},
	}
	f.add(cmd, "also approve the call that removes it")
	return cmd
}

// documentsIn reads documents and returns them as the input of the tool that registers them.
func (a *app) documentsIn(paths []string) (json.RawMessage, error) {
	type file struct {
		Path string `json:"path"`
		Body string `json:"body"`
	}
	var input struct {
		Documents []file `json:"documents"`
	}
	docs, problems, err := loadAll(paths)
	if err != nil {
		return nil, err
	}
	if problems.OrNil() != nil {
		return nil, usage(problems)
	}
	for _, doc := range docs {
		if doc.Kind.IsManifest() {
			return nil, usagef("%s is the manifest of a bundle: `%s` installs it with its documents", doc.Path, a.command("bundle", "install", path.Dir(doc.Path)))
		}
		input.Documents = append(input.Documents, file{Path: keptPath(doc), Body: string(doc.Body)})
	}
	if len(input.Documents) == 0 {
		return nil, usagef("there are no documents in %s", strings.Join(paths, ", "))
	}
	return jsontext.Encode(input)
}

// keptPath returns the path to send with a document's body, which decides how the body is parsed. A skill's body is JSON that holds all of
// its files.
func keptPath(doc spec.Document) string {
	if doc.Skill() != nil {
		return strings.TrimSuffix(doc.Path, path.Ext(doc.Path)) + ".json"
	}
	return doc.Path
}

func wholeCatalog(c client.Catalog) client.Catalog {
	if c.Tools == nil {
		c.Tools = []jig.Tool{}
	}
	return c
}

func (a *app) exportCatalog(file string, c client.Catalog) error {
	b, err := jsontext.Encode(wholeCatalog(c))
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
	documents := map[spec.Kind]int{}
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
		if kind := spec.Kind(t.Implementation); kind.IsExecution() {
			first = "(" + string(kind) + ") " + first
			documents[kind]++
		}
		rows = append(rows, []string{"  " + t.Name, string(t.Permission), runs, oneLine(first, 80)})
	}
	counts := []string{toolCounts(len(c.Tools), documents)}
	for _, section := range []struct {
		one, many string
		names     []string
	}{
		{"agent", "agents", c.Agents},
		{"composition that is not a tool", "compositions that are not tools", c.Compositions},
		{"skill", "skills", c.Skills},
		{"entity type", "entity types", c.EntityTypes},
	} {
		counts = append(counts, plural(len(section.names), section.one, section.many))
		if len(section.names) == 0 {
			continue
		}
		rows = append(rows, []string{a.out.bold(section.many)})
		for _, name := range section.names {
			rows = append(rows, []string{"  " + name})
		}
	}
	a.table(rows)
	a.say("%s", strings.Join(counts, ", "))
	return nil
}

// toolCounts counts tools, and those among them that are documents by kind: "40 tools (2 compositions, 1 thin tool)".
func toolCounts(tools int, documents map[spec.Kind]int) string {
	text := plural(tools, "tool", "tools")
	var parts []string
	for kind, n := range documents {
		name := strings.ReplaceAll(string(kind), "_", " ")
		parts = append(parts, plural(n, name, name+"s"))
	}
	if len(parts) == 0 {
		return text
	}
	slices.Sort(parts)
	return text + " (" + strings.Join(parts, ", ") + ")"
}

func (a *app) catalogShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print a registered document as it was registered, or the contract of a tool in code",
		Example: `  jig catalog show dependency-review
  jig catalog show shop-policy
  jig catalog show file.write`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e engine) error { return a.catalogShow(cmd.Context(), e, args[0]) })
		},
	}
}

// shownDocument is the JSON output of `catalog show` for a document.
type shownDocument struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Body string `json:"body"`
}

// catalogShow prints the document with a name. Tools in code have a contract only.
func (a *app) catalogShow(ctx context.Context, e engine, name string) error {
	c, err := e.Catalog(ctx, a.flags.tenant)
	if err != nil {
		return err
	}
	kinds, unlisted := kindsOf(c, name)
	if shown, err := a.showRegistered(ctx, e, kinds, name); shown || err != nil {
		return err
	}
	for _, tool := range c.Tools {
		if tool.Name != name {
			continue
		}
		contract, err := jsontext.Encode(tool)
		if err != nil {
			return err
		}
		if a.json() {
			return a.print("%s", contract)
		}
		return a.print("%s", safeText(prettyJSON(contract)))
	}
	if shown, err := a.showRegistered(ctx, e, unlisted, name); shown || err != nil {
		return err
	}
	return jig.Errorf(jig.CodeNotFound, "nothing named %q is registered", name).WithField("name").
		WithHint(suggest.Hint(name, namesOf(c), "`"+a.command("catalog")+"` lists what is registered"))
}

// showRegistered prints the document of the first kind that has one with the name. It returns false if none has.
func (a *app) showRegistered(ctx context.Context, e engine, kinds []string, name string) (bool, error) {
	for _, kind := range kinds {
		body, err := e.Document(ctx, a.flags.tenant, kind, name)
		switch {
		case jig.CodeOf(err) == jig.CodeNotFound:
			continue
		case err != nil:
			return false, err
		case a.json():
			return true, a.printJSON(shownDocument{Kind: kind, Name: name, Body: string(body)})
		}
		return true, a.print("%s", safeText(string(body)))
	}
	return false, nil
}

// kindsOf returns the kinds of the documents that have a name, and the kinds whose documents a catalog does not list.
func kindsOf(c client.Catalog, name string) (kinds, unlisted []string) {
	listed := listedNames(c)
	for _, kind := range spec.Kinds() {
		names, known := listed[kind.Stored()]
		switch {
		case !known && !kind.IsManifest():
			unlisted = append(unlisted, kind.Stored())
		case slices.Contains(names, name) && !slices.Contains(kinds, kind.Stored()):
			kinds = append(kinds, kind.Stored())
		}
	}
	return kinds, unlisted
}

func namesOf(c client.Catalog) []string {
	return slices.Concat(c.Agents, c.EntityTypes, c.Skills, c.Compositions, toolNames(c))
}

func toolNames(c client.Catalog) []string {
	names := make([]string, len(c.Tools))
	for i, tool := range c.Tools {
		names[i] = tool.Name
	}
	return names
}
