package entities_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/tools/tooltest"
)

func TestPreviews_OfEntities(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	id := b.create("team", object{"name": "Blue", "size": 3, "notes": "one\ntwo"})
	other := b.create("team", object{"name": "Red"})
	for name, row := range map[string]struct {
		tool  string
		input object
		want  jig.Preview
	}{
		"create": {entities.CreateTool, object{"type": "team", "title": "Green", "content": object{"name": "Green", "tags": []string{"a"}}}, jig.Preview{
			Title: `Creates team "Green"`, Changes: []string{`+ name: "Green"`, `+ stage: "new"`, `+ tags: ["a"]`}, Precondition: "type team at version v1",
		}},
		"update": {entities.UpdateTool, object{"id": id, "revision": 1, "title": "Sky", "set": object{"size": 4, "notes": "one\n2", "name": "Blue", "stage": nil}}, jig.Preview{
			Title:   fmt.Sprintf(`Changes team "T team" (%s): 4 values`, id),
			Changes: []string{`title: "T team" → "Sky"`, "notes\n@@ -1,2 +1,2 @@\n one\n-two\n+2", "size: 3 → 4", `- stage: "new"`}, Precondition: "revision 1",
		}},
		"update to the same": {entities.UpdateTool, object{"id": id, "revision": 1, "set": object{"size": 3}}, jig.Preview{
			Title: fmt.Sprintf(`Changes nothing: team "T team" (%s) has these values already`, id), Precondition: "revision 1",
		}},
		"stale update": {entities.UpdateTool, object{"id": id, "revision": 7, "set": object{"size": 4}}, jig.Preview{
			Title: fmt.Sprintf(`Fails with CONFLICT: team "T team" (%s) is at revision 1, and the call is for revision 7`, id), Precondition: "revision 7",
		}},
		"delete": {entities.DeleteTool, object{"id": other}, jig.Preview{
			Title: fmt.Sprintf(`Deletes team "T team" (%s) with its texts and relations`, other), Changes: []string{`- name: "Red"`, `- stage: "new"`}, Precondition: "revision 1",
		}},
		"relate": {entities.CreateRelationTool, object{"from": id, "name": "beats", "to": other}, jig.Preview{
			Title: "Adds a relation beats", Changes: []string{fmt.Sprintf(`+ team "T team" (%s) beats team "T team" (%s)`, id, other)},
		}},
		"text": {entities.PutTextTool, object{"id": id, "title": "Plan", "body": "a\nb"}, jig.Preview{
			Title: fmt.Sprintf(`Adds a text "Plan" to team "T team" (%s)`, id), Changes: []string{"text\n+a\n+b"},
		}},
	} {
		require.Equal(t, row.want, b.Preview(row.tool, row.input), name)
	}
	require.Contains(t, b.Preview(entities.UpdateTool, object{"id": id, "revision": 1, "set": object{"name": nil}}).Missing, "required")
}

// People must not learn from a preview what the caller may not read.
func TestPreviews_HaveTheCallersRights(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	id := b.create("team", object{"name": "secret"})
	b.Invocation.Principal.Permissions = []string{"entities.report.*"}
	for tool, input := range map[string]object{
		entities.UpdateTool: {"id": id, "revision": 1, "set": object{"size": 4}}, entities.DeleteTool: {"id": id},
		entities.PutTextTool: {"id": id, "body": "x"}, entities.CreateRelationTool: {"from": id, "name": "a", "to": id},
		entities.CreateTool: {"type": "team", "content": object{"name": "x"}},
	} {
		p := b.Preview(tool, input)
		require.NotEmpty(t, p.Missing, tool)
		require.NotContains(t, p.Missing, "secret")
	}
}

// An entity changes at random moments. Updates and deletions do what their previews showed, or nothing.
func TestEntities_RaceForThePrecondition(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	random := rand.New(rand.NewPCG(13, 30))
	rival := tooltest.New(t, entities.Tools(options(b.db))...)
	rival.Invocation.Tenant, rival.Invocation.Principal = b.Invocation.Tenant, b.Invocation.Principal
	done := 0
	id := b.create("team", object{"name": "x", "size": 0})
	for n := range 1000 {
		var now struct {
			Revision int64 `json:"revision"`
		}
		b.call(entities.GetTool, object{"id": id}, &now)
		input := object{"id": id, "revision": now.Revision, "set": object{"size": n}}
		tool := entities.UpdateTool
		if random.IntN(4) == 0 {
			tool, input = entities.DeleteTool, object{"id": id}
		}
		shown := b.Preview(tool, input)
		require.Equal(t, fmt.Sprint("revision ", now.Revision), shown.Precondition)
		b.Invocation.Precondition = shown.Precondition
		b.Invocation.IdempotencyKey = fmt.Sprint("approved/", n)
		var racing sync.WaitGroup
		var ours, theirs jig.ToolResult
		if random.IntN(2) == 0 {
			rival.Invocation.IdempotencyKey = fmt.Sprint("rival/", n)
			racing.Go(func() {
				theirs = rival.Run(t.Context(), entities.UpdateTool, object{"id": id, "revision": now.Revision, "set": object{"size": -n}})
			})
		}
		racing.Go(func() { ours = b.Run(t.Context(), tool, input) })
		racing.Wait()
		require.False(t, ours.Success && theirs.Success, "both started from the same revision")
		if ours.Success {
			done++
		} else {
			require.Equal(t, jig.CodeConflict, ours.Error.Code, ours.Error)
		}
		b.Invocation.Precondition = ""
		if ours.Success && tool == entities.DeleteTool {
			id = b.create("team", object{"name": "x", "size": 0})
		}
	}
	require.Greater(t, done, 100)
}
