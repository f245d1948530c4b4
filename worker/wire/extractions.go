package wire

import (
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/store"
	"github.com/jig-run/jig/tools/entities"
	"github.com/jig-run/jig/tools/entities/extraction"
)

func entityOptions(db *store.DB) entities.Options {
	return entities.Options{Store: db, Types: extraction.NewTypes(db).Of, Check: spec.CheckContent}
}

func newExtractor(db *store.DB) extraction.Extractor {
	return extraction.New(entityOptions(db), newSchemas().ValidateOutput)
}
