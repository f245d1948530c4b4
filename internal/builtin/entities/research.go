package entities

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/tools"
)

// ResearchTool is the name of the tool that finds what the texts of entities say about a question.
const ResearchTool = "entities.research"

const (
	// maxNarrowed bounds the entities that a filter selects. maxFound bounds the entities, and the chunks, that a search returns.
	maxNarrowed, maxFound = 2000, 500
	// rankConstant is the constant k of reciprocal rank fusion: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet
	// and individual Rank Learning Methods", SIGIR 2009.
	rankConstant = 60
	// atOnce bounds the entities that are processed at the same time.
	atOnce = 4
	// maxShown bounds the part of the results that a model is shown, in bytes.
	maxShown = 12 << 10
)

// The methods of finding and answering.
const (
	methodSearch     = "search"
	methodModel      = "model"
	methodExtractive = "extractive"
)

type researchIn struct {
	Question  string                `json:"question"            jsonschema:"what you want to know" minLength:"1" maxLength:"2000"`
	Type      string                `json:"type,omitempty"      jsonschema:"search only entities of this type"`
	Types     []string              `json:"types,omitempty"     jsonschema:"search only entities of these types" maxItems:"50"`
	Where     []entity.FilterClause `json:"where,omitempty"     jsonschema:"with type: search only entities that pass this filter; see entities.filter" maxItems:"50"`
	Match     entity.FilterMatch    `json:"match,omitempty"     jsonschema:"whether all of where must hold, or any" enum:"all,any" default:"all"`
	Workspace string                `json:"workspace,omitempty" jsonschema:"search only entities of this workspace"`
	Limit     int                   `json:"limit,omitempty"     jsonschema:"the maximum number of entities" default:"10" minimum:"1" maximum:"50"`
	Passages  int                   `json:"passages,omitempty"  jsonschema:"the maximum number of passages of each entity" default:"3" minimum:"1" maximum:"10"`
	Answer    bool                  `json:"answer,omitempty"    jsonschema:"answer the question for each entity, with claims that name their sources"`
	Model     string                `json:"model,omitempty"     jsonschema:"provider/model that answers; default: the worker's" maxLength:"256"`
}

// Passage is a piece of a text that matches the question.
type Passage struct {
	DocumentID string `json:"document_id"`
	Title      string `json:"title,omitempty"`
	// Chunk is the number of the passage in the text, from 0.
	Chunk int    `json:"chunk"`
	Text  string `json:"text"`
	// Snippet is the best part of the passage, with the matching words marked with ** on both sides.
	Snippet string `json:"snippet"`
}

// Finding is the result of the research for one entity.
type Finding struct {
	ID    string `json:"entity_id"`
	Type  string `json:"type"`
	Title string `json:"title,omitempty"`
	// Score is the reciprocal rank fusion score; 0 for an entity that passes the filter but says nothing about the question.
	Score    float64   `json:"score"`
	Passages []Passage `json:"passages"`
	// Answer and Claims are set if they were requested and there are passages. Method is set if it differs from the method of the whole
	// research.
	Answer string             `json:"answer,omitempty"`
	Claims []entity.TextClaim `json:"claims,omitempty"`
	Method string             `json:"method,omitempty"`
	// Rejected are claims of the model that do not hold.
	Rejected []RejectedClaim `json:"rejected,omitempty"`
	Note     string          `json:"note,omitempty"`
}

// RejectedClaim is a claim that does not hold, with the reason.
type RejectedClaim struct {
	Claim entity.TextClaim `json:"claim"`
	Why   string           `json:"why"`
}

// Searched says how much was searched.
type Searched struct {
	// Entities is the number of entities that passed the filter, or that matched the words if there is no filter. Documents is the number
	// of their texts with a matching passage.
	Entities  int `json:"entities"`
	Documents int `json:"documents"`
	// More reports whether there were more entities than could be searched.
	More bool `json:"more,omitempty"`
}

// Research is the output of entities.research.
type Research struct {
	// Method is search if no answers were requested, model if a model answered, and extractive if the answers are sentences from the texts.
	Method   string    `json:"method"`
	Entities []Finding `json:"entities"`
	Searched Searched  `json:"searched"`
	Model    string    `json:"model,omitempty"`
	Usage    *Usage    `json:"usage,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Research) Summary() string {
	return fmt.Sprintf("%d entities, %d documents looked at (%s)", len(r.Entities), r.Searched.Documents, r.Method)
}

// Markdown implements tools.Markdowner. It shows answers, or snippets if there are none; the data has the full passages.
func (r Research) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", r.Summary())
	for i, f := range r.Entities {
		if b.Len() > maxShown {
			fmt.Fprintf(&b, "\n%d more are in the data.\n", len(r.Entities)-i)
			break
		}
		fmt.Fprintf(&b, "\n%s %s %q, score %.4f\n", f.Type, f.ID, f.Title, f.Score)
		if f.Answer != "" {
			fmt.Fprintf(&b, "Answer: %s\n", f.Answer)
		}
		for _, c := range f.Claims {
			fmt.Fprintf(&b, "- %s (%s)\n", c.Text, strings.Join(c.SourceEntityIDs, ", "))
		}
		for _, p := range f.Passages {
			if f.Answer == "" {
				fmt.Fprintf(&b, "- %s, chunk %d: %s\n", p.DocumentID, p.Chunk, strings.Join(strings.Fields(p.Snippet), " "))
			}
		}
	}
	return b.String()
}

func (o Options) researchTool() tools.Tool {
	return tools.New(jig.Tool{
		Name: ResearchTool,
		Description: "Finds what the texts of entities say about a question: the best entities with their best passages; where narrows to those that pass a filter. " +
			"With answer, it also answers the question for each entity, with claims that quote the passages: by a language model (which costs tokens) or, " +
			"without a model, with sentences from the texts. To find entities only, use entities.search.",
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Idempotent: true, Execution: jig.ExecutionActivity,
		Timeout: askTimeout, MaxAttempts: chat.MaxRequests, RetryFor: chat.RetryFor, Tags: []string{"entities", "model"}, Labels: &jig.Labels{Reads: []string{jig.ReadsPrivate}},
	}, o.research, tools.AdjustInput(filterInput))
}

func (o Options) research(ctx context.Context, inv jig.Invocation, in researchIn) (Research, error) {
	types, err := o.researched(ctx, inv, in)
	if err != nil {
		return Research{}, err
	}
	model, err := o.modelFor(in.Model)
	if err != nil {
		return Research{}, err
	}
	out := Research{Method: methodSearch}
	query := searchQuery(in.Question)
	if out.Entities, out.Searched, err = o.found(ctx, inv.Tenant, types, query, in); err != nil {
		return Research{}, err
	}
	answer := answerer{Options: o, inv: inv, question: in.Question, model: model}
	if in.Answer {
		out.Method = answer.method()
	}
	err = each(ctx, len(out.Entities), func(ctx context.Context, i int) error {
		f := &out.Entities[i]
		if err := o.passages(ctx, inv.Tenant, query, in.Passages, f); err != nil || !in.Answer {
			return err
		}
		return answer.of(ctx, f)
	})
	if err != nil {
		return Research{}, err
	}
	if out.Method == methodModel {
		out.Model, out.Usage = answer.done.model, &answer.done.usage
	}
	return out, nil
}

// researched returns the types to search: the named ones, or all that the principal may read.
func (o Options) researched(ctx context.Context, inv jig.Invocation, in researchIn) ([]entity.Type, error) {
	readable, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return nil, err
	}
	at, names := "/types", in.Types
	if in.Type != "" {
		if len(in.Types) > 0 {
			return nil, jig.Errorf(jig.CodeInvalidInput, "type and types are both given").WithField("/types").WithHint("give one of them")
		}
		at, names = "/type", []string{in.Type}
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(readable))
	} else {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	types := make([]entity.Type, len(names))
	for i, name := range names {
		if types[i], err = o.Type(ctx, inv, at, name, entity.ActionRead); err != nil {
			return nil, err
		}
	}
	if len(in.Where) > 0 && in.Type == "" && len(in.Types) != 1 {
		return nil, jig.Errorf(jig.CodeInvalidInput, "where compares fields of one type, and none is named").WithField("/where").
			WithHint("give type")
	}
	return types, nil
}

// found merges the entities that the filter selects with those that the words match, the best first. It does not fill in passages.
func (o Options) found(ctx context.Context, tenant string, types []entity.Type, query string, in researchIn) ([]Finding, Searched, error) {
	known, left, more, err := o.narrowed(ctx, tenant, types, in)
	if err != nil {
		return nil, Searched{}, err
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	hits, err := o.Store.SearchEntities(ctx, tenant, names, query, in.Workspace, maxFound)
	if err != nil {
		return nil, Searched{}, err
	}
	if len(in.Where) == 0 {
		more = len(hits) == maxFound
	}
	var byWords []string
	for _, h := range hits {
		if _, passes := known[h.EntityID]; passes || len(in.Where) == 0 {
			byWords = append(byWords, h.EntityID)
			known[h.EntityID] = Finding{ID: h.EntityID, Type: h.Type, Title: h.Title}
		}
	}
	if len(in.Where) == 0 {
		left = byWords
	}
	searched := Searched{Entities: len(left), More: more}
	if len(left) == 0 {
		return nil, searched, nil
	}
	chunks, err := o.Store.SearchText(ctx, tenant, query, left, maxFound)
	if err != nil {
		return nil, searched, err
	}
	var byChunks, documents []string
	for _, c := range chunks {
		byChunks, documents = append(byChunks, c.EntityID), append(documents, c.DocumentID)
	}
	searched.Documents = len(unique(documents))
	scores := fused(byWords, unique(byChunks))
	order := slices.SortedStableFunc(slices.Values(left), func(a, b string) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		case scores[a] == 0: // keep the filter's order
			return 0
		}
		return strings.Compare(a, b)
	})
	findings := make([]Finding, 0, in.Limit)
	for _, id := range order[:min(in.Limit, len(order))] {
		f := known[id]
		f.Score = scores[id]
		findings = append(findings, f)
	}
	return findings, searched, nil
}

// narrowed returns the entities that pass the filter, and their ids in the filter's order. Without a filter, it returns no entities.
func (o Options) narrowed(ctx context.Context, tenant string, types []entity.Type, in researchIn) (known map[string]Finding, ids []string, more bool, err error) {
	known = map[string]Finding{}
	if len(in.Where) == 0 {
		return known, nil, false, nil
	}
	f := entity.Filter{Type: types[0].Name, Where: in.Where, Match: in.Match, Workspace: in.Workspace, Limit: entity.MaxFilterLimit}
	for len(ids) < maxNarrowed {
		page, err := o.Store.FilterEntities(ctx, tenant, types[0], f)
		if err != nil {
			return nil, nil, false, err
		}
		for _, e := range page.Entities {
			ids = append(ids, e.ID)
			known[e.ID] = Finding{ID: e.ID, Type: e.Type, Title: e.Title}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	return known, ids, f.Cursor != "", nil
}

// passages adds the best passages of an entity to its finding.
func (o Options) passages(ctx context.Context, tenant, query string, limit int, f *Finding) error {
	chunks, err := o.Store.SearchText(ctx, tenant, query, []string{f.ID}, limit)
	for _, c := range chunks {
		f.Passages = append(f.Passages, Passage{DocumentID: c.DocumentID, Title: c.Title, Chunk: c.Chunk, Text: c.Body, Snippet: c.Snippet})
	}
	return err
}

// fused returns the scores of ids, given their positions in several rankings: the sum of 1/(k + position), with positions from 1.
func fused(rankings ...[]string) map[string]float64 {
	scores := map[string]float64{}
	for _, ranking := range rankings {
		for i, id := range ranking {
			scores[id] += 1 / float64(rankConstant+i+1)
		}
	}
	return scores
}

// unique returns a list without duplicates, keeping the first of each.
func unique(list []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// each calls do n times, up to atOnce at a time. The first error cancels the rest and is returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			if ctx.Err() != nil {
				return
			}
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("research: %w", err)
	}
	return nil
}
