package loaded_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/spec"
)

const article = "kind: entity_type\nname: article\nfields:\n  - {name: title, type: text}\n"

func TestDocuments_ReadAVersionOnce(t *testing.T) {
	t.Parallel()
	documents := loaded.New()
	found := make([]spec.Document, 8)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() {
			found[i], _ = documents.Stored("entity_type", "article", []byte(article)) //nolint:errcheck // its value is checked below
			_ = spec.Check([]spec.Document{found[i]}, spec.Catalog{})                 //nolint:errcheck // only reads what is shared
		})
	}
	all.Wait()
	for _, doc := range found {
		require.NotNil(t, doc.EntityType())
		require.Same(t, found[0].Value, doc.Value)
	}

	changed, problems := documents.Stored("entity_type", "article", []byte(article+"  - {name: title, type: text}\n"))
	require.Error(t, problems.OrNil())
	require.NotSame(t, found[0].Value, changed.Value)
	_, again := documents.Stored("entity_type", "article", []byte(article+"  - {name: title, type: text}\n"))
	require.Equal(t, problems, again)

	file, problems := documents.Load("docs/article.yaml", []byte(article))
	require.NoError(t, problems.OrNil())
	require.Equal(t, "docs/article.yaml", file.Path, "problems name the caller's file")
	same, problems := documents.Load("docs/article.yaml", []byte(article))
	require.NoError(t, problems.OrNil())
	require.Same(t, file.Value, same.Value)
}

func TestDocuments_NilKeepsNothing(t *testing.T) {
	t.Parallel()
	var none *loaded.Documents
	first, problems := none.Load("article.yaml", []byte(article))
	require.NoError(t, problems.OrNil())
	second, problems := none.Load("article.yaml", []byte(article))
	require.NoError(t, problems.OrNil())
	require.NotSame(t, first.Value, second.Value)
}
