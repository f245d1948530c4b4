package extraction

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

const (
	// DefaultBatchParallel is the default number of entities that a batch fills at the same time.
	DefaultBatchParallel = 20
	// MaxBatchParallel is the largest number that may be requested.
	MaxBatchParallel = 100
	// pageEntities is the number of entities in a page.
	pageEntities = 100
	// maxFailures is the number of failures that a result lists individually.
	maxFailures = 100
)

// BatchInput says which entities to fill, and how. The batch ends after Limit entities; there is no limit if it is not positive.
type BatchInput = entity.ExtractAllInput

// BatchResult is the data of a finished extraction of many entities. Matched is the sum of the other counts.
type BatchResult struct {
	Type    string `json:"type"`
	Matched int    `json:"matched"`
	BatchCounts
	// Failures are the first 100 entities that did not complete, in the order in which they ended.
	Failures []BatchFailure `json:"failures"`
	Pages    int            `json:"pages"`
}

// BatchCounts counts entities by how their extraction ended.
type BatchCounts struct {
	// Completed counts entities with no failed or canceled task, and Partial those with at least one. The other counts are for entities whose
	// extraction gave no result or, if canceled, may not have begun.
	Completed int `json:"completed"`
	Partial   int `json:"partial"`
	Failed    int `json:"failed"`
	Denied    int `json:"denied"`
	Canceled  int `json:"canceled"`
}

// BatchFailure says why an entity did not complete.
type BatchFailure struct {
	EntityID string     `json:"entity_id"`
	Outcome  string     `json:"outcome"`
	Error    *jig.Error `json:"error"`
}

// batchState is the state of a batch. Failures are kept as values. Todo and Open together never hold more than pageEntities plus twice
// MaxParallel entities.
type batchState struct {
	plan.Head
	// Pages counts the pages requested. Paging reports whether the call for the latest page is still open, and Last whether it was the last page.
	Pages  int    `json:"pages,omitempty"`
	Paging bool   `json:"paging,omitempty"`
	Last   bool   `json:"last,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	// Found counts the entities of all pages. Todo lists those that have not begun, and Open those that are running.
	Found    int      `json:"found,omitempty"`
	Todo     []string `json:"todo,omitempty"`
	Open     []string `json:"open,omitempty"`
	Failures int      `json:"failures,omitempty"`
	// Problem is the error of the page that failed, which ends the batch early.
	Problem *jig.Error `json:"problem,omitempty"`
	Done    bool       `json:"done,omitempty"`
	BatchCounts
}

// batch holds the data of one call of [AdvanceBatch].
type batch struct {
	plan.Run
	in BatchInput
	st batchState
}

// AdvanceBatch takes an extraction of many entities as far as it can go without waiting, as [Plan.Advance] does for one entity. It calls
// entities.filter once for each page (path page[N]) and entities.extract once for each entity (the path is the entity's id). Pages are
// ordered by creation time, so that changes in the meantime do not make an entity appear twice. Failures are kept as failure[N].
func AdvanceBatch(ctx context.Context, state json.RawMessage, facts plan.Facts, at Situation) (Move, error) {
	b := &batch{Run: plan.NewRun("the extraction", facts, at), st: batchState{Head: plan.NewHead("")}}
	if err := ctx.Err(); err != nil {
		return Move{}, err //nolint:wrapcheck // the error of the caller's context
	}
	if err := plan.ReadState(b.Name, state, &b.st, b.st.check); err != nil {
		return Move{}, err
	}
	if err := json.Unmarshal(at.Input, &b.in); err != nil {
		return Move{}, jig.Errorf(jig.CodeInvalidInput, "the input of the extraction cannot be read: %w", err)
	}
	if b.in.MaxParallel <= 0 {
		b.in.MaxParallel = DefaultBatchParallel
	}
	b.in.MaxParallel = min(b.in.MaxParallel, MaxBatchParallel)
	if err := b.advance(ctx); err != nil {
		return Move{}, err
	}
	var err error
	b.Move.State, err = jsontext.Encode(b.st)
	return b.Move, err
}

func (st *batchState) check() error {
	if sum := st.total() + len(st.Todo) + len(st.Open); sum != st.Found || st.Paging && st.Pages == 0 {
		return fmt.Errorf("it has %d entities of %d", sum, st.Found)
	}
	return st.Check("")
}

func (b *batch) advance(ctx context.Context) error {
	if b.st.Done {
		return b.finish(ctx)
	}
	if err := b.LoadCalls(ctx, b.open()); err != nil {
		return err
	}
	if err := b.settle(); err != nil {
		return err
	}
	b.turn()
	if b.At.Canceled {
		b.cancel()
	} else if err := b.begin(); err != nil {
		return err
	}
	if b.st.Done = b.st.Last && !b.st.Paging && len(b.st.Todo)+len(b.st.Open) == 0; b.st.Done {
		return b.finish(ctx)
	}
	b.describe()
	return nil
}

// open returns the paths of the open calls.
func (b *batch) open() []string {
	paths := slices.Clone(b.st.Open)
	if b.st.Paging {
		paths = append(paths, pagePath(b.st.Pages))
	}
	return paths
}

// settle counts the entities whose extraction has ended.
func (b *batch) settle() error {
	open := make([]string, 0, len(b.st.Open))
	for _, id := range b.st.Open {
		call := b.Calls[id]
		if !call.Status.Final() {
			open = append(open, id)
			continue
		}
		if err := b.ended(id, call); err != nil {
			return err
		}
	}
	b.st.Open = open
	return nil
}

func (b *batch) ended(id string, call plan.StepCall) error {
	outcome, problem := outcomeOf(call)
	b.st.add(outcome, 1)
	if problem == nil || b.st.Failures >= maxFailures {
		return nil
	}
	raw, err := jsontext.Encode(BatchFailure{EntityID: id, Outcome: outcome, Error: problem})
	if err != nil {
		return err
	}
	b.Keep(failurePath(b.st.Failures), raw)
	b.st.Failures++
	return nil
}

// turn adds the entities of a page that has arrived to those that have not begun.
func (b *batch) turn() {
	if !b.st.Paging {
		return
	}
	call := b.Calls[pagePath(b.st.Pages)]
	if !call.Status.Final() {
		return
	}
	b.st.Paging = false
	result := call.Outcome()
	var page struct {
		Entities []struct {
			ID string `json:"entity_id"`
		} `json:"entities"`
		Next string `json:"next_cursor"`
	}
	var problem *jig.Error
	if !result.Success {
		problem = result.Cause()
	} else if err := json.Unmarshal(result.Data, &page); err != nil {
		problem = jig.Errorf(jig.CodeInternal, "page %d of the entities cannot be read: %w", b.st.Pages, err)
	}
	if problem != nil {
		b.st.Last, b.st.Problem = true, plan.Brief(problem)
		return
	}
	for _, e := range page.Entities {
		if b.wanted() > 0 {
			b.st.Todo = append(b.st.Todo, e.ID)
			b.st.Found++
		}
	}
	b.st.Cursor = page.Next
	b.st.Last = page.Next == "" || b.wanted() == 0
}

// wanted returns the maximum number of entities in the next page.
func (b *batch) wanted() int {
	if b.in.Limit <= 0 {
		return pageEntities
	}
	return min(pageEntities, b.in.Limit-b.st.Found)
}

// begin requests the next entities. It requests the next page before the current entities run out, so that no slot stays idle.
func (b *batch) begin() error {
	for len(b.st.Open) < b.in.MaxParallel && len(b.st.Todo) > 0 {
		id := b.st.Todo[0]
		b.st.Todo = b.st.Todo[1:]
		b.st.Open = append(b.st.Open, id)
		if err := b.request(id, toolname.EntitiesExtract, entity.ExtractInput{ID: id, Mode: b.in.Mode, Fields: b.in.Fields, Input: b.in.Input}); err != nil {
			return err
		}
	}
	if b.st.Paging || b.st.Last || len(b.st.Todo) >= b.in.MaxParallel {
		return nil
	}
	b.st.Pages++
	b.st.Paging = true
	return b.request(pagePath(b.st.Pages), toolname.EntitiesFilter, entity.Filter{
		Type: b.in.Type, Where: b.in.Where, Match: b.in.Match, Workspace: b.in.Workspace, Limit: b.wanted(), Cursor: b.st.Cursor,
		Sort: []entity.FilterSort{{Field: entity.FilterCreatedAt}},
	})
}

func (b *batch) request(path, tool string, input any) error {
	raw, err := jsontext.Encode(input)
	b.Ask(plan.Ask{Path: path, Tool: tool, Input: raw})
	return err
}

// cancel cancels the running calls, and counts the entities that have not begun as canceled.
func (b *batch) cancel() {
	b.st.Canceled += len(b.st.Todo)
	b.st.Todo, b.st.Last = nil, true
	b.Move.Cancel = append(b.Move.Cancel, b.open()...)
}

// describe sets the open calls, the steps and the progress that the move reports.
func (b *batch) describe() {
	for _, path := range b.open() {
		b.Show(path)
		b.AwaitCall(path)
	}
	b.Move.Progress = b.progress()
}

func (b *batch) progress() *protocol.Progress {
	return &protocol.Progress{
		Done: b.st.Completed + b.st.Partial, Running: len(b.st.Open), Failed: b.st.Failed + b.st.Denied + b.st.Canceled, Total: b.st.Found,
	}
}

// finish sets the result of a batch that has ended.
func (b *batch) finish(ctx context.Context) error {
	out := BatchResult{Type: b.in.Type, Matched: b.st.Found, BatchCounts: b.st.BatchCounts, Failures: []BatchFailure{}, Pages: b.st.Pages}
	paths := make([]string, b.st.Failures)
	for n := range paths {
		paths[n] = failurePath(n)
	}
	if err := b.LoadValues(ctx, paths); err != nil {
		return err
	}
	for n, path := range paths {
		var one BatchFailure
		if err := json.Unmarshal(b.Values[path], &one); err != nil {
			return jig.Errorf(jig.CodeInternal, "failure %d of the extraction is gone: %w", n, err)
		}
		out.Failures = append(out.Failures, one)
	}
	data, err := jsontext.Encode(out)
	if err != nil {
		return err
	}
	b.Move.Done, b.Move.Progress = true, b.progress()
	b.Move.Result = jig.ToolResult{Success: true, Data: data, Summary: out.summary()}
	switch {
	case b.At.Canceled && b.st.Canceled > 0:
		b.Move.Result.Error = jig.Errorf(jig.CodeCanceled, "the extraction was canceled")
	case b.st.Problem != nil:
		e := *b.st.Problem
		e.Message = fmt.Sprintf("page %d of the entities: %s", b.st.Pages, e.Message)
		b.Move.Result.Error = &e
	}
	b.Move.Result.Success = b.Move.Result.Error == nil
	return nil
}

func pagePath(n int) string { return "page[" + strconv.Itoa(n) + "]" }

func failurePath(n int) string { return "failure[" + strconv.Itoa(n) + "]" }
