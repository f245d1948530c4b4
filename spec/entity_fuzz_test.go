package spec_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/spec"
)

// Reading an arbitrary entity type never panics. A type that is accepted can be drawn, and its schema compiles.
func FuzzEntityType(f *testing.F) {
	body, err := os.ReadFile(moduleType)
	require.NoError(f, err)
	f.Add(string(body), `{"path": "a", "version": "v1"}`)
	f.Add("{kind: entity_type, name: a, fields: [{name: a, type: enum, options: [x]}], tasks: [{id: a, compute: entity.content.a}]}", `{"a": "x"}`)
	f.Add("{kind: entity_type, name: a, fields: [{name: a, type: array, items: {type: date}}], tasks: [{id: a, citations: a}]}", `{"a": []}`)
	f.Fuzz(func(t *testing.T, document, content string) {
		doc, problems := spec.Load("a.yaml", []byte(document))
		if doc.EntityType() == nil || problems.OrNil() != nil {
			return
		}
		e := spec.ExplainEntityType(*doc.EntityType())
		requirePlain(t, e.Text())
		requireMermaid(t, e.Mermaid())
		require.True(t, json.Valid(spec.ContentSchema(*doc.EntityType())))
		entity.FilterFields(*doc.EntityType())
		require.Empty(t, spec.CompareTypes(*doc.EntityType(), *doc.EntityType()))
		whole, partial := spec.CheckContent(*doc.EntityType(), []byte(content), false), spec.CheckContent(*doc.EntityType(), []byte(content), true)
		require.True(t, whole != nil || partial == nil, "content that fits completely also fits partially")
	})
}
