package extraction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

// ledger is an in-memory table of calls and values, in place of a store.
type ledger struct {
	calls  map[string]plan.StepCall
	values map[string]json.RawMessage
}

func (l ledger) Calls(context.Context, []string) (map[string]plan.StepCall, error) {
	return l.calls, nil
}

func (l ledger) Sources(context.Context) (entity.Sources, error) { return entity.Sources{}, nil }

func (l ledger) Values(context.Context, []string) (map[string]json.RawMessage, error) {
	return l.values, nil
}

func module() entity.Type {
	return entity.Type{
		Name: "module", Version: "1",
		Fields: []entity.Field{
			{Name: "path", Type: entity.FieldText},
			{Name: "licence", Type: entity.FieldText, Task: "licence"},
			{Name: "risk", Type: entity.FieldEnum, Options: []string{"low", "high"}, Task: "risk"},
		},
		Tasks: []entity.Task{
			{
				ID: "licence", Kind: entity.TaskTool, Use: "deps.license", Input: json.RawMessage(`{"module":"${entity.content.path}"}`),
				Value: "result.licenses[0].spdx",
			},
			{ID: "risk", Kind: entity.TaskCompute, DependsOn: []string{"licence"}, Compute: "tasks.licence == 'MIT' ? 'low' : 'high'"},
		},
	}
}

func anything() extraction.Checks {
	return extraction.Checks{
		Field:  func(entity.Field, json.RawMessage) error { return nil },
		Schema: func(json.RawMessage, json.RawMessage) error { return nil },
	}
}

// The caller stores what a move requests, runs the calls, and asks for the next move.
func ExamplePlan_Advance() {
	compiled, err := extraction.Compile(module(), anything())
	if err != nil {
		fmt.Println(err)
		return
	}
	l := ledger{calls: map[string]plan.StepCall{}, values: map[string]json.RawMessage{}}
	at := plan.Situation{
		Tenant: "acme", Now: time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC),
		Input: json.RawMessage(`{"entity_id": "ent_1", "entity": {"type": "module", "content": {"path": "example.org/a"}}}`),
	}
	var state json.RawMessage
	for {
		move, err := compiled.Advance(context.Background(), state, l, at)
		if err != nil {
			fmt.Println(err)
			return
		}
		state = move.State
		for path, value := range move.Values {
			l.values[path] = value
		}
		for _, ask := range move.Calls {
			fmt.Println(ask.Path, "calls", ask.Tool, string(ask.Input))
			l.calls[ask.Path] = plan.StepCall{
				Status: jig.CallSucceeded, Result: &jig.ToolResult{Success: true, Data: json.RawMessage(`{"licenses":[{"spdx":"MIT"}]}`)},
			}
		}
		for _, e := range move.Events {
			fmt.Println(e.Type)
		}
		if move.Done {
			var out extraction.Result
			if err := json.Unmarshal(move.Result.Data, &out); err != nil {
				fmt.Println(err)
			}
			fmt.Printf("%s; licence %s, risk %s\n", move.Result.Summary, out.Values["licence"], out.Values["risk"])
			return
		}
	}
	// Output:
	// licence calls deps.license {"module":"example.org/a"}
	// task.started
	// task.completed
	// entity.updated
	// task.started
	// task.completed
	// entity.updated
	// 2 tasks: 2 completed; licence "MIT", risk "low"
}

func ExampleCompile() {
	kind := module()
	kind.Tasks[0].DependsOn = []string{"risk"}
	_, err := extraction.Compile(kind, anything())
	fmt.Println(err)
	// Output: INVALID_INPUT: module, tasks.licence.depends_on: tasks wait for each other: licence -> risk -> licence (tasks.licence.depends_on)
}

func ExampleCheckClaims() {
	page := "The module reads TOML files."
	err := extraction.CheckClaims([]entity.TextClaim{
		{Text: "It reads TOML.", SourceEntityIDs: []string{"doc_1"}, Quote: "reads  TOML"},
		{Text: "It is fast.", SourceEntityIDs: []string{"doc_2"}},
		{Text: "It is safe."},
	}, map[string]extraction.Source{"doc_1": {Text: &page}}, nil)
	fmt.Println(err.Message)
	for _, v := range err.Violations {
		fmt.Println(v.Pointer, v.Message)
	}
	// Output:
	// 2 of 3 claims do not hold; claim /1/source_entity_ids/0: "doc_2" is not connected to the entity
	// /1/source_entity_ids/0 "doc_2" is not connected to the entity
	// /2/source_entity_ids the claim has no source
}
