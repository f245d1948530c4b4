package composition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestAdvance_RunsStepsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.sequence
steps:
  - {id: page, tool: cms.createPage, input: {title: "${input.title}"}}
  - {id: sections, for_each: input.sections, max_parallel: 2, tool: cms.addSection, input: {page: "${steps.page.data.path}", content: "${item}", at: "${index}"}}
  - {id: skipped, if: "size(input.sections) > 10", tool: cms.never}
  - parallel:
      - {id: left, tool: cms.left}
      - {id: right, tool: cms.right}
  - switch:
      - {when: "steps.skipped.?skipped.orValue(false)", steps: [{set: {total: "${size(steps.sections)}"}}]}
      - {else: true, steps: [{fail: {message: no}}]}
  - {id: broken, tool: fail.always, on_error: continue}
  - {id: caught, tool: fail.always, on_error: {catch: [{id: repair, tool: cms.repair, input: {why: "${error.code}"}}], as: oops}}
output: {page: "${steps.page.data.input.title}", total: "${vars.total}", sections: "${steps.sections.map(s, s.data.input.content)}", broken: "${steps.broken.error.code}", repair: "${steps.repair.data.input.why}"}
`, `{"title":"Hello","sections":["a","b","c"]}`, echo)
	result := w.run(t)
	require.True(t, result.Success, "%+v", result.Error)
	require.JSONEq(t, `{"page":"Hello","total":3,"sections":["a","b","c"],"broken":"NOT_FOUND","repair":"NOT_FOUND"}`, string(result.Data))
	require.Equal(t, []string{"page", "sections[0]", "sections[1]", "sections[2]", "left", "right", "broken", "caught", "repair"}, w.asked)
}

func TestAdvance_UndoesAFailedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
kind: composition
name: test.undone
steps:
  - {id: a, tool: cms.a, undo: {tool: cms.unA, input: {of: "${steps.a.data.path}"}}}
  - {id: b, for_each: "['x', 'y']", tool: cms.b, undo: {tool: cms.unB, input: {of: "${index}", item: "${item}"}}}
  - {id: c, tool: fail.c}
`, `{}`, echo)
	result := w.run(t)
	require.False(t, result.Success)
	require.Equal(t, jig.CodeNotFound, result.Error.Code)
	require.Equal(t, "c: there is no such thing", result.Summary)
	require.JSONEq(t, `{"undone":["b[1]","b[0]","a"],"not_undone":[]}`, string(result.Data))
	require.Equal(t, []string{"a", "b[0]", "b[1]", "c", "b[1].undo", "b[0].undo", "a.undo"}, w.asked)
	require.JSONEq(t, `{"of":1,"item":"y"}`, string(w.rows["b[1].undo"].input))
}
