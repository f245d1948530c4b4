package starter

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/suggest"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

func (a *app) catalogVersionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "versions NAME",
		Short: "List the stored versions of a registered document",
		Long: `List the stored versions of a document, the latest first. They include versions that were stored for a session but never became
current. JSON output: {"kind", "name", "versions": [{"version", "current", "created_at", …}]}.`,
		Example: `  jig catalog versions shop-policy`,
		Args:    arguments(1, 1),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			found, err := a.versionsOf(ctx, e, args[0])
			if err != nil {
				return err
			}
			return a.output(found, func() error {
				rows := [][]string{{"VERSION", "STORED", ""}}
				for _, v := range found.Versions {
					current := ""
					if v.Current {
						current = "current"
					}
					rows = append(rows, []string{jig.ShortVersion(v.Version), moment(v.CreatedAt), current})
				}
				return a.printTable(rows)
			})
		}),
	}
}

func (a *app) catalogCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare NAME [VERSION [VERSION]]",
		Short: "Show what differs between two versions of a registered document",
		Long: `Show what differs between two versions of a document, as a unified diff. With one version, it is compared with the current one; without any,
the current version is compared with the one that was stored before it. The beginning of a version is enough.
JSON output: {"from": …, "to": …, "difference"}.`,
		Example: `  jig catalog compare shop-policy
  jig catalog compare shop-policy 3f2a9c
  jig catalog compare nightly 3f2a9c 81bb04`,
		Args: arguments(1, 3),
		RunE: a.using(func(ctx context.Context, e engine, args []string) error {
			found, err := a.versionsOf(ctx, e, args[0])
			if err != nil {
				return err
			}
			from, to, err := found.compared(args[1:])
			if err != nil {
				return err
			}
			return a.compareVersions(ctx, e, from, to)
		}),
	}
}

func (a *app) compareVersions(ctx context.Context, e engine, from, to protocol.DocumentState) error {
	texts := [2]string{}
	for i, v := range []protocol.DocumentState{from, to} {
		body, err := e.DocumentAt(ctx, a.flags.tenant, v.Kind, v.Name, v.Version)
		if err != nil {
			return err
		}
		texts[i] = string(body)
	}
	_, lines, _ := strings.Cut(preview.Diff(from.Name, texts[0], texts[1]), "\n")
	return a.output(api.Difference{From: from, To: to, Difference: lines}, func() error {
		a.say("%s %s: from %s to %s", from.Kind, from.Name, jig.ShortVersion(from.Version), jig.ShortVersion(to.Version))
		if lines == "" {
			a.say("the texts are equal")
			return nil
		}
		return a.print("%s", safeText(strings.TrimSuffix(lines, "\n")))
	})
}

func (a *app) catalogRestoreCommand() *cobra.Command {
	var f triggerFlags
	cmd := &cobra.Command{
		Use:   "restore NAME VERSION",
		Short: "Make an earlier version of a registered document current again",
		Long: `Register the text of an earlier version of a document again, after the same checks as for a new document. The beginning of the
version is enough; "jig catalog versions NAME" lists them. Restoring changes what runs, so it needs approval like "jig catalog add".`,
		Example: `  jig catalog restore shop-policy 3f2a9c
  jig catalog restore nightly 3f2a9c --yes`,
		Args: arguments(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.triggerMade(ctx, f, func(e engine) (client.CallInput, error) { return a.restoring(ctx, e, args[0], args[1]) })
		},
	}
	f.add(cmd, "also approve the call that registers it")
	return cmd
}

// restoring returns the call that makes an earlier version current again.
func (a *app) restoring(ctx context.Context, e engine, name, version string) (client.CallInput, error) {
	found, err := a.versionsOf(ctx, e, name)
	if err != nil {
		return client.CallInput{}, err
	}
	old, err := found.at(version)
	if err != nil {
		return client.CallInput{}, err
	}
	body, err := e.DocumentAt(ctx, a.flags.tenant, old.Kind, old.Name, old.Version)
	if err != nil {
		return client.CallInput{}, err
	}
	doc, _ := spec.LoadStored(old.Kind, old.Name, body) //nolint:errcheck // the tool that registers it reports what is wrong with it
	file := api.DocumentFile{Path: keptPath(doc), Body: string(body), Replaces: &api.NamedFile{Kind: old.Kind, Name: old.Name}}
	if current := found.current(); current >= 0 {
		file.Replaces.Version = found.Versions[current].Version
	}
	input, err := jsontext.Encode(map[string]any{"documents": []api.DocumentFile{file}})
	return client.CallInput{Tool: toolname.CatalogPut, Input: input}, err
}

// documentVersions are the stored versions of a document, the latest first.
type documentVersions struct {
	Kind     string                   `json:"kind"`
	Name     string                   `json:"name"`
	Versions []protocol.DocumentState `json:"versions"`
}

// versionsOf finds the document with a name, and lists its versions.
func (a *app) versionsOf(ctx context.Context, e engine, name string) (documentVersions, error) {
	c, err := e.Catalog(ctx, a.flags.tenant)
	if err != nil {
		return documentVersions{}, err
	}
	kinds, unlisted := kindsOf(c, name)
	for kind := range listedNames(c) { // a document that was removed is not listed, and still has versions
		if !slices.Contains(kinds, kind) {
			unlisted = append(unlisted, kind)
		}
	}
	slices.Sort(unlisted)
	for _, kind := range append(kinds, unlisted...) {
		list, err := e.DocumentVersions(ctx, a.flags.tenant, kind, name, "")
		if jig.CodeOf(err) == jig.CodeNotFound || err == nil && len(list) == 0 {
			continue
		}
		return documentVersions{Kind: kind, Name: name, Versions: list}, err
	}
	return documentVersions{}, jig.Errorf(jig.CodeNotFound, "no document named %q was ever registered", name).WithField("name").
		WithHint(suggest.Hint(name, namesOf(c), "`"+a.command("catalog")+"` lists what is registered"))
}

// current returns the position of the current version; -1 if none is.
func (d documentVersions) current() int {
	return slices.IndexFunc(d.Versions, func(v protocol.DocumentState) bool { return v.Current })
}

// at returns the only version that begins with the given text.
func (d documentVersions) at(version string) (protocol.DocumentState, error) {
	var found []protocol.DocumentState
	for _, v := range d.Versions {
		if strings.HasPrefix(v.Version, version) && version != "" {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return protocol.DocumentState{}, jig.Errorf(jig.CodeNotFound, "%s has no version %q", d.Name, version).WithField("version").
			WithHint("`jig catalog versions " + d.Name + "` lists them")
	}
	return protocol.DocumentState{}, jig.Errorf(jig.CodeInvalidInput, "%d versions of %s begin with %q", len(found), d.Name, version).
		WithField("version").WithHint("give more of it")
}

// compared returns the versions to compare, the earlier one first.
func (d documentVersions) compared(given []string) (from, to protocol.DocumentState, err error) {
	now := d.current()
	if len(given) == 0 {
		if now < 0 || now+1 >= len(d.Versions) {
			return from, to, jig.Errorf(jig.CodeNotFound, "%s has no earlier version", d.Name).WithField("version")
		}
		return d.Versions[now+1], d.Versions[now], nil
	}
	if from, err = d.at(given[0]); err != nil {
		return from, to, err
	}
	switch {
	case len(given) > 1:
		to, err = d.at(given[1])
	case now < 0:
		err = jig.Errorf(jig.CodeNotFound, "no version of %s is current", d.Name).WithField("version").WithHint("give both versions")
	default:
		to = d.Versions[now]
	}
	return from, to, err
}
