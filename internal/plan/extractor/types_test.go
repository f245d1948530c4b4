package extractor_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/loaded"
	"github.com/jig-run/jig/internal/plan/extractor"
)

// shelves are documents by tenant, all with the same version.
type shelves map[string]string

func (s shelves) CurrentDocuments(_ context.Context, tenant, kind string) ([]bundle.DocumentVersion, error) {
	if _, ok := s[tenant]; !ok {
		return nil, nil
	}
	return []bundle.DocumentVersion{{Kind: kind, Name: "article", Version: "v1"}}, nil
}

func (s shelves) DocumentAt(_ context.Context, tenant, _, _, _ string) ([]byte, error) {
	body, ok := s[tenant]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "there is none")
	}
	return []byte(body), nil
}

func TestEntityTypes_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	head := "kind: entity_type\nname: article\nfields:\n  - {name: title, type: text}\ntitle: "
	types := extractor.NewTypes(shelves{"acme": head + "Acme\n", "globex": head + "Globex\n"}, loaded.New())
	for tenant, title := range map[string]string{"acme": "Acme", "globex": "Globex"} {
		for range 2 {
			of, err := types.Of(t.Context(), tenant)
			require.NoError(t, err)
			require.Len(t, of, 1)
			require.Equal(t, title, of[0].Title)
		}
	}
	_, err := types.Read(t.Context(), "thief", bundle.DocumentVersion{Kind: "entity_type", Name: "article", Version: "v1"})
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err))
}

// The readers of a worker share what they have parsed, also while several of them need a version at the same time.
func TestEntityTypes_AreParsedOnce(t *testing.T) {
	t.Parallel()
	documents := shelves{"acme": "kind: entity_type\nname: article\nfields:\n  - {name: title, type: text}\n"}
	shared := loaded.New()
	fields := make([]*entity.Field, 8)
	var all sync.WaitGroup
	for i := range fields {
		types := extractor.NewTypes(documents, shared)
		all.Go(func() {
			if of, err := types.Of(t.Context(), "acme"); err == nil {
				fields[i] = &of[0].Fields[0]
			}
		})
	}
	all.Wait()
	for _, f := range fields {
		require.NotNil(t, f)
		require.Same(t, fields[0], f)
	}
}
