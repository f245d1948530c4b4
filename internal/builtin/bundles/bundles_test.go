package bundles_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools/tooltest"
)

// shelf stores the bundles of one tenant.
type shelf struct {
	have     []bundle.Bundle
	types    map[string]entity.Type
	entities map[string]int64
	asked    []bundle.Install
	// current are the documents in use, and bodies all versions. Installations add theirs.
	current map[bundle.Key]bundle.Held
	bodies  map[bundle.DocumentVersion]string
	// meanwhile is called once, at the beginning of the next installation.
	meanwhile func()
}

func (s *shelf) Shelf(_ context.Context, _, name string, _ []bundle.Key) (*bundle.Shelf, error) {
	if s.current == nil {
		s.current, s.bodies = map[bundle.Key]bundle.Held{}, map[bundle.DocumentVersion]string{}
	}
	has := &bundle.Shelf{Name: name, Current: maps.Clone(s.current)}
	for _, b := range s.have {
		if b.Name == name {
			has.Before = &b
		} else {
			has.Others = append(has.Others, b)
		}
	}
	return has, nil
}

// apply changes the documents as the store does.
func (s *shelf) apply(owner string, p bundle.Plan) {
	for _, d := range p.Retired {
		delete(s.current, d.Key())
	}
	for _, d := range p.Put {
		s.put(owner, d)
	}
	for _, h := range p.Given {
		s.current[h.Key()] = h
	}
}

func (s *shelf) put(owner string, d bundle.StoredDocument) {
	s.current[d.Key()] = bundle.Held{DocumentVersion: d.DocumentVersion, Bundle: owner}
	s.bodies[d.DocumentVersion] = string(d.Body)
}

// puts makes a document the tenant's own.
func (s *shelf) puts(t *testing.T, body string) {
	t.Helper()
	doc, problems := spec.Load("own.yaml", []byte(body))
	require.Empty(t, problems)
	s.put("", bundle.StoredDocument{DocumentVersion: bundle.DocumentVersion{Kind: string(doc.Kind), Name: doc.Name, Version: doc.Version}, Body: doc.Body})
}

func (s *shelf) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	s.asked = append(s.asked, b)
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	has, err := s.Shelf(ctx, by.Tenant, b.Name, nil)
	if err != nil {
		return bundle.Installed{}, err
	}
	plan, done, err := has.Install(b)
	if err != nil {
		return bundle.Installed{}, err
	}
	var before bundle.Bundle
	if has.Before != nil {
		before = *has.Before
	}
	if done {
		return bundle.Installed{Bundle: before, Before: before.Version}, nil
	}
	for _, basis := range b.Types {
		if basis.Version == "" && s.entities[basis.Type] > 0 {
			return bundle.Installed{}, jig.Errorf(jig.CodeConflict, "created meanwhile").WithReason(bundle.ReasonTypeChanged)
		}
	}
	now := bundle.Bundle{Manifest: b.Manifest, Hash: b.Hash, InstalledBy: by.Principal.ID}
	for _, d := range b.Documents {
		now.Documents = append(now.Documents, d.DocumentVersion)
	}
	s.apply(b.Name, plan)
	s.have = append(slices.DeleteFunc(s.have, func(have bundle.Bundle) bool { return have.Name == b.Name }), now)
	return bundle.Installed{Bundle: now, Before: before.Version, Changed: true, Removed: plan.Removed}, nil
}

func (s *shelf) RemoveBundle(ctx context.Context, by jig.Invocation, name, shown string) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error) {
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	has, err := s.Shelf(ctx, by.Tenant, name, nil)
	if err != nil {
		return gone, nil, err
	}
	plan, err := has.Remove(shown)
	if err != nil {
		return gone, nil, err
	}
	s.apply(name, plan)
	s.have = slices.DeleteFunc(s.have, func(have bundle.Bundle) bool { return have.Name == name })
	return *has.Before, plan.Removed, nil
}

func (s *shelf) Bundles(context.Context, string) ([]bundle.Bundle, error) {
	return slices.Clone(s.have), nil
}

func (s *shelf) EntityCounts(context.Context, string) ([]entity.Count, error) {
	var list []entity.Count
	for name, n := range s.entities {
		list = append(list, entity.Count{Type: name, Count: n})
	}
	return list, nil
}

func (s *shelf) DocumentAt(_ context.Context, _, kind, name, version string) ([]byte, error) {
	body, ok := s.bodies[bundle.DocumentVersion{Kind: kind, Name: name, Version: version}]
	if !ok {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no %s %s", kind, name)
	}
	return []byte(body), nil
}

// kit returns the tools over the shelf.
func (s *shelf) kit(t *testing.T) *tooltest.Kit {
	t.Helper()
	kit := tooltest.New(t, bundles.Tools(bundles.Options{
		Store: s,
		KindOf: func(k spec.Kind) string {
			if k.IsExecution() {
				return "spec"
			}
			return string(k)
		},
		Check: func(_ context.Context, tenant string, doc spec.Document, _ []jig.Tool) error {
			if strings.HasPrefix(doc.Name, tenant+".refused") {
				return jig.Errorf(jig.CodeInvalidInput, "%s is refused", doc.Name)
			}
			return nil
		},
		Known: func(_ context.Context, _, bundle string) (spec.Catalogue, error) {
			known := spec.Catalogue{Tools: []jig.Tool{{Name: "file.read", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Specs: []spec.Execution{}}
			if bundle == "notes" {
				known.Tools = append(known.Tools, jig.Tool{Name: "notes.code", Bundle: "notes", InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
			for _, b := range s.have { // as registered
				for _, d := range b.Documents {
					if d.Kind == "spec" {
						known.Specs = append(known.Specs, spec.Execution{Kind: spec.KindComposition, Name: d.Name, Tool: jig.Tool{Name: d.Name, Implementation: "composition"}})
						known.Tools = append(known.Tools, jig.Tool{Name: d.Name, Implementation: "composition"})
					}
				}
			}
			return known, nil
		},
		TypeOf: func(_ context.Context, _, name string) (entity.Type, bool, error) {
			t, ok := s.types[name]
			return t, ok, nil
		},
	})...)
	kit.Invocation.Tenant = "acme"
	return kit
}

// call runs one of the tools.
func (s *shelf) call(t *testing.T, tool string, attempt int, input any) jig.ToolResult {
	t.Helper()
	kit := s.kit(t)
	kit.Invocation.Attempt = attempt
	return kit.Run(t.Context(), tool, input)
}

// files returns the input that installs a bundle with the given manifest version and documents.
func files(version string, replace bool, documents ...string) bundles.Install {
	in := bundles.Install{Replace: replace, Files: []bundles.File{
		{Path: "bundle.yaml", Body: "kind: bundle\nname: notes\nversion: " + version + "\ndescription: Notes and what is done with them.\n"},
	}}
	for i, body := range documents {
		in.Files = append(in.Files, bundles.File{Path: string(rune('a'+i)) + ".yaml", Body: body})
	}
	return in
}

// install installs a bundle with the given manifest version and documents.
func (s *shelf) install(t *testing.T, version string, replace bool, documents ...string) (bundles.Installed, *jig.Error) {
	t.Helper()
	result := s.call(t, bundles.InstallTool, 1, files(version, replace, documents...))
	if !result.Success {
		return bundles.Installed{}, result.Error
	}
	var out bundles.Installed
	require.NoError(t, json.Unmarshal(result.Data, &out))
	return out, nil
}

func composition(name, tool string) string {
	return `kind: composition
name: ` + name + `
description: Reads the file that it is told to read and gives back its content, for people who want to see it.
input_schema: {type: object, required: [path], properties: {path: {type: string, description: The file.}}}
steps:
  - id: page
    tool: ` + tool + `
    input: {path: "${input.path}"}
output: {page: "${steps.page}"}
`
}

const note = `kind: entity_type
name: note
description: A note that somebody took.
fields:
  - {name: text, type: text, required: true}
  - {name: stars, type: number}
`

func TestInstall_IsIdempotentAndReportsChanges(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	first, refused := s.install(t, "1.0.0", false, note, composition("notes.read", "file.read"))
	require.Nil(t, refused)
	require.True(t, first.Changed)
	require.Empty(t, first.Before)
	require.Len(t, first.Documents, 2)
	again, refused := s.install(t, "1.0.0", false, note, composition("notes.read", "file.read"))
	require.Nil(t, refused)
	require.False(t, again.Changed)
	require.Equal(t, first.Hash, again.Hash)
	require.Empty(t, again.Warnings)

	other, refused := s.install(t, "1.0.0", false, note)
	require.Nil(t, refused)
	require.True(t, other.Changed)
	require.Contains(t, strings.Join(other.Warnings, " "), "raise the version")
}

func TestInstall_ReportsAllProblemsAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	_, refused := s.install(t, "1.0.0", false,
		composition("notes.read", "file.raed"), composition("acme.refusedA", "file.read"), composition("acme.refusedB", "file.read"))
	require.NotNil(t, refused)
	require.Equal(t, jig.CodeInvalidInput, refused.Code)
	for _, word := range []string{"file.raed", "acme.refusedA is refused", "acme.refusedB is refused"} {
		require.Contains(t, refused.Message, word)
	}
	require.Empty(t, s.asked)

	for name, given := range map[string][]bundles.File{
		"no manifest": {{Path: "a.yaml", Body: note}},
		"broken":      {{Path: "bundle.yaml", Body: "kind: bundle\nname: notes\nversion: 1\n"}, {Path: "a.yaml", Body: note}},
		"no document": {{Path: "bundle.yaml", Body: "kind: bundle\nname: notes\nversion: 1.0.0\n"}},
		"a tenant":    {{Path: "bundle.yaml", Body: "kind: bundle\nname: notes\nversion: 1.0.0\n"}, {Path: "a.yaml", Body: note}, {Path: "t.yaml", Body: "kind: tenant\nname: acme\n"}},
	} {
		result := s.call(t, bundles.InstallTool, 1, bundles.Install{Files: given})
		require.False(t, result.Success, name)
		require.Equal(t, jig.CodeInvalidInput, result.Error.Code, name)
	}
	require.Empty(t, s.asked)
}

func TestInstall_KnowsTheBundlesOwnTools(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	_, refused := s.install(t, "1.0.0", false, composition("notes.read", "notes.code"))
	require.Nil(t, refused)
}

func TestUpgrade_IsCheckedAgainstTheNewState(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	_, refused := s.install(t, "1.0.0", false, composition("notes.read", "file.read"), composition("notes.twice", "notes.read"))
	require.Nil(t, refused)
	_, refused = s.install(t, "1.1.0", false, composition("notes.twice", "notes.read"))
	require.NotNil(t, refused, "notes.read is removed with the previous version")
	require.Contains(t, refused.Message, "notes.read")
	out, refused := s.install(t, "1.1.0", false, composition("notes.twice", "file.read"))
	require.Nil(t, refused)
	require.Equal(t, "1.0.0", out.Before)
	require.Equal(t, s.asked[0].Hash, s.asked[1].Over)
}

func TestUpgrade_RefusesTypesThatEntitiesDoNotFit(t *testing.T) {
	t.Parallel()
	old, problems := spec.Load("note.yaml", []byte(note))
	require.Empty(t, problems)
	base := func(entities int64) *shelf {
		s := &shelf{types: map[string]entity.Type{"note": *old.EntityType}, entities: map[string]int64{"note": entities}}
		_, refused := s.install(t, "1.0.0", false, note)
		require.Nil(t, refused)
		return s
	}
	numbered := strings.ReplaceAll(strings.ReplaceAll(note, "text, type: text", "text, type: number"), "stars, type: number", "stars, type: number, maximum: 5")
	other := strings.ReplaceAll(note, "name: note", "name: memo")
	wider := note + "  - {name: due, type: date}\n"

	s := base(3)
	_, refused := s.install(t, "2.0.0", false, numbered)
	require.NotNil(t, refused)
	require.Equal(t, jig.CodeConflict, refused.Code)
	require.Equal(t, retype.ReasonFieldsChanged, refused.Reason)
	require.Len(t, refused.Violations, 2)
	require.Contains(t, refused.Message, "note.text")
	require.Contains(t, refused.Message, "note.stars")
	require.NotEmpty(t, refused.Hint)
	_, refused = s.install(t, "2.0.0", true, other)
	require.NotNil(t, refused, "not even with replace")
	require.Equal(t, retype.ReasonFieldsChanged, refused.Reason)
	require.Contains(t, refused.Message, "3 entities")
	_, refused = s.install(t, "2.0.0", false, wider)
	require.Nil(t, refused)

	// The tenant's own version was wider, and entities were checked against it: going back to the bundle's version is a breaking change,
	// too.
	s = base(3)
	own, problems := spec.Load("note.yaml", []byte(wider))
	require.Empty(t, problems)
	s.types["note"] = *own.EntityType
	_, refused = s.install(t, "1.0.0", true, note)
	require.NotNil(t, refused)
	require.Equal(t, retype.ReasonFieldsChanged, refused.Reason)

	for _, body := range []string{numbered, other} {
		_, refused = base(0).install(t, "2.0.0", false, body)
		require.Nil(t, refused, "a type without entities may change freely")
	}
}

func TestDowngrade_NeedsReplace(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	_, refused := s.install(t, "1.10.0", false, note)
	require.Nil(t, refused)
	_, refused = s.install(t, "1.9.0", false, note)
	require.NotNil(t, refused)
	require.Equal(t, bundles.ReasonDowngrade, refused.Reason)
	require.Contains(t, refused.Hint, "replace")
	out, refused := s.install(t, "1.9.0", true, note)
	require.Nil(t, refused)
	require.Equal(t, "1.10.0", out.Before)
	require.True(t, s.asked[len(s.asked)-1].Replace)
}

// An entity may be created between the check and the installation. The installation then checks again.
func TestInstall_NoticesNewEntities(t *testing.T) {
	t.Parallel()
	old, problems := spec.Load("note.yaml", []byte(note))
	require.Empty(t, problems)
	s := &shelf{types: map[string]entity.Type{"note": *old.EntityType}, entities: map[string]int64{}}
	_, refused := s.install(t, "1.0.0", false, note)
	require.Nil(t, refused)
	s.meanwhile = func() { s.entities["note"] = 1 }
	_, refused = s.install(t, "1.1.0", false, strings.ReplaceAll(note, "stars, type: number", "stars, type: text"))
	require.NotNil(t, refused)
	require.Equal(t, retype.ReasonFieldsChanged, refused.Reason)
}

// If another version is installed between the check and the installation, the bundle is checked again, against that version.
func TestInstall_ChecksAgain(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	s.meanwhile = func() {
		s.have = []bundle.Bundle{{Manifest: bundle.Manifest{Name: "notes", Version: "1.0.1"}, Hash: "other"}}
	}
	out, refused := s.install(t, "1.1.0", false, note)
	require.Nil(t, refused)
	require.Equal(t, "1.0.1", out.Before)
	require.Len(t, s.asked, 2)
	require.Equal(t, "other", s.asked[1].Over)
}

func TestRemoveAndList(t *testing.T) {
	t.Parallel()
	s := &shelf{entities: map[string]int64{"note": 2, "other": 5}}
	_, refused := s.install(t, "1.0.0", false, note)
	require.Nil(t, refused)
	result := s.call(t, bundles.ListTool, 1, map[string]any{})
	require.True(t, result.Success, "%+v", result.Error)
	var list bundles.List
	require.NoError(t, json.Unmarshal(result.Data, &list))
	require.Len(t, list.Bundles, 1)
	require.Equal(t, "ana", list.Bundles[0].InstalledBy)
	require.Equal(t, "note", list.Bundles[0].Documents[0].Name)

	named := bundles.Named{Name: "notes"}
	result = s.call(t, bundles.RemoveTool, 1, named)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `2`, string(member(t, result.Data, "entities")))
	require.Contains(t, result.Summary, "2 entities are kept")
	result = s.call(t, bundles.RemoveTool, 1, named)
	require.Equal(t, jig.CodeNotFound, result.Error.Code)
	require.True(t, s.call(t, bundles.RemoveTool, 2, named).Success, "the previous attempt may have removed it")
	require.Equal(t, "no bundle is installed", s.call(t, bundles.ListTool, 1, map[string]any{}).Summary)
}

func member(t *testing.T, data json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &members))
	return members[name]
}

const careful = `kind: policy
name: notes-rules
rules:
  - {name: never, when: "tool.name == 'file.write'", verdict: deny}
`

func TestPreviewInstall_ShowsEachDocument(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	p := s.kit(t).Preview(bundles.InstallTool, files("1.0.0", false, note, careful))
	require.Equal(t, "Installs notes 1.0.0: 2 added", p.Title, "%+v", p)
	require.Contains(t, p.Precondition, "a tenant without the bundle notes (state ")
	require.Empty(t, s.asked, "a preview installs nothing")
	_, refused := s.install(t, "1.0.0", false, note, careful)
	require.Nil(t, refused)

	wider := note + "  - {name: due, type: date}\n"
	p = s.kit(t).Preview(bundles.InstallTool, files("1.1.0", false, wider, strings.Replace(careful, "deny", "ask", 1)))
	require.Equal(t, "Replaces notes 1.0.0 with 1.1.0: 2 changed; LOOSER in 1 way", p.Title, "%+v", p)
	require.Equal(t, "LOOSER: policy notes-rules: rule never says ask; it said deny", p.Changes[0])
	require.Contains(t, strings.Join(p.Changes, "\n"), "+  - {name: due, type: date}")
	require.Contains(t, p.Precondition, "the bundle notes 1.0.0 and its current documents (state ")

	p = s.kit(t).Preview(bundles.InstallTool, files("1.1.0", false, note))
	require.Equal(t, "Replaces notes 1.0.0 with 1.1.0: 1 removed, 1 unchanged; LOOSER in 1 way", p.Title, "%+v", p)
	shown := p.Precondition
	s.puts(t, careful+"# the tenant's own\n")
	p = s.kit(t).Preview(bundles.InstallTool, files("1.1.0", false, note))
	require.Equal(t, "Replaces notes 1.0.0 with 1.1.0: nothing changes", p.Title, "%+v", p)
	require.Contains(t, p.Changes, "stays in use: policy notes-rules (the tenant has a version of its own)")
	require.NotEqual(t, shown, p.Precondition)

	require.Contains(t, s.kit(t).Preview(bundles.InstallTool, files("0.9.0", false, note)).Missing, "higher than 0.9.0", "the same checks as an installation")
	require.Contains(t, s.kit(t).Preview(bundles.InstallTool, files("1.1.0", false, note, strings.Replace(careful, "deny", "ask", 1))).Missing, "the tenant has its own versions")
	p = s.kit(t).Preview(bundles.InstallTool, files("1.0.0", false, note, careful))
	require.Equal(t, "Replaces notes 1.0.0 with 1.0.0: nothing changes", p.Title, "it is installed, and the tenant's own document stays")
	p = s.kit(t).Preview(bundles.InstallTool, files("1.0.0", true, note, careful))
	require.Equal(t, "Replaces notes 1.0.0 with 1.0.0: 1 changed, 1 unchanged", p.Title)
}

// What was approved for one state of the documents is not done in another.
func TestInstallAndRemove_CheckThePrecondition(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *shelf){
		"another version": func(s *shelf) { s.have[0].Hash = "other" },
		"a put":           func(s *shelf) { s.puts(t, careful+"# the tenant's own\n") },
		"an equal put":    func(s *shelf) { s.puts(t, careful) },
	} {
		for tool, in := range map[string]any{
			bundles.InstallTool: files("1.1.0", false, note), bundles.RemoveTool: bundles.Named{Name: "notes"},
		} {
			s := &shelf{}
			_, refused := s.install(t, "1.0.0", false, note, careful)
			require.Nil(t, refused)
			kit := s.kit(t)
			kit.Invocation.Precondition = kit.Preview(tool, in).Precondition
			s.meanwhile = func() { change(s) } // between the check and the transaction
			failed := kit.Fail(tool, in)
			require.Equal(t, jig.CodeConflict, failed.Code, name)
			require.Equal(t, bundle.ReasonPrecondition, failed.Reason, name)
			require.True(t, failed.NoEffect())
			kit.Invocation.Precondition = kit.Preview(tool, in).Precondition
			kit.Succeed(tool, in, nil)
			kit.Invocation.Attempt = 2 // after one that was not recorded
			kit.Succeed(tool, in, nil)
		}
	}
}

func TestPreviewRemove_ShowsWhatGoesOutOfUse(t *testing.T) {
	t.Parallel()
	s := &shelf{entities: map[string]int64{"note": 2}}
	_, refused := s.install(t, "1.0.0", false, note, careful, composition("notes.read", "file.read"))
	require.Nil(t, refused)
	named := bundles.Named{Name: "notes"}
	at := slices.IndexFunc(s.have[0].Documents, func(d bundle.DocumentVersion) bool { return d.Kind == "spec" })
	shared := s.have[0].Documents[at]
	s.have = append(s.have, bundle.Bundle{Manifest: bundle.Manifest{Name: "other", Version: "1.0.0"}, Hash: "other", Documents: []bundle.DocumentVersion{shared}})
	p := s.kit(t).Preview(bundles.RemoveTool, named)
	require.Equal(t, "Removes notes 1.0.0: 2 removed, 1 stays in use; LOOSER in 1 way; entities that stay, but are out of use: 2", p.Title, "%+v", p)
	require.Equal(t, "LOOSER: policy notes-rules: rule never (deny) is gone", p.Changes[0])
	require.Contains(t, strings.Join(p.Changes, "\n"), "composition notes.read (the bundle other has it, too)")
	require.Len(t, s.have, 2)

	s.have[1].Requires = []string{"notes"}
	require.Contains(t, s.kit(t).Preview(bundles.RemoveTool, named).Missing, "required by other")
	require.Contains(t, s.kit(t).Preview(bundles.RemoveTool, bundles.Named{Name: "nobody"}).Missing, "not installed")
}

// A document that the tenant registered itself stays, even if it is equal to the bundle's, and so do its entities.
func TestPreviewRemove_LeavesTheTenantsEqualDocument(t *testing.T) {
	t.Parallel()
	s := &shelf{entities: map[string]int64{"note": 1}}
	_, refused := s.install(t, "1.0.0", false, note, careful)
	require.Nil(t, refused)
	s.puts(t, note)
	named := bundles.Named{Name: "notes"}
	p := s.kit(t).Preview(bundles.RemoveTool, named)
	require.Equal(t, "Removes notes 1.0.0: 1 removed, 1 stays in use; LOOSER in 1 way", p.Title, "%+v", p)
	require.Contains(t, p.Changes, "stays in use: entity_type note (the tenant has registered it, too)")
	result := s.call(t, bundles.RemoveTool, 1, named)
	require.Equal(t, "removed notes 1.0.0", result.Summary)
	require.JSONEq(t, "0", string(member(t, result.Data, "entities")))
}
