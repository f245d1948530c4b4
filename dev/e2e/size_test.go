package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// The limits for the history of every run, far below Temporal's own.
const (
	maxEvents = 1000
	maxBytes  = 1 << 20
)

func (d *testEnv) requireSmall(id string) biggest {
	d.t.Helper()
	b := d.histories(id)
	require.LessOrEqual(d.t, b.events, int64(maxEvents))
	require.LessOrEqual(d.t, b.bytes, int64(maxBytes))
	return b
}

func TestSize_TwentyMegabyteResult(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	const size = 20 << 20
	id := d.run(agent(`["*"]`, fmt.Sprintf(`    - when: pass == 1
      calls: [{tool: test.big, input: {bytes: %d, name: haystack}}]
    - when: pass == 2
      calls: [{tool: artifact.read, input: {id: "${session}/1.1", jsonpath: $.success}}]
    - answer: "${calls[1].success ? 'found' : calls[1].error.message}"
`, size)), map[string]any{})
	view := d.finish(id)
	require.Equal(t, jig.StatusCompleted, view.Status, "%+v", view.Error)
	require.Equal(t, "found", view.Answer)
	got := byID(d.stored(id))
	require.Equal(t, jig.CallSucceeded, got["1.1"].Status)
	d.requireSmall(id)
}

func TestSize_TwoMegabyteAnswer(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - let: [{name: row, value: "lists.range(1024).map(i, '0123456789abcdef').join('')"}]
      answer: "${lists.range(128).map(i, vars.row).join('')}"
`), nil)
	require.Equal(t, jig.StatusCompleted, d.finish(id).Status)
	result, err := d.Result(t.Context(), jig.DefaultTenant, id)
	require.NoError(t, err)
	require.Len(t, result.Answer, 2<<20)
	d.requireSmall(id)
}

func TestSize_ThreeHundredCallsInOnePass(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "lists.range(300)"
      calls: [{tool: test.echo, input: {value: "v${item}"}}]
    - answer: "${calls.filter(c, c.success).size()}"
`, "max_parallel_calls: 50"), nil)
	view := d.finish(id)
	require.Equal(t, "300", view.Answer)
	b := d.requireSmall(id)
	require.GreaterOrEqual(t, b.runs, int64(3), "a large pass takes several runs")
	require.Len(t, d.events(id, jig.EventToolCompleted), 300)
}

func TestSize_TwoHundredPasses(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - when: pass < 200
      calls: [{tool: test.quick, input: {value: "v${pass}"}}]
    - answer: "${calls.size()}"
`, "max_passes: 250"), nil)
	view := d.finish(id)
	require.Equal(t, "199", view.Answer)
	require.Equal(t, 200, view.Pass)
	require.Equal(t, int64(199), d.requireSmall(id).runs, "one for the calls of each pass; the answer needs none")
}

func TestSize_PassesPerRun(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - when: pass <= 20
      calls: [{tool: test.quick, input: {value: "v${pass}"}}]
    - answer: done
`, "passes_per_run: 10"), nil)
	require.Equal(t, "done", d.finish(id).Answer)
	require.Equal(t, int64(2), d.requireSmall(id).runs)
}

func TestLargeInput_IsStoredSeparately(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - answer: "${input.text.size()}"
`), map[string]any{"text": strings.Repeat("x", 900_000)})
	require.Equal(t, "900000", d.finish(id).Answer)
	d.requireSmall(id)
}

func TestSize_LargeArgumentsStayOutOfTheHistory(t *testing.T) {
	t.Parallel()
	d := joinEnv(t)
	id := d.run(agent(`["*"]`, `    - when: pass == 1
      for_each: "lists.range(20)"
      calls: [{tool: test.write, input: {url: "http://127.0.0.1:1/${item}", name: "${input.text}"}}]
    - answer: done
`), map[string]any{"text": strings.Repeat("x", 30_000)})
	view := d.until(id, func(v jig.SessionView) bool { return len(v.Pending) == 20 })
	b, err := json.Marshal(view)
	require.NoError(t, err)
	require.Less(t, len(b), 128<<10)
	require.True(t, view.Pending[0].Truncated)
	require.Contains(t, string(view.Pending[0].Input), `"url":"http://127.0.0.1:1/0"`, "a long argument does not hide the others")
	page := d.page(id, "")
	require.Contains(t, page.GetCurrentDetails(), `"url": "http://127.0.0.1:1/0"`)
	require.Contains(t, page.GetCurrentDetails(), "(cut at …; in full: `jig approvals show "+id+" 1.1`)\n")
	require.Contains(t, page.GetCurrentDetails(), "- reason: `test.write changes data (permission write)`\n")
	require.Contains(t, page.GetCurrentDetails(), "  --workflow-id "+id+" --name approve \\\n  --input '{\"call\":\"1.1\",\"by\":\"YOU\"}'")
	var denials []jig.Decision
	for _, p := range view.Pending {
		denials = append(denials, jig.Decision{Call: p.Call, By: "ana", Answer: jig.AnswerDeny})
	}
	_, err = d.Decide(t.Context(), jig.DefaultTenant, id, denials)
	require.NoError(t, err)
	require.Equal(t, "done", d.finish(id).Answer)
	d.requireSmall(id)
}
