package worker

import (
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/plan/extractor"
	"github.com/jig-run/jig/internal/store"
	"github.com/jig-run/jig/spec"
)

func entityOptions(db *store.DB) entities.Options {
	return entities.Options{Store: entities.Store{Records: db, Texts: db, Finder: db}, Types: extractor.NewTypes(db).Of, Check: spec.CheckContent}
}

// withModel lets the entity tools ask a model. The model's claims must pass the same checks as the claims of extractions.
func withModel(o entities.Options, model entities.Model, byDefault string) entities.Options {
	o.Model, o.DefaultModel, o.CheckClaims = model, byDefault, extractor.CheckClaims
	return o
}

func newExtractor(db *store.DB) extractor.Extractor {
	return extractor.New(entityOptions(db), newSchemas().ValidateOutput)
}
