package extractor

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// CheckClaims checks claims about texts, given by the ids of their entities, in the same way as the claims of extractions.
func CheckClaims(claims []entity.TextClaim, sources map[string]string) *jig.Error {
	connected := make(map[string]extraction.Source, len(sources))
	for id, text := range sources {
		connected[id] = extraction.Source{Text: &text}
	}
	return extraction.CheckClaims(claims, connected, nil)
}
