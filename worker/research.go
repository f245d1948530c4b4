package worker

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/tools/builtin/entities"
)

// withModel lets the entity tools ask a model. The model's claims must pass the same checks as the claims of extractions.
func withModel(o entities.Options, model entities.Model, byDefault string) entities.Options {
	o.Model, o.DefaultModel, o.CheckClaims = model, byDefault, checkClaims
	return o
}

func checkClaims(claims []entity.TextClaim, sources map[string]string) *jig.Error {
	connected := make(map[string]extraction.Source, len(sources))
	for id, text := range sources {
		connected[id] = extraction.Source{Text: &text}
	}
	return extraction.CheckClaims(claims, connected, nil)
}
