package worker

import (
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/entity/guarded"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

func guardedEntities(db *store.DB) guarded.Entities {
	return guarded.Entities{Store: db, Types: extractor.NewTypes(db).Of, Check: spec.CheckContent}
}

// entityOptions returns the settings of the entity tools. A model's claims must pass the same checks as the claims of extractions.
func entityOptions(db *store.DB, model entities.Model, byDefault string) entities.Options {
	return entities.Options{
		Entities: guardedEntities(db), Store: entities.Store{Records: db, Texts: db, Finder: db},
		Model: model, DefaultModel: byDefault, CheckClaims: extractor.CheckClaims,
	}
}

func newExtractor(db *store.DB) extractor.Extractor {
	return extractor.New(guardedEntities(db), newSchemas().ValidateOutput)
}
