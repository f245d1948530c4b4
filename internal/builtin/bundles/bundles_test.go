package bundles_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/retype"
	"github.com/jig-run/jig/spec"
)

func TestInstall_IsIdempotentAndReportsChanges(t *testing.T) {
	t.Parallel()
	s := &fakeStore{}
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
	s := &fakeStore{}
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
	s := &fakeStore{}
	_, refused := s.install(t, "1.0.0", false, composition("notes.read", "notes.code"))
	require.Nil(t, refused)
}

func TestUpgrade_IsCheckedAgainstTheNewState(t *testing.T) {
	t.Parallel()
	s := &fakeStore{}
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
	base := func(entities int64) *fakeStore {
		s := &fakeStore{types: map[string]entity.Type{"note": *old.EntityType()}, entities: map[string]int64{"note": entities}}
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
	s.types["note"] = *own.EntityType()
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
	s := &fakeStore{}
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
	s := &fakeStore{types: map[string]entity.Type{"note": *old.EntityType()}, entities: map[string]int64{}}
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
	s := &fakeStore{}
	s.meanwhile = func() {
		s.have = []bundle.Bundle{{Manifest: bundle.Manifest{Name: "notes", Version: "1.0.1"}, Hash: "other"}}
	}
	out, refused := s.install(t, "1.1.0", false, note)
	require.Nil(t, refused)
	require.Equal(t, "1.0.1", out.Before)
	require.Len(t, s.asked, 2)
	require.Equal(t, "other", s.asked[1].Over)
}

func TestBundles_AreRemovedAndListed(t *testing.T) {
	t.Parallel()
	s := &fakeStore{entities: map[string]int64{"note": 2, "other": 5}}
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
