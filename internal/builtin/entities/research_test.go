package entities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/internal/plan/extraction"
	"github.com/jig-run/jig/internal/store/storetest"
	"github.com/jig-run/jig/model"
	"github.com/jig-run/jig/tools/tooltest"
)

// newAsking returns a bench whose tools ask a fake model.
func newAsking(t *testing.T, s *modeltest.Server, permissions ...string) *bench {
	t.Helper()
	return benchOver(t, func(o *entities.Options) {
		o.Model, o.DefaultModel = model.NewRouter(model.Settings{
			Anthropic: model.Provider{APIKey: "key", BaseURL: s.URL}, OpenAI: model.Provider{APIKey: "key", BaseURL: s.OpenAIURL()},
		}), "anthropic/m"
		o.CheckClaims = holds
	}, permissions...)
}

func benchOver(t *testing.T, change func(*entities.Options), permissions ...string) *bench {
	t.Helper()
	db := storetest.New(t)
	o := options(db)
	change(&o)
	b := &bench{t: t, db: db, Kit: tooltest.New(t, entities.Tools(o)...)}
	b.Invocation.Tenant = storetest.Tenant(t)
	b.Invocation.Principal.Permissions = permissions
	return b
}

// holds checks claims as the worker does.
func holds(claims []entity.TextClaim, sources map[string]string) *jig.Error {
	connected := map[string]extraction.Source{}
	for id, text := range sources {
		connected[id] = extraction.Source{Text: &text}
	}
	return extraction.CheckClaims(claims, connected, nil)
}

// text adds a text to an entity and returns the text's id.
func (b *bench) text(id, title, body string) string {
	b.t.Helper()
	d, err := b.db.PutText(b.t.Context(), entity.Text{Tenant: b.Invocation.Tenant, EntityID: id, Title: title, Body: body})
	require.NoError(b.t, err)
	return d.ID
}

func idsOf(r entities.Research) []string {
	ids := []string{}
	for _, f := range r.Entities {
		ids = append(ids, f.ID)
	}
	return ids
}

func TestResearch_FindsPassages(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	alpha := b.create("team", object{"name": "Alpha", "size": 3, "notes": "billing billing"})
	beta := b.create("team", object{"name": "Beta", "size": 9})
	gamma := b.create("team", object{"name": "Gamma", "size": 9})
	report := b.create("report", object{"subject": "billing"})
	runbook := b.text(alpha, "Runbook", "We keep the billing service. It runs in Bonn.")
	b.text(beta, "Minutes", "Lunch was good.\nNobody spoke about money.")
	history := b.text(beta, "History", "The billing service was ours until May.")

	var r entities.Research
	b.call(entities.ResearchTool, object{"question": "Who keeps the billing service?"}, &r)
	require.Equal(t, "search", r.Method)
	require.Equal(t, alpha, r.Entities[0].ID, "found by its own words and by the words of its text")
	require.InDelta(t, 2.0/61, r.Entities[0].Score, 1e-3)
	require.ElementsMatch(t, []string{alpha, beta, report}, idsOf(r))
	require.Equal(t, entities.Searched{Entities: 3, Documents: 2}, r.Searched)
	p := r.Entities[0].Passages
	require.Len(t, p, 1)
	require.Equal(t, entities.Passage{DocumentID: runbook, Title: "Runbook", Text: "We keep the billing service. It runs in Bonn.", Snippet: p[0].Snippet}, p[0])
	require.Contains(t, p[0].Snippet, "**billing** **service**")
	require.Empty(t, r.Entities[0].Answer)

	b.call(entities.ResearchTool, object{"question": "billing service", "type": "team", "where": []object{{"field": "size", "op": "gt", "value": 5}}}, &r)
	require.Equal(t, []string{beta, gamma}, idsOf(r), "the filter narrows, and entities without a match come last")
	require.Equal(t, history, r.Entities[0].Passages[0].DocumentID)
	require.Zero(t, r.Entities[1].Score)
	require.Empty(t, r.Entities[1].Passages)
	require.Equal(t, entities.Searched{Entities: 2, Documents: 1}, r.Searched)

	storetest.Exec(t, b.Invocation.Tenant, "insert into workspaces (tenant_id, workspace, entity_id) values ($1, 'north', $2)", b.Invocation.Tenant, beta)
	r = entities.Research{}
	b.call(entities.ResearchTool, object{"question": "billing", "workspace": "north", "types": []string{"team", "report"}}, &r)
	require.Equal(t, []string{beta}, idsOf(r))
	r = entities.Research{}
	b.call(entities.ResearchTool, object{"question": "billing service", "limit": 1}, &r)
	require.Equal(t, []string{alpha}, idsOf(r))
	r = entities.Research{}
	b.call(entities.ResearchTool, object{"question": "? or !"}, &r)
	require.Empty(t, r.Entities)
}

func TestResearch_RefusesUnclearTypes(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	where := []object{{"field": "size", "op": "gt", "value": 5}}
	for field, input := range map[string]object{
		"/where":         {"question": "x", "where": where},
		"/types":         {"question": "x", "type": "team", "types": []string{"team"}},
		"/where/0/field": {"question": "x", "type": "team", "where": []object{{"field": "nope", "op": "eq", "value": 1}}},
		"/model":         {"question": "x", "model": "script/x"},
	} {
		require.Equal(t, field, b.refusal(jig.CodeInvalidInput, entities.ResearchTool, input).Field)
	}
	b.refused(jig.CodeNotFound, entities.ResearchTool, object{"question": "x", "type": "nope"})
	b.refused(jig.CodeNotFound, entities.ResearchTool, object{"question": "x", "workspace": "nope"})
}

func TestResearch_AnswersWithSentences(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	alpha := b.create("team", object{"name": "Alpha"})
	doc := b.text(alpha, "Runbook", "Hello there. We keep the billing service in Bonn!  It is old. The service\nis billed monthly.")
	var r entities.Research
	b.call(entities.ResearchTool, object{"question": "Who keeps the billing service?", "answer": true}, &r)
	require.Equal(t, "extractive", r.Method)
	require.Nil(t, r.Usage)
	f := r.Entities[0]
	require.Equal(t, "We keep the billing service in Bonn! The service", f.Answer)
	require.Equal(t, entity.TextClaim{Text: "We keep the billing service in Bonn!", SourceEntityIDs: []string{alpha, doc}, Quote: "We keep the billing service in Bonn!"}, f.Claims[0])
	texts := map[string]string{alpha: f.Passages[0].Text, doc: f.Passages[0].Text}
	require.Nil(t, holds(f.Claims, texts))
}

// claim returns a claim for a model's answer.
func claim(text, source, quote string) object {
	return object{"text": text, "source_entity_ids": []string{source}, "quote": quote}
}

func said(answer string, claims ...object) modeltest.Reply {
	b, err := json.Marshal(object{"answer": answer, "claims": append([]object{}, claims...)})
	if err != nil {
		return modeltest.Fail(500, err.Error())
	}
	return modeltest.Text("```json\n" + string(b) + "\n```")
}

func TestResearch_AnswersByModel(t *testing.T) {
	t.Parallel()
	const body = "We keep the billing service. It runs in Bonn."
	for name, row := range map[string]struct {
		replies func(team, doc, other string) []modeltest.Reply
		answer  string
		claims  int
		// method is the entity's method if it differs from model; rejected is the reason why the first rejected claim is not valid.
		method, rejected, note string
	}{
		"at once": {
			func(team, doc, _ string) []modeltest.Reply {
				return []modeltest.Reply{said("Alpha.", claim("Alpha keeps it", team, "We keep the  billing service"), claim("in Bonn", doc, "It runs in Bonn."))}
			}, "Alpha.", 2, "", "", "",
		},
		"mended": {
			func(team, _, other string) []modeltest.Reply {
				return []modeltest.Reply{said("Beta.", claim("Beta keeps it", other, "")), said("Alpha.", claim("Alpha keeps it", team, "We keep"))}
			}, "Alpha.", 1, "", "", "",
		},
		"one is made up": {
			func(team, _, _ string) []modeltest.Reply {
				r := said("Alpha.", claim("Alpha keeps it", team, "We keep"), claim("for ever", team, "for ever"))
				return []modeltest.Reply{r, r}
			}, "Alpha.", 1, "", "none of the claim's sources contains", "",
		},
		"of another tenant": {
			func(_, _, other string) []modeltest.Reply {
				r := said("Alpha.", claim("Alpha keeps it", other, ""))
				return []modeltest.Reply{r, r}
			}, body, 2, "extractive", "is not connected", "no claim",
		},
		"without claims": {
			func(_, _, _ string) []modeltest.Reply { return []modeltest.Reply{said("Alpha."), said("Alpha.")} }, body, 2, "extractive", "", "no claim",
		},
		"does not know": {
			func(_, _, _ string) []modeltest.Reply { return []modeltest.Reply{said("")} }, "", 0, "", "", "",
		},
		"no JSON": {
			func(_, _, _ string) []modeltest.Reply {
				return []modeltest.Reply{modeltest.Text("Alpha"), modeltest.Text("{Alpha}")}
			},
			body, 2, "extractive", "", "the one before is a JSON object",
		},
		"refuses": {
			func(_, _, _ string) []modeltest.Reply { return []modeltest.Reply{{Refusal: "no"}} }, body, 2, "extractive", "", "refuses",
		},
	} {
		for _, provider := range []string{"anthropic/m", "openai/m"} {
			t.Run(name+" "+provider[:6], func(t *testing.T) {
				t.Parallel()
				var replies []modeltest.Reply
				s := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply { return replies[r.Number-1] })
				b, stranger := newAsking(t, s, "*"), newBench(t, "*")
				stranger.Invocation.Tenant += "-other"
				other := stranger.create("team", object{"name": "secret"})
				team := b.create("team", object{"name": "Alpha"})
				doc := b.text(team, "", body)
				replies = row.replies(team, doc, other)
				var r entities.Research
				b.call(entities.ResearchTool, object{"question": "Who keeps the billing service in Bonn, and where does it run, runs?", "answer": true, "model": provider}, &r)
				require.Equal(t, "model", r.Method)
				f := r.Entities[0]
				require.Equal(t, row.answer, f.Answer)
				require.Len(t, f.Claims, row.claims)
				require.Equal(t, row.method, f.Method)
				require.Contains(t, f.Note, row.note)
				require.Equal(t, row.rejected != "", len(f.Rejected) > 0)
				if row.rejected != "" {
					require.Contains(t, f.Rejected[0].Why, row.rejected)
				}
				require.Len(t, s.Requests(), len(replies))
				require.Contains(t, s.Requests()[0].Turns[0].Text, body)
				if name != "refuses" {
					require.Equal(t, entities.Usage{Input: int64(10 * len(replies)), Output: int64(5 * len(replies))}, *r.Usage)
				}
			})
		}
	}
}

// Several entities are answered at the same time. If the model is unavailable, the call fails and is retried.
func TestResearch_AnswersEntitiesConcurrently(t *testing.T) {
	t.Parallel()
	away := false
	s := modeltest.Func(t, func(r modeltest.Request) modeltest.Reply {
		if away {
			return modeltest.Fail(529, "overloaded")
		}
		_, id, _ := strings.Cut(r.Turns[0].Text, "Record ")
		id, _, _ = strings.Cut(id, " ")
		return said("It does.", claim("it does", id, "keeps the billing service"))
	})
	b := newAsking(t, s, "*")
	for i := range 12 {
		b.text(b.create("team", object{"name": fmt.Sprint("team ", i)}), "", fmt.Sprintf("Team %d keeps the billing service.", i))
	}
	var r entities.Research
	b.call(entities.ResearchTool, object{"question": "billing service", "answer": true}, &r)
	require.Len(t, r.Entities, 10)
	for _, f := range r.Entities {
		require.Equal(t, "It does.", f.Answer)
		require.Equal(t, []string{f.ID}, f.Claims[0].SourceEntityIDs)
	}
	require.Equal(t, int64(100), r.Usage.Input)
	require.Equal(t, 12, r.Searched.Entities)
	again := entities.Research{}
	b.call(entities.ResearchTool, object{"question": "billing service"}, &again)
	require.Equal(t, idsOf(again), idsOf(r), "the order is the same each time")
	away = true
	b.refused(jig.CodeUnavailable, entities.ResearchTool, object{"question": "billing service", "answer": true})
}

// Texts that the principal may not read are not used, and entities of another tenant are not found by id.
func TestResearch_FailsClosed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "*")
	team, report := b.create("team", object{"name": "needle"}), b.create("report", object{"subject": "needle"})
	b.text(team, "", "the needle of a team")
	b.text(report, "", "the needle of a report")
	b.text("", "", "the needle of nobody")
	find := func(b *bench, input object) entities.Research {
		var r entities.Research
		input["question"] = "needle"
		b.call(entities.ResearchTool, input, &r)
		return r
	}
	for _, permissions := range [][]string{nil, {"entities"}, {"entities.team.write"}, {"entities.*.write"}} {
		b.Invocation.Principal.Permissions = permissions
		require.Empty(t, find(b, object{}).Entities)
		require.Zero(t, find(b, object{}).Searched)
		b.refused(jig.CodeNotFound, entities.ResearchTool, object{"question": "needle", "type": "team"})
		b.refused(jig.CodeNotFound, entities.ExtractFiltersTool, object{"type": "team", "text": "needle"})
	}
	b.Invocation.Principal.Permissions = []string{"entities.team.read"}
	r := find(b, object{})
	require.Equal(t, []string{team}, idsOf(r))
	require.Len(t, r.Entities[0].Passages, 1)
	require.Equal(t, entities.Searched{Entities: 1, Documents: 1}, r.Searched)
	b.refused(jig.CodeNotFound, entities.ResearchTool, object{"question": "needle", "types": []string{"team", "report"}})

	thief := newBench(t, "*")
	thief.Invocation.Tenant += "-thief"
	require.Empty(t, find(thief, object{}).Entities)
	for _, id := range []string{team, jig.NewEntityID("customer")} {
		for _, where := range []object{{"field": "$id", "op": "eq", "value": id}, {"field": "$id", "op": "in", "value": []string{id}}, {"field": "parent", "op": "eq", "value": id}} {
			r := find(thief, object{"type": "team", "where": []object{where}})
			require.Empty(t, r.Entities)
			require.Zero(t, r.Searched)
		}
	}
}

// every is a type with a field of each storage type.
var every = entity.Type{Name: "every", Version: "v1", Fields: []entity.Field{
	{Name: "text", Type: entity.FieldText},
	{Name: "number", Type: entity.FieldNumber},
	{Name: "boolean", Type: entity.FieldBoolean},
	{Name: "date", Type: entity.FieldDate},
	{Name: "enum", Type: entity.FieldEnum, Options: []string{"low", "high"}},
	{Name: "url", Type: entity.FieldURL},
	{Name: "email", Type: entity.FieldEmail},
	{Name: "phone", Type: entity.FieldPhone},
	{Name: "media", Type: entity.FieldMedia},
	{Name: "relation", Type: entity.FieldRelation, Target: "team"},
	{Name: "object", Type: entity.FieldObject, Fields: []entity.Field{{Name: "at", Type: entity.FieldDate, Time: true}}},
	{Name: "array", Type: entity.FieldArray, Items: &entity.Field{Type: entity.FieldEnum, Options: []string{"a", "b"}}},
}}

func withEvery(o *entities.Options) {
	o.Types = func(context.Context, string) ([]entity.Type, error) {
		return append(slices.Clone(types), every), nil
	}
}

// listTypes returns the fields that a type can be filtered by, with their controls, and entities.filter accepts each of their operators.
func TestFilterFields_MatchTheFilter(t *testing.T) {
	t.Parallel()
	b := benchOver(t, withEvery, "*")
	var list entity.TypeList
	b.call(entities.ListTypesTool, object{"type": "every"}, &list)
	controls := map[entity.FieldType]string{}
	for _, f := range list.Types[0].FilterFields {
		top, _, _ := strings.Cut(f.Field, ".")
		i := slices.IndexFunc(every.Fields, func(field entity.Field) bool { return field.Name == top })
		controls[every.Fields[i].Type] = string(f.Control)
		require.NotEmpty(t, f.Label)
		require.NotEmpty(t, f.Operators, f.Field)
		value := map[entity.FieldType]any{
			entity.FieldNumber: 7, entity.FieldBoolean: true, entity.FieldDate: "2026-05-04", entity.FieldEnum: append(f.Options, "")[0],
		}[f.Type]
		if f.Time {
			value = "2026-05-04T10:00:00Z"
		}
		if value == nil {
			value = "x"
		}
		for _, op := range f.Operators {
			given := value
			if string(op) == "in" {
				given = []any{value, nil}
			}
			b.call(entities.FilterTool, object{"type": "every", "where": []object{{"field": f.Field, "op": op, "value": given}}}, nil)
		}
		if slices.Contains(f.Operators, "gte") { // a range consists of two conditions
			b.call(entities.FilterTool, object{"type": "every", "where": []object{{"field": f.Field, "op": "gte", "value": value}, {"field": f.Field, "op": "lte", "value": value}}}, nil)
		}
	}
	require.Len(t, controls, len(entity.FieldTypes()))
	require.Equal(t, map[entity.FieldType]string{
		"text": "text", "number": "number", "boolean": "toggle", "date": "date", "enum": "select", "url": "text", "email": "text", "phone": "text",
		"media": "text", "relation": "entity", "object": "date", "array": "multi_select",
	}, controls)
	list = entity.TypeList{}
	b.call(entities.ListTypesTool, object{}, &list)
	require.Empty(t, list.Types[0].FilterFields)
}
