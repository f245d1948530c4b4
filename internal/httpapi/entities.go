package httpapi

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// readWith reads with one of the built-in tools for entities, as the principal of the credential and under the rules for calls of the tool.
func readWith(ctx context.Context, a *API, tool string, input, into any) error {
	tenant, who := callerOf(ctx)
	arguments, err := jsontext.Encode(input)
	if err != nil {
		return err
	}
	data, err := a.options.Engine.ReadWithTool(ctx, protocol.ToolReadRequest{Tenant: tenant, Principal: who, Tool: tool, Input: arguments})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return jig.Errorf(jig.CodeInternal, "decoding the answer of %s: %w", tool, err)
	}
	return nil
}

// EntityType is an entity type without its fields.
type EntityType struct {
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	May         []string `json:"may" doc:"What the principal may do with its entities: read, write, delete"`
	FieldCount  int      `json:"field_count"`
}

type entityTypesAnswer struct {
	Body struct {
		Types []EntityType `json:"types"`
	} `nameHint:"EntityTypeList"`
}

func (a *API) listEntityTypes(ctx context.Context, _ *struct{}) (*entityTypesAnswer, error) {
	var answer entityTypesAnswer
	answer.Body.Types = []EntityType{}
	return &answer, readWith(ctx, a, toolname.EntitiesListTypes, struct{}{}, &answer.Body)
}

type entityTypeRequest struct {
	Type string `path:"type" names:"entity_type" maxLength:"200" doc:"The name of the entity type"`
}

// describedType is an entity type with its fields.
type describedType struct {
	EntityType
	Fields       []json.RawMessage `json:"fields" doc:"The fields as the document of the type defines them"`
	FilterFields []filterField     `json:"filter_fields" doc:"Suggested filters: the fields that entities can be filtered by, each with a control"`
}

type entityTypeAnswer struct{ Body describedType }

// filterField is a field that entities can be filtered by.
type filterField struct {
	Field     string   `json:"field" doc:"The name of the field, with dots for fields of objects"`
	Label     string   `json:"label"`
	Type      string   `json:"type" doc:"The type of the values that the field is compared with"`
	List      bool     `json:"list,omitempty" doc:"Whether the field has several values"`
	Control   string   `json:"control" doc:"text, number, range, toggle, select, multi_select, date or entity"`
	Operators []string `json:"operators"`
	Options   []string `json:"options,omitempty"`
	Target    string   `json:"target,omitempty" doc:"The entity type of a relation"`
	Minimum   *float64 `json:"minimum,omitempty"`
	Maximum   *float64 `json:"maximum,omitempty"`
	Time      bool     `json:"time,omitempty" doc:"Whether a date has a time of day"`
}

func (a *API) getEntityType(ctx context.Context, in *entityTypeRequest) (*entityTypeAnswer, error) {
	var found struct{ Types []describedType }
	if err := readWith(ctx, a, toolname.EntitiesListTypes, map[string]string{"type": in.Type}, &found); err != nil {
		return nil, err
	}
	if len(found.Types) != 1 {
		return nil, jig.Errorf(jig.CodeInternal, "one type was asked for, and %d were found", len(found.Types))
	}
	t := found.Types[0]
	t.Fields, t.FilterFields = append([]json.RawMessage{}, t.Fields...), append([]filterField{}, t.FilterFields...)
	return &entityTypeAnswer{Body: t}, nil
}

// entityFilter says which entities a list has.
type entityFilter struct {
	Type      string          `json:"type"`
	Where     json.RawMessage `json:"where,omitempty"`
	Match     string          `json:"match,omitempty"`
	Sort      []entitySort    `json:"sort,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
}

type entitySort struct {
	Field string `json:"field"`
	Desc  bool   `json:"desc,omitempty"`
}

type listEntitiesRequest struct {
	Type      string   `query:"type" names:"entity_type" required:"true" maxLength:"200" doc:"The name of the entity type"`
	Where     string   `query:"where" maxLength:"8000" doc:"Conditions as JSON, as the tool entities.filter takes them, e.g. [{\"field\":\"risk\",\"op\":\"eq\",\"value\":\"high\"}]"`
	Match     string   `query:"match" enum:"all,any" doc:"Whether all conditions must hold, or any. Default: all"`
	Sort      []string `query:"sort" maxItems:"5" doc:"Fields to sort by, with a leading - for descending order, e.g. -age,name. Default: $created_at"`
	Fields    []string `query:"fields" maxItems:"20" doc:"Fields to return with each entity, with dots for fields of objects"`
	Workspace string   `query:"workspace" names:"workspace" maxLength:"128" doc:"Only entities of this workspace"`
	Cursor    string   `query:"cursor" maxLength:"4000" doc:"next_cursor of the previous page, with the same filter"`
	Limit     int      `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of entities on a page"`
}

// listedEntity is an entity in a list.
type listedEntity struct {
	ID        string                     `json:"entity_id"`
	Title     string                     `json:"title,omitempty"`
	Slug      string                     `json:"slug,omitempty" doc:"The title in a form for URLs; not unique"`
	Href      string                     `json:"href" doc:"Where the entity can be read"`
	Tags      []string                   `json:"tags,omitempty" doc:"The texts of the field tags, if the type has such a list"`
	Revision  int64                      `json:"revision"`
	UpdatedAt time.Time                  `json:"updated_at"`
	Values    map[string]json.RawMessage `json:"values,omitempty" doc:"The values of the requested fields"`
	Large     []string                   `json:"large,omitempty" doc:"Requested fields whose values are too long for a list"`
}

type entitiesAnswer struct {
	Body struct {
		Entities []listedEntity `json:"entities"`
		Filter   entityFilter   `json:"filter" doc:"The filter that was applied"`
		Total    *int64         `json:"total,omitempty" doc:"The number of entities on all pages. Only the first page has it, and only if it is cheap to compute"`
		Next     string         `json:"next_cursor,omitempty"`
	} `nameHint:"EntityList"`
}

func (a *API) listEntities(ctx context.Context, in *listEntitiesRequest) (*entitiesAnswer, error) {
	filter := entityFilter{Type: in.Type, Match: in.Match, Workspace: in.Workspace}
	if in.Where != "" {
		if filter.Where = json.RawMessage(in.Where); !json.Valid(filter.Where) {
			return nil, invalid("the conditions are not JSON").WithField("where").WithHint("send a list of {field, op, value}, encoded for an address")
		}
	}
	for _, s := range in.Sort {
		field, descends := strings.CutPrefix(s, "-")
		filter.Sort = append(filter.Sort, entitySort{Field: field, Desc: descends})
	}
	var found struct {
		Entities []listedEntity
		Next     string
		Total    *int64
	}
	err := readWith(ctx, a, toolname.EntitiesFilter, struct {
		entityFilter
		Fields []string `json:"fields,omitempty"`
		Cursor string   `json:"cursor,omitempty"`
		Limit  int      `json:"limit"`
	}{filter, in.Fields, in.Cursor, in.Limit}, &found)
	if err != nil {
		return nil, err
	}
	var answer entitiesAnswer
	answer.Body.Entities = append([]listedEntity{}, found.Entities...)
	for i := range answer.Body.Entities {
		e := &answer.Body.Entities[i]
		e.Slug, e.Href = slug(e.Title), entityPath(e.ID)
	}
	answer.Body.Filter, answer.Body.Total, answer.Body.Next = filter, found.Total, found.Next
	return &answer, nil
}

func entityPath(id string) string { return "/v1/entities/" + url.PathEscape(id) }

// maxSlug bounds a slug, in characters.
const maxSlug = 80

// slug returns a title as a part of an address: its letters and digits in lower case, with a hyphen for everything between them.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	letters := []rune(strings.Join(words, "-"))
	return strings.TrimRight(string(letters[:min(len(letters), maxSlug)]), "-")
}

type searchEntitiesRequest struct {
	Query     string   `query:"q" required:"true" minLength:"1" maxLength:"1000" doc:"Search words, as in a web search"`
	Types     []string `query:"types" names:"entity_type" maxItems:"50" doc:"Only entities of these types"`
	Workspace string   `query:"workspace" names:"workspace" maxLength:"128" doc:"Only entities of this workspace"`
	Limit     int      `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of entities"`
}

// entityHit is an entity that a search found.
type entityHit struct {
	ID       string  `json:"entity_id"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Rank     float64 `json:"rank"`
	Document string  `json:"document,omitempty" doc:"The id of the text that matched; absent if the entity's own content matched"`
	Snippet  string  `json:"snippet,omitempty" doc:"An excerpt with the words marked as **word**"`
}

type searchEntitiesAnswer struct {
	Body struct {
		Hits []entityHit `json:"hits" doc:"The best match first"`
	} `nameHint:"EntityHits"`
}

func (a *API) searchEntities(ctx context.Context, in *searchEntitiesRequest) (*searchEntitiesAnswer, error) {
	var answer searchEntitiesAnswer
	err := readWith(ctx, a, toolname.EntitiesSearch, struct {
		Query     string   `json:"query"`
		Types     []string `json:"types,omitempty"`
		Workspace string   `json:"workspace,omitempty"`
		Limit     int      `json:"limit"`
	}{in.Query, in.Types, in.Workspace, in.Limit}, &answer.Body)
	answer.Body.Hits = append([]entityHit{}, answer.Body.Hits...)
	return &answer, err
}
