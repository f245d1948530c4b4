package entities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/entity/guarded"
)

type listIn struct {
	Type string `json:"type,omitempty" jsonschema:"a type's name, to see its fields"`
}

func (o Options) listTypes(ctx context.Context, inv jig.Invocation, in listIn) (entity.TypeList, error) {
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.TypeList{}, err
	}
	if in.Type != "" {
		t, err := o.Type(ctx, inv, "/type", in.Type, entity.ActionRead)
		if err != nil {
			return entity.TypeList{}, err
		}
		types = map[string]entity.Type{t.Name: t}
	}
	var out entity.TypeList
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t := types[name]
		info := entity.TypeInfo{Name: t.Name, Title: t.Title, Description: t.Description, FieldCount: len(t.Fields)}
		for _, action := range entity.Actions() {
			if entity.May(inv.Principal, name, action) {
				info.May = append(info.May, action)
			}
		}
		for _, f := range t.Fields {
			if in.Type == "" {
				break
			}
			b, err := json.Marshal(f)
			if err != nil {
				return entity.TypeList{}, fmt.Errorf("write the field %s: %w", f.Name, err)
			}
			info.Fields = append(info.Fields, b)
		}
		if in.Type != "" {
			info.FilterFields = entity.FilterFields(t)
		}
		out.Types = append(out.Types, info)
	}
	return out, nil
}

type statsIn struct{}

// Stats is the output of entities.stats.
type Stats struct {
	Types []entity.Count `json:"types"`
	Total int64          `json:"total"`
}

// Summary implements tools.Summarizer.
func (s Stats) Summary() string { return fmt.Sprintf("%d entities of %d types", s.Total, len(s.Types)) }

func (o Options) stats(ctx context.Context, inv jig.Invocation, _ statsIn) (Stats, error) {
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return Stats{}, err
	}
	counts, err := o.Store.EntityCounts(ctx, inv.Tenant)
	if err != nil {
		return Stats{}, err
	}
	var out Stats
	for _, c := range counts {
		if _, ok := types[c.Type]; ok {
			out.Types, out.Total = append(out.Types, c), out.Total+c.Count
		}
	}
	return out, nil
}

type searchIn struct {
	Query     string   `json:"query"               jsonschema:"words, as one types them into a search engine" minLength:"1" maxLength:"1000"`
	Types     []string `json:"types,omitempty"     jsonschema:"search only entities of these types"         maxItems:"50"`
	Workspace string   `json:"workspace,omitempty" jsonschema:"search only entities of this workspace"`
	Limit     int      `json:"limit,omitempty"     default:"20" minimum:"1" maximum:"100"`
}

func (o Options) search(ctx context.Context, inv jig.Invocation, in searchIn) (entity.HitList, error) {
	types, err := o.ReadableTypes(ctx, inv)
	if err != nil {
		return entity.HitList{}, err
	}
	names := slices.Sorted(maps.Keys(types))
	if len(in.Types) > 0 {
		for i, name := range in.Types {
			if _, err := o.Type(ctx, inv, fmt.Sprintf("/types/%d", i), name, entity.ActionRead); err != nil {
				return entity.HitList{}, err
			}
		}
		names = in.Types
	}
	hits, err := o.Store.SearchEntities(ctx, inv.Tenant, names, in.Query, in.Workspace, in.Limit)
	return entity.HitList{Hits: hits}, err
}

type filterIn struct {
	Type      string                `json:"type"                jsonschema:"the entity type's name" minLength:"1"`
	Where     []entity.FilterClause `json:"where,omitempty"     jsonschema:"conditions {field, op, value}, or groups of them: {any: [...]} or {all: [...]}" maxItems:"50"`
	Match     entity.FilterMatch    `json:"match,omitempty"     jsonschema:"whether all of where must hold, or any" enum:"all,any" default:"all"`
	Sort      []entity.FilterSort   `json:"sort,omitempty"      jsonschema:"default: $created_at" maxItems:"5"`
	Limit     int                   `json:"limit,omitempty"     default:"20" minimum:"1" maximum:"100"`
	Cursor    string                `json:"cursor,omitempty"    jsonschema:"next_cursor of the page before, with the same filter"`
	Workspace string                `json:"workspace,omitempty" jsonschema:"search only entities of this workspace"`
	Fields    []string              `json:"fields,omitempty"    jsonschema:"fields to return with each entity, dotted into objects" maxItems:"20"`
}

// filterInput adds the list of operators to the schema of a filter.
func filterInput(s *jsonschema.Schema) {
	var ops []any
	for _, op := range entity.FilterOps() {
		ops = append(ops, string(op))
	}
	clause := s.Properties["where"].Items
	for _, condition := range []*jsonschema.Schema{clause, clause.Properties["any"].Items, clause.Properties["all"].Items} {
		condition.Properties["op"].Enum = ops
	}
}

// maxListed is the longest value that a list of entities shows, in bytes.
const maxListed = 1000

func (o Options) filter(ctx context.Context, inv jig.Invocation, in filterIn) (entity.RowPage, error) {
	t, err := o.Type(ctx, inv, "/type", in.Type, entity.ActionRead)
	if err != nil {
		return entity.RowPage{}, err
	}
	for i, name := range in.Fields {
		if _, err := guarded.FieldAt(t, fmt.Sprintf("/fields/%d", i), name); err != nil {
			return entity.RowPage{}, err
		}
	}
	found, err := o.Store.FilterEntities(ctx, inv.Tenant, t, entity.Filter{
		Type: in.Type, Where: in.Where, Match: in.Match, Sort: in.Sort, Limit: in.Limit, Cursor: in.Cursor, Workspace: in.Workspace,
	})
	if err != nil {
		return entity.RowPage{}, err
	}
	page := entity.RowPage{Next: found.Next, Filter: entity.Filter{Type: in.Type, Where: in.Where, Match: in.Match, Sort: in.Sort, Workspace: in.Workspace}}
	if len(in.Sort) == 0 {
		page.Filter.Sort = []entity.FilterSort{{Field: entity.FilterCreatedAt}}
	}
	for _, e := range found.Entities {
		row := entity.Row{
			ID: e.ID, Title: e.Title, Revision: e.Revision, UpdatedAt: e.UpdatedAt, Tags: tagsIn(e.Content), Address: entity.AddressOf(e.ID, e.Title),
		}
		for _, name := range in.Fields {
			switch v := valueAt(e.Content, name); {
			case len(v) > maxListed:
				row.Large = append(row.Large, name)
			case v != nil:
				if row.Values == nil {
					row.Values = map[string]json.RawMessage{}
				}
				row.Values[name] = v
			}
		}
		page.Entities = append(page.Entities, row)
	}
	page.Total, err = o.total(ctx, inv.Tenant, in, page)
	return page, err
}

// total returns how many entities a filter finds, if the first page shows all of them or if they are all entities of the type.
func (o Options) total(ctx context.Context, tenant string, in filterIn, page entity.RowPage) (*int64, error) {
	switch {
	case in.Cursor != "":
		return nil, nil // nil means that it is not known
	case page.Next == "":
		return new(int64(len(page.Entities))), nil
	case len(in.Where) > 0 || in.Workspace != "":
		return nil, nil // nil means that it is not known
	}
	counts, err := o.Store.EntityCounts(ctx, tenant)
	for _, c := range counts {
		if c.Type == in.Type {
			return &c.Count, err
		}
	}
	return nil, err
}

// tagsIn returns the texts of the list tags in a content; nil if there is no such list.
func tagsIn(content json.RawMessage) []string {
	var tags []string
	if json.Unmarshal(valueAt(content, "tags"), &tags) != nil {
		return nil
	}
	return tags
}

// valueAt returns the value of a field in a content; nil if it is missing or null.
func valueAt(content json.RawMessage, name string) json.RawMessage {
	v := content
	for part := range strings.SplitSeq(name, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(v, &object) != nil {
			return nil
		}
		v = object[part]
	}
	if string(v) == "null" || len(v) == 0 {
		return nil
	}
	return v
}
