package remote

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// DocumentAt returns a stored version of a document, like [client.Client.DocumentAt].
func (c *Client) DocumentAt(ctx context.Context, tenant, kind, name, version string) ([]byte, error) {
	found, err := call(ctx, c, api.GetDocument, api.GetDocumentRequest{DocumentPath: api.DocumentPath{Kind: kind, Name: name}, Version: version})
	return []byte(found.Text), err
}

// DocumentVersions lists the stored versions of a document, like [client.Client.DocumentVersions].
func (c *Client) DocumentVersions(ctx context.Context, tenant, kind, name, version string) ([]protocol.DocumentState, error) {
	found, err := call(ctx, c, api.ListVersions, api.DocumentPath{Kind: kind, Name: name})
	return slices.DeleteFunc(found.Versions, func(v protocol.DocumentState) bool { return version != "" && v.Version != version }), err
}

// ReadWithTool reads entities with one of the built-in tools, like [client.Client.ReadWithTool]. It knows entities.filter, entities.search and
// entities.get, without the option to get an entity without its provenance.
func (c *Client) ReadWithTool(ctx context.Context, r protocol.ToolReadRequest) (json.RawMessage, error) {
	switch r.Tool {
	case toolname.EntitiesFilter:
		var in struct {
			api.EntityFilter
			Fields []string `json:"fields"`
			Cursor string   `json:"cursor"`
			Limit  int      `json:"limit"`
		}
		if err := json.Unmarshal(r.Input, &in); err != nil {
			return nil, jig.Errorf(jig.CodeInternal, "reading the input of %s: %w", r.Tool, err)
		}
		q := api.ListEntitiesRequest{
			Type: in.Type, Where: string(in.Where), Match: in.Match, Fields: in.Fields, Workspace: in.Workspace, Cursor: in.Cursor, Limit: in.Limit,
		}
		for _, s := range in.Sort {
			q.Sort = append(q.Sort, map[bool]string{true: "-"}[s.Desc]+s.Field)
		}
		list, err := call(ctx, c, api.ListEntities, q)
		page := entity.RowPage{Total: list.Total, Next: list.Next}
		for _, e := range list.Entities {
			page.Entities = append(page.Entities, e.Row)
		}
		return encoded(page, err)
	case toolname.EntitiesSearch:
		return readAs(ctx, c, api.SearchEntities, r.Input)
	case toolname.EntitiesGet:
		return readAs(ctx, c, api.GetEntity, r.Input)
	}
	return nil, jig.Errorf(jig.CodeInternal, "the API has no operation for the tool %s", r.Tool)
}

// readAs calls an operation whose request has the arguments of a tool.
func readAs[Q, R any](ctx context.Context, c *Client, op api.Op[Q, R], input json.RawMessage) (json.RawMessage, error) {
	var request Q
	if err := json.Unmarshal(input, &request); err != nil {
		return nil, jig.Errorf(jig.CodeInternal, "reading the request: %w", err)
	}
	response, err := call(ctx, c, op, request)
	return encoded(response, err)
}

// encoded returns a response as JSON, unless there is an error.
func encoded(response any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return jsontext.Encode(response)
}
