package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/toolname"
)

// OneEntity names an entity in the path.
type OneEntity struct {
	Entity string `path:"entity" names:"entity" minLength:"1" maxLength:"200" doc:"The id of the entity"`
}

type getEntityRequest struct {
	OneEntity
	Field  string `query:"field" maxLength:"500" doc:"A field to read as a whole or in parts, with dots for fields of objects"`
	Offset int    `query:"offset" minimum:"0" doc:"With field: next of the previous part"`
}

// entityField is a field of an entity.
type entityField struct {
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Size      int             `json:"size" doc:"The size of the value in bytes of JSON"`
	Value     json.RawMessage `json:"value,omitempty" doc:"The value, if it is short"`
	Beginning string          `json:"beginning,omitempty" doc:"The first characters of a longer text, or the length of a list"`
}

// entityText is a text of an entity without its body.
type entityText struct {
	ID        string `json:"document_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// provenance says how a task produced a value.
type provenance struct {
	Task      string    `json:"task"`
	Sources   []string  `json:"sources,omitempty"`
	Model     string    `json:"model,omitempty"`
	Tokens    int64     `json:"tokens,omitempty"`
	InputHash string    `json:"input_hash" doc:"The SHA-256 of what the value was produced from"`
	Attempt   int       `json:"attempt,omitempty"`
	Call      string    `json:"call,omitempty"`
	At        time.Time `json:"at"`
}

type entityAnswer struct {
	Body struct {
		ID         string                `json:"entity_id"`
		Type       string                `json:"type"`
		Title      string                `json:"title,omitempty"`
		Slug       string                `json:"slug,omitempty" doc:"The title in a form for URLs; not unique"`
		Href       string                `json:"href" doc:"Where the entity can be read"`
		Revision   int64                 `json:"revision" doc:"The revision, which changes must name"`
		CreatedAt  time.Time             `json:"created_at"`
		UpdatedAt  time.Time             `json:"updated_at"`
		Fields     []entityField         `json:"fields,omitempty" doc:"The fields, unless one was requested"`
		Missing    []string              `json:"missing,omitempty" doc:"Fields without a value"`
		Provenance map[string]provenance `json:"provenance,omitempty" doc:"By field: how a task produced the value"`
		Texts      []entityText          `json:"texts,omitempty" doc:"The texts, the oldest first, at most 50"`
		Field      string                `json:"field,omitempty" doc:"The requested field"`
		Value      json.RawMessage       `json:"value,omitempty" doc:"Its value, or a part of it"`
		Next       int                   `json:"next,omitempty" doc:"The offset of the next part; absent at the end"`
	} `nameHint:"Entity"`
}

func (a *API) getEntity(ctx context.Context, in *getEntityRequest) (*entityAnswer, error) {
	var answer entityAnswer
	err := readWith(ctx, a, toolname.EntitiesGet, struct {
		ID         string `json:"id"`
		Field      string `json:"field,omitempty"`
		Offset     int    `json:"offset,omitempty"`
		Provenance bool   `json:"provenance"`
	}{in.Entity, in.Field, in.Offset, true}, &answer.Body)
	answer.Body.Slug, answer.Body.Href = slug(answer.Body.Title), entityPath(answer.Body.ID)
	return &answer, err
}

// entityRelation is a relation as one of its entities sees it.
type entityRelation struct {
	Name     string `json:"name"`
	Outgoing bool   `json:"outgoing" doc:"Whether the entity points at the other one; otherwise the other one points at it"`
	EntityID string `json:"entity_id" doc:"The other entity"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
}

type relationsAnswer struct {
	Body struct {
		Relations []entityRelation `json:"relations" doc:"At most 500, beginning with those that the entity points at"`
		More      bool             `json:"more,omitempty" doc:"Whether there are more"`
	} `nameHint:"RelationList"`
}

func (a *API) listRelations(ctx context.Context, in *OneEntity) (*relationsAnswer, error) {
	var answer relationsAnswer
	err := readWith(ctx, a, toolname.EntitiesListRelations, map[string]string{"id": in.Entity}, &answer.Body)
	answer.Body.Relations = append([]entityRelation{}, answer.Body.Relations...)
	return &answer, err
}

type getTextRequest struct {
	Text   string `path:"text" names:"text" minLength:"1" maxLength:"200" doc:"The id of the text"`
	Offset int    `query:"offset" minimum:"0" doc:"next of the previous part"`
}

type textAnswer struct {
	Body struct {
		ID        string `json:"document_id"`
		Entity    string `json:"entity_id"`
		Title     string `json:"title,omitempty"`
		MediaType string `json:"media_type"`
		Text      string `json:"body" doc:"At most 16,000 characters"`
		Next      int    `json:"next,omitempty" doc:"The offset of the next part, in characters; absent at the end"`
	} `nameHint:"EntityText"`
}

func (a *API) getText(ctx context.Context, in *getTextRequest) (*textAnswer, error) {
	var answer textAnswer
	err := readWith(ctx, a, toolname.EntitiesGetText, struct {
		Text   string `json:"document_id"`
		Offset int    `json:"offset,omitempty"`
	}{in.Text, in.Offset}, &answer.Body)
	return &answer, err
}

type extractionAnswer struct{ Body jig.EntityStatus }

func (a *API) getExtraction(ctx context.Context, in *OneEntity) (*extractionAnswer, error) {
	var answer extractionAnswer
	err := readWith(ctx, a, toolname.TasksGetStatus, map[string]string{"entity_id": in.Entity}, &answer.Body)
	return &answer, err
}

type createEntityRequest struct {
	api.CallHeaders
	Body struct {
		Type      string                     `json:"type" names:"entity_type" minLength:"1" maxLength:"200" doc:"The name of the entity type"`
		Title     string                     `json:"title,omitempty" maxLength:"500"`
		Content   map[string]json.RawMessage `json:"content" doc:"The fields and their values"`
		Workspace string                     `json:"workspace,omitempty" names:"workspace" maxLength:"128" doc:"A workspace to put it in"`
	} `nameHint:"CreateEntity"`
}

func (a *API) createEntity(ctx context.Context, in *createEntityRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesCreate, in.Body)
}

type changeEntityRequest struct {
	OneEntity
	api.CallHeaders
	Body entityChange `nameHint:"ChangeEntity"`
}

// entityChange changes some fields of an entity.
type entityChange struct {
	Revision int64                      `json:"revision" minimum:"1" doc:"The revision that the client has seen"`
	Title    *string                    `json:"title,omitempty" maxLength:"500"`
	Set      map[string]json.RawMessage `json:"set,omitempty" doc:"Fields and their new values; null removes a field"`
}

func (a *API) changeEntity(ctx context.Context, in *changeEntityRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesUpdate, struct {
		ID string `json:"id"`
		entityChange
	}{in.Entity, in.Body})
}

type deleteEntityRequest struct {
	OneEntity
	api.CallHeaders
	Revision int64 `query:"revision" minimum:"1" doc:"The revision that the client has seen. Default: any"`
}

func (a *API) deleteEntity(ctx context.Context, in *deleteEntityRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesDelete, struct {
		ID       string `json:"id"`
		Revision int64  `json:"revision,omitempty"`
	}{in.Entity, in.Revision})
}

type createRelationRequest struct {
	OneEntity
	api.CallHeaders
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"The name of the relation, e.g. depends_on"`
		To   string `json:"to" names:"entity" minLength:"1" maxLength:"200" doc:"The id of the entity that it points at"`
	} `nameHint:"CreateRelation"`
}

func (a *API) createRelation(ctx context.Context, in *createRelationRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesCreateRelation, map[string]string{"from": in.Entity, "name": in.Body.Name, "to": in.Body.To})
}

type putTextRequest struct {
	OneEntity
	api.CallHeaders
	Body newText `nameHint:"PutText"`
}

// newText is a text that is added to an entity, or takes the place of one of its texts.
type newText struct {
	Text      string `json:"body" minLength:"1"`
	Title     string `json:"title,omitempty" maxLength:"500"`
	MediaType string `json:"media_type,omitempty" maxLength:"100" doc:"Default: text/plain"`
	Replaces  string `json:"document_id,omitempty" names:"text" maxLength:"200" doc:"The id of the entity's text to replace"`
}

func (a *API) putText(ctx context.Context, in *putTextRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesPutText, struct {
		ID string `json:"id"`
		newText
	}{in.Entity, in.Body})
}

type extractRequest struct {
	OneEntity
	api.CallHeaders
	Body extraction `nameHint:"Extract"`
}

// extraction says which tasks of an entity run.
type extraction struct {
	Fields []string        `json:"fields,omitempty" doc:"Only these fields, and the tasks that they depend on"`
	Mode   string          `json:"mode,omitempty" enum:"run,retry,refresh" doc:"run: every task; retry: tasks without a value; refresh: tasks whose inputs or sources changed. Default: run"`
	Input  json.RawMessage `json:"input,omitempty" doc:"An object that the tasks read as input"`
}

func (a *API) startExtraction(ctx context.Context, in *extractRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.EntitiesExtract, struct {
		ID string `json:"id"`
		extraction
	}{in.Entity, in.Body})
}
