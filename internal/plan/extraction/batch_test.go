package extraction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/toolname"
)

// crowd simulates the environment of an extraction of many entities: its pages, a ledger and kept values. It handles moves as the engine does.
type crowd struct {
	ids   []string
	fates map[string]plan.StepCall
	order *rand.Rand
	// crash loses moves and computes them again. cancelAfter, if positive, cancels the batch once that many calls have ended.
	crash       bool
	cancelAfter int
	// brokenPage, if positive, is the number of the page that fails.
	brokenPage int
	at         plan.Situation

	state  json.RawMessage
	rows   map[string]*row
	values map[string]json.RawMessage
	asked  []string
	pages  int
	open   int
	most   int
	ended  int
	result jig.ToolResult
	// biggest is the size of the largest state.
	biggest int
}

func crowdOf(t *testing.T, input extraction.BatchInput, ids []string, fates map[string]plan.StepCall, order *rand.Rand) *crowd {
	t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(t, err)
	return &crowd{
		ids: ids, fates: fates, order: order, at: plan.Situation{Input: raw, Tenant: "acme", Now: start}, rows: map[string]*row{},
		values: map[string]json.RawMessage{},
	}
}

// Calls implements plan.Facts.
func (c *crowd) Calls(_ context.Context, paths []string) (map[string]plan.StepCall, error) {
	out := map[string]plan.StepCall{}
	for _, p := range paths {
		if r, ok := c.rows[p]; ok {
			out[p] = plan.StepCall{Status: r.status, Result: r.result}
		}
	}
	return out, nil
}

// Values implements plan.Facts.
func (c *crowd) Values(_ context.Context, paths []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for _, p := range paths {
		if v, ok := c.values[p]; ok {
			out[p] = v
		}
	}
	return out, nil
}

func (c *crowd) advance(t *testing.T) plan.Move {
	t.Helper()
	move, err := extraction.AdvanceBatch(t.Context(), c.state, c, c.at)
	require.NoError(t, err)
	return move
}

func (c *crowd) store(t *testing.T, move plan.Move) {
	t.Helper()
	c.state = move.State
	c.biggest = max(c.biggest, len(move.State))
	for _, ask := range move.Calls {
		require.NotContains(t, c.rows, ask.Path, "the call was requested twice")
		c.asked = append(c.asked, ask.Path)
		c.rows[ask.Path] = &row{path: ask.Path, tool: ask.Tool, input: ask.Input, status: jig.CallReserved}
		if ask.Tool == toolname.EntitiesExtract {
			c.open++
			c.most = max(c.most, c.open)
		}
	}
	for path := range move.Values {
		require.NotContains(t, c.values, path, "a value was kept twice")
	}
	maps.Copy(c.values, move.Values)
	for _, path := range move.Cancel {
		require.False(t, c.rows[path].status.Final(), "%s has ended", path)
		c.rows[path].canceled = true
	}
}

// page answers a call of the filter.
func (c *crowd) page(t *testing.T, r *row) plan.StepCall {
	t.Helper()
	var in struct {
		Type   string              `json:"type"`
		Limit  int                 `json:"limit"`
		Cursor string              `json:"cursor"`
		Sort   []entity.FilterSort `json:"sort"`
	}
	require.NoError(t, json.Unmarshal(r.input, &in))
	require.Equal(t, "page", in.Type)
	require.Equal(t, []entity.FilterSort{{Field: entity.FilterCreatedAt}}, in.Sort)
	require.Equal(t, fmt.Sprintf("page[%d]", c.pages+1), r.path)
	c.pages++
	if c.pages == c.brokenPage {
		failed := failing(jig.CodeDenied)
		return plan.StepCall{Status: jig.CallDenied, Result: &failed}
	}
	from := 0
	if in.Cursor != "" {
		var err error
		from, err = strconv.Atoi(in.Cursor)
		require.NoError(t, err)
	}
	to := min(from+in.Limit, len(c.ids))
	data := map[string]any{"entities": []any{}}
	var rows []map[string]string
	for _, id := range c.ids[from:to] {
		rows = append(rows, map[string]string{"entity_id": id, "title": "of " + id})
	}
	if data["entities"] = rows; to < len(c.ids) {
		data["next_cursor"] = strconv.Itoa(to)
	}
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	done := succeed(string(raw))
	return plan.StepCall{Status: jig.CallSucceeded, Result: &done}
}

// happen lets some of the open calls end.
func (c *crowd) happen(t *testing.T, move plan.Move) {
	t.Helper()
	open := slices.Clone(move.Open)
	for _, ask := range move.Calls {
		open = append(open, ask.Path)
	}
	require.NotEmpty(t, open, "nothing more can happen: %s", c.state)
	c.order.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for _, path := range open[:1+c.order.IntN(len(open))] {
		r := c.rows[path]
		require.False(t, r.status.Final(), "%s has ended, but the move says that it is open", path)
		end := c.fates[path]
		if r.tool == toolname.EntitiesFilter {
			end = c.page(t, r)
		} else {
			c.open--
		}
		if r.canceled {
			end = plan.StepCall{Status: jig.CallCanceled}
		}
		r.status, r.result = end.Status, end.Result
		c.ended++
	}
	c.at.Canceled = c.at.Canceled || c.cancelAfter > 0 && c.ended >= c.cancelAfter
}

func (c *crowd) run(t *testing.T) extraction.BatchResult {
	t.Helper()
	for range 100_000 {
		move := c.advance(t)
		for c.crash && c.order.IntN(3) == 0 {
			require.Equal(t, move, c.advance(t), "the same state and facts give a different move")
		}
		c.store(t, move)
		if c.crash && c.order.IntN(3) == 0 {
			again := c.advance(t)
			require.Empty(t, again.Calls)
			require.Empty(t, again.Values)
			require.JSONEq(t, string(move.State), string(again.State), "computing the move again changes the state")
			require.Equal(t, move.Result, again.Result)
			if !move.Done {
				move.Calls, move.Open = nil, again.Open // the move as a new run computes it
			}
		}
		if move.Done {
			c.result = move.Result
			var out extraction.BatchResult
			require.NoError(t, json.Unmarshal(move.Result.Data, &out))
			return out
		}
		require.LessOrEqual(t, len(move.Steps), 20)
		c.happen(t, move)
	}
	require.Fail(t, "the batch does not end")
	return extraction.BatchResult{}
}

// fateOf returns a random end of an entity's extraction: the outcome under which it is counted, and the call.
func fateOf(t *testing.T, r *rand.Rand) (string, plan.StepCall) {
	t.Helper()
	counts := extraction.Counts{Total: 3, Completed: 2, Skipped: 1}
	switch n := r.IntN(10); n {
	case 0, 1:
		counts = extraction.Counts{Total: 3, Completed: 1, Failed: 1, Skipped: 1}
	case 2:
		failed := failing(jig.CodeNotFound)
		return "failed", plan.StepCall{Status: jig.CallFailed, Result: &failed}
	case 3:
		return "denied", plan.StepCall{Status: []jig.CallStatus{jig.CallDenied, jig.CallExpired}[r.IntN(2)]}
	case 4:
		return "canceled", plan.StepCall{Status: jig.CallCanceled}
	}
	raw, err := json.Marshal(extraction.Result{Counts: counts, Tasks: map[string]extraction.TaskResult{"x": {}}})
	require.NoError(t, err)
	outcome := "completed"
	if counts.Failed > 0 {
		outcome = "partial"
	}
	switch r.IntN(4) { // the ledger keeps a large result elsewhere
	case 0, 1:
		raw, err = json.Marshal(map[string]any{"truncated": true, "counts": counts})
		require.NoError(t, err)
	case 2: // how it ended is unknown
		raw, outcome = []byte(`{"truncated":true}`), "partial"
	}
	done := jig.ToolResult{Success: true, Data: raw, Summary: counts.String()}
	return outcome, plan.StepCall{Status: jig.CallSucceeded, Result: &done}
}

func countOf(out extraction.BatchResult) map[string]int {
	return map[string]int{
		"completed": out.Completed, "partial": out.Partial, "failed": out.Failed, "denied": out.Denied, "canceled": out.Canceled,
	}
}

// Each entity is filled once and counted, and the limit of parallel entities holds, even if extractions fail and moves are lost.
func TestAdvanceBatch_FillsAllEntities(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			size := []int{0, 1, 99, 100, 101, 200, r.IntN(700)}[r.IntN(7)]
			in := extraction.BatchInput{Type: "page", MaxParallel: r.IntN(40)}
			taken := size
			if r.IntN(3) == 0 {
				in.Limit = 1 + r.IntN(2*size+1)
				taken = min(size, in.Limit)
			}
			ids, fates, want := make([]string, size), map[string]plan.StepCall{}, map[string]int{}
			for _, outcome := range []string{"completed", "partial", "failed", "denied", "canceled"} {
				want[outcome] = 0
			}
			for i := range ids {
				ids[i] = fmt.Sprintf("ent_%026d", i)
				outcome, call := fateOf(t, r)
				if fates[ids[i]] = call; i < taken {
					want[outcome]++
				}
			}
			c := crowdOf(t, in, ids, fates, r)
			c.crash = seed%2 == 0
			out := c.run(t)
			require.True(t, c.result.Success, "%+v", c.result.Error)
			require.Equal(t, taken, out.Matched)
			require.Equal(t, want, countOf(out))
			require.Len(t, out.Failures, min(100, taken-out.Completed))
			seen := map[string]bool{}
			for _, f := range out.Failures {
				require.False(t, seen[f.EntityID])
				require.NotNil(t, f.Error)
				require.NotEmpty(t, f.Error.Message)
				require.NotEqual(t, "completed", f.Outcome)
				seen[f.EntityID] = true
			}
			require.Len(t, c.rows, taken+out.Pages)
			for _, id := range ids[:taken] {
				require.Contains(t, c.rows, id)
			}
			most := in.MaxParallel
			if most == 0 {
				most = extraction.DefaultBatchParallel
			}
			require.LessOrEqual(t, c.most, most)
			if taken >= most {
				require.Equal(t, most, c.most, "as many entities as allowed run at once")
			}
			require.Less(t, c.biggest, 12<<10)
		})
	}
}

// A canceled batch begins no further extractions, waits for those that are running, and reports the cancellation.
func TestAdvanceBatch_IsCanceled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		size := 50 + r.IntN(300)
		ids, fates := make([]string, size), map[string]plan.StepCall{}
		for i := range ids {
			ids[i] = fmt.Sprintf("ent_%d", i)
			_, fates[ids[i]] = fateOf(t, r)
		}
		c := crowdOf(t, extraction.BatchInput{Type: "page", MaxParallel: 10}, ids, fates, r)
		c.cancelAfter, c.crash = 1+r.IntN(40), seed%2 == 0
		out := c.run(t)
		require.Equal(t, jig.CodeCanceled, c.result.Error.Code)
		require.Equal(t, out.Matched, out.Completed+out.Partial+out.Failed+out.Denied+out.Canceled)
		for _, row := range c.rows {
			require.True(t, row.status.Final(), row.path)
		}
	}
}

// When a page fails, the batch ends once the entities found so far have ended.
func TestBatch_EndsWhenAPageFails(t *testing.T) {
	t.Parallel()
	for broken, found := range map[int]int{1: 0, 3: 200} {
		r := rand.New(rand.NewPCG(uint64(broken), 11))
		ids, fates := make([]string, 500), map[string]plan.StepCall{}
		for i := range ids {
			ids[i] = fmt.Sprintf("ent_%d", i)
			_, fates[ids[i]] = fateOf(t, r)
		}
		c := crowdOf(t, extraction.BatchInput{Type: "page"}, ids, fates, r)
		c.brokenPage = broken
		out := c.run(t)
		require.False(t, c.result.Success)
		require.Equal(t, jig.CodeDenied, c.result.Error.Code)
		require.Contains(t, c.result.Error.Message, fmt.Sprintf("page %d", broken))
		require.Equal(t, found, out.Matched)
	}
}

// The batch passes its own options on to the calls that it makes.
func TestBatch_PassesItsOptionsOn(t *testing.T) {
	t.Parallel()
	done := jig.ToolResult{Success: true, Data: []byte(`{"counts":{"total":1,"completed":1}}`)}
	c := crowdOf(t, extraction.BatchInput{
		Type: "page", Where: []entity.FilterClause{{Field: "n", Op: entity.FilterGt, Value: []byte("3")}}, Match: entity.MatchAny, Workspace: "w", Mode: extraction.ModeRetry,
		Fields: []string{"text"}, Input: []byte(`{"a":1}`),
	}, []string{"ent_1"}, map[string]plan.StepCall{"ent_1": {Status: jig.CallSucceeded, Result: &done}}, rand.New(rand.NewPCG(1, 1)))
	require.Equal(t, "1 entity of type page: 1 completed", func() string { c.run(t); return c.result.Summary }())
	require.JSONEq(t, `{"type":"page","where":[{"field":"n","op":"gt","value":3}],"match":"any","workspace":"w","limit":100,"sort":[{"field":"$created_at"}]}`,
		string(c.rows["page[1]"].input))
	require.JSONEq(t, `{"id":"ent_1","mode":"retry","fields":["text"],"input":{"a":1}}`, string(c.rows["ent_1"].input))
}

// An invalid state ends the run with an error that says what is wrong.
func TestAdvanceBatch_RefusesABadState(t *testing.T) {
	t.Parallel()
	c := crowdOf(t, extraction.BatchInput{Type: "page"}, nil, nil, nil)
	for _, state := range []string{`{`, `{"v":2}`, `{"v":1,"found":3}`, `{"v":1,"colour":1}`, `{"v":1,"paging":true}`} {
		_, err := extraction.AdvanceBatch(t.Context(), json.RawMessage(state), c, c.at)
		require.Equal(t, jig.CodeInternal, jig.CodeOf(err), state)
	}
	c.at.Input = json.RawMessage(`[`)
	_, err := extraction.AdvanceBatch(t.Context(), nil, c, c.at)
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.Contains(t, strings.ToLower(err.Error()), "input")
}
