package bundles_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/bundles"
	"github.com/jig-run/jig/internal/bundle"
)

const careful = `kind: policy
name: notes-rules
rules:
  - {name: never, when: "tool.name == 'file.write'", verdict: deny}
`

func TestPreviewInstall_ShowsEachDocument(t *testing.T) {
	t.Parallel()
	s := &fakeStore{}
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
	for name, change := range map[string]func(s *fakeStore){
		"another version": func(s *fakeStore) { s.have[0].Hash = "other" },
		"a put":           func(s *fakeStore) { s.puts(t, careful+"# the tenant's own\n") },
		"an equal put":    func(s *fakeStore) { s.puts(t, careful) },
	} {
		for tool, in := range map[string]any{
			bundles.InstallTool: files("1.1.0", false, note), bundles.RemoveTool: bundles.Named{Name: "notes"},
		} {
			s := &fakeStore{}
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
	s := &fakeStore{entities: map[string]int64{"note": 2}}
	_, refused := s.install(t, "1.0.0", false, note, careful, composition("notes.read", "file.read"))
	require.Nil(t, refused)
	named := bundles.Named{Name: "notes"}
	at := slices.IndexFunc(s.have[0].Documents, func(d bundle.DocumentVersion) bool { return d.Kind == bundle.KindSpec })
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
	s := &fakeStore{entities: map[string]int64{"note": 1}}
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
