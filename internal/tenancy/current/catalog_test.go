package current_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/tenancy/current"
)

// folder is a store of documents by their kinds and names, all in the version v1.
type folder map[bundle.Key]string

func (f folder) DocumentNames(_ context.Context, _, kind string) ([]string, error) {
	names := []string{}
	for key := range f {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (f folder) CurrentDocuments(ctx context.Context, tenant, kind string) ([]bundle.DocumentVersion, error) {
	var list []bundle.DocumentVersion
	names, err := f.DocumentNames(ctx, tenant, kind)
	for _, name := range names {
		list = append(list, bundle.DocumentVersion{Kind: kind, Name: name, Version: "v1"})
	}
	return list, err
}

func (f folder) DocumentAt(ctx context.Context, tenant, kind, name, _ string) ([]byte, error) {
	return f.Document(ctx, tenant, kind, name)
}

func (f folder) Document(_ context.Context, _, kind, name string) ([]byte, error) {
	body, ok := f[bundle.Key{Kind: kind, Name: name}]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s", name)
	}
	return []byte(body), nil
}

func TestCatalog_ReadsEachVersionOnce(t *testing.T) {
	t.Parallel()
	store := folder{
		{Kind: "entity_type", Name: "article"}: "kind: entity_type\nname: article\nfields:\n  - {name: title, type: text}\n",
		{Kind: "entity_type", Name: "old"}:     "kind: entity_type\nname: old\nshape: none\n",
		{Kind: "agent", Name: "clerk"}:         "---\nname: clerk\nmodel: openai/x\ntools: [file.read]\n---\nBe brief.\n",
		{Kind: "agent", Name: "relic"}:         "---\nname: relic\nvoice: loud\n---\nBe loud.\n",
		{Kind: "composition", Name: "files.copy"}: "kind: composition\nname: files.copy\ndescription: Copies a file from one place to another.\n" +
			"steps:\n  - {id: read, tool: file.read, input: {path: a}}\n",
	}
	names := bundle.NewNames(func(context.Context, string) ([]string, error) { return nil, nil })
	catalog := current.NewCatalog(store, names, loaded.New(), func() []jig.Tool { return []jig.Tool{{Name: "file.read"}} })
	first, err := catalog.Known(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, first.EntityTypes, 1, "a type that cannot be read can be replaced")
	require.Equal(t, "article", first.EntityTypes[0].Name)
	require.Equal(t, []string{"clerk", "relic"}, first.Agents)
	require.Equal(t, map[string][]string{"clerk": {"file.read"}}, first.Whitelists)
	require.Len(t, first.Specs, 1)
	require.Equal(t, "files.copy", first.Tools[1].Name)
	require.NotNil(t, first.Skills)

	second, err := catalog.Known(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Same(t, &first.EntityTypes[0].Fields[0], &second.EntityTypes[0].Fields[0])
	require.Same(t, &first.Specs[0].Steps[0], &second.Specs[0].Steps[0])

	store[bundle.Key{Kind: "entity_type", Name: "article"}] += "  - {name: body, type: text}\n"
	third, err := catalog.Known(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, third.EntityTypes[0].Fields, 2)
}
