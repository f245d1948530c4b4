package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

func (a *app) bundleCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "bundle",
		Short: "Install, list and remove bundles",
		Long: `Install, list and remove bundles: folders of documents that belong together (entity types with their tasks, agents, tools,
compositions, prompts, skills, policies), with a bundle.yaml at the top. Only tenants that installed a bundle can see its documents.`,
		Example: `  jig bundle install ./my-bundle
  jig bundle list
  jig bundle remove my-bundle`,
	}, a.bundleInstallCommand(), a.bundleListCommand(), a.bundleShowCommand(), a.bundleRemoveCommand())
}

func (a *app) bundleInstallCommand() *cobra.Command {
	var f triggerFlags
	var replace bool
	cmd := &cobra.Command{
		Use:   "install FOLDER",
		Short: "Install a bundle, or another version of it",
		Long: `Install a bundle, or another version of it. Everything is checked first: the command checks the documents by themselves and against
each other, and the worker checks them against what the tenant has. Either the whole bundle is installed or nothing changes;
installing the same bundle again changes nothing. Entities are kept; a version whose fields do not fit existing entities is refused.
Installing changes what runs, so it needs approval like any call that writes. Running sessions keep the versions they started with.`,
		Example: `  jig bundle install ./my-bundle
  jig bundle install ./my-bundle --yes --tenant acme`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := a.bundleIn(args[0], replace)
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.BundleInstall, Input: input}, f)
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "overwrite documents that were changed since the bundle was installed, and allow a lower version")
	f.add(cmd, "also approve the call that installs it")
	return cmd
}

// bundleIn reads a bundle's folder and returns it as the input of the tool that installs bundles. It prints problems in the same way as
// `validate`.
func (a *app) bundleIn(folder string, replace bool) (json.RawMessage, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return nil, usage(err)
	}
	if !info.IsDir() {
		return nil, usagef("%s is a file; give the folder that contains %s", folder, spec.BundleFile)
	}
	bundle, problems := spec.LoadBundle(os.DirFS(folder), ".")
	problems = check(bundle.Documents, problems, spec.Catalog{})
	if len(problems.Errors()) > 0 {
		for i := range problems {
			problems[i].Document = path.Join(filepath.ToSlash(folder), problems[i].Document)
		}
		return nil, a.printProblems(problems, len(bundle.Documents)+1)
	}
	manifest, err := os.ReadFile(filepath.Join(folder, spec.BundleFile)) //nolint:gosec // the user names the folder
	if err != nil {
		return nil, usage(err)
	}
	type file struct {
		Path string `json:"path"`
		Body string `json:"body"`
	}
	input := struct {
		Files   []file `json:"files"`
		Replace bool   `json:"replace,omitempty"`
	}{Files: []file{{Path: spec.BundleFile, Body: string(manifest)}}, Replace: replace}
	for _, doc := range bundle.Documents {
		input.Files = append(input.Files, file{Path: keptPath(doc), Body: string(doc.Body)})
	}
	return jsontext.Encode(input)
}

func (a *app) bundleRemoveCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a bundle and keep its entities",
		Long: `Remove all documents of a bundle. Its entities are hidden but kept, and return when the bundle is installed again. Documents that
the tenant has changed itself stay. Removing always needs a person's approval.`,
		Example: `  jig bundle remove my-bundle`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := jsontext.Encode(map[string]string{"name": args[0]})
			if err != nil {
				return err
			}
			return a.trigger(cmd.Context(), client.CallInput{Tool: toolname.BundleRemove, Input: input}, f)
		},
	}
	f.add(cmd, "also approve the call that removes it")
	return cmd
}

// bundles calls use with the tenant's bundles. If the call that lists them does not succeed, it prints the result as for any other call.
func (a *app) bundles(cmd *cobra.Command, use func(engine, api.BundleList) error) error {
	ctx := cmd.Context()
	return a.with(ctx, func(e engine) error {
		call := client.CallInput{Tenant: a.flags.tenant, Tool: toolname.BundleList, Principal: a.principal(), Source: jig.SourceCLI, Input: json.RawMessage(`{}`)}
		result, err := e.Trigger(ctx, call, "")
		if err != nil {
			return err
		}
		if result.Status == jig.CallWaiting { // a policy may also ask about reads
			if result, err = e.WaitCall(ctx, a.flags.tenant, result.SessionID); err != nil {
				return err
			}
		}
		if result.Status != jig.CallSucceeded {
			return a.printCall(result)
		}
		whole, err := e.WholeResult(ctx, a.flags.tenant, result)
		if err != nil {
			return err
		}
		list := api.BundleList{Bundles: []bundle.Bundle{}}
		if err := json.Unmarshal(whole.Data, &list); err != nil {
			return jig.Errorf(jig.CodeInternal, "reading the list of bundles: %w", err)
		}
		return use(e, list)
	})
}

func (a *app) bundleListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tenant's bundles",
		Long: `List the tenant's bundles. JSON output: {"bundles": [{"name", "version", "hash", "title"?, "documents", "installed_at",
"installed_by"}]}.`,
		Example: `  jig bundle list
  jig bundle list --output json | jq -r '.bundles[].name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.bundles(cmd, func(_ engine, list api.BundleList) error {
				if a.json() {
					return a.printJSON(list)
				}
				if len(list.Bundles) == 0 {
					a.say("no bundle is installed for %s; `%s` installs one", a.flags.tenant, a.command("bundle", "install", "FOLDER"))
					return nil
				}
				rows := [][]string{{"NAME", "VERSION", "DOCUMENTS", "INSTALLED", "BY", "TITLE"}}
				for _, b := range list.Bundles {
					rows = append(rows, []string{
						b.Name, b.Version, strconv.Itoa(len(b.Documents)), b.InstalledAt.Local().Format(time.DateTime),
						oneLine(b.InstalledBy, 40), oneLine(b.Title, 60),
					})
				}
				return a.printTable(rows)
			})
		},
	}
}

func (a *app) bundleShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show an installed bundle and its documents",
		Long: `Show an installed bundle and its documents. JSON output: one of the objects that "jig bundle list" prints; there, compositions,
prompts, tasks and thin tools have the kind spec, under which they are stored, because they share one namespace.`,
		Example: `  jig bundle show my-bundle`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bundles(cmd, func(e engine, list api.BundleList) error {
				names := make([]string, len(list.Bundles))
				for i, b := range list.Bundles {
					if b.Name == args[0] {
						return a.printBundle(cmd.Context(), e, b)
					}
					names[i] = b.Name
				}
				return jig.Errorf(jig.CodeNotFound, "the bundle %q is not installed", oneLine(args[0], 80)).WithField("name").
					WithHint(cmp.Or(suggest.OrKnown(args[0], names), "see "+a.command("bundle", "list")))
			})
		},
	}
}

func (a *app) printBundle(ctx context.Context, e engine, b bundle.Bundle) error {
	if a.json() {
		return a.printJSON(b)
	}
	a.say("%s %s (%s), installed %s by %s", a.err.bold(b.Name), b.Version, jig.ShortVersion(b.Hash), b.InstalledAt.Local().Format(time.DateTime), oneLine(b.InstalledBy, 40))
	for _, text := range []string{b.Title, b.Description} {
		if text != "" {
			a.say("%s", oneLine(text, 200))
		}
	}
	kinds := map[string]string{}
	if c, err := e.Catalog(ctx, a.flags.tenant); err == nil { // without it, they are shown as they are stored
		for _, tool := range c.Tools {
			kinds[tool.Name] = tool.Implementation
		}
	}
	rows := [][]string{{"KIND", "NAME", "VERSION"}}
	for _, doc := range b.Documents {
		kind := doc.Kind
		if kind == documentSpec {
			kind = cmp.Or(kinds[doc.Name], kind)
		}
		rows = append(rows, []string{kind, doc.Name, jig.ShortVersion(doc.Version)})
	}
	return a.printTable(rows)
}
