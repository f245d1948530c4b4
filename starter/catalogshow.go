package starter

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/spec"
)

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
	if shown, err := a.showRegistered(ctx, e, kindsOf(c, name), name); shown || err != nil {
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
	unlisted := []string{string(spec.KindPolicy), string(spec.KindTenant), string(spec.KindBudget), string(spec.KindRateLimit)} // the catalog does not list them
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

// kindsOf returns the kinds of documents that have a name.
func kindsOf(c client.Catalog, name string) []string {
	var kinds []string
	if slices.Contains(c.Agents, name) {
		kinds = append(kinds, string(spec.KindAgent))
	}
	if slices.Contains(c.EntityTypes, name) {
		kinds = append(kinds, string(spec.KindEntityType))
	}
	if slices.Contains(c.Skills, name) {
		kinds = append(kinds, string(spec.KindSkill))
	}
	documents := []string{string(spec.KindComposition), string(spec.KindPrompt), string(spec.KindTask), jig.ImplementationThin}
	isSpec := func(tool jig.Tool) bool { return tool.Name == name && slices.Contains(documents, tool.Implementation) }
	if slices.Contains(c.Specs, name) || slices.ContainsFunc(c.Tools, isSpec) {
		kinds = append(kinds, documentSpec)
	}
	return kinds
}

func namesOf(c client.Catalog) []string {
	names := slices.Concat(c.Agents, c.EntityTypes, c.Skills, c.Specs)
	for _, tool := range c.Tools {
		names = append(names, tool.Name)
	}
	return names
}
