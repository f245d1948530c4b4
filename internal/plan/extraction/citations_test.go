package extraction_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/internal/plan/extraction"
)

func text(s string) *string { return &s }

func connected() map[string]extraction.Source {
	return map[string]extraction.Source{
		"mod_a": {Hash: "1", Text: text("Package a reads\n\tTOML  files.\u00a0It is small.")},
		"mod_b": {Hash: "2", Text: text("Package b writes TOML files.")},
		"mod_c": {Hash: "3"},
	}
}

func TestCitations_AcceptOnlyClaimsThatHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims string
		// wrong lists the pointers of the violations. says is part of the message of the first one.
		wrong []string
		says  string
	}{
		"a source":                            {claims: `[{"text":"x","source_entity_ids":["mod_a"]}]`},
		"two sources, one quoted":             {claims: `[{"text":"x","source_entity_ids":["mod_a","mod_b"],"quote":"b writes TOML"}]`},
		"no claims":                           {claims: `[]`},
		"within an object":                    {claims: `{"title":"t","claims":[{"text":"x","source_entity_ids":["mod_c"]}]}`},
		"white space differs":                 {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":" reads TOML\nfiles. It is "}]`},
		"no source":                           {claims: `[{"text":"x","source_entity_ids":[]}]`, wrong: []string{"/0/source_entity_ids"}, says: "no source"},
		"sources left out":                    {claims: `[{"text":"x"}]`, wrong: []string{"/0/source_entity_ids"}, says: "no source"},
		"unknown id":                          {claims: `[{"text":"x","source_entity_ids":["mod_z"]}]`, wrong: []string{"/0/source_entity_ids/0"}, says: `"mod_z" is not connected`},
		"unknown id next to a known one":      {claims: `[{"text":"x","source_entity_ids":["mod_a","mod_z"]}]`, wrong: []string{"/0/source_entity_ids/1"}, says: "mod_z"},
		"empty id":                            {claims: `[{"text":"x","source_entity_ids":[""]}]`, wrong: []string{"/0/source_entity_ids/0"}, says: "not connected"},
		"case of an id":                       {claims: `[{"text":"x","source_entity_ids":["MOD_A"]}]`, wrong: []string{"/0/source_entity_ids/0"}, says: "not connected"},
		"quote from no source":                {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":"reads YAML"}]`, wrong: []string{"/0/quote"}, says: "reads YAML"},
		"quote of another source":             {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":"writes TOML"}]`, wrong: []string{"/0/quote"}, says: "none of the claim's sources contains"},
		"quote in other case":                 {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":"READS TOML"}]`, wrong: []string{"/0/quote"}, says: "none of the claim's sources contains"},
		"words joined":                        {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":"TOMLfiles"}]`, wrong: []string{"/0/quote"}, says: "none of the claim's sources contains"},
		"quote over two sources":              {claims: `[{"text":"x","source_entity_ids":["mod_a","mod_b"],"quote":"small. Package b"}]`, wrong: []string{"/0/quote"}, says: "none of the claim's sources contains"},
		"quote from a value that is not text": {claims: `[{"text":"x","source_entity_ids":["mod_c"],"quote":"reads"}]`, wrong: []string{"/0/quote"}, says: "none of the claim's sources is a text"},
		"quote of an unknown source":          {claims: `[{"text":"x","source_entity_ids":["mod_z"],"quote":"reads"}]`, wrong: []string{"/0/source_entity_ids/0", "/0/quote"}, says: "mod_z"},
		"blank quote":                         {claims: `[{"text":"x","source_entity_ids":["mod_a"],"quote":" \n"}]`, wrong: []string{"/0/quote"}, says: "blank"},
		"no text":                             {claims: `[{"text":" ","source_entity_ids":["mod_a"]}]`, wrong: []string{"/0/text"}, says: "says nothing"},
		"the entity itself":                   {claims: `[{"text":"x","source_entity_ids":["ent_1"]}]`, wrong: []string{"/0/source_entity_ids/0"}, says: "being filled"},
		"the claim itself":                    {claims: `[{"text":"x","source_entity_ids":["summary"]}]`, wrong: []string{"/0/source_entity_ids/0"}, says: "cannot support itself"},
		"all that is wrong": {
			claims: `[{"text":"x","source_entity_ids":["mod_y","mod_z"]},{"text":"y","source_entity_ids":["mod_a"]},{"text":"","source_entity_ids":[]}]`,
			wrong:  []string{"/0/source_entity_ids/0", "/0/source_entity_ids/1", "/2/text", "/2/source_entity_ids"}, says: "2 of 3 claims do not hold",
		},
		"a text":   {claims: `"all is well"`, wrong: []string{}, says: "not claims"},
		"null":     {claims: `null`, wrong: []string{}, says: "not claims"},
		"an id":    {claims: `[{"text":"x","source_entity_ids":"mod_a"}]`, wrong: []string{}, says: "not claims"},
		"an empty": {claims: `[null]`, wrong: []string{"/0/text", "/0/source_entity_ids"}, says: "says nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := kindOf(
				entity.Task{ID: "summary", Kind: entity.TaskTool, Use: "write.claims"},
				entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "summary"},
			)
			known := connected()
			known["ent_1"] = extraction.Source{Hash: "9"}
			w := worldOf(compile(t, kind), extraction.Input{}, answers(map[string]string{"summary": c.claims})).knowing(known)
			got := w.run(t).Tasks["check"]
			if c.wrong == nil {
				require.Equal(t, extraction.TaskCompleted, got.Status, "%v", got.Error)
				return
			}
			require.Equal(t, extraction.TaskFailed, got.Status)
			require.Equal(t, jig.CodeInvalidOutput, got.Error.Code)
			require.Contains(t, got.Error.Message, c.says)
			pointers := []string{}
			for _, v := range got.Error.Violations {
				pointers = append(pointers, v.Pointer)
			}
			require.Equal(t, c.wrong, pointers)
			require.Equal(t, len(c.wrong) > 0, got.Error.Reason == extraction.ReasonCitations)
		})
	}
}

// Claims that pass become the value, and the entities that they name become its sources.
func TestCitations_TakeTheIdsOfTheClaims(t *testing.T) {
	t.Parallel()
	kind := kindOf(
		entity.Task{ID: "summary", Kind: entity.TaskTool, Use: "write.claims"},
		entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "summary"},
	)
	claims := `[{"text":"x","source_entity_ids":["mod_b","mod_a"],"note":1},{"text":"y","source_entity_ids":["mod_a"]}]`
	plan := compile(t, kind)
	first := worldOf(plan, extraction.Input{}, answers(map[string]string{"summary": `{"claims":` + claims + `}`})).knowing(connected()).run(t)
	require.JSONEq(t, claims, string(first.Values["check"]))
	require.Equal(t, []string{"mod_b", "mod_a"}, first.Provenance["check"].Sources)

	again := func(known map[string]extraction.Source) extraction.TaskStatus {
		w := worldOf(plan, extraction.Input{Mode: extraction.ModeRefresh, Earlier: first.Earlier()}, answers(nil)).knowing(known)
		second := w.run(t)
		require.Equal(t, extraction.TaskKept, second.Tasks["summary"].Status)
		return second.Tasks["check"].Status
	}
	require.Equal(t, extraction.TaskKept, again(connected()))
	known := connected()
	known["mod_c"] = extraction.Source{Hash: "other"}
	require.Equal(t, extraction.TaskKept, again(known), "nothing cites mod_c")
	known["mod_b"] = extraction.Source{Hash: "other"}
	require.Equal(t, extraction.TaskCompleted, again(known))
	delete(known, "mod_b")
	require.Equal(t, extraction.TaskFailed, again(known))
}

// An error that names many claims is complete in the result and shortened in the log.
func TestCitations_ListAllViolations(t *testing.T) {
	t.Parallel()
	var claims []entity.TextClaim
	for range 300 {
		claims = append(claims, entity.TextClaim{Text: "x", SourceEntityIDs: []string{"nobody"}})
	}
	raw, err := json.Marshal(claims)
	require.NoError(t, err)
	kind := kindOf(
		entity.Task{ID: "summary", Kind: entity.TaskTool, Use: "write.claims"},
		entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "summary"},
	)
	w := worldOf(compile(t, kind), extraction.Input{}, answers(map[string]string{"summary": string(raw)}))
	require.Len(t, w.run(t).Tasks["check"].Error.Violations, 300)
	last := w.log[len(w.log)-1]
	require.Equal(t, jig.EventTaskFailed, last.Type)
	var about extraction.TaskEvent
	require.NoError(t, json.Unmarshal(last.Data, &about))
	require.Len(t, about.Error.Violations, 10)
}

// Claims may cite what another task of the same extraction found, because the entity points to it by then.
func TestClaims_MayCiteResultsOfATask(t *testing.T) {
	t.Parallel()
	claims := compute("claims", `[{"text": "It is small.", "source_entity_ids": [tasks.parts[0]]}]`, "parts")
	check := entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "claims", DependsOn: []string{"parts"}}
	kind := kindOf(compute("parts", `["mod_a", "mod_b"]`), claims, check)
	kind.Fields = []entity.Field{
		{Name: "parts", Type: entity.FieldRelation, Target: "module", Many: true, Task: "parts"},
		{Name: "check", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldObject}, Task: "check"},
	}
	compiled := compile(t, kind)
	through := func(in extraction.Input, known map[string]extraction.Source) extraction.Result {
		w := worldOf(compiled, in, answers(nil)).knowing(known)
		w.watch = func(t *testing.T, w *world, move plan.Move) {
			t.Helper()
			if move.Entity != nil && move.Entity.Fields["parts"] != nil { // as the store does: relations are stored with the move
				w.knowing(map[string]extraction.Source{"mod_a": {Hash: "1"}, "mod_b": {Hash: "2"}})
			}
		}
		return w.run(t)
	}
	first := through(extraction.Input{}, nil)
	require.Equal(t, 3, first.Counts.Completed, "%v", first.Tasks["check"].Error)
	require.Equal(t, []string{"mod_a"}, first.Provenance["check"].Sources)
	again := through(extraction.Input{Mode: extraction.ModeRefresh, Earlier: first.Earlier()}, map[string]extraction.Source{"mod_a": {Hash: "1"}, "mod_b": {Hash: "2"}})
	require.Equal(t, 3, again.Counts.Kept, "a source that was added during the extraction does not count as a change")
}

// With `among`, a claim may cite only those connected entities that the expression returns. A refresh treats a different result of the
// expression as a change.
func TestClaims_OnlyFromTheGivenSources(t *testing.T) {
	t.Parallel()
	plan := compile(t, kindOf(
		entity.Task{ID: "may", Kind: entity.TaskTool, Use: "give.ids"},
		entity.Task{ID: "summary", Kind: entity.TaskTool, Use: "write.claims"},
		entity.Task{ID: "check", Kind: entity.TaskCitations, Claims: "summary", DependsOn: []string{"may"}, Among: "tasks.may"},
	))
	claims := `[{"text":"x","source_entity_ids":["mod_a"]},{"text":"y","source_entity_ids":["mod_b","mod_z"]}]`
	for name, c := range map[string]struct{ may, says string }{
		"all of them":  {`["mod_a","mod_b","mod_z","mod_c"]`, `/1/source_entity_ids/1: "mod_z" is not connected`},
		"one of them":  {`["mod_a","mod_z"]`, `/1/source_entity_ids/0: "mod_b" is connected to the entity, but not one of those`},
		"none of them": {`[]`, `/0/source_entity_ids/0: "mod_a" is connected`},
		"null":         {`null`, `/0/source_entity_ids/0: "mod_a" is connected`},
		"not a list":   {`{"a": 1}`, "tasks.check.among: sources are ids"},
		"not an id":    {`[3]`, "tasks.check.among: sources are ids"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(plan, extraction.Input{}, answers(map[string]string{"may": c.may, "summary": claims})).knowing(connected())
			got := w.run(t).Tasks["check"]
			require.Equal(t, extraction.TaskFailed, got.Status)
			require.Contains(t, got.Error.Message, c.says)
		})
	}
	good := `[{"text":"x","source_entity_ids":["mod_a"]}]`
	first := worldOf(plan, extraction.Input{}, answers(map[string]string{"may": `["mod_a"]`, "summary": good})).knowing(connected()).run(t)
	require.Equal(t, []string{"mod_a"}, first.Provenance["check"].Sources)
	for may, want := range map[string]extraction.TaskStatus{
		`["mod_a"]`: extraction.TaskKept, `["mod_a","mod_b"]`: extraction.TaskCompleted, `["mod_b"]`: extraction.TaskFailed,
	} {
		earlier := first.Earlier()
		known := earlier["may"]
		known.Provenance = nil // force another lookup
		earlier["may"] = known
		again := worldOf(plan, extraction.Input{Mode: extraction.ModeRefresh, Earlier: earlier}, answers(map[string]string{"may": may})).knowing(connected()).run(t)
		require.Equal(t, want, again.Tasks["check"].Status, may)
	}
}
