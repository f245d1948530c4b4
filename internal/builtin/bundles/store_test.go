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
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools/tooltest"
)

// fakeStore stores the bundles of one tenant.
type fakeStore struct {
	have     []bundle.Bundle
	types    map[string]entity.Type
	entities map[string]int64
	asked    []bundle.Install
	// current are the documents in use, and bodies all versions. Installations add theirs.
	current map[bundle.Key]bundle.CurrentVersion
	bodies  map[bundle.DocumentVersion]string
	// meanwhile is called once, at the beginning of the next installation.
	meanwhile func()
}

func (s *fakeStore) DocumentSnapshot(_ context.Context, _, name string, _ []bundle.Key) (*bundle.Snapshot, error) {
	if s.current == nil {
		s.current, s.bodies = map[bundle.Key]bundle.CurrentVersion{}, map[bundle.DocumentVersion]string{}
	}
	has := &bundle.Snapshot{Name: name, Current: maps.Clone(s.current)}
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
func (s *fakeStore) apply(owner string, p bundle.Plan) {
	for _, d := range p.Retired {
		delete(s.current, d.Key())
	}
	for _, d := range p.Put {
		s.put(owner, d)
	}
	for _, h := range p.Inherited {
		s.current[h.Key()] = h
	}
}

func (s *fakeStore) put(owner string, d bundle.StoredDocument) {
	s.current[d.Key()] = bundle.CurrentVersion{DocumentVersion: d.DocumentVersion, Bundle: owner}
	s.bodies[d.DocumentVersion] = string(d.Body)
}

// puts makes a document the tenant's own.
func (s *fakeStore) puts(t *testing.T, body string) {
	t.Helper()
	doc, problems := spec.Load("own.yaml", []byte(body))
	require.Empty(t, problems)
	s.put("", bundle.StoredDocument{DocumentVersion: bundle.DocumentVersion{Kind: string(doc.Kind), Name: doc.Name, Version: doc.Version}, Body: doc.Body})
}

func (s *fakeStore) InstallBundle(ctx context.Context, by jig.Invocation, b bundle.Install) (bundle.Installed, error) {
	s.asked = append(s.asked, b)
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	has, err := s.DocumentSnapshot(ctx, by.Tenant, b.Name, nil)
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

func (s *fakeStore) RemoveBundle(ctx context.Context, by jig.Invocation, name, shown string) (gone bundle.Bundle, removed []bundle.DocumentVersion, err error) {
	if s.meanwhile != nil {
		s.meanwhile()
		s.meanwhile = nil
	}
	has, err := s.DocumentSnapshot(ctx, by.Tenant, name, nil)
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

func (s *fakeStore) Bundles(context.Context, string) ([]bundle.Bundle, error) {
	return slices.Clone(s.have), nil
}

func (s *fakeStore) EntityCounts(context.Context, string) ([]entity.Count, error) {
	var list []entity.Count
	for name, n := range s.entities {
		list = append(list, entity.Count{Type: name, Count: n})
	}
	return list, nil
}

func (s *fakeStore) CurrentDocuments(_ context.Context, _, kind string) ([]bundle.DocumentVersion, error) {
	var list []bundle.DocumentVersion
	for key, held := range s.current {
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
	kit := tooltest.New(t, bundles.Tools(bundles.Options{
		Store: s,
		Check: func(_ context.Context, tenant string, doc spec.Document, _ []jig.Tool) error {
			if strings.HasPrefix(doc.Name, tenant+".refused") {
				return jig.Errorf(jig.CodeInvalidInput, "%s is refused", doc.Name)
			}
			return nil
		},
		Known: func(_ context.Context, _, bundle string) (spec.Catalog, error) {
			known := spec.Catalog{Tools: []jig.Tool{{Name: "file.read", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Specs: []spec.Execution{}}
			if bundle == "notes" {
				known.Tools = append(known.Tools, jig.Tool{Name: "notes.code", Bundle: "notes", InputSchema: json.RawMessage(`{"type":"object"}`)})
			}
			for _, b := range s.have { // as registered
				for _, d := range b.Documents {
					if d.Kind == "composition" {
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
func (s *fakeStore) call(t *testing.T, tool string, attempt int, input any) jig.ToolResult {
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
func (s *fakeStore) install(t *testing.T, version string, replace bool, documents ...string) (bundles.Installed, *jig.Error) {
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
