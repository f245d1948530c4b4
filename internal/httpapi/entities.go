package httpapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// serveEntities serves the operations on entities.
func (a *API) serveEntities() {
	readTool(a, api.ListEntityTypes, toolname.EntitiesListTypes)
	serve(a, api.GetEntityType, a.getEntityType)
	serve(a, api.ListEntities, a.listEntities)
	readTool(a, api.SearchEntities, toolname.EntitiesSearch)
	serve(a, api.GetEntity, a.getEntity)
	readTool(a, api.ListRelations, toolname.EntitiesListRelations)
	serve(a, api.GetExtraction, a.getExtraction)
	readTool(a, api.GetText, toolname.EntitiesGetText)
	serveAs(a, api.CreateEntity, func(ctx context.Context, in *api.CreateEntityRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesCreate, in.Body)
	})
	serveAs(a, api.ChangeEntity, func(ctx context.Context, in *api.ChangeEntityRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesUpdate, struct {
			ID string `json:"id"`
			api.EntityChange
		}{in.Entity, in.Body})
	})
	serveAs(a, api.DeleteEntity, func(ctx context.Context, in *api.DeleteEntityRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesDelete, struct {
			ID       string `json:"id"`
			Revision int64  `json:"revision,omitempty"`
		}{in.Entity, in.Revision})
	})
	serveAs(a, api.CreateRelation, func(ctx context.Context, in *api.CreateRelationRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesCreateRelation, map[string]string{"from": in.Entity, "name": in.Body.Name, "to": in.Body.To})
	})
	serveAs(a, api.PutText, func(ctx context.Context, in *api.PutTextRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesPutText, struct {
			ID string `json:"id"`
			api.NewText
		}{in.Entity, in.Body})
	})
	serveAs(a, api.StartExtraction, func(ctx context.Context, in *api.ExtractRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.EntitiesExtract, struct {
			ID string `json:"id"`
			api.Extraction
		}{in.Entity, in.Body})
	})
}

// readTool serves an operation whose request has the arguments of a built-in tool, and whose response is what the tool returns.
func readTool[Q, R any](a *API, op api.Op[Q, R], tool string) {
	serve(a, op, func(ctx context.Context, in *Q) (R, error) { return readWith[R](ctx, a, tool, in) })
}

// readWith reads with one of the built-in tools for entities, as the principal of the credential and under the rules for calls of the tool.
func readWith[R any](ctx context.Context, a *API, tool string, input any) (response R, err error) {
	tenant, who := callerOf(ctx)
	arguments, err := jsontext.Encode(input)
	if err != nil {
		return response, err
	}
	data, err := a.options.Engine.ReadWithTool(ctx, protocol.ToolReadRequest{Tenant: tenant, Principal: who, Tool: tool, Input: arguments})
	if err != nil {
		return response, err
	}
	if err := json.Unmarshal(data, &response); err != nil {
		return response, jig.Errorf(jig.CodeInternal, "decoding the answer of %s: %w", tool, err)
	}
	return response, nil
}

func (a *API) getEntityType(ctx context.Context, in *api.EntityTypePath) (entity.TypeInfo, error) {
	found, err := readWith[entity.TypeList](ctx, a, toolname.EntitiesListTypes, in)
	if err != nil {
		return entity.TypeInfo{}, err
	}
	if len(found.Types) != 1 {
		return entity.TypeInfo{}, jig.Errorf(jig.CodeInternal, "one type was asked for, and %d were found", len(found.Types))
	}
	return found.Types[0], nil
}

func (a *API) getExtraction(ctx context.Context, in *api.EntityPath) (jig.EntityStatus, error) {
	return readWith[jig.EntityStatus](ctx, a, toolname.TasksGetStatus, map[string]string{"entity_id": in.Entity})
}

func (a *API) listEntities(ctx context.Context, in *api.ListEntitiesRequest) (list api.EntityList, err error) {
	list.Filter = api.EntityFilter{Type: in.Type, Match: in.Match, Workspace: in.Workspace}
	if in.Where != "" {
		if list.Filter.Where = json.RawMessage(in.Where); !json.Valid(list.Filter.Where) {
			return list, invalid("the conditions are not JSON").WithField("where").WithHint("send a list of {field, op, value}, encoded for an address")
		}
	}
	for _, s := range in.Sort {
		field, descends := strings.CutPrefix(s, "-")
		list.Filter.Sort = append(list.Filter.Sort, entity.FilterSort{Field: field, Desc: descends})
	}
	found, err := readWith[entity.RowPage](ctx, a, toolname.EntitiesFilter, struct {
		api.EntityFilter
		Fields []string `json:"fields,omitempty"`
		Cursor string   `json:"cursor,omitempty"`
		Limit  int      `json:"limit"`
	}{list.Filter, in.Fields, in.Cursor, in.Limit})
	list.Total, list.Next = found.Total, found.Next
	for _, row := range found.Entities {
		list.Entities = append(list.Entities, api.ListedEntity{Row: row})
	}
	return list, err
}

func (a *API) getEntity(ctx context.Context, in *api.GetEntityRequest) (api.Entity, error) {
	found, err := readWith[entity.Reading](ctx, a, toolname.EntitiesGet, struct {
		*api.GetEntityRequest
		Provenance bool `json:"provenance"`
	}{in, true})
	return api.Entity{Reading: found}, err
}
