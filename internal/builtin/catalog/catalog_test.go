package catalog_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/catalog"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools/tooltest"
)

// shelf stores the documents that are put on it. It has one entity of the type "song".
type shelf map[string]string

func (s shelf) RegisterDocument(_ context.Context, by jig.Invocation, d bundle.StoredDocument, types ...bundle.TypeBasis) error {
	if d.Name == "album" && s["albums"] == "come" { // an entity appears between the check and this call
		s["albums"] = "here"
		return jig.Errorf(jig.CodeConflict, "an album was created").WithReason(bundle.ReasonTypeChanged)
	}
	s[by.Tenant+" "+d.Kind+" "+d.Name] = d.Version
	s["body "+d.Kind+" "+d.Name] = string(d.Body)
	for _, b := range types {
		s["basis "+b.Type] = b.Version
	}
	return nil
}

func (s shelf) EntityCounts(context.Context, string) ([]entity.Count, error) {
	counts := []entity.Count{{Type: "song", Count: 1}}
	if s["albums"] == "here" {
		counts = append(counts, entity.Count{Type: "album", Count: 1})
	}
	return counts, nil
}

func (s shelf) Document(_ context.Context, _, kind, name string) ([]byte, error) {
	body, ok := s["body "+kind+" "+name]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s %s", kind, name)
	}
	return []byte(body), nil
}

// kit returns the tools over the shelf.
func (s shelf) kit(t *testing.T) *tooltest.Kit {
	t.Helper()
	kit := tooltest.New(t, catalog.Tools(catalog.Options{
		Store: s, KindOf: func(k spec.Kind) string { return "stored-" + string(k) },
		Check: func(_ context.Context, tenant string, doc spec.Document, _ []jig.Tool) error {
			if doc.Name == tenant+".refused" {
				return jig.Errorf(jig.CodeInvalidInput, "refused")
			}
			return nil
		},
		TypeOf: func(_ context.Context, _, name string) (entity.Type, bool, error) {
			doc, problems := spec.Load("old.yaml", []byte(strings.ReplaceAll(song, "name: song", "name: "+name)))
			require.Empty(t, problems.Errors())
			return *doc.EntityType, true, nil
		},
		Known: func(context.Context, string) (spec.Catalogue, error) {
			return spec.Catalogue{Tools: []jig.Tool{{Name: "file.read", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Specs: []spec.Execution{}}, nil
		},
	})...)
	kit.Invocation.Tenant = "acme"
	return kit
}

func put(t *testing.T, s shelf, documents ...catalog.File) jig.ToolResult {
	t.Helper()
	return s.kit(t).Run(t.Context(), catalog.PutTool, catalog.Files{Documents: documents})
}

const good = `kind: composition
name: acme.readIt
description: Reads the file that it is told to read and gives back its content.
input_schema: {type: object, required: [path], properties: {path: {type: string}}}
steps:
  - id: page
    tool: file.read
    input: {path: "${input.path}"}
`

func TestPut_StoresValidDocuments(t *testing.T) {
	t.Parallel()
	s := shelf{}
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good})
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, "registered acme.readIt", result.Summary)
	require.Contains(t, s, "acme stored-composition acme.readIt")
}

func TestPut_StoresNothingThatIsRefused(t *testing.T) {
	t.Parallel()
	s := shelf{}
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good},
		catalog.File{Path: "refused.yaml", Body: strings.ReplaceAll(good, "acme.readIt", "acme.refused")})
	require.False(t, result.Success)
	require.Empty(t, s)
}

func TestPut_ChecksAllDocumentsBeforeStoringAny(t *testing.T) {
	t.Parallel()
	s := shelf{}
	bad := `kind: composition
name: acme.other
description: Calls a tool that nobody has, and a composition of another name.
steps:
  - id: a
    tool: file.raed
    input: {}
  - id: b
    composition: acme.nobody
`
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "other.yaml", Body: bad})
	require.False(t, result.Success)
	require.Equal(t, jig.CodeInvalidInput, result.Error.Code)
	require.Contains(t, result.Error.Message, "file.raed")
	require.Contains(t, result.Error.Message, "acme.nobody")
	require.Empty(t, s)
}

func TestPut_RefusesBundleManifests(t *testing.T) {
	t.Parallel()
	s := shelf{}
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "bundle.yaml", Body: "kind: bundle\nname: acme\nversion: 1.0.0\n"})
	require.False(t, result.Success)
	require.Contains(t, result.Error.Message, "jig bundle install")
	require.Empty(t, s)
}

const song = `kind: entity_type
name: song
description: A piece of music that somebody sings.
fields:
  - {name: text, type: text, required: true}
  - {name: seconds, type: number}
`

func TestPut_RefusesTypesThatEntitiesDoNotFit(t *testing.T) {
	t.Parallel()
	narrower := strings.ReplaceAll(song, "seconds, type: number", "seconds, type: number, maximum: 600")
	s := shelf{}
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "song.yaml", Body: narrower})
	require.False(t, result.Success)
	require.Equal(t, jig.CodeConflict, result.Error.Code)
	require.Equal(t, retype.ReasonFieldsChanged, result.Error.Reason)
	require.Equal(t, "documents", result.Error.Field)
	require.Contains(t, result.Error.Message, "song.seconds: its maximum is now 600")
	require.Contains(t, result.Error.Hint, "add new ones")
	require.Empty(t, s)

	result = put(t, s, catalog.File{Path: "song.yaml", Body: song + "  - {name: key, type: text}\n"},
		catalog.File{Path: "album.yaml", Body: strings.ReplaceAll(narrower, "name: song", "name: album")})
	require.True(t, result.Success, "%+v", result.Error)
	require.NotEmpty(t, s["basis song"], "the version that the entities fit")
	require.Contains(t, s, "basis album")
	require.Empty(t, s["basis album"], "there are no entities")
}

func TestPut_ChecksAgainAfterNewEntities(t *testing.T) {
	t.Parallel()
	narrower := strings.ReplaceAll(strings.ReplaceAll(song, "name: song", "name: album"), "seconds, type: number", "seconds, type: number, maximum: 600")
	result := put(t, shelf{"albums": "come"}, catalog.File{Path: "album.yaml", Body: narrower})
	require.False(t, result.Success)
	require.Equal(t, retype.ReasonFieldsChanged, result.Error.Reason)
}

// Documents before the one that failed are already registered, so the error must not promise that nothing changed.
func TestPut_PartialFailureDoesNotPromiseThatNothingHappened(t *testing.T) {
	t.Parallel()
	album := catalog.File{Path: "album.yaml", Body: strings.ReplaceAll(strings.ReplaceAll(song, "seconds, type: number", "seconds, type: number, maximum: 600"), "name: song", "name: album")}
	s := shelf{"albums": "come"}
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, album)
	require.False(t, result.Success)
	require.Contains(t, s, "acme stored-composition acme.readIt")
	require.False(t, result.Error.NoEffect(), "%+v", result.Error)

	result = put(t, shelf{"albums": "here"}, catalog.File{Path: "read.yaml", Body: good}, album)
	require.Equal(t, jig.CodeConflict, result.Error.Code)
	require.True(t, result.Error.NoEffect(), "the check came first")
}

func TestPreview_ShowsEachDocument(t *testing.T) {
	t.Parallel()
	s := shelf{}
	rule := "kind: policy\nname: shop\nrules:\n  - {name: never, when: \"tool.name == 'shop.purge'\", verdict: deny}\n"
	require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "shop.yaml", Body: rule}).Success)
	files := catalog.Files{Documents: []catalog.File{
		{Path: "read.yaml", Body: good}, {Path: "shop.yaml", Body: strings.Replace(rule, "deny", "ask", 1)}, {Path: "song.yaml", Body: song},
	}}
	p := s.kit(t).Preview(catalog.PutTool, files)
	require.Equal(t, "Registers documents: 1 added, 1 changed, 1 unchanged; LOOSER in 1 way", p.Title, "%+v", p)
	require.Equal(t, "LOOSER: policy shop: rule never says ask; it said deny", p.Changes[0])
	require.Contains(t, strings.Join(p.Changes, "\n"), "+kind: entity_type\n+name: song")
	require.Empty(t, p.Precondition, "documents are stored one after another")

	files.Documents[0].Body = "kind: composition\nname: acme.readIt\n"
	require.Contains(t, s.kit(t).Preview(catalog.PutTool, files).Missing, "steps", "the same checks as a registration")
}
