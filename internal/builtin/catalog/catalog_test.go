package catalog_test

import (
	"context"
	"encoding/json"
	"slices"
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

// fakeStore stores the documents that are put on it. It has one entity of the type "song".
type fakeStore struct {
	has    bundle.Snapshot
	bodies map[bundle.DocumentVersion]string
	// types are the facts that the last registration relied on.
	types map[string]string
	// albums is "come" if an album appears between the check and the registration, and "here" if there is one.
	albums string
	// known adds to the tenant's catalog.
	known func(*spec.Catalog)
	// late, unless nil, changes the fakeStore immediately before it changes.
	late func()
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		has: bundle.Snapshot{Current: map[bundle.Key]bundle.CurrentVersion{}, Shared: map[bundle.Key]bundle.DocumentVersion{}}, bodies: map[bundle.DocumentVersion]string{},
	}
}

func (*fakeStore) Installation() string { return "ins_1" }

func (s *fakeStore) RegisterDocuments(_ context.Context, _ jig.Invocation, r bundle.Register) error {
	if s.late != nil {
		s.late()
	}
	_, _, err := s.has.Register(r.Documents, r.Shown)
	if err != nil {
		return err
	}
	if s.albums == "come" && len(r.Types) > 0 {
		s.albums = "here"
		return jig.Errorf(jig.CodeConflict, "an album was created").WithReason(bundle.ReasonTypeChanged)
	}
	s.types = map[string]string{}
	for _, b := range r.Types {
		s.types[b.Type] = b.Version
	}
	for _, d := range r.Documents {
		s.has.Current[d.Key()] = bundle.CurrentVersion{DocumentVersion: d.DocumentVersion}
		s.bodies[d.DocumentVersion] = string(d.Body)
	}
	return nil
}

func (s *fakeStore) WithdrawDocuments(_ context.Context, by jig.Invocation, documents []bundle.Key, shown string) (bundle.Plan, error) {
	if s.late != nil {
		s.late()
	}
	plan, err := s.has.Withdraw(documents, shown, by.Attempt > 1)
	if err != nil {
		return plan, err
	}
	for _, d := range plan.Retired {
		delete(s.has.Current, d.Key())
	}
	for _, h := range plan.Inherited {
		s.has.Current[h.Key()] = h
	}
	return plan, nil
}

func (s *fakeStore) names() []string {
	names := []string{}
	for key := range s.has.Current {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return names
}

func (s *fakeStore) DocumentSnapshot(context.Context, string, string, []bundle.Key) (*bundle.Snapshot, error) {
	return &s.has, nil
}

func (s *fakeStore) EntityCounts(context.Context, string) ([]entity.Count, error) {
	counts := []entity.Count{{Type: "song", Count: 1}}
	if s.albums == "here" {
		counts = append(counts, entity.Count{Type: "album", Count: 1})
	}
	return counts, nil
}

func (s *fakeStore) CurrentDocuments(_ context.Context, _, kind string) ([]bundle.DocumentVersion, error) {
	var list []bundle.DocumentVersion
	for key, held := range s.has.Current {
		if key.Kind == kind {
			list = append(list, held.DocumentVersion)
		}
	}
	slices.SortFunc(list, func(a, b bundle.DocumentVersion) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (s *fakeStore) DocumentAt(_ context.Context, _, kind, name, version string) ([]byte, error) {
	body, ok := s.bodies[bundle.DocumentVersion{Kind: kind, Name: name, Version: version}]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s %s", kind, name)
	}
	return []byte(body), nil
}

// kit returns the tools over the fakeStore.
func (s *fakeStore) kit(t *testing.T) *tooltest.Kit {
	t.Helper()
	kit := tooltest.New(t, catalog.Tools(catalog.Options{
		Store: s,
		Check: func(_ context.Context, tenant string, doc spec.Document, _ []jig.Tool) error {
			if doc.Name == tenant+".refused" {
				return jig.Errorf(jig.CodeInvalidInput, "refused")
			}
			return nil
		},
		TypeOf: func(_ context.Context, _, name string) (entity.Type, bool, error) {
			doc, problems := spec.Load("old.yaml", []byte(strings.ReplaceAll(song, "name: song", "name: "+name)))
			require.Empty(t, problems.Errors())
			return *doc.EntityType(), true, nil
		},
		Known: func(context.Context, string) (spec.Catalog, error) {
			known := spec.Catalog{Tools: []jig.Tool{{Name: "file.read", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Specs: []spec.Execution{}}
			if s.known != nil {
				s.known(&known)
			}
			return known, nil
		},
	})...)
	kit.Invocation.Tenant = "acme"
	return kit
}

func put(t *testing.T, s *fakeStore, documents ...catalog.File) jig.ToolResult {
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
	s := newFakeStore()
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good})
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, "registered acme.readIt", result.Summary)
	require.Equal(t, []string{"composition/acme.readIt"}, s.names())
}

func TestPut_StoresNothingThatIsRefused(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good},
		catalog.File{Path: "refused.yaml", Body: strings.ReplaceAll(good, "acme.readIt", "acme.refused")})
	require.False(t, result.Success)
	require.Empty(t, s.names())
}

func TestPut_ChecksAllDocumentsBeforeStoringAny(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
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
	require.Empty(t, s.names())
}

func TestPut_RefusesBundleManifests(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "bundle.yaml", Body: "kind: bundle\nname: acme\nversion: 1.0.0\n"})
	require.False(t, result.Success)
	require.Contains(t, result.Error.Message, "jig bundle install")
	require.Empty(t, s.names())
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
	s := newFakeStore()
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "song.yaml", Body: narrower})
	require.False(t, result.Success)
	require.Equal(t, jig.CodeConflict, result.Error.Code)
	require.Equal(t, retype.ReasonFieldsChanged, result.Error.Reason)
	require.Equal(t, "documents", result.Error.Field)
	require.Contains(t, result.Error.Message, "song.seconds: its maximum is now 600")
	require.Contains(t, result.Error.Hint, "add new ones")
	require.Empty(t, s.names())

	result = put(t, s, catalog.File{Path: "song.yaml", Body: song + "  - {name: key, type: text}\n"},
		catalog.File{Path: "album.yaml", Body: strings.ReplaceAll(narrower, "name: song", "name: album")})
	require.True(t, result.Success, "%+v", result.Error)
	require.NotEmpty(t, s.types["song"], "the version that the entities fit")
	require.Contains(t, s.types, "album")
	require.Empty(t, s.types["album"], "there are no entities")
}

func TestPut_ChecksAgainAfterNewEntities(t *testing.T) {
	t.Parallel()
	narrower := strings.ReplaceAll(strings.ReplaceAll(song, "name: song", "name: album"), "seconds, type: number", "seconds, type: number, maximum: 600")
	s := newFakeStore()
	s.albums = "come"
	result := put(t, s, catalog.File{Path: "album.yaml", Body: narrower})
	require.False(t, result.Success)
	require.Equal(t, retype.ReasonFieldsChanged, result.Error.Reason)
}

// A registration that fails registers none of its documents.
func TestPut_IsAllOrNothing(t *testing.T) {
	t.Parallel()
	album := catalog.File{Path: "album.yaml", Body: strings.ReplaceAll(strings.ReplaceAll(song, "seconds, type: number", "seconds, type: number, maximum: 600"), "name: song", "name: album")}
	s := newFakeStore()
	s.albums = "come"
	result := put(t, s, catalog.File{Path: "read.yaml", Body: good}, album)
	require.False(t, result.Success)
	require.True(t, result.Error.NoEffect(), "%+v", result.Error)
	require.Empty(t, s.names())
}

func TestPreview_ShowsEachDocument(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	rule := "kind: policy\nname: shop\nrules:\n  - {name: never, when: \"tool.name == 'shop.purge'\", verdict: deny}\n"
	require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "shop.yaml", Body: rule}).Success)
	files := catalog.Files{Documents: []catalog.File{
		{Path: "read.yaml", Body: good}, {Path: "shop.yaml", Body: strings.Replace(rule, "deny", "ask", 1)}, {Path: "song.yaml", Body: song},
	}}
	p := s.kit(t).Preview(catalog.PutTool, files)
	require.Equal(t, "Registers documents: 1 added, 1 changed, 1 unchanged; LOOSER in 1 way", p.Title, "%+v", p)
	require.Equal(t, "LOOSER: policy shop: rule never says ask; it said deny", p.Changes[0])
	require.Contains(t, strings.Join(p.Changes, "\n"), "+kind: entity_type\n+name: song")
	require.Contains(t, p.Precondition, "the current versions of these documents (state ")

	files.Documents[0].Body = "kind: composition\nname: acme.readIt\n"
	require.Contains(t, s.kit(t).Preview(catalog.PutTool, files).Missing, "steps", "the same checks as a registration")
}

const watching = "kind: policy\nname: shop\nrules:\n  - {name: never, when: \"tool.name == 'shop.purge'\", verdict: deny}\n"

// A document that somebody else registers between the approval and the call, or between the check and the transaction, makes the call fail.
func TestPut_ChecksThePrecondition(t *testing.T) {
	t.Parallel()
	mine := catalog.Files{Documents: []catalog.File{{Path: "shop.yaml", Body: strings.Replace(watching, "deny", "ask", 1)}}}
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	kit := s.kit(t)
	kit.Invocation.Precondition = kit.Preview(catalog.PutTool, mine).Precondition
	s.late = func() {
		s.late = nil
		require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching + "# theirs\n"}).Success)
	}
	failed := kit.Fail(catalog.PutTool, mine)
	require.Equal(t, jig.CodeConflict, failed.Code)
	require.Equal(t, bundle.ReasonPrecondition, failed.Reason)

	kit.Invocation.Precondition = kit.Preview(catalog.PutTool, mine).Precondition
	kit.Succeed(catalog.PutTool, mine, nil)
	kit.Succeed(catalog.PutTool, mine, nil) // an attempt after one that was not recorded
}

func TestRemove_TakesDocumentsOutOfUse(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "shop.yaml", Body: watching}, catalog.File{Path: "song.yaml", Body: song}).Success)
	names := catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: "shop"}, {Kind: "entity_type", Name: "song"}}}
	kit := s.kit(t)
	shown := kit.Preview(catalog.RemoveTool, names)
	require.Equal(t, "Removes documents: 2 removed; LOOSER in 1 way; entities that stay, but are out of use: 1", shown.Title, "%+v", shown)
	require.Equal(t, "LOOSER: policy shop: rule never (deny) is gone", shown.Changes[0])
	kit.Invocation.Precondition = shown.Precondition
	s.late = func() {
		s.late = nil
		require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching + "# theirs\n"}).Success)
	}
	require.Equal(t, bundle.ReasonPrecondition, kit.Fail(catalog.RemoveTool, names).Reason)
	require.Len(t, s.names(), 3)

	kit.Invocation.Precondition = kit.Preview(catalog.RemoveTool, names).Precondition
	result := kit.Run(t.Context(), catalog.RemoveTool, names)
	require.True(t, result.Success, "%+v", result.Error)
	require.Equal(t, "removed shop, song; 1 entity is kept for when its type is registered again", result.Summary)
	require.Equal(t, []string{"composition/acme.readIt"}, s.names())
	kit.Invocation.Attempt = 2
	require.Equal(t, "the documents were removed before", kit.Run(t.Context(), catalog.RemoveTool, names).Summary)
	kit.Invocation.Attempt, kit.Invocation.Precondition = 1, ""
	require.Equal(t, jig.CodeNotFound, kit.Fail(catalog.RemoveTool, names).Code)
	require.Contains(t, kit.Preview(catalog.RemoveTool, names).Missing, "the tenant has no document")
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success, "its versions are kept")
}

const reader = `---
name: reader
description: Reads files aloud. Use it when somebody cannot see.
model: script/reader
tools: [acme.readIt, file.read, no.such]
script:
  rules: [{answer: done}]
---
`

const twice = `kind: composition
name: acme.readTwice
description: Reads a file twice. Use it when once is not enough.
input_schema: {type: object, required: [path], properties: {path: {type: string}}}
steps:
  - {id: first, tool: acme.readIt, input: {path: "${input.path}"}}
  - {id: second, tool: acme.readIt, input: {path: "${input.path}"}}
`

// The preview names the documents that stay and use one that is removed, and no problem that they have already.
func TestPreviewRemove_NamesTheUsers(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	result := put(t, s,
		catalog.File{Path: "read.yaml", Body: good}, catalog.File{Path: "twice.yaml", Body: twice}, catalog.File{Path: "reader.md", Body: reader})
	require.True(t, result.Success, "%+v", result.Error)
	s.known = func(c *spec.Catalog) {
		c.Agents = []string{"reader"}
		for _, body := range []string{good, twice} {
			doc, problems := spec.Load("x.yaml", []byte(body))
			require.Empty(t, problems.Errors())
			c.Specs, c.Tools = append(c.Specs, *doc.Execution()), append(c.Tools, doc.Execution().Tool)
		}
	}
	one := catalog.Named{Kind: "composition", Name: "acme.readIt"}
	shown := s.kit(t).Preview(catalog.RemoveTool, catalog.Names{Documents: []catalog.Named{one}})
	require.Equal(t, "Removes documents: 1 removed; BREAKS 2 documents", shown.Title, "%+v", shown)
	require.Equal(t, []string{
		`BREAKS: agent reader: there is no tool "acme.readIt"`,
		`BREAKS: composition acme.readTwice: there is no tool "acme.readIt"`,
	}, shown.Changes[:2])

	together := catalog.Names{Documents: []catalog.Named{one, {Kind: "composition", Name: "acme.readTwice"}, {Kind: "agent", Name: "reader"}}}
	require.Equal(t, "Removes documents: 3 removed", s.kit(t).Preview(catalog.RemoveTool, together).Title)
	user := catalog.Names{Documents: []catalog.Named{{Kind: "composition", Name: "acme.readTwice"}}}
	require.Equal(t, "Removes documents: 1 removed", s.kit(t).Preview(catalog.RemoveTool, user).Title)
}

func TestRemove_LeavesWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	s := newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	key := bundle.Key{Kind: "policy", Name: "shop"}
	theirs := bundle.DocumentVersion{Kind: key.Kind, Name: key.Name, Version: "theirs"}
	s.bodies[theirs] = strings.Replace(watching, "deny", "ask", 1)
	s.has.Others = []bundle.Bundle{{Manifest: bundle.Manifest{Name: "rules", Version: "1.0.0"}, Documents: []bundle.DocumentVersion{theirs}}}
	named := catalog.Names{Documents: []catalog.Named{{Kind: "policy", Name: "shop"}}}
	shown := s.kit(t).Preview(catalog.RemoveTool, named)
	require.Equal(t, "Removes documents: 1 changed; LOOSER in 1 way", shown.Title, "the bundle's version is back")
	require.Equal(t, "LOOSER: policy shop: rule never says ask; it said deny", shown.Changes[0])
	s.kit(t).Succeed(catalog.RemoveTool, named, nil)
	require.Equal(t, "rules", s.has.Current[key].Bundle)
	refused := s.kit(t).Fail(catalog.RemoveTool, named)
	require.Equal(t, "document_of_bundle", refused.Reason)
	require.Contains(t, refused.Hint, "bundle.remove")

	s = newFakeStore()
	require.True(t, put(t, s, catalog.File{Path: "shop.yaml", Body: watching}).Success)
	s.has.Shared[key], s.bodies[theirs] = theirs, strings.Replace(watching, "deny", "ask", 1)
	require.Equal(t, "Removes documents: 1 changed; LOOSER in 1 way", s.kit(t).Preview(catalog.RemoveTool, named).Title, "the version of all tenants is back")
	s.kit(t).Succeed(catalog.RemoveTool, named, nil)
	require.Contains(t, s.kit(t).Fail(catalog.RemoveTool, named).Hint, "all tenants")

	require.Contains(t, s.kit(t).Fail(catalog.RemoveTool, catalog.Names{Documents: []catalog.Named{{Kind: "bundle", Name: "rules"}}}).Hint, "bundle.remove")
	require.Contains(t, s.kit(t).Fail(catalog.RemoveTool, catalog.Names{Documents: append(named.Documents, named.Documents...)}).Message, "twice")
}
